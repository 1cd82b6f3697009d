"""Plans of sparse Hessians and Jacobians, held to the dense ones: no zero is wrong, and the products give every entry."""

import numpy as np

import symgrad
from symgrad.autograd import functional
from symgrad.carriers.sets import Inputs
from symgrad.func import patterns, sparsity
from symgrad.func.sparsity import plan_hessian, plan_jacobian


def points(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)


def rosenbrock(x):
    return symgrad.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def recorded(f, xs):
    """The node of f at some arrays (None where it is constant), and those of the arrays."""
    inputs = [symgrad.tensor(x, requires_grad=True) for x in xs]
    y = f(*inputs)
    return y._node if isinstance(y, symgrad.Tensor) else None, [x._node for x in inputs], y


def blocks(parts, xs, rows=None):
    """Blocks of derivatives as one matrix."""
    sizes = [np.size(x) for x in xs]
    return np.block([[np.asarray(b.numpy()).reshape(rows if rows is not None else n, m) for b, m in zip(row, sizes)] for row, n in zip(parts, sizes)])


def dense_hessian(f, xs):
    return blocks(functional.hessian(f, tuple(map(symgrad.tensor, xs))), xs)


def dense_jacobian(f, xs, rows):
    return blocks([functional.jacobian(f, tuple(map(symgrad.tensor, xs)))], xs, rows)


def seen(colour, found):
    """A function that colours, which notes the pattern it is given."""
    def coloured(pattern, width):
        found.update(p=pattern, w=width)
        return colour(pattern, width)

    return coloured


def mask(monkeypatch, make, *args, **kwargs):
    """The pattern of a plan as truth values, however dense it is."""
    with monkeypatch.context() as m:
        m.setattr(sparsity, "MAX_TINY_INPUTS", 10**9)
        m.setattr(patterns, "MAX_TINY_INPUTS", 10**9)
        m.setattr(Inputs, "SHARES", 0)
        m.setattr(sparsity, "_cached_plan", lambda found, shape, symmetric: sparsity._plan(found, (), shape, symmetric))
        found = {}
        for name in ("colour_symmetric", "colour_columns"):
            m.setattr(sparsity, name, seen(getattr(sparsity, name), found))
        plan = make(*args, **kwargs)
    out = np.zeros(plan.shape, bool)
    if not found:  # a clique of more than half of the inputs
        return ~out
    out[found["p"].rows, found["p"].columns] = True
    assert found["p"].nonzeros == out.sum()
    assert found["p"].nonzeros == 0 or found["w"] >= 1
    return out


def check_hessian(monkeypatch, f, *xs, local=False):
    """The plan of a Hessian and its pattern, held to the dense one."""
    node, nodes, _ = recorded(f, xs)
    truth = dense_hessian(f, xs)
    there = mask(monkeypatch, plan_hessian, node, nodes, local=local)
    assert (truth[~there] == 0).all(), "a wrong zero"
    plan = plan_hessian(node, nodes, local=local)
    if not plan.dense:
        found = plan.recover((truth @ plan.seeds.T).T)
        scale = np.abs(truth).max(initial=0)  # the dense one is symmetric but for rounding
        np.testing.assert_allclose(found.toarray(), truth, rtol=1e-12, atol=1e-12 * scale)
        assert found.nnz == plan.report.nonzeros == there.sum()
        assert plan.seeds.shape == (plan.colours, len(truth))
    return plan, there


def check_jacobian(monkeypatch, f, *xs, local=False):
    node, nodes, y = recorded(f, xs)
    truth = dense_jacobian(f, xs, y.numel())
    there = mask(monkeypatch, plan_jacobian, node, nodes, local=local, shape=tuple(y.shape))
    assert (truth[~there] == 0).all(), "a wrong zero"
    plan = plan_jacobian(node, nodes, local=local, shape=tuple(y.shape))
    if not plan.dense:
        np.testing.assert_allclose(plan.recover(plan.seeds @ truth.T).toarray(), truth, rtol=1e-12, atol=0)
    return plan, there
