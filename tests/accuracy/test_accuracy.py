"""Accuracy in units in the last place where digits are usually lost. test_registry.py tests every op in its tails and next to poles."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import symgrad
from symgrad import autograd, func

TINY = 2.2250738585072014e-308


def ulps(error, scale):
    """An error in units in the last place of a number of that size."""
    return float(abs(error) / mpf(float(np.spacing(max(float(abs(scale)), TINY)))))


def derivative(function, x, order):
    """The derivative by the public interface."""
    x = symgrad.tensor(x, requires_grad=True)
    y = function(x)
    for _ in range(order):
        (y,) = autograd.grad(y, x, create_graph=True)
    return y.item()


def true_derivative(function, x, order):
    with mpmath.workdps(400):
        return mpmath.diff(function, mpf(x), order, h=abs(mpf(x)) * mpf(10) ** -60)


def logistic(x):
    return 1 / (1 + mpmath.exp(-x))


@pytest.mark.sweep
@pytest.mark.parametrize("function, true, x, order", [
    (symgrad.expm1, mpmath.expm1, -40.0, 1),
    (symgrad.tanh, mpmath.tanh, 20.0, 1),
    (symgrad.sigmoid, logistic, 40.0, 1),
    (symgrad.logsigmoid, lambda x: mpmath.log(logistic(x)), -40.0, 2),
    (symgrad.sinc, lambda x: mpmath.sin(mpmath.pi * x) / (mpmath.pi * x), 1e-5, 3),
    (symgrad.sigmoid, logistic, 1e-10, 2),
    (symgrad.softplus, lambda x: mpmath.log(1 + mpmath.exp(x)), -1e-9, 3),
    (symgrad.asinh, mpmath.asinh, 1e5, 3),
    (symgrad.atanh, mpmath.atanh, 1 - 2.0**-40, 3),
    (lambda x: x**0.1, lambda x: x ** mpf(0.1), 1e-120, 1),
    (lambda x: x**-2.3, lambda x: x ** mpf(-2.3), 7e40, 2),
    (lambda x: x**3, lambda x: x**3, 1e-50, 2),
], ids=["expm1'(-40)", "tanh'(20)", "sigmoid'(40)", "logsigmoid''(-40)", "sinc'''(1e-5)", "sigmoid''(1e-10)", "softplus'''(-1e-9)", "asinh'''(1e5)",
        "atanh'''(1 - 2^-40)", "(x^0.1)'(1e-120)", "(x^-2.3)''(7e40)", "(x^3)''(1e-50)"])
def test_digits_where_naive_formulas_lose_them(function, true, x, order):
    expected = true_derivative(true, x, order)
    with mpmath.workdps(60):
        assert ulps(derivative(function, x, order) - expected, expected) <= (8, 8, 64, 512)[order]


@pytest.mark.sweep
def test_derivatives_of_sinc_at_zero():
    found = [derivative(symgrad.sinc, 0.0, n) for n in range(7)]
    expected = [0.0 if n % 2 else (-1) ** (n // 2) * math.pi**n / (n + 1) for n in range(7)]
    assert found == pytest.approx(expected, rel=1e-15, abs=0)


def test_a_derivative_next_to_a_pole_is_a_number_or_the_right_infinity():
    for x in (5e-324, 1e-310, 1e-200):
        assert [derivative(symgrad.expi, x, n) for n in (2, 3)] == [-math.inf, math.inf]
        assert derivative(symgrad.expi, -x, 2) == -math.inf
        assert derivative(symgrad.entr, x, 1) == pytest.approx(-math.log(x) - 1, rel=1e-15)
        assert derivative(lambda x: symgrad.xlogy(x, x), x, 1) == pytest.approx(math.log(x) + 1, rel=1e-15)
        assert derivative(lambda x: symgrad.xlogy(x, x), x, 2) == pytest.approx(float(1 / mpmath.mpf(x)), rel=1e-15)
        assert derivative(lambda x: symgrad.xlogy(x, x), x, 3) == -math.inf
    for x in (1e308, -1.7e308):
        assert [derivative(symgrad.sinc, x, n) * (-1) ** (n // 2) for n in (1, 3)] == pytest.approx([1 / x, math.pi**2 / x], rel=1e-13)


@pytest.mark.parametrize("x", [1e-3, 0.2, -0.7, 1.5, 2.75])
def test_high_derivatives_of_sinc(x):
    """Upwards the recurrence would lose a digit with every order here."""
    for n in range(11):
        expected = true_derivative(lambda v: mpmath.sin(mpmath.pi * v) / (mpmath.pi * v), x, n)
        assert abs(derivative(symgrad.sinc, x, n) - expected) <= 2e-15 * mpmath.pi**n / (n + 1)


def softmax_of(row):
    total = sum(map(mpmath.exp, row))
    return [mpmath.exp(v) / total for v in row]


def test_softmax_where_differences_are_rounded():
    row = [0.1, -700.3, -30.77]
    x = symgrad.tensor(row, requires_grad=True)
    with mpmath.workdps(700):
        p = softmax_of([mpf(v) for v in row])
        first = -mpmath.log1p((p[1] + p[2]) / p[0])
        assert all(ulps(got - true, true) <= 8 for got, true in zip(symgrad.softmax(x, 0).tolist(), p))
        assert all(ulps(got - true, true) <= 8 for got, true in zip(autograd.grad(symgrad.logsumexp(x, 0), x)[0].tolist(), p))
        assert ulps(symgrad.log_softmax(x, 0)[0].item() - first, first) <= 8


@pytest.mark.parametrize("a, b", [(0.1, -700.3), (-0.3, 33.37), (1e10, 1e10 - 17.125), (-300.1, 400.2)])
def test_slopes_of_logaddexp_where_the_difference_is_rounded(a, b):
    x, y = symgrad.tensor(a, requires_grad=True), symgrad.tensor(b, requires_grad=True)
    slopes = autograd.grad(symgrad.logaddexp(x, y), [x, y], create_graph=True)
    with mpmath.workdps(700):
        true = [logistic(mpf(a) - mpf(b)), logistic(mpf(b) - mpf(a))]
        assert all(ulps(got.item() - t, t) <= 2 for got, t in zip(slopes, true))
        assert ulps(autograd.grad(slopes[0], x)[0].item() - true[0] * true[1], true[0] * true[1]) <= 4


def true_norm(p, v, index):
    """A derivative of the p-norm of numbers, by the arguments of an index of up to two."""
    y = mpmath.fsum(abs(a) ** p for a in v) ** (1 / p)
    slopes = [mpmath.sign(a) * (abs(a) / y) ** (p - 1) for a in v]
    if len(index) < 2:
        return slopes[index[0]] if index else y
    i, j = index
    return (p - 1) / y * ((abs(v[i]) / y) ** (p - 2) * (i == j) - slopes[i] * slopes[j])


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e300])
@pytest.mark.parametrize("p", [2, 3, 1.5, 4, -1, 0.5])
@pytest.mark.parametrize("length", [
    pytest.param(symgrad.norm, id="norm"),
    pytest.param(lambda x, p: symgrad.cdist(x[None], 0 * x[None].detach(), p)[0, 0] if p > 0 else symgrad.norm(x, p), id="cdist"),
])
def test_norms_and_their_derivatives_do_not_overflow(length, p, scale):
    values = [3.0 * scale, -4.0 * scale, 5.0 * scale]
    x = symgrad.tensor(values, requires_grad=True)
    y = length(x, p)
    (slope,) = autograd.grad(y, x, create_graph=True)
    rows = [autograd.grad(s, x, retain_graph=True)[0].tolist() for s in slope]
    with mpmath.workdps(60):
        v = list(map(mpf, values))
        for index, got, bound in [((), y.item(), 8), *(((i,), g, 8) for i, g in enumerate(slope.tolist())),
                                  *(((i, j), rows[i][j], 64) for i in range(3) for j in range(3))]:
            true = true_norm(mpf(p), v, index)
            assert ulps(got - true, true) <= bound, (index, got, true)


@pytest.mark.parametrize("p", [1.5, 2, 3])
def test_normalized_vectors_do_not_overflow(p):
    for scale in (1e300, 1e160, 1e-6):
        row, plain = ([[3.0 * s, -4.0 * s, 12.0 * s]] for s in (scale, 1.0))
        unit = symgrad.nn.functional.normalize(symgrad.tensor(plain), p)
        assert symgrad.nn.functional.normalize(symgrad.tensor(row), p).tolist()[0] == pytest.approx(unit.tolist()[0], rel=2e-15)
        if scale > 1:
            assert symgrad.renorm(symgrad.tensor(row), p, 0, 1.0).tolist()[0] == pytest.approx(unit.tolist()[0], rel=2e-15)


@pytest.mark.parametrize("size", [8, 5000])
@pytest.mark.parametrize("draw", [
    pytest.param(lambda rng, n: rng.normal(0, 1e-3, n), id="small"),
    pytest.param(lambda rng, n: rng.normal(0, 1, n), id="ordinary"),
    pytest.param(lambda rng, n: rng.uniform(5, 300, n), id="large"),
    pytest.param(lambda rng, n: np.concatenate([rng.normal(0, 30, n - 2), [np.inf, -np.inf]]), id="mixed"),
])
def test_large_arrays_equal_single_numbers(draw, size):
    """The fast paths of arrays depend on their values; the reference is the same op on single numbers."""
    values = draw(np.random.default_rng(0), size)
    for name in ("tanh", "sigmoid", "softplus", "exp", "sin"):
        op = getattr(symgrad, name)
        x = symgrad.tensor(values, requires_grad=True)
        y = op(x)
        (g,) = autograd.grad(y.sum(), x, create_graph=True)
        (h,) = autograd.grad(g.sum(), x)
        for k in [*range(8), size - 2, size - 1]:
            one = symgrad.tensor(values[k], requires_grad=True)
            y1 = op(one)
            (g1,) = autograd.grad(y1, one, create_graph=True)
            (h1,) = autograd.grad(g1, one)
            for got, expected in ((y[k], y1), (g[k], g1), (h[k], h1)):
                if np.isfinite(expected.item()):
                    assert got.item() == pytest.approx(expected.item(), rel=2e-15, abs=TINY), (name, values[k])


def test_near_the_largest_float():
    """Representable results are not lost by overflow of an intermediate factor."""
    first, second = func.grad(symgrad.exp2), func.grad(func.grad(symgrad.exp2))
    with mpmath.workdps(60):
        for x in (1023.9, 1024.0):
            for function, order in ((first, 1), (second, 2)):
                true = mpf(2) ** mpf(x) * mpmath.log(2) ** order
                assert ulps(function(x).item() - true, true) <= 4
        for x in (1.39e308, 1.7976931348623157e308):
            true = 1 / (mpf(x) * mpmath.log(10))
            assert ulps(func.grad(symgrad.log10)(x).item() - true, true) <= 2
            assert symgrad.sinc(symgrad.tensor([x, -x])).tolist() == [0.0, 0.0]
    assert math.isnan(symgrad.sinc(symgrad.tensor(math.inf)).item())
