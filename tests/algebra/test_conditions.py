"""Boundaries of conditions in formulas, recorded graphs and sources, the numbers near them, and their use in `identical`."""

import math

import numpy as np
import pytest
import sympy
from sympy import Abs, Eq, Max, Mod, Piecewise, Rational, ceiling, exp, floor, log, sign, sin, sqrt

import symgrad
from symgrad.sampling.conditions import (
    boundaries,
    boundary_numbers,
    combined_numbers,
    constants_of_code,
    constants_of_graph,
    nearby_numbers,
    switching_functions,
    zeros,
)

x, y = sympy.symbols("x y", real=True)


def when(condition):
    return Piecewise((2 * x, condition), (x, True))


PLACES = [
    (when(Eq(x, Rational(29, 4))), {7.25}), (when(Eq(floor(x / 100), 3)), {300.0, 350.0, 400.0}), (when(Eq(ceiling(x / 2), -4)), {-10.0, -9.0, -8.0}),
    (when(Eq(Mod(x, 7), 3)), {3.0, 10.0, -4.0}), (when(Abs(x) > 40), {40.0, -40.0, 0.0}), (when((x > 3) & (x**2 < 49)), {3.0, 7.0, -7.0}),
    (when(exp(x) > 3), {math.log(3)}), (Abs(Abs(x - 2) - 5), {7.0, -3.0, 2.0}), (Max(x, 31), {31.0}), (sign(x + 5), {-5.0}), (log(x - 3), {3.0}),
    (1 / (x**2 - 4), {2.0, -2.0}), (sqrt(x + 1), {-1.0}), (Abs(sin(x)), {0.0, math.pi, -math.pi}), (floor(x / 10), {0.0, 10.0, -10.0, 30.0}),
    (when(Eq(floor(x + Rational(1, 2)), -77)), {-77.5, -76.5, -77.0}),
    (when((x > 1000) & (x < 1000 + Rational(1, 2**20))), {1000.0, 1000 + 2.0**-20, 1000 + 2.0**-21})]


@pytest.mark.parametrize("formula, expected", PLACES, ids=[str(e) for e, _ in PLACES])
def test_boundaries_of_a_formula(formula, expected):
    found = [v for _, v in boundaries([formula], ["x"], [1.3])]
    assert all(any(math.isclose(v, e, rel_tol=1e-15, abs_tol=1e-300) for v in found) for e in expected)


def test_ties_are_computed_with_the_other_arguments_fixed():
    assert boundaries([when(Eq(x, y))], ["x", "y"], [1.3, 2.5]) == [(0, 2.5), (1, 1.3)]


def test_a_smooth_formula_has_no_boundary_points():
    assert boundaries([sin(x) * exp(x) + x**3], ["x"], [1.0]) == []


@pytest.mark.parametrize("c", [7.25, 40.0, -1e-3, 0.0, 1e300, 1e-310])
def test_nearby_numbers_fill_bands_of_every_width(c):
    found, size = np.array(nearby_numbers(c)), abs(c) or 1.0
    assert found[0] == c and len(set(found)) == len(found) and np.isfinite(found).all()
    assert {math.nextafter(c, math.inf), math.nextafter(c, -math.inf)} <= set(found)
    for side in (1, -1):
        apart = side * (found - c)
        for low, high in ((0, 2e-15 * size or 1e-323), (0, 1e-9 * size), (1e-4 * size, 0.01 * size), (0.2 * size, 2 * size), (5 * size, math.inf)):
            assert ((apart > low) & (apart <= high)).any() or size in (1e300, 1e-310)
    assert all(float(np.float32(v)) == v for v in nearby_numbers(7.25, "float32"))


def test_boundaries_come_before_their_neighbours():
    found = boundary_numbers([Abs(x - 3) + Abs(x - 5)], ["x"], [1.0], each=3)
    assert {v for _, v in found[:3]} == {3.0, 4.0, 5.0} and len(found) == 9


def test_zeros_of_a_function_unknown_to_numpy_are_empty():
    assert zeros(sympy.zeta(x) - 2, x) == () and switching_functions(sympy.zeta(x)) == []


