"""`domain=` is the same for all functions with this argument: the same forms, the same points, the same errors."""

import math

import pytest
import sympy

import symgrad
from symgrad.graph.domains import POSITIVE, UNIT_OPEN
from symgrad.symbolic.operations import FormulaOp

x = sympy.Symbol("x", real=True)
FORMS = ["positive", "nonpositive", "unit", (1, 2), [-1, 2.5], (0, math.inf), (0, sympy.pi), "(0, 1]", "-1..1", "{1, 2}", "(0, pi/2)",
         [(1, 2), (3, 4)], sympy.Interval(0, 1), sympy.FiniteSet(1, 2), sympy.S.Naturals, sympy.S.Reals - sympy.FiniteSet(0), POSITIVE, UNIT_OPEN]


def checked(domain):
    return symgrad.check(lambda x: x * x, formula="x**2", domain=domain, order=1, points=3, framework="symgrad")


def compared(domain):
    return symgrad.identical(sympy.Piecewise((x, x > 0), (-x, True)), sympy.Abs(x), {x: domain})


def scanned(domain):
    return symgrad.accuracy(lambda x: x * x, domain, points=2, order=0, seconds=1)


def made(domain):
    return symgrad.op_from_sympy("op_of_a_domain", x**2 + 1, domain=domain, check=False)


def traced(domain):
    return symgrad.to_sympy(lambda x: x * x, domain=domain)


TOOLS = checked, compared, scanned, made, traced


@pytest.mark.sampled(26)
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_tool_reads_every_form(tool, form):
    found = tool(form)
    assert isinstance(found, (sympy.Expr, FormulaOp)) or found


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("form", ["positiv", "0,1", (1, 2, 3), ("a", "b"), sympy.ConditionSet(x, sympy.sin(x) > 0)], ids=str)
def test_every_tool_refuses_an_invalid_domain_with_the_same_message(tool, form):
    with pytest.raises(TypeError, match=r"the domain of x is .*expected a pair \(low, high\), a list of pairs, a symgrad Domain, a SymPy set"):
        tool(form)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("form", [(2, 1), "(0, 0)", "{}"], ids=str)
def test_every_tool_refuses_a_domain_without_points(tool, form):
    with pytest.raises(ValueError, match="the domain .* of x excludes every point; give one with points in it"):
        tool(form)


@pytest.mark.parametrize("tool", [checked, scanned, made])
def test_every_tool_refuses_an_unknown_argument_name(tool):
    with pytest.raises(TypeError, match="domain names q, but the arguments are x"):
        tool({"q": "positive"})


def test_comparisons_stay_inside_the_domain():
    for domain in ("positive", (0, 5), "0..5", [(0, 1), (2, 3)]):
        assert symgrad.identical(sympy.sqrt(x**2), x, {x: domain}).verdict == "proved"
    for domain in ("negative", (-5, 0), "-5..0", [(0, 1), (-3, -2)]):
        assert symgrad.identical(sympy.sqrt(x**2), x, {x: domain}).verdict == "refuted"


def test_the_ends_of_sets_are_exact():
    """For an end that is not a float, the floats inside are those of the set, and `identical` uses the exact end."""
    third = sympy.Rational(1, 3)
    (interval,) = made(sympy.Interval.open(0, third)).domain[0].intervals
    assert float(third) in interval and 0.0 not in interval and math.nextafter(1 / 3, 1) not in interval
    bend = sympy.Max(x - third, 0)
    assert symgrad.identical(bend, 0, {x: sympy.Interval(-1, third)}).verdict == "proved"
    assert symgrad.identical(bend, 0, {x: sympy.Interval(-1, third + sympy.Rational(1, 10**12))}).verdict == "refuted"
