"""`identical` where a condition holds or a function jumps at single points, which may be irrational: bounds of functions, squares, ends of ranges."""

import pytest
import sympy
from sympy import (
    Abs,
    And,
    Eq,
    Heaviside,
    I,
    Interval,
    Max,
    Min,
    Piecewise,
    Rational,
    acos,
    asin,
    cos,
    cosh,
    exp,
    floor,
    log,
    pi,
    sign,
    sin,
    sinh,
    sqrt,
    tanh,
)

import symgrad
from symgrad.algebra.solving import solutions

x, y = sympy.symbols("x y", real=True)
n, m = sympy.symbols("n m", integer=True)
z, w = sympy.symbols("z w", complex=True)
p, q = sympy.symbols("p q", positive=True)


def when(condition):
    return Piecewise((1, condition), (0, True))


TOUCHED = {
    "bounds of functions": [sin(pi * n / 2) >= 1, asin(x) >= pi / 2, cos(x) <= -1, cos(sqrt(2) * x + 1) >= 1, acos(x) <= 0,
                            sin(x) * cos(x) >= Rational(1, 2), sin(x) + sin(y) >= 2, Abs(sin(x)) >= 1, cosh(x - pi) <= 1, exp(-((x - pi) ** 2)) >= 1,
                            sin(x) ** 2 >= 1,
                            And(sin(x) >= 1, x > 0), 2 * sin(x) - 3 * cos(y) >= 5, 3 * sin(x) + 4 * cos(x) >= 5],
    "squares": [(x - sqrt(2)) ** 2 <= 0, (x**2 - 3) ** 2 <= 0, x**4 - 4 * x**2 + 4 <= 0, sympy.expand((x - sqrt(5)) ** 2) <= 0, log(p) ** 2 <= 0,
                (x - y / 3) ** 2 <= 0, x**2 + (y - sqrt(3)) ** 2 <= 0, sinh(x) ** 2 + cos(y) ** 2 <= 0, (3 * x - pi) ** 4 <= 0],
    "extrema": [p + 1 / p <= 2, x / (1 + x**2) >= Rational(1, 2), x / (2 + x**2) >= sqrt(2) / 4, sqrt(p * q) >= (p + q) / 2,
                exp(2 * x) - 6 * exp(x) + 9 <= 0],
    "slopes of 0": [x * exp(x) <= -exp(-1), p**p <= exp(-exp(-1)), p * log(p) <= -exp(-1), x * exp(-2 * x) >= exp(-1) / 2],
    "absolute values and maxima": [Abs(x - sqrt(3)) <= 0, Abs(x) + Abs(y - sqrt(2)) <= 0, Max(x - sqrt(2), sqrt(2) - x) <= 0,
                                   Min(-Abs(x - pi), 1) >= 0, Abs(x**2 - 7) <= 0],
}


@pytest.mark.parametrize("condition", [c for kind in TOUCHED.values() for c in kind], ids=str)
def test_a_condition_that_holds_at_single_points_is_visited_there(condition):
    found = symgrad.identical(when(condition), 0)
    assert found.verdict == "refuted" and found.values == (1, 0), str(found)
    assert all(abs(sympy.N((c.lhs - c.rhs).xreplace(dict(found.point)), 30)) < 1e-25
               for c in condition.atoms(sympy.core.relational.Relational) if not c.has(Eq) and c != (x > 0))


