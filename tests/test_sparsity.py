"""Patterns of Hessians and Jacobians: no zero is ever wrong, few products give every entry, and the patterns that people know have the fewest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from points import arrays, examples

import symgrad
from symgrad.autograd import Function, functional
from symgrad.carriers import PROTOCOL
from symgrad.carriers.dependence import dependence
from symgrad.carriers.sets import Dense
from symgrad.domains import COMPLEX
from symgrad.extending import BUILT_IN
from symgrad.func import sparsity
from symgrad.func.colouring import Pattern, colour_columns, colour_symmetric
from symgrad.func.sparsity import plan_hessian, plan_jacobian
from symgrad.lift import core
from symgrad.op import REGISTRY


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


def mask(monkeypatch, make, *args, **kwargs):
    """The pattern of a plan as truth values, however dense it is."""
    with monkeypatch.context() as m:
        m.setattr(sparsity, "TINY", 10**9)
        m.setattr(sparsity, "_remembered", sparsity._remembered.__wrapped__)
        found = {}
        for name in ("colour_symmetric", "colour_columns"):
            m.setattr(sparsity, name, lambda pattern, width, given=getattr(sparsity, name): found.update(p=pattern, w=width) or given(pattern, width))
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
        found = plan.recover(plan.seeds @ truth)
        np.testing.assert_allclose(found.toarray(), truth, rtol=1e-12, atol=0)
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


# What people know


def rosenbrock(x):
    return symgrad.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def points(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)


KNOWN = [
    ("separable", lambda x: (x.sin() * x.exp()).sum(), (30,), "diagonal", 1, 30),
    ("Rosenbrock", rosenbrock, (30,), "tridiagonal", 3, 88),
    ("second differences", lambda x: ((x[2:] - 2 * x[1:-1] + x[:-2]) ** 4).sum(), (40,), "banded", 5, 40 + 2 * 39 + 2 * 38),
    ("blocks of five", lambda x: (x.reshape(8, 5).sum(1) ** 3).sum(), (40,), "block diagonal", 5, 200),
    ("rows of a matrix", lambda x: symgrad.logsumexp(x, 1).sum(), (6, 4), "block diagonal", 4, 96),
    ("an arrow", lambda x: (x[0] * x[1:] ** 2).sum() + x[0] ** 3, (50,), "arrow", 2, 50 + 2 * 49),
    ("an arrow with a band", lambda x: (x[0] * x[1:]).sum() + rosenbrock(x), (50,), "arrow", 4, 50 + 2 * 48 + 2 * 49),
    ("opposite ends", lambda x: (x * x.flip(0)).sum(), (20,), "sparse", 1, 20),
    ("far neighbours", lambda x: (x * x.roll(7, 0)).exp().sum(), (42,), "sparse", 3, 126),
    ("linear", lambda x: 3.0 * x.sum(), (20,), "diagonal", 0, 0),
    ("dense", lambda x: x.sum() ** 3, (20,), "dense", 20, 400),
]


@pytest.mark.parametrize("f, shape, name, colours, nonzeros", [case[1:] for case in KNOWN], ids=[case[0] for case in KNOWN])
def test_known_patterns_have_the_fewest_colours(monkeypatch, f, shape, name, colours, nonzeros):
    plan, _ = check_hessian(monkeypatch, f, points(*shape))
    n = int(np.prod(shape))
    assert (plan.report.pattern, plan.report.products, plan.report.nonzeros, plan.report.shape) == (name, colours, nonzeros, (n, n))


def test_a_factorization_has_one_block_for_each_row(monkeypatch):
    v, target = points(7, 3), points(9, 7)
    plan, there = check_hessian(monkeypatch, lambda u: ((symgrad.tensor(target) - u @ symgrad.tensor(v).T) ** 2).sum(), points(9, 3))
    assert (plan.report.pattern, plan.colours) == ("block diagonal", 3)
    assert (there == np.kron(np.eye(9), np.ones((3, 3)))).all()


def test_a_grid_of_neighbours(monkeypatch):
    def energy(u):
        return ((u[1:] - u[:-1]) ** 4).sum() + ((u[:, 1:] - u[:, :-1]) ** 4).sum()

    plan, there = check_hessian(monkeypatch, energy, points(9, 11))
    assert there.sum() == 99 + 2 * (8 * 11 + 9 * 10)
    assert plan.colours <= 7


def test_zeros_of_a_constant_matrix_are_zeros(monkeypatch):
    n = 40
    matrix = np.diag(np.ones(n)) - np.diag(np.ones(n - 1), 1)
    for f in (lambda x: ((symgrad.tensor(matrix) @ x) ** 4).sum(), lambda x: ((x @ symgrad.tensor(matrix)) ** 4).sum(),
              lambda x: ((symgrad.tensor(matrix) @ x.reshape(n, 1)) ** 4).sum(), lambda x: ((x.reshape(1, n) @ symgrad.tensor(matrix)) ** 4).sum()):
        plan, _ = check_hessian(monkeypatch, f, points(n))
        assert (plan.report.pattern, plan.colours) == ("tridiagonal", 3)


@pytest.mark.parametrize("f, colours", [(lambda x: x.sin(), 1), (lambda x: x[1:] * x[:-1], 2), (lambda x: x.reshape(8, 5).cumsum(1), 5),
                                        (lambda x: symgrad.softmax(x.reshape(8, 5), 1), 5), (lambda x: x[::2] ** 2, 1),
                                        (lambda x: symgrad.cat([x, x.roll(3, 0)]), 1), (lambda x: (x * 0.5).floor(), 0)])
def test_jacobians(monkeypatch, f, colours):
    plan, _ = check_jacobian(monkeypatch, f, points(40))
    assert not plan.dense and plan.colours == colours


# Every op of the registry


CASES = [pytest.param(op, parameters, id=f"{op.name}-{i}") for op in map(REGISTRY.__getitem__, sorted(BUILT_IN))
         if op.kind != "composite" and op.differentiable and COMPLEX not in op.domain and op.name not in ("batch", "unbatch")
         for i, parameters in enumerate(examples(op))]


def test_the_carrier_has_the_names_of_the_protocol():
    assert set(vars(dependence)) == PROTOCOL


def call(op, parameters):
    return (lambda *xs: core(op)(list(xs), *parameters)) if op.arity is None else lambda *xs: core(op)(*xs, *parameters)


@pytest.mark.parametrize("op, parameters", CASES)
def test_every_op_depends_on_what_its_rules_say(monkeypatch, op, parameters):
    xs = arrays(op, np.random.default_rng(3))
    fixed = [x for x in xs if x.dtype == bool]
    free = [x for x in xs if x.dtype != bool]

    def f(*free):
        given = iter(free)
        return call(op, parameters)(*(symgrad.tensor(x) if x.dtype == bool else next(given) for x in xs))

    assert len(fixed) + len(free) == len(xs)
    for local in (False, True):
        check_jacobian(monkeypatch, f, *free, local=local)
        weights = symgrad.tensor(points(*f(*map(symgrad.tensor, free)).shape))
        check_hessian(monkeypatch, lambda *free: (weights * f(*free)).sum(), *free, local=local)
        check_hessian(monkeypatch, lambda *free: (weights * f(*free)).sin().sum(), *free, local=local)
    for i in range(len(free) if len(free) > 1 else 0):  # the others constant
        def alone(x, i=i):
            return f(*(x if k == i else symgrad.tensor(c) for k, c in enumerate(free)))

        check_jacobian(monkeypatch, alone, free[i])
        check_hessian(monkeypatch, lambda x, alone=alone: (weights * alone(x)).sin().sum(), free[i])
