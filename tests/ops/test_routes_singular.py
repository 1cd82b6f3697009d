"""All routes to a derivative agree on programs in which singular elements do not count: behind `where`, a zero of a matrix, or an index.

An element is singular if its function is not smooth there. A program is `eligible` if its value and its first two derivatives are the same, bit for
bit, with any numbers in place of these elements: then its derivatives are those of the program with the numbers.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad
from symgrad.autograd import forward_ad
from tests.support.routes import GRADIENTS, HESSIANS, TRACES, array

tensor, where, func = symgrad.tensor, symgrad.where, symgrad.func
MATRIX = tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
OTHER = tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
SCALE, ENDS = tensor([1.0, 0.0, 2.0]), symgrad.zeros(1)

INNER = {
    "nothing": lambda z: z, "mv": lambda z: MATRIX @ z, "cumsum": lambda z: z.cumsum(0), "scale": lambda z: z * SCALE,
    "difference": lambda z: z - z.flip(0), "index": lambda z: z[tensor([2, 0, 1])], "square": lambda z: z * z,
    "product": lambda z: symgrad.stack([z[0] * z[1], z.sum(), z[2]]),
}
SINGULAR = {
    "sqrt": lambda a: a.sqrt(), "power": lambda a: a**1.5, "log": lambda a: a.log(), "reciprocal": lambda a: 1 / a, "entropy": lambda a: a * a.log(),
    "rsqrt": lambda a: a.rsqrt(), "root of abs": lambda a: a.abs() ** 0.5, "product": lambda a: a * a.sqrt(), "high power": lambda a: a**2.5,
}
OPS = {
    "mv": lambda y: MATRIX @ y, "other mv": lambda y: OTHER @ y, "vm": lambda y: y @ MATRIX, "mm": lambda y: (y[None, :] @ MATRIX)[0],
    "bmm": lambda y: symgrad.bmm(MATRIX[None], y[None, :, None])[0, :, 0], "einsum": lambda y: symgrad.einsum("ij,j->i", MATRIX, y),
    "linear": lambda y: symgrad.nn.functional.linear(y, MATRIX, SCALE), "addmv": lambda y: symgrad.addmv(y, MATRIX, y),
    "convolution": lambda y: symgrad.einsum("ij,j->i", symgrad.cat([ENDS, y, ENDS]).unfold(0, 3, 1), SCALE), "dot": lambda y: (y @ SCALE) * SCALE,
    "outer": lambda y: symgrad.outer(y, y).sum(0), "tril": lambda y: symgrad.outer(y, SCALE).tril().sum(1),
    "kron": lambda y: symgrad.kron(y, SCALE)[:3],
    "cumsum": lambda y: y.cumsum(0), "cumprod": lambda y: y.cumprod(0), "flip": lambda y: y.flip(0), "roll": lambda y: y.roll(1),
    "index": lambda y: y[tensor([2, 2, 0])], "take": lambda y: y.take(tensor([0, 1, 1])), "select": lambda y: y[0].expand(3),
    "slices": lambda y: symgrad.cat([y[1:], y[:1]]), "scatter_add": lambda y: symgrad.zeros(3).scatter_add(0, tensor([1, 1, 0]), y),
    "index_add": lambda y: symgrad.zeros(3).index_add(0, tensor([1, 1, 0]), y), "index_put": lambda y: y.index_put((tensor([0]),), tensor([2.0])),
    "masked_fill": lambda y: y.masked_fill(tensor([True, False, False]), 0.0), "stack": lambda y: symgrad.stack([y, y.flip(0)]).sum(0),
    "sum": lambda y: y.sum().expand(3), "mean": lambda y: y.mean() * SCALE, "prod": lambda y: y.prod() * SCALE, "amax": lambda y: y.amax().expand(3),
    "sort": lambda y: y.sort()[0], "softmax": lambda y: y.softmax(0), "logsumexp": lambda y: y.logsumexp(0) * SCALE,
    "norm": lambda y: y.norm() * SCALE,
    "var": lambda y: y.var() * SCALE, "std": lambda y: y.std().expand(3), "difference": lambda y: symgrad.cat([y[1:] - y[:-1], y[:1]]),
    "centred": lambda y: y - y.mean(), "square": lambda y: y * y, "mse_loss": lambda y: symgrad.nn.functional.mse_loss(y, SCALE, reduction="none"),
    "columns": lambda y: symgrad.stack([y, SCALE + 1]).prod(0).expand(2, 3).norm(dim=0),
    "rows": lambda y: symgrad.outer(y, SCALE + 1).cumprod(1)[:, 2],
}
SELECTIONS = {
    "where": lambda y, z, m: where(m, y, z), "positive": lambda y, z, m: where(z > 0, y, z), "relu": lambda y, z, m: symgrad.relu(y - 0.1) * z,
    "masked_fill": lambda y, z, m: y.masked_fill(~m, 0.0) * z, "twice": lambda y, z, m: where(m, where(z > 0, y, z * z), z),
    "clamp": lambda y, z, m: where(m, y.clamp(0.5, 1.5), z), "scaled": lambda y, z, m: where(m, y, z) * z.flip(0),
    "zero": lambda y, z, m: where(m, y, 0.0) * (1 + z),
}
ENDINGS = {"sum": lambda w: w.sum(), "squares": lambda w: (w * w).sum(), "exp": lambda w: (w / 4).exp().sum(), "product": lambda w: w[0] * w[2],
           "tanh": lambda w: (w.sum() / 8).tanh()}
EQUAL, DIFFERENCES = {"select", "sum", "amax", "std"}, {"var", "std", "difference", "centred"}  # elements that are equal, and what is then always 0
MASKS = ([True, False, True], [True, True, False], [False, True, False], [False, False, False], [False, True, True])
POINTS = ([1.0, 4.0, 0.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0], [2.0, 0.0, 0.5], [1.0, 1.0, 2.0], [0.0, 0.0, 0.0])
NUMBERS = ([0.3, -0.7, 1.9], [1.3, 0.4, -0.6], [-3.0, 2.2, 0.9])


def program(rng, op):
    """A program, its point, the program with numbers in place of the singular elements, which elements these are, and a text."""
    parts = [list(table)[rng.integers(len(table))] for table in (INNER, SINGULAR, OPS, SELECTIONS, ENDINGS)]
    inner, singular, second, selection, ending = (table[name] for table, name in zip((INNER, SINGULAR, OPS, SELECTIONS, ENDINGS), parts))
    mask, x = tensor(MASKS[rng.integers(len(MASKS))]), tensor(POINTS[rng.integers(len(POINTS))])
    both = rng.random() < 0.3 and not (op in EQUAL and parts[2] in DIFFERENCES)
    at = inner(x) == 0 if parts[1] == "reciprocal" else inner(x) <= 0

    def make(function):
        def f(z):
            y = OPS[op](function(inner(z)))
            return ending(selection(second(y) if both else y, z, mask))

        return f

    def replaced(numbers):
        return make(lambda a: where(at, numbers, singular(where(at, 1.0, a))))

    return make(singular), x, replaced, at.numpy(), f"{op}, {parts}, {both}, {mask.tolist()} at {x.tolist()}"


def expected(f, x, replaced, at):
    """The gradient and the Hessian of an eligible program, None for another."""
    if not at.any() or not np.isfinite(f(x).item()):
        return None
    found = []
    for numbers in map(tensor, NUMBERS):
        g, both = replaced(numbers), symgrad.cat([x, numbers])
        joint = lambda w: replaced(w[3:])(w[:3])  # noqa: E731
        if g(x).item() != f(x).item() or GRADIENTS["autograd.grad"](joint, both).numpy()[3:][at].any():
            return None
        second = HESSIANS["grad of autograd.grad"](joint, both)
        if not np.isfinite(second).all() or second[3:][at].any():
            return None
        found.append((GRADIENTS["autograd.grad"](g, x).numpy(), second[:3, :3]))
    return found[0] if all(np.allclose(a, b) for pair in found[1:] for a, b in zip(pair, found[0])) else None


def wrong(f, x, gradient, hessian):
    """The routes that give something else, with what they give."""
    out = {}
    tolerance = 1e-7 * max(1.0, np.abs(hessian).max())
    with np.errstate(all="ignore"):
        for routes, truth in ((GRADIENTS, gradient), (HESSIANS, hessian), (TRACES, np.trace(hessian))):
            for name, route in routes.items():
                value = array(route(f, x))
                if not np.allclose(value, truth, rtol=1e-7, atol=tolerance):
                    out[name] = value.tolist()
    return out


def check(rng, op):
    with np.errstate(all="ignore"):
        for _ in range(200):
            f, x, replaced, at, text = program(rng, op)
            if (truth := expected(f, x, replaced, at)) is not None:
                assert not wrong(f, x, *truth), text
                return


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("op", OPS)
def test_singular_elements_that_do_not_count(op, seed):
    check(np.random.default_rng([seed, list(OPS).index(op)]), op)


@pytest.mark.sweep
@settings(max_examples=max(4, settings.default.max_examples // 10), deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(list(OPS)))
def test_more_singular_elements_that_do_not_count(seed, op):
    check(np.random.default_rng(seed), op)


@pytest.mark.parametrize("op", ["norm", "var", "logsumexp", "softmax", "prod", "amax"])
def test_a_branch_that_is_not_taken_has_no_gradient(op):
    """Its elements and its derivatives are infinite, and a rule of its op sums over them."""
    x = tensor([1.0, 4.0, 0.0], requires_grad=True)
    y = where(tensor([False, False, False]), OPS[op](x.sqrt()), x)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
    assert not func.hessian(lambda z: where(z < -1, OPS[op](z.sqrt()), z).sum())(x.detach()).any()


@pytest.mark.parametrize("f", [
    lambda z: where(z >= 0, z.cumprod(0).sqrt(), z).sum(), lambda z: where(tensor(True), symgrad.stack([z.sqrt(), 1e30 * z]).sum(0), z).sum(),
    lambda z: where(tensor(True), z.sqrt() - 2 * z.sqrt(), z).sum()])
def test_singular_elements_that_count_are_kept(f):
    """A sum with a large number does not hide them, and a difference of infinities is not 0."""
    x = tensor([1.0, 0.0, 4.0])
    with np.errstate(all="ignore"):
        for name, route in GRADIENTS.items():
            assert not np.isfinite(array(route(f, x))[1]), name


def test_forward_mode_computes_a_tangent_anew_behind_a_selection():
    with forward_ad.dual_level(), np.errstate(all="ignore"):
        z = forward_ad.make_dual(tensor([1.0, 4.0, 0.0]), tensor([1.0, 1.0, 1.0]))
        y = OTHER @ z.sqrt()
        assert np.isnan(forward_ad.unpack_dual(y).tangent.numpy()).any()
        assert forward_ad.unpack_dual(where(tensor([True, False, True]), y, 0.0)).tangent.tolist() == [0.5, 0.0, 1.25]
