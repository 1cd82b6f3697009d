"""Taylor mode: coefficients against SymPy's and of every op against nested gradients, its cost, kinks, powers, and differentiable results."""

import tracemalloc

import mpmath
import numpy as np
import pytest
import sympy

import symgrad
from symgrad import autograd, tensor
from symgrad.engine.tensor import wrap
from symgrad.engine.traced import core
from symgrad.func import grad, jvp, vmap
from symgrad.func.taylor import derivatives, directional_derivatives, jet
from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import REGISTRY
from symgrad.methods.extending import BUILT_IN
from tests.support.exemptions import exempt
from tests.support.points import arrays, examples
from tests.support.tables import table

x, HALF = sympy.Symbol("x", real=True), sympy.Rational(1, 2)


def coefficients(function, at, order):
    """The Taylor coefficients along x + t, as floats."""
    y, rest = jet(function, (at,), ([1.0, *[0.0] * (order - 1)],), factorial_scaled=False)
    return [y.item(), *(t.item() for t in rest)]


def close(found, expected, bound):
    """Whether each number agrees to a relative bound, and exactly for 0."""
    errors = [float(abs(mpmath.mpf(a) - b) / abs(b)) if b else abs(a) for a, b in zip(found, expected, strict=True)]
    assert max(errors) <= bound, errors
    return True


# Against SymPy

FUNCTIONS = table(globals(), "FUNCTIONS")
COMPOSITIONS = table(globals(), "COMPOSITIONS")


@pytest.mark.parametrize("name", [*FUNCTIONS, *COMPOSITIONS])
def test_coefficients_are_sympys(name):
    function, formula, points = {**FUNCTIONS, **COMPOSITIONS}[name]
    with mpmath.workdps(80):
        exact = sympy.lambdify(x, formula, "mpmath")
        for at in points:
            assert close(coefficients(function, at, 8), mpmath.taylor(exact, mpmath.mpf(at), 8), 1e-13)


@pytest.mark.sweep
def test_a_curved_path():
    """exp(sin(x)) along x(t) = 1/2 + t - t² + t³ / 3: the coefficients that are given go in as derivatives, too."""
    t = sympy.Symbol("t")
    path = HALF + t - t**2 + t**3 / 3
    y, series = jet(lambda z: symgrad.exp(symgrad.sin(z)), (0.5,), ([1.0, -2.0, 2.0, 0.0],))
    expected = [sympy.exp(sympy.sin(path)).diff(t, k).subs(t, 0).evalf(40) for k in range(5)]
    assert close([y.item(), *(s.item() for s in series)], [mpmath.mpf(e) for e in expected], 1e-14)
    _, traced = jet(lambda z: symgrad.exp(symgrad.sin(z)), (tensor(0.5, requires_grad=True),), ([1.0, -2.0, 2.0, 0.0],))
    np.testing.assert_allclose([s.item() for s in traced], [s.item() for s in series], rtol=1e-15)
    _, plain = jet(lambda z: symgrad.exp(symgrad.sin(z)), (0.5,), ([1.0, -1.0, 1 / 3, 0.0],), factorial_scaled=False)
    np.testing.assert_allclose([s.item() for s in series], [s.item() * f for s, f in zip(plain, (1, 2, 6, 24))], rtol=1e-15)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("order", [20, 150, 171, 300])
@pytest.mark.parametrize("rate", [1.0, 1 / 3, 0.04, -7.3])
def test_high_orders_neither_overflow_nor_underflow_on_the_way(order, rate):
    """The coefficient of a derivative may be too small for a float, and the factorial of its order too large."""
    path = [1.0] + [0.0] * (order - 1)
    with mpmath.workdps(40):
        r, x = mpmath.mpf(rate), mpmath.mpf(0.25)
        growths = np.array([r**k * mpmath.exp(r * x) for k in range(1, order + 1)], float)
        poles = np.array([(-1) ** k * mpmath.factorial(k) / (x - r) ** (k + 1) for k in range(1, order + 1)], float)
    for at in (0.25, tensor(0.25, requires_grad=True)):
        for f, true in ((lambda z: symgrad.exp(rate * z), growths), (lambda z: 1 / (z - rate), poles)):
            with np.errstate(all="ignore"):
                found = np.array([t.item() for t in jet(f, (at,), (path,))[1]])
            usual = np.abs(true) < 1e280
            np.testing.assert_allclose(found[usual], true[usual], rtol=1e-13, atol=1e-230)
            assert not np.isfinite(found[~np.isfinite(true)]).any()
    assert jet(lambda z: z, (0.0,), ([3.0] * order,))[1][-1].item() == 3.0