THRESHOLD = 41.5


def test_the_constants_of_a_graph_and_a_source():
    scale = 12.5

    def function(v):
        if v < THRESHOLD:
            return (lambda u: symgrad.where(u > 7.25, scale * u, u))(v)
        return v

    assert {THRESHOLD, 12.5, 7.25} <= set(constants_of_code(function)) and constants_of_code(math.sin) == []
    v = symgrad.tensor([1.3, 9.0], requires_grad=True, symbol="v")
    assert constants_of_graph((symgrad.where(v.floor() == 3, 2 * v, v) + symgrad.where(7.25 < v, v, 0.0)).sum()._node) == [3.0, 7.25]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("condition", [
    Eq(x, Rational(29, 4)), Eq(floor(x / 100), 3), Eq(Mod(x, 7), 3), x > 5000, Abs(x) > 4000, Eq(floor(x + Rational(1, 2)), -77),
    (x > 1000) & (x < 1000 + Rational(1, 10**6)),
    (x**2 > 20) & (x**2 < 20 + Rational(1, 10**7)), (exp(x) > 1000) & (exp(x) < 1000 + Rational(1, 10**5))],
    ids=str)
def test_identical_compares_where_a_condition_holds(condition):
    """Conditions that hold far away, at one number, and in a narrow interval."""
    found = symgrad.identical(when(condition), x)
    assert found.verdict == "refuted" and found.values[0] != found.values[1]


ONE_SIDED = [Eq(x**3 + x, 3), (x > 1000) & Eq(Mod(x, 64), 5), Abs(exp(x) - x**3 * sympy.cos(x) - 500) < Rational(1, 10**14)]


@pytest.mark.sweep
@pytest.mark.parametrize("condition", ONE_SIDED, ids=str)
def test_identical_does_not_verify_an_unvisited_piece(condition):
    found = symgrad.identical(when(condition), x)
    assert found.verdict == "refuted" or found.verdict == "not checkable" and str(condition) in found.reason


@pytest.mark.parametrize("condition", [Eq(x + y, 1), Eq(x, 3 * y), Eq(3 * x, y), Eq(x - 2 * y, 7), Eq(x * y, 0), (x > 5) & (y < -40)], ids=str)
def test_identical_visits_lines_and_corners(condition):
    assert symgrad.identical(when(condition), x).verdict == "refuted"


@pytest.mark.parametrize("a, b", [
    (Abs(exp(x) - x), exp(x) - x), (Max(exp(x), x), exp(x)), (floor(2 * x), floor(x) + floor(x + Rational(1, 2))),
    (Piecewise((x, x**2 + 1 > 0), (2, True)), x), (Piecewise((1, Eq(exp(x), 0)), (0, True)), 0), (Piecewise((1, (x > 3) & (x < 2)), (0, True)), 0)],
    ids=str)
def test_a_constant_condition_does_not_prevent_a_verdict(a, b):
    assert symgrad.identical(a, b).verdict in ("proved", "verified")


def test_a_condition_that_is_constant_in_the_range_does_not_prevent_a_verdict():
    assert symgrad.identical(Piecewise((log(x) * 0 + sin(x) ** 2 + 1, x > 3), (x, True)), 2 - sympy.cos(x) ** 2, {x: sympy.Interval(5, 9)})


def test_constants_of_called_functions_and_their_products():
    class Rule:
        @staticmethod
        def backward(g):
            return g * 100 + 3

    def calls(v):
        return Rule.backward(v)

    assert {100.0, 3.0} <= set(constants_of_code(calls)) and 300.0 in combined_numbers(constants_of_code(calls))


@pytest.mark.sweep
def test_the_source_of_rules_without_a_module_is_read():
    spaces = {"symgrad": symgrad}
    exec(compile("f = lambda x: symgrad.where(x == 7.25, x, 0.0)", "<text>", "exec"), spaces)
    spaces["f"].__module__ = None
    assert symgrad.check(spaces["f"], 0.5, points=4).verdict != "refuted"
