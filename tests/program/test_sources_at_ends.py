"""Sources of derivatives where an op stops to depend on its argument: what is not finite in eager derivatives is not finite there.

Inside a region that an op does not select, and at the border of the condition of a `where`, they are 0, whatever else is infinite.
"""

import importlib.util
import math
from types import SimpleNamespace

import numpy as np
import pytest
import sympy

import symgrad
from symgrad import func
from tests.ops.test_routes_selected import ENDS, OUTER, SELECTING, STEEP, selections
from tests.routes.table import PRINTED

LANGUAGES = [name for name, (_, _, needs) in PRINTED.items() if not needs or importlib.util.find_spec(needs)]
WHERE = symgrad.where


def derivatives(f, at, language):
    """The first and the second derivative of a function of a number at a point, by its source."""
    write, run, _ = PRINTED[language]
    with np.errstate(all="ignore"):
        found = run(write(f, (), at=[at + 0.37], derivatives=2, name="f"), SimpleNamespace(function=SimpleNamespace(point=np.array(at))))
    return [float(np.ravel(found[order])[0]) for order in (1, 2)]


def eager(f, at):
    with np.errstate(all="ignore"):
        return [float(derivative(symgrad.tensor(at))) for derivative in (func.grad(f), func.grad(func.grad(f)))]


def from_the_right(f, order):
    """The limit at 0 of a derivative of the formula, from the right."""
    z = sympy.Symbol("z", positive=True)
    x = sympy.Symbol("x", real=True)
    return float(sympy.limit(sympy.diff(sympy.nsimplify(symgrad.to_sympy(f, (), at=[0.37]).subs(x, z)), z, order), z, 0, "+"))


def check(f, languages, at=0.0):
    expected = eager(f, at)
    for language in languages:
        for order, (found, e) in enumerate(zip(derivatives(f, at, language), expected), 1):
            if math.isfinite(e):
                assert found == pytest.approx(e, rel=1e-12), (language, order)
            elif math.isfinite(found):  # a formula that SymPy has simplified has a derivative there
                assert found == pytest.approx(from_the_right(f, order), rel=1e-12), (language, order)


def before(end, inner):
    """A function that stops to depend on one with an infinite slope, at 0."""
    function, at, side = ENDS[end]
    return lambda x: function(at + side * STEEP[inner](x))


def after(end, outer):
    """A function with an infinite slope at 0, of one that stops to depend on its argument there."""
    function, at, side = ENDS[end]
    value = function(symgrad.tensor(at)).item()
    return lambda x: OUTER[outer](side * (function(at + side * x) - value))


@pytest.mark.parametrize("end", ENDS)
def test_ends_of_regions(end):
    check(before(end, "sqrt"), ["Python", "C"])


@pytest.mark.sweep
@pytest.mark.parametrize("inner", STEEP)
@pytest.mark.parametrize("end", ENDS)
def test_ends_of_regions_before_a_steep_function(end, inner):
    check(before(end, inner), LANGUAGES)


@pytest.mark.sweep
@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("end", ENDS)
def test_ends_of_regions_after_a_steep_function(end, outer):
    check(after(end, outer), LANGUAGES)


BORDERS = {  # functions that are not selected at 0
    "power": lambda x: WHERE(x > 0, x**1.5, 0.0), "root": lambda x: WHERE(x > 0, x.sqrt(), 0.0), "logarithm": lambda x: WHERE(x > 0, x.log(), 0.3),
    "other branch": lambda x: WHERE(x <= 0, 0.7 * x, x ** (1 / 3)), "root of a choice": lambda x: WHERE(x > 0, x, 0.0).sqrt(),
    "product": lambda x: WHERE(x > 0, x.sqrt(), 0.0) * x.exp() / 3, "both": lambda x: WHERE((x > 0) & (x < 1), x.sqrt(), 0.0) + x.sin(),
    "behind": lambda x: WHERE(x.sqrt() > 0, x.sqrt(), 0.0), "the same condition": lambda x: WHERE(x > 0, symgrad.relu(x).sqrt(), 0.0),
}


@pytest.mark.parametrize("name", BORDERS)
def test_borders_of_conditions(name):
    check(BORDERS[name], ["Python", "C"])


@pytest.mark.parametrize("op", [op for op in SELECTING if op.arity == 1], ids=lambda op: op.name)
def test_inside_a_region(op):
    rng = np.random.default_rng(len(op.name))
    for inner, at in selections(op, rng):
        value = inner(symgrad.tensor(at)).item()
        if math.isfinite(value) and math.isfinite(at):
            outer = list(OUTER)[rng.integers(len(OUTER))]
            f = lambda x, inner=inner, value=value, outer=outer: OUTER[outer](inner(x) - value)  # noqa: E731
            assert derivatives(f, at, "Python") == [0, 0], (outer, at)