# What it costs


class Counted(np.ndarray):
    """An array that counts what is computed with it."""

    operations = 0

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        Counted.operations += 1
        plain = [a.view(np.ndarray) if isinstance(a, Counted) else a for a in inputs]
        if out is not None:
            kwargs["out"] = tuple(a.view(np.ndarray) for a in out)
        y = getattr(ufunc, method)(*plain, **kwargs)
        return y.view(Counted) if isinstance(y, np.ndarray) else y


def operations(function, order):
    Counted.operations = 0
    derivatives(function, order)(wrap(np.array([0.3, 0.7]).view(Counted)))
    return Counted.operations


@pytest.mark.parametrize("function", [lambda t: symgrad.sin(t * symgrad.tanh(t)) + symgrad.exp(-(t**2)),
                                      lambda t: symgrad.sigmoid(t) * symgrad.sqrt(t), lambda t: t**2.5 / (1 + symgrad.atan(t))])
def test_the_cost_is_quadratic_in_the_order(function):
    """At most four times the operations for twice the order (Bettencourt, Johnson and Duvenaud 2019), where nested derivatives grow exponentially."""
    counts = [operations(function, order) for order in (2, 4, 8, 16, 32)]
    assert counts[0] < 150
    assert all(later <= 4 * earlier for earlier, later in zip(counts, counts[1:])), counts


@pytest.mark.sweep
def test_memory_does_not_grow_with_the_length_of_the_graph():
    def chain(t):
        for _ in range(500):
            t = t.sin()
        return t

    tracemalloc.start()
    try:
        derivatives(chain, 6)(np.linspace(0.0, 1.0, 2000))
        assert tracemalloc.get_traced_memory()[1] < 2.5 * 500 * 16_000 + 256 * 8 * 16_000
    finally:
        tracemalloc.stop()


# Kinks and constants

KINKS = table(globals(), "KINKS")


@pytest.mark.parametrize("name", KINKS)
def test_kinks_and_constants(name):
    function, at, expected = KINKS[name]
    assert [y.item() for y in derivatives(function, len(expected) - 1)(at)] == expected


@pytest.mark.parametrize("length", [lambda t: symgrad.stack([t, t]).norm(), lambda t: symgrad.hypot(t, t)])
def test_a_length_has_a_slope_and_no_second_derivative_at_0(length):
    value, first, second = derivatives(length, 2)(0.0)
    assert value.item() == first.item() == 0.0 and not np.isfinite(second.item())


# Composition with everything else


def test_results_can_be_differentiated():
    def function(t):
        return symgrad.exp(symgrad.sin(t) * symgrad.tanh(t**2))

    t = tensor(0.7, requires_grad=True)
    found, expected = derivatives(function, 4)(t), derivatives(function, 5)(0.7)
    for k, y in enumerate(found):
        assert y.requires_grad
        (g,) = autograd.grad(y, t, retain_graph=True)
        assert abs(g.item() - expected[k + 1].item()) <= 1e-13 * abs(expected[k + 1].item())
    assert not any(y.requires_grad for y in expected)
    with symgrad.no_grad():
        assert not derivatives(function, 2)(t)[2].requires_grad


def test_coefficients_and_parameters_can_be_differentiated():
    v, w = tensor([1.0, 2.0], requires_grad=True), tensor(3.0, requires_grad=True)
    *_, third = directional_derivatives(lambda z: w * (z**3).sum(), 3)(tensor([0.5, -1.0]), v)
    by_v, by_w = autograd.grad(third, (v, w))
    assert third.item() == 3 * 6 * (1 + 8) and by_v.tolist() == [54.0, 216.0] and by_w.item() == 54.0
    assert autograd.grad(derivatives(lambda z: w * z, 2)(1.0)[1], w)[0].item() == 1.0


