"""The references of the testing kit against SymPy's derivatives and mpmath, at numerically difficult points; kinks, jumps, steps and arrays."""

import math

import mpmath
import numpy as np
import pytest
import sympy

import symgrad
from symgrad.graph.op import REGISTRY
from symgrad.testing.attack import Attack
from symgrad.testing.failure import Wrong
from symgrad.testing.references import difference

X, Y = sympy.symbols("x y", real=True)
HARD = [0.0, 5e-324, 1e-300, -1e-100, 1e-20, 1e-8, 0.3, -2.5, 20.3, -100.7]
FORMULAS = {"sin(x)": HARD + [1e20], "cosh(x) - 1": HARD, "exp(-x**2/2)": HARD, "log(1 + exp(x))": HARD, "tanh(x)": HARD + [300.0],
            "x*exp(-x)": HARD, "1/(1 + x**2)": HARD + [1e100, 1e300], "atan(x)": HARD + [-1e300], "log(x)": [5e-324, 1e-300, 1e-8, 0.5, 1.0, 1e300],
            "sqrt(x)": [1e-300, 1e-8, 2.0, 1e300], "asin(x)": [0.0, 1e-300, 0.5, 1 - 2.0**-53], "1 - exp(-exp(x))": [-700.0, 0.0, 3.0, 6.0]}
TWO = {"x*y + sin(y)": [(1.0, 2.0), (1e-300, 20.3), (0.0, 0.0), (1e200, 1.0)],
       "atan2(y, x)": [(1e-300, 1e300), (1.5, -1e-8), (0.5, 0.5), (-1e100, 2.0)],
       "log(exp(x) + exp(y))": [(0.0, 0.0), (1.0, 1e-300), (-3.0, 40.0)], "x/y": [(1e300, 1e-5), (-1e-300, 3.0), (0.0, 2.0)]}


def exact(e, symbols, point):
    """A SymPy expression at a point, with digits until they agree."""
    function, before = sympy.lambdify(symbols, e, "mpmath"), None
    for digits in (400, 1000, 2000):
        with mpmath.workdps(digits):
            now = mpmath.mpf(function(*map(mpmath.mpf, point)))
            if before is not None and abs(now - before) <= abs(now) * mpmath.mpf(10) ** -30:
                break
        before = now
    return now


