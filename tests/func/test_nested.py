"""Nested gradients: values at any depth and in any composition of transforms, with hooks and observers, and the cost of each level."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy

import symgrad
from symgrad.func import grad, grad_and_value, hessian, jacfwd, jacrev, jet, jvp, vmap
from symgrad.program import cache, passes
from tests.support.tables import table

RNG = np.random.default_rng(5)
POINT, MATRIX = RNG.uniform(0.2, 1.2, 4), RNG.normal(size=(4, 4))


def elementwise(x):
    return symgrad.exp(symgrad.sin(x) * symgrad.tanh(x**2))


def total(f):
    return lambda x: f(x).sum()


def nested(f, order):
    """The derivative of an order of a function of each element."""
    for _ in range(order):
        f = grad(total(f))
    return f


def smooth(x):
    """A scalar function in which all elements interact."""
    return (symgrad.tensor(MATRIX) @ symgrad.sin(x)).tanh().sum() * x.exp().sum() + x.prod() / (1 + x[0] ** 2)


def by_jvp(f, *directions):
    """Directional derivatives without a gradient in them."""
    def along(f, v):
        return lambda x: jvp(f, (x,), (v,))[1]

    for v in directions:
        f = along(f, symgrad.tensor(v))
    return f


def close(found, expected, rtol=1e-9):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=rtol, atol=rtol)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (300,)])
@pytest.mark.parametrize("order", range(1, 7))
def test_orders_agree_with_sympy(order, shape):
    t = sympy.Symbol("t")
    true = sympy.lambdify(t, sympy.diff(sympy.exp(sympy.sin(t) * sympy.tanh(t**2)), t, order), "mpmath")
    x = np.random.default_rng(order).uniform(-1.5, 1.5, shape)
    found = np.atleast_1d(np.asarray(nested(elementwise, order)(symgrad.tensor(x.tolist())))).ravel()[:6]
    close(found, [float(true(v)) for v in np.atleast_1d(x).ravel()[:6].tolist()], 1e-8)


X, V, W = symgrad.tensor(POINT), symgrad.tensor(RNG.normal(size=4)), symgrad.tensor(RNG.normal(size=4))
H = np.asarray(jacfwd(jacfwd(smooth))(X))
THIRD = np.asarray(jacfwd(jacfwd(jacfwd(smooth)))(X))
FOURTH = np.asarray(jacfwd(jacfwd(jacfwd(jacfwd(smooth))))(X))
v, w, ones = np.asarray(V), np.asarray(W), np.ones(4)
g = np.asarray(jacfwd(smooth)(X))
COMPOSITIONS = table(globals(), "COMPOSITIONS")


def nested_along(*vectors):
    def above(f, v):
        return grad(lambda x: (f(x) * v).sum())

    f = grad(smooth)
    for v in vectors:
        f = above(f, v)
    return f(X)


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_compositions(name):
    found, expected = COMPOSITIONS[name]
    close(found(), expected)


def test_the_nodes_of_nested_gradients():
    """A gradient that is differentiated outside its transform is a separate node, and so is its derivative along the same vector."""
    seen = []

    def look(x):
        first = grad(smooth)(x)
        second = grad(total(grad(smooth)))(x)
        seen.extend([type(first._node).__name__, type(second._node).__name__, type(second._node.parents[0]).__name__])
        return (first + second).sum()

    grad(look)(X)
    assert seen[0] == "DerivativeBackward" and "DerivativeBackward" in seen[1:]


def test_shared_weights_in_a_batch():
    a = symgrad.tensor(MATRIX)

    def loss(a):
        return vmap(lambda x: grad(total(grad(lambda z: (a @ z).tanh().sum())))(x))(symgrad.tensor(MATRIX.T)).square().sum()

    def by_rows(a):
        return sum(grad(total(grad(lambda z: (a @ z).tanh().sum())))(symgrad.tensor(row)).square().sum() for row in MATRIX.T)

    close(grad(loss)(a), grad(by_rows)(a))


@pytest.mark.parametrize("h", [lambda r: r.exp().relu().sum(), lambda r: r.exp().amax(), lambda r: symgrad.nn.functional.elu(r).sum()],
                         ids=["relu", "amax", "elu"])
def test_hessians_of_gradients_in_a_batch_that_are_recorded_as_graphs(h):
    """These ops have no series, so that nodes of derivatives, which have no arguments, stand in the graph of the Hessian."""
    def loss(a):
        return vmap(lambda x: grad(lambda z: (a @ z).sin().sum() * h(z))(x).square().sum())(symgrad.tensor(MATRIX.T)).sum()

    a = symgrad.tensor(MATRIX)
    close(hessian(loss)(a), jacfwd(jacrev(loss))(a))


def test_captured_tensors():
    """By an input of an outer transform, and by a leaf."""
    def u(a, x):
        return (a @ x).tanh().sum() * a.sum()

    def by_transform(a):
        return (grad(total(grad(lambda x: u(a, x))))(X) ** 2).sum()

    expected = jacfwd(by_transform)(symgrad.tensor(MATRIX))
    close(grad(by_transform)(symgrad.tensor(MATRIX)), expected)
    a = symgrad.tensor(MATRIX, requires_grad=True)
    by_transform(a).backward()
    close(a.grad, expected)
    b = symgrad.tensor(MATRIX, requires_grad=True)
    first = (grad(lambda x: u(b * b, x))(X) ** 2).sum()
    close(symgrad.autograd.grad(first, b)[0], jacfwd(lambda b: (grad(lambda x: u(b * b, x))(X) ** 2).sum())(b.detach()))


def test_a_program_input_computed_from_another_input():
    """Where an end of a program was computed from another one, each has its own part of the derivative."""
    def f(x):
        return (grad(lambda z: (z * x).sin().sum())(x**2) * x).sum()

    close(grad(f)(X), 2 * POINT * np.cos(POINT**3) - 3 * POINT**4 * np.sin(POINT**3))


def test_several_arguments_and_has_aux():
    def f(a, b):
        return (a.sin() * b["c"]).sum() * b["d"], a.sum() * 2

    def outer(a, b):
        (ga, gb), aux = grad(f, argnums=(0, 1), has_aux=True)(a, b)
        return (ga * gb["c"]).sum() + gb["d"] * aux

    a, c, d = POINT, POINT[::-1].copy(), 0.7
    found = grad(outer, argnums=(0, 1))(a, {"c": c, "d": d})
    s, k = np.sin(a), np.cos(a)
    close(found[0], d * d * (k * k - s * s) * c + k * c * 2 * a.sum() + (s * c).sum() * 2)
    close(found[1]["c"], d * d * k * s + s * 2 * a.sum())
    close(found[1]["d"], 2 * d * (k * c * s).sum())
    gradient, value = grad_and_value(lambda x: grad_and_value(smooth)(x)[1] * grad(smooth)(x).sum())(X)
    close(value, smooth(X) * g.sum())
    close(gradient, g * g.sum() + float(smooth(X)) * H.sum(0))


def test_hooks_and_observers_see_every_node():
    """With hooks or observers the gradient is recorded op by op."""
    x = symgrad.tensor(POINT, requires_grad=True)
    handle = x.register_hook(lambda c: None)
    seen = []
    grad(lambda z: [seen.append(type(t._node.parents[0]).__name__) for t in [grad(smooth)(z)]] and z.sum())(X)
    handle.remove()
    assert seen and "DerivativeBackward" not in seen


@pytest.mark.sweep
def test_large_programs_are_replayed_without_generated_code(monkeypatch):
    monkeypatch.setattr(passes, "MAX_NODES", 0)
    for name in ("jacrev of grad of grad", "two vectors", "and moves again", "the same vector twice"):
        test_compositions(name)
    test_orders_agree_with_sympy(3, (5,))


def test_the_cost_grows_with_the_square_of_the_order():
    """Counted in steps: the k-th coefficient of a product is the sum of k + 1 products."""
    counts = []
    for order in (2, 4, 8):
        cache.programs.clear()
        nested(elementwise, order)(0.5)
        counts.append(max(sum(len(stage.program.steps) for stage in each._stages) for each in cache.programs.values()
                          if isinstance(each, passes.PassProgram)))
    assert counts[1] < 5 * counts[0] and counts[2] < 4 * counts[1], counts


@pytest.mark.parametrize("x", [-8.0, -0.35, -1e-9, 0.0, 1e-300, 0.2, 0.36, 3.0, 40.0, 340.0, 400.0, math.inf, math.nan])
def test_tanh_of_large_arrays_keeps_its_digits(x):
    """Alone in range, among small ones and among very large ones, for each takes another way."""
    import mpmath

    with mpmath.workdps(400):
        value, slope = float(mpmath.tanh(x)), float(mpmath.sech(x) ** 2) if math.isfinite(x) else (0.0 if x == math.inf else math.nan)
    for others in (0.1, 2.0, 500.0):
        t = symgrad.tensor(np.full(300, others), requires_grad=True)
        with symgrad.no_grad():
            t[7] = x
        y = t.tanh()
        y.sum().backward()
        for found, true in ((y[7].item(), value), (t.grad[7].item(), slope)):
            assert found == true or abs(found - true) <= 8 * np.spacing(abs(true)) or math.isnan(found) and math.isnan(true), (others, found, true)


# Coefficients along a curve that are differentiated by something else


def field(w, x):
    return (symgrad.tanh(x @ w["a"] + w["b"]) @ w["c"]).sin()


def weights():
    rng = np.random.default_rng(8)
    return {"a": rng.normal(size=(1, 5)), "b": rng.normal(size=5), "c": rng.normal(size=(5, 1))}


PLACES, SPEED = np.linspace(-1, 1, 7)[:, None], np.linspace(1, 2, 7)[:, None]


def by_jet(w, x, which):
    u, found = jet(lambda z: field(w, z), (x,), ([SPEED, 0.3 * SPEED, 0 * SPEED],))
    return sum((found[k] ** 2).sum() for k in which) + u.sum()


def by_tangents(w, x, which):
    """The same by tangents of tangents, along z(t) = x + t v + t² 0.15 v."""
    def path(t):
        return field(w, x + symgrad.tensor(SPEED) * (t + 0.15 * t * t))

    found, f = [], path
    for _ in range(3):
        f = by_jvp(f, 1.0)
        found.append(f(symgrad.tensor(0.0)))
    return sum((found[k] ** 2).sum() for k in which) + field(w, x).sum()


@pytest.mark.parametrize("which", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
def test_jet_coefficients_are_differentiable_by_captured_tensors(which):
    w, x = weights(), symgrad.tensor(PLACES)
    for _ in range(2):  # the second time with the steps of the first
        found, expected = (grad(lambda w, by=by: by(w, x, which))(w) for by in (by_jet, by_tangents))
        for name in w:
            close(found[name], expected[name])
        w = {name: 0.7 * value for name, value in w.items()}
    leaves = {name: symgrad.tensor(value, requires_grad=True) for name, value in w.items()}
    by_jet(leaves, x, which).backward()
    for name, value in grad(lambda w: by_tangents(w, x, which))(w).items():
        close(leaves[name].grad, value)


def test_jet_coefficients_are_differentiable_by_the_primal_twice():
    w, x = weights(), symgrad.tensor(PLACES)
    close(grad(lambda x: by_jet(w, x, (1,)))(x), grad(lambda x: by_tangents(w, x, (1,)))(x))
    second = [jacrev(grad(lambda b, by=by: by({**w, "b": b}, x, (0, 2))))(w["b"]) for by in (by_jet, by_tangents)]
    close(second[0], second[1], 1e-8)
    pushed = [jvp(lambda b, by=by: by({**w, "b": b}, x, (1,)), (symgrad.tensor(w["b"]),), (symgrad.ones(5),))[1] for by in (by_jet, by_tangents)]
    close(*pushed)


@pytest.mark.parametrize(("written", "plain"), [
    (lambda x: x.clone().sin_().mul_(x), lambda x: x.sin() * x), (lambda x: (x * 1).cos_().add_(x).square_(), lambda x: (x.cos() + x).square()),
    (lambda x: x.clone().mul_(2.0).sin_(), lambda x: (2 * x).sin())])
def test_gradients_of_gradients_of_functions_that_write_in_place(written, plain):
    def twice(f):
        return grad(lambda x: (grad(lambda x: f(x).sum())(x) ** 2).sum())

    x = symgrad.tensor([0.3, 0.6])
    for _ in range(2):
        close(twice(written)(x), twice(plain)(x))
        close(jacrev(twice(written))(x), jacrev(twice(plain))(x))


@pytest.mark.parametrize("f", [lambda x: grad(elementwise)(x), lambda x: nested(elementwise, 3)(x), lambda x: jacrev(grad(elementwise))(x)],
                         ids=["grad", "third", "jacrev of grad"])
def test_nested_gradients_under_vmap(f):
    xs = np.linspace(-1, 1, 5)
    close(vmap(f)(xs), [np.asarray(f(float(x))) for x in xs])