def test_nested_transforms():
    def function(t):
        return symgrad.sin(t) * symgrad.exp(t)

    expected = derivatives(function, 5)(0.4)
    points = tensor([0.4, -0.3, 1.0])
    for found in (grad(lambda t: derivatives(function, 4)(t)[4])(0.4), derivatives(grad(function), 4)(0.4)[4],
                  derivatives(lambda t: derivatives(function, 2)(t)[2], 3)(0.4)[3], jvp(lambda t: derivatives(function, 4)(t)[4], (0.4,), (1.0,))[1],
                  vmap(derivatives(function, 5))(points)[5][0], vmap(grad(lambda t: derivatives(function, 4)(t)[4]))(points)[0],
                  derivatives(vmap(function), 5)(points)[5][0]):
        np.testing.assert_allclose(found.item(), expected[5].item(), rtol=1e-13)


def test_trees_dtypes_and_shapes():
    y, series = jet(lambda a, b: {"sum": a + b, "mean": (a * b).mean()}, (np.ones((2, 1)), np.arange(3.0)),
                    ([np.ones((2, 1))] * 2, [np.zeros(3)] * 2))
    assert y["sum"].shape == (2, 3) and [t.shape for t in series["sum"]] == [(2, 3)] * 2
    assert [t.item() for t in series["mean"]] == [1.0, 1.0]
    single = derivatives(symgrad.tanh, 3)(tensor([0.5, 1.0], dtype=symgrad.float32))
    assert {t.dtype for t in single} == {symgrad.float32}
    wave = derivatives(symgrad.exp, 2)(tensor(1j))
    np.testing.assert_allclose([t.item() for t in wave], np.exp(1j), rtol=1e-15)
    assert jet(symgrad.sin, (0.0,), ([],))[1] == [] and len(derivatives(symgrad.sin, 0)(0.0)) == 1


@pytest.mark.parametrize("tracked", [False, True])
def test_writes_in_place(tracked):
    def written(z):
        y = z.clone()
        y[0] = z[1] * z[0]
        y.mul_(z.exp())
        y[1:] *= z[:1]
        return y.add_(z).sin()

    def plain(z):
        y = symgrad.stack([z[1] * z[0], z[1]]) * z.exp()
        return (symgrad.stack([y[0], y[1] * z[0]]) + z).sin()

    z, v = tensor([0.3, 0.7], requires_grad=tracked), tensor([1.0, -2.0])
    found, expected = (directional_derivatives(function, 3)(z, v) for function in (written, plain))
    np.testing.assert_allclose([y.detach().numpy() for y in found], [y.detach().numpy() for y in expected], rtol=1e-14)


class Square(autograd.Function):
    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        ctx.save_for_forward(t)
        return t * t, t + 1

    @staticmethod
    def backward(ctx, g, h):
        return 2 * ctx.saved_tensors[0] * g + h

    @staticmethod
    def jvp(ctx, t):
        return 2 * ctx.saved_tensors[0] * t, t


def test_a_custom_function_supports_order_one():
    def function(t):
        square, more = Square.apply(t)
        return square * more

    assert [y.item() for y in derivatives(function, 1)(2.0)] == [12.0, 16.0]
    with pytest.raises(NotImplementedError, match="derivatives: the custom Function Square .* order 2"):
        derivatives(function, 2)(2.0)


def test_nested_derivatives_do_not_confuse_perturbations():
    """d/dx (x · d/dy (x + y)) = 1 at x = y = 1 (Siskind and Pearlmutter 2005), and the outer path in the inner one's coefficient."""
    assert derivatives(lambda a: a * derivatives(lambda b: a + b, 1)(1.0)[1], 1)(1.0)[1].item() == 1.0
    assert derivatives(lambda a: jet(lambda b: b**2, (a,), ([a],))[1][0], 1)(3.0)[1].item() == 12.0


CASES = [pytest.param(op, parameters, id=f"{op.name}{parameters}") for op in map(REGISTRY.__getitem__, sorted(BUILT_IN))
         if op.kind != "composite" and COMPLEX not in op.domain and op.differentiable and op.name not in exempt("alone")
         for parameters in examples(op)]


