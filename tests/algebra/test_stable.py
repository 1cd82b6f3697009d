"""Rewriting into stable forms: every form equals the given expression to fifty digits."""

import mpmath
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Abs, Max, Rational, cos, cosh, exp, log, sech, sin, sinh, sqrt, tanh  # noqa: F401  the forms name them

from symgrad.algebra.stable import elementary, stable_form, suggestions
from symgrad.algebra.stable_functions import (  # noqa: F401  the forms name them
    DEFINITIONS,
    expm1,
    hypot,
    larger,
    log1mexp,
    log1p,
    log_cosh,
    logaddexp,
    partial,
    sech_squared,
    sigmoid,
    smaller,
    softplus,
    step,
    whole,
)
from symgrad.algebra.stable_products import FORMULAS, VARIABLE, Mean, Ratio, with_ratios
from tests.support.lines import lines

x, y = sympy.symbols("x y", real=True)
p, q, k = sympy.symbols("p q k", positive=True)

TABLE = [(eval(before), after) for before, after in lines("stable_forms")]
FORMS = {before: eval(after) for before, after in TABLE if after != "unchanged"}
UNCHANGED = [before for before, after in TABLE if after == "unchanged"]
SYMBOLS = (x, y, p, q, k)
KINKED = (larger, smaller, step, whole)


def values_of(expr, at, digits=60):
    """An expression and its elementary form at numbers."""
    with mpmath.workdps(digits):
        return [sympy.lambdify(SYMBOLS, e, "mpmath")(*at) for e in (expr, elementary(stable_form(expr)))]


@pytest.mark.parametrize("expr", FORMS, ids=str)
def test_form(expr):
    assert stable_form(expr) == FORMS[expr]
    assert stable_form(stable_form(expr)) == stable_form(expr)


@pytest.mark.parametrize("expr", UNCHANGED, ids=str)
def test_expressions_without_a_better_form_are_unchanged(expr):
    assert elementary(stable_form(expr)) == expr


real = st.fractions(-20, 20, max_denominator=1000)
positive = st.fractions(Rational(1, 1000), 20, max_denominator=1000)


@pytest.mark.sampled(1)
@settings(max_examples=10, deadline=None)
@given(at=st.tuples(real, real, positive, positive, positive))
@pytest.mark.parametrize("expr", [*FORMS, *UNCHANGED], ids=str)
def test_forms_are_identical(expr, at):
    with mpmath.workdps(80):
        at = [mpmath.mpf(v.numerator) / v.denominator for v in at]
    try:
        before, after = values_of(expr, at, 80)
    except ZeroDivisionError:
        return  # a point where the formula has no value
    assert abs(before - after) <= mpmath.mpf("1e-45") * max(1, abs(before))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", [f for f in DEFINITIONS if f not in (*KINKED, Mean, Ratio)], ids=lambda f: f.__name__)
def test_stable_functions_differentiate_and_evaluate_as_their_definitions(function):
    args = (x, y)[:function.nargs.args[0]] if function is not log1mexp else (-p,)
    at = {x: Rational(7, 5), y: Rational(-3, 10), p: Rational(1, 3)}
    f = function(*args)
    for arg in (s for s in (x, y, p) if s in f.free_symbols):
        for order in (1, 2, 3):
            ours, truth = (elementary(e.diff(arg, order)).xreplace(at).evalf(50) for e in (f, elementary(f)))
            assert abs(ours - truth) < 1e-45 * max(1, abs(truth))
    assert abs(f.xreplace(at).evalf(40) - elementary(f).xreplace(at).evalf(40)) < 1e-38


def test_kinks_differentiate_by_the_conventions():
    assert partial(Abs(x), x) == sympy.sign(x) and partial(sympy.sign(x), x) == 0 == partial(sympy.floor(x), x)
    assert partial(Max(x, y), x) == step(x - y) and elementary(step(x - y)).subs(x, y) == Rational(1, 2)
    tie = [partial(Max(x, y, p), s).subs({x: 1, y: 1, p: 1}) for s in (x, y, p)]
    assert sum(map(elementary, tie)) == 1  # the derivative along all three together
    assert elementary(partial(partial(Max(x, 0) ** 2, x), x)).subs(x, 3) == 2
    assert partial(sympy.Mod(x, 2), x) == 1


@pytest.mark.sweep
def test_quotients_of_one_inner_argument():
    assert str(with_ratios(stable_form(p**3 / (exp(p / q) - 1)))) == "p**2*q*over_expm1(p/q)"
    assert with_ratios(sin(x * y) / x) == y * Ratio(0, 0, x * y)
    assert with_ratios(sin(x) / y) == sin(x) / y
    for which, formula in enumerate(FORMULAS):
        for order in (0, 2):
            assert elementary(Ratio(which, 0, x).diff(x, order)) == formula.diff(VARIABLE, order).xreplace({VARIABLE: x})


def test_suggestions_have_the_part_and_its_better_form():
    found = suggestions(x * (exp(x) - 1) + log(1 + exp(y)) + Max(x, 0))
    assert set(found) == {(exp(x) - 1, expm1(x), "expm1"), (log(1 + exp(y)), softplus(y), "softplus")}
    assert suggestions(x / (1 + Abs(x))) == []
    (only,) = suggestions(y - 3 * tanh(x) ** 2 + 3)
    assert only == (3 - 3 * tanh(x) ** 2, 3 * sech_squared(x), "sech_squared")


def test_stable_forms_keep_digits_that_formulas_lose():
    at = {x: sympy.Float("1e-9", 20)}
    assert abs(stable_form(1 - cos(x)).xreplace(at).evalf(17) / sympy.Float("5e-19", 30) - 1) < 1e-15