THIN = {  # conditions that hold in narrow regions, far away, or at numbers that are not real
    "thresholds below a bound": [sin(x) > Rational(999999, 10**6), 2 * sin(3 * x) < -Rational(1999999, 10**6),
                                 exp(-((x - pi) ** 2)) > 1 - Rational(1, 10**6), cos(sqrt(2) * x + Rational(1, 3)) > 1 - Rational(1, 10**7),
                                 1 / (1 + (x - sqrt(3)) ** 2) > 1 - Rational(1, 10**12),
                                 sin(x) * cos(x) > Rational(1, 2) - Rational(1, 10**11), x * exp(-x) > exp(-1) - Rational(1, 10**12),
                                 sin(x) / x < -Rational(2172, 10**4),
                                 sympy.besselj(1, x) > Rational(5818, 10**4), sympy.gamma(p) < Rational(88561, 10**5)],
    "thresholds of several variables": [sin(x) + cos(y) > 2 - Rational(1, 10**9), (x - y) ** 2 + (y - sqrt(3)) ** 2 < Rational(1, 10**10),
                                        sin(x * y) > 1 - Rational(1, 10**9), x * y * exp(-(x**2) - y**2) > exp(-1) / 2 - Rational(1, 10**10)],
    "integers": [n**2 + n > 10**6 - 41, Eq(n**2, 10**6), Eq(3 * n, 37037 * 9), Eq(sympy.Mod(n, 997), 996), Eq(n, -1234567), Eq(m, n**2 + 777)],
    "complex equations": [Eq(z**2, -1), Eq(z**2 + z + 1, 0), Eq(z**4, -Rational(1, 3)), Eq(z**2 + I, 0), Eq(z**2 + sqrt(2) * z + pi, 0),
                          Eq(z, w**2 + 1), Eq(exp(z), -1), Eq(exp(2 * z), Rational(1, 3)),
                          Eq(sin(z), 2), Eq(cos(z), 0), Eq(sympy.tan(z), 2 * I), Eq(sinh(z), I / 2),
                          Eq(cosh(3 * z), -2), Eq(log(z), 1 + I), Eq(exp(z), exp(w)), Eq(sympy.conjugate(z), I)],
    "complex parts": [sympy.arg(z) >= pi, Eq(sympy.im(z), sqrt(2)), Eq(sympy.re(z), sympy.re(w)), Abs(z - 1 - 3 * I) < Rational(1, 1000),
                      Abs(z * (z - 2)) < Rational(1, 10**6), sympy.re(z) * sin(sympy.im(z)) > 10**9],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("condition", [c for kind in THIN.values() for c in kind], ids=str)
def test_a_condition_that_holds_in_a_narrow_region_is_visited_there(condition):
    found = symgrad.identical(when(condition), 0)
    assert found.verdict == "refuted" and found.values == (1, 0), str(found)


THIN_STEPS = [(floor((n**2 + n + 41) / sympy.Integer(10) ** 6), 0), (floor((n**2 + 1) / sympy.Integer(10) ** 8), 0),
              (floor(sin(x) / Rational(9999, 10000)), floor(sin(x))), (sign(Rational(31415926, 10**7) - acos(x)), 1),
              (Max(sin(x), Rational(999999, 10**6)), Rational(999999, 10**6)), (Max(0, exp(-((x - sympy.E) ** 2)) - 1 + Rational(1, 10**7)), 0),
              (Abs(sin(x) - Rational(999999, 10**6)), Rational(999999, 10**6) - sin(x)), (Heaviside(n**2 - sympy.Integer(10) ** 8, 1), 0),
              (sympy.KroneckerDelta(n**2, 10**6), 0), (sympy.besseli(0, x), sympy.besseli(0, Abs(x)) + sympy.KroneckerDelta(n, 999) * x)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("a, b", THIN_STEPS, ids=str)
def test_a_step_or_kink_in_a_narrow_region_is_visited(a, b):
    assert symgrad.identical(a, b).verdict == "refuted"


@pytest.mark.parametrize("a, b, words", [
    (when(sin(n) > 1 - Rational(1, 10**12)), 0, "on one side of a condition: sin(n) > "),
    (sign(exp(x) - x), 1, "on one side of a condition: -x + exp(x) < 0"),
    (when(Eq(exp(exp(z)), 2)), 0, "on one side of a condition: Eq(exp(exp(z)), 2)"),
    (Max(sympy.besselj(0, x) + 2, 0), sympy.besselj(0, x) + 2, "no point is on the other side of -besselj(0, x) - 2 < 0")], ids=str)
def test_a_side_that_no_point_is_on_is_named(a, b, words):
    found = symgrad.identical(a, b)
    assert words in found.reason and found.verdict == ("verified" if a.has(Max) else "not checkable")


EDGES = [(when(x**3 >= 2), when(x**3 > 2)), (when(x >= sqrt(2)), when(x > sqrt(2))), (when(x**5 - x >= 1), when(x**5 - x > 1)),
         (when((x**2 - 2) * (x**2 - 3) <= 0), when((x**2 - 2) * (x**2 - 3) < 0)), (when(exp(x) >= 3), when(exp(x) > 3)),
         (when(x >= pi * y), when(x > pi * y)),
         (floor(sin(x)), Piecewise((-1, sin(x) < 0), (0, True))), (sign((x - sqrt(2)) ** 2), 1), (Heaviside(x**2 - 2, 1), Heaviside(x**2 - 2, 0)),
         (sympy.ceiling(x - sqrt(2)) - floor(x - sqrt(2)), 1), (sign(sin(x) ** 2), 1), (Heaviside(1 - sin(x), 0), 1)]


@pytest.mark.parametrize("a, b", EDGES, ids=str)
def test_functions_that_differ_on_a_boundary_only_are_not_the_same(a, b):
    assert symgrad.identical(a, b).verdict == "refuted"


@pytest.mark.parametrize("a, b, given, at", [
    (when(x >= pi), 0, Interval(0, pi), pi), (when(x <= -sqrt(2)), 0, Interval(-sqrt(2), 3), -sqrt(2)), (when(cos(x) <= -1), 0, Interval(0, pi), pi),
    (when(x >= sympy.E), 0, Interval(1, sympy.E), sympy.E), (sign(x - sqrt(3)), -1, Interval(0, sqrt(3)), sqrt(3))], ids=str)
def test_the_irrational_ends_of_a_range_belong_to_it(a, b, given, at):
    found = symgrad.identical(a, b, {x: given})
    assert found.verdict == "refuted" and found.point == {x: at}
    assert symgrad.identical(a, b, {x: given - sympy.FiniteSet(at)}).verdict in ("proved", "verified")


@pytest.mark.parametrize("condition", [sin(1 / p) >= 1,
                                       p ** (p**2) <= Rational(1, 2), sin(x) + cos(sqrt(2) * x) >= 2], ids=str)
def test_where_the_boundary_is_unknown_there_is_no_verdict(condition):
    found = symgrad.identical(when(condition), 0)
    assert found.verdict == "not checkable" and str(condition) in found.reason


@pytest.mark.parametrize("a, b", [
    (when(tanh(x) >= 1), 0), (when(sin(x) ** 2 + cos(x) ** 2 <= 1), 1), (when(cos(x) <= 1), 1),
    (when(sympy.atan(x) >= pi / 2), 0), (when(x**2 + x + 1 > 0), 1),
    (Abs(sin(x) + 2), sin(x) + 2), (Max(sin(x), 2), 2), (floor(exp(-(x**2)) / 2), 0), (floor(sin(x) ** 2 / 3), 0), (when(n**2 >= n), 1),
    (when(Eq(z**2, -1)) * (z**2 + 1), 0), (sympy.KroneckerDelta(n, m) * (n - m), 0), (when(Eq(3 * n, m)) * sin(pi * n), 0),
    (when(sin(x) ** 4 + cos(x) ** 4 <= 1), 1),
    (Max(x, y), Piecewise((x, x >= y), (y, True))), (Max(exp(x), 3 * x), Piecewise((exp(x), exp(x) >= 3 * x), (3 * x, True))),
    (when(sin(n) >= 1), 0)], ids=str)
def test_what_holds_on_every_boundary_keeps_its_verdict(a, b):
    assert symgrad.identical(a, b).verdict in ("proved", "verified")


def test_solutions_satisfy_their_equation():
    touched = [c.lhs - c.rhs for kind in TOUCHED if kind != "slopes of 0" for c in TOUCHED[kind] if not isinstance(c, And)]
    equations = [*touched, x**2 - 2, sin(3 * x) - sqrt(2) / 2, tanh(x) - Rational(1, 3)]
    for e in equations:
        found = solutions(Eq(e, 0, evaluate=False), {}, families=True)
        assert found or e.has(sqrt(p)), e
        for at in found or ():
            values = dict(at)
            others = {s: Rational(3 + k) for k, s in enumerate(sorted({s for v in at.values() for s in v.free_symbols}, key=str))}
            rest = {s: Rational(5, 4) for s in e.free_symbols - set(at) - set(others)}
            assert abs(sympy.N(e.xreplace({s: v.xreplace(others) for s, v in values.items()} | others | rest), 40)) < 1e-30, (e, at)


# ---------------------------------------------------------------------- differences far below the size of the numbers


@pytest.mark.parametrize("a, b, low, high", [
    (exp(exp(x)), exp(exp(x)) + exp(x), 6, 8), (sympy.gamma(x), sympy.gamma(x) + 1, 200, 300), (sinh(x), cosh(x), 300, 400),
    (exp(x) ** 2, exp(2 * x) + 1, 400, 500),
    (cosh(x), exp(x) / 2, 300, 400), (x**200, x**200 + 1, 10**10, 10**11),
    (tanh(x), 1, 800, 900), (log(exp(x) + 1), x, 700, 800), (sympy.erf(x), 1, 40, 50),
    (sin(x), sin(x) + Rational(1, 10**700), 0, 1), (exp(x) + sympy.besselj(0, x), exp(x), 1000, 1100),
    (sqrt(x**2 + 1), x, 10**400, 10**401)], ids=str)
def test_a_difference_that_is_not_zero_is_seen_beside_any_number(a, b, low, high):
    found = symgrad.identical(a, b, {x: Interval(low, high)})
    assert found.verdict == "refuted" and found.difference != 0
    assert len(set(str(found).partition("\n")[2].partition(": ")[2].partition("\n")[0].split(" and "))) == 2


@pytest.mark.parametrize("a, b, low, high", [(1 - tanh(x) ** 2, 1 / cosh(x) ** 2, 500, 1000), (exp(exp(x)) * exp(x), exp(exp(x) + x), 6, 8),
                                             (sympy.gamma(x + 1), x * sympy.gamma(x), 200, 300), (cosh(x) - sinh(x), exp(-x), 300, 400),
                                             (log(exp(x) + 1) - x, log(1 + exp(-x)), 700, 800),
                                             (sympy.asinh(sympy.tan(x)), sympy.atanh(sin(x)), 1, 1.5)], ids=str)
def test_cancellation_is_no_difference(a, b, low, high):
    assert symgrad.identical(a, b, {x: Interval(low, high)}).verdict in ("proved", "verified")


@pytest.mark.parametrize("u, at", [(log(x) + 100, exp(-100)), (log(1 - x) + 100, 1 - exp(-100)), (log(3 * x) - Rational(301, 3), None),
                                   (tanh(x) - 1 + exp(-40), None), (x - 1 + pi**-90 / 7, 1 - pi**-90 / 7)], ids=str)
def test_powers_of_numbers_are_no_variables_of_high_degree(u, at, monkeypatch):
    degrees = []
    factor_list = sympy.factor_list
    monkeypatch.setattr(sympy, "factor_list", lambda e: degrees.append(sympy.Poly(e).total_degree()) or factor_list(e))
    found = solutions(Eq(u, 0, evaluate=False), {}, families=True)
    assert found is not None and len(found) == 1 and all(degree <= 12 for degree in degrees)
    assert at is None or sympy.simplify(found[0][x] - at) == 0