@pytest.mark.sampled(22)
@pytest.mark.parametrize("op, parameters", CASES)
@pytest.mark.parametrize("tracked", [False, True])
def test_every_op_along_a_direction(op, parameters, tracked):
    rng = np.random.default_rng(1)
    values = [np.asarray(a) for a in arrays(op, rng)]
    moving = [i for i, a in enumerate(values) if a.dtype.kind == "f"]
    along = [rng.standard_normal(a.shape) for a in values]
    call = core(op)

    def called(tensors):
        return call(tensors, *parameters) if op.arity is None else call(*tensors, *parameters)

    def moved(t):
        return called([tensor(a) + t * tensor(v) if i in moving else tensor(a) for i, (a, v) in enumerate(zip(values, along))])

    def function(*given):
        tensors = [tensor(a) for a in values]
        for i, z in zip(moving, given):
            tensors[i] = z
        return called(tensors)

    primals = tuple(tensor(values[i], requires_grad=tracked) for i in moving)
    y, series = jet(function, primals, [[along[i], 0 * along[i], 0 * along[i]] for i in moving])
    weights = rng.standard_normal(y.shape)
    t = tensor(0.0, requires_grad=True)
    g = (tensor(weights) * moved(t)).sum()
    np.testing.assert_array_equal(y.detach().numpy(), moved(t).detach().numpy())
    for coefficient in series:
        assert coefficient.requires_grad == tracked
        (g,) = autograd.grad(g, t, create_graph=True, allow_unused=True) if g is not None and g.requires_grad else (None,)
        terms = weights * coefficient.detach().numpy()
        assert abs(np.sum(terms) - (0.0 if g is None else g.item())) <= 1e-14 * (1 + np.sum(abs(terms)))


ORDER = 8
NEAR = [float(n + d) for n in (-3, -1, 0, 1, 2, 3, 6, 70) for d in (2.0**-40, -1e-12, 1e-9, -3e-7)] + [1 + 2.0**-52, 1 - 2.0**-53, 2 + 2.0**-51]
FAR = [1 / 3, -1 / 3, 0.46, 0.1, 2.5, -0.5, np.pi, -np.e, 10.3, 64.7, 65.0]
PATHS = [(0.7, 0.6, 0.3), (1.3, -0.4, 0.25, 0.1), (3.7, 1 / 3, 0.0, 0.2)]


def exact(path, p):
    """The coefficients of the power of a polynomial, by their recurrence in 80 digits."""
    with mpmath.workdps(80):
        p, path = mpmath.mpf(p), [mpmath.mpf(c) for c in path]
        out = [path[0]**p]
        for k in range(1, ORDER + 1):
            out.append(sum((j * (p + 1) - k) * path[j] * out[k - j] for j in range(1, min(k, len(path) - 1) + 1)) / (k * path[0]))
        return out


def errors(found, true):
    with mpmath.workdps(80):
        return [float(abs(mpmath.mpf(y.item()) / t - 1)) for y, t in zip(found, true, strict=True) if t]


@pytest.mark.sweep
@pytest.mark.parametrize("exponent", ["a number", "a tensor"])
def test_derivatives_of_powers(exponent):
    """Along a line the coefficients are binomial."""
    for p in NEAR + FAR:
        for at in (0.7, 13.3):
            found = derivatives(lambda x, p=p: x ** (p if exponent == "a number" else tensor(p)), ORDER)(at)
            with mpmath.workdps(80):
                true = [mpmath.ff(mpmath.mpf(p), k) * mpmath.mpf(at)**(mpmath.mpf(p) - k) for k in range(ORDER + 1)]
            assert max(errors(found, true)) < 3e-15, (p, at, errors(found, true))


def test_powers_along_curves():
    """Next to an integer n, all coefficients above n times the degree of the path are as small as the difference from it."""
    for p in NEAR + FAR:
        for path in PATHS:
            given = [*path[1:], *[0.0] * (ORDER + 1 - len(path))]
            y, found = jet(lambda x, p=p: symgrad.pow(x, p), (path[0],), (given,), factorial_scaled=False)
            assert max(errors([y, *found], exact(path, p))) < 2e-13, (p, path, errors([y, *found], exact(path, p)))