def agree(found, true):
    return found is not None and (abs(found - true) <= abs(true) * mpmath.mpf(10) ** -19 or max(abs(found), abs(true)) < mpmath.mpf("1e-380"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", FORMULAS)
def test_derivatives_of_one_argument_are_sympys(text):
    truth = Attack(lambda x: x, formula=text, framework="symgrad").truth
    e = sympy.sympify(text, {"x": X})
    for order in range(4):
        found = truth.quotients.derivative((order,), [(x,) for x in FORMULAS[text]])
        for x, d in zip(FORMULAS[text], found):
            true = exact(sympy.diff(e, X, order), [X], [x])
            d = d or truth.quotients.derivative((order,), [(x,)], certain=True)[0]
            assert agree(d, true), (order, x, d, true)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", TWO)
def test_mixed_derivatives_are_sympys(text):
    truth = Attack(lambda x, y: x, formula=text, framework="symgrad").truth
    e = sympy.sympify(text, {"x": X, "y": Y})
    for k in [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 1)]:
        found = truth.quotients.derivative(k, TWO[text])
        for point, d in zip(TWO[text], found):
            true = exact(sympy.diff(e, X, k[0], Y, k[1]), [X, Y], point)
            assert agree(d, true), (k, point, d, true)


@pytest.mark.sweep
def test_all_kinds_of_formulas_give_the_same_reference():
    point = [np.array([0.7, -1.25])]
    ways = ["x*exp(-x**2/3)", X * sympy.exp(-X**2 / 3), sympy.Lambda(X, X * sympy.exp(-X**2 / 3)), lambda xp, x: x * xp.exp(-x**2 / 3),
            lambda x: x * symgrad.exp(-x**2 / 3)]
    found = [Attack(lambda x: x, formula=way, framework="symgrad", elementwise=True).truth.gradient(point, np.array([2.0, -1.0]), [np.ones(2)])[0]
             for way in ways]
    for other in found[1:]:
        assert all(abs(a - b) < 1e-25 for a, b in zip(found[0], other))


@pytest.mark.parametrize("name, point, missing, there", [
    ("abs", (0.0,), [(1,), (2,)], [(0,)]), ("relu", (0.0,), [(1,), (2,), (3,)], [(0,)]), ("floor", (3.0,), [(1,)], [(0,)]),
    ("sign", (0.0,), [(1,)], [(0,)]), ("sqrt", (0.0,), [(1,)], [(0,)]), ("maximum", (2.0, 2.0), [(1, 0), (0, 1), (1, 1)], [(0, 0)]),
    ("floor", (2.5,), [], [(0,), (1,), (2,)]), ("abs", (1e-300,), [], [(1,), (2,)]), ("atan2", (0.0, -1.0), [(1, 0)], [(0, 0), (0, 1)])])
def test_where_a_derivative_does_not_exist(name, point, missing, there):
    points = Attack(REGISTRY[name]).truth.quotients
    assert all(points.derivative(k, [point]) == [None] for k in missing)
    assert all(points.derivative(k, [point]) != [None] for k in there)


@pytest.mark.parametrize("name, point", [("floor", (1e100,)), ("floor_divide", (-1e300, 1.5)), ("floor_divide", (1.0, 1e-300))])
def test_long_steps_do_not_hide_the_steps_of_a_function(name, point):
    found = Attack(REGISTRY[name]).truth.quotients.derivative((1,) + (0,) * (len(point) - 1), [point])[0]
    assert found is None or found == 0


@pytest.mark.sweep
def test_a_periodic_remainder_is_not_a_polynomial():
    points = Attack(REGISTRY["remainder"]).truth.quotients
    assert points.derivative((1, 0), [(1e100, 1e-8)]) == [1] and points.derivative((0, 2), [(-2.59265421, 1e-20)]) == [0]


@pytest.mark.sweep
def test_a_remainder_is_linear_between_its_steps_however_large_the_quotient_is():
    points = Attack(REGISTRY["remainder"]).truth.quotients
    assert points.derivative((0, 3), [(1e100, 1.2e7)]) == [0] and points.derivative((0, 2), [(1e60, 11.0)]) == [0]
    assert points.derivative((1, 1), [(1e60, 1.7)]) == [0] and points.derivative((0, 1), [(1e60, 11.0)])[0] < -9e58


def test_numbers_beyond_floats_are_infinite_and_zeros_can_be_certain():
    points = Attack(REGISTRY["exp"]).truth.quotients
    assert points.derivative((1,), [(1e300,)]) == [mpmath.inf] and points.derivative((2,), [(-1e300,)]) == [0]
    gumbel = Attack(lambda x: x, formula="1 - exp(-exp(x))", framework="symgrad").truth.quotients
    (sure,) = gumbel.derivative((1,), [(6.5,)], certain=True)
    with mpmath.workdps(30):
        assert abs(sure / mpmath.exp(6.5 - mpmath.exp(mpmath.mpf(6.5))) - 1) < 1e-19


def test_broadcast_gradients_are_summed_and_coefficients_count():
    truth = Attack(REGISTRY["mul"]).truth
    xs = [np.array([[1.0], [2.0]]), np.array([3.0, 5.0, 7.0])]
    g = np.array([[1.0, -1.0, 2.0], [0.5, 0.0, 1.0]])
    first, second = truth.gradient(xs, g)
    assert first.astype(float).tolist() == [[12.0], [8.5]] and second.astype(float).tolist() == [2.0, -1.0, 4.0]
    assert truth.tangent(xs, [np.array([[1.0], [0.0]]), None]).astype(float).tolist() == [[3.0, 5.0, 7.0], [0.0, 0.0, 0.0]]
    assert truth.condition(xs, (0, 0), 0, g) >= 12


def test_arrays():
    truth = Attack(REGISTRY["logsumexp"], parameters=((0,), False)).truth
    x = np.array([[0.5, -1.0], [2.0, 3.0]])
    p = np.exp(x - x.max(0)) / np.exp(x - x.max(0)).sum(0)
    (gradient,) = truth.gradient([x], np.array([1.0, 2.0]))
    assert np.allclose(gradient.astype(float), p * [1.0, 2.0], rtol=1e-14, atol=0)
    t = np.array([[1.0, 0.0], [-1.0, 2.0]])
    assert np.allclose(truth.tangent([x], [t]).astype(float), (p * t).sum(0), rtol=1e-14)
    (second,) = truth.gradient([x], np.array([1.0, 2.0]), [t])
    expected = (p * t - p * (p * t).sum(0)) * [1.0, 2.0]
    assert all(v is None or math.isclose(v, e, rel_tol=1e-13) for v, e in zip(second.ravel(), expected.ravel()))
    assert any(v is not None for v in second.ravel())
    assert truth.certain([x], (1, 1), 0, np.array([1.0, 2.0])) is not None and truth.condition([x], (0,), None, None) > 0


def test_the_difference_of_a_wrong_rule_is_a_formula():
    x = sympy.Symbol("input", real=True)
    attack = Attack(REGISTRY["sin"], formula="2*sin(input)")
    assert difference(attack, Wrong("", order=1, wrt=(0,))) == -sympy.cos(x) and difference(attack, Wrong("", order=0)) == -sympy.sin(x)
    assert difference(Attack(REGISTRY["sin"]), Wrong("", order=1, wrt=(0,))) is None
