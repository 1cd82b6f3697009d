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


def beside(f, order):
    """The limits at 0 of a derivative of the formula, from the right and from the left; the root of a negative number has none."""
    x, z = sympy.Symbol("x", real=True), sympy.Symbol("z", positive=True)
    formula = sympy.nsimplify(symgrad.to_sympy(f, (), at=[0.37]))
    found = [sympy.limit(side**order * sympy.diff(formula.subs(x, side * z), z, order), z, 0, "+") for side in (1, -1)]
    return [float(limit) for limit in found if limit.is_extended_real]


def check(f, languages, at=0.0):
    expected = eager(f, at)
    for language in languages:
        for order, (found, e) in enumerate(zip(derivatives(f, at, language), expected), 1):
            if math.isfinite(e):
                assert found == pytest.approx(e, rel=1e-12), (language, order)
            elif math.isfinite(found):  # a formula that SymPy has simplified has a derivative there, or one of least norm
                limits = beside(f, order)
                true = 0 if min(limits) < 0 < max(limits) and math.isfinite(sum(limits)) else limits[0]
                assert found == pytest.approx(true, rel=1e-12), (language, order)


def before(end, inner):
    """A function that stops to depend on one with an infinite slope, at 0."""
    function, at, side = ENDS[end]
    return lambda x: function(at + side * STEEP[inner](x))


def after(end, outer):
    """A function with an infinite slope at 0, of one that stops to depend on its argument there."""
    function, at, side = ENDS[end]
    value = function(symgrad.tensor(at)).item()
    return lambda x: OUTER[outer](side * (function(at + side * x) - value))


def turned(k):
    """One of the languages, in turns."""
    return [LANGUAGES[k % len(LANGUAGES)]]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("end", ENDS)
def test_ends_of_regions(end):
    check(before(end, "sqrt"), ["Python"] if len(end) % 3 else ["C"])


@pytest.mark.sweep
@pytest.mark.parametrize("end", ENDS)
def test_ends_of_regions_by_all_languages(end):
    for k, inner in enumerate(STEEP, len(end)):
        check(before(end, inner), turned(k))
    for k, outer in enumerate(np.random.default_rng(len(end)).permutation(list(OUTER))[:3], len(end)):
        check(after(end, outer), turned(k))


BORDERS = {  # functions that are not selected at 0
    "power": lambda x: WHERE(x > 0, x**1.5, 0.0), "root": lambda x: WHERE(x > 0, x.sqrt(), 0.0), "logarithm": lambda x: WHERE(x > 0, x.log(), 0.3),
    "other branch": lambda x: WHERE(x <= 0, 0.7 * x, x ** (1 / 3)), "root of a choice": lambda x: WHERE(x > 0, x, 0.0).sqrt(),
    "product": lambda x: WHERE(x > 0, x.sqrt(), 0.0) * x.exp() / 3, "both": lambda x: WHERE((x > 0) & (x < 1), x.sqrt(), 0.0) + x.sin(),
    "behind": lambda x: WHERE(x.sqrt() > 0, x.sqrt(), 0.0), "the same condition": lambda x: WHERE(x > 0, symgrad.relu(x).sqrt(), 0.0),
}


@pytest.mark.parametrize("name", BORDERS)
def test_borders_of_conditions(name):
    check(BORDERS[name], ["Python"] if len(name) % 3 else ["C"])


@pytest.mark.sweep
@pytest.mark.parametrize("name", BORDERS)
def test_borders_of_conditions_by_all_languages(name):
    check(BORDERS[name], LANGUAGES)


@pytest.fixture
def unwritten(monkeypatch):
    """Programs are long: no formula is written out and differentiated, but the function."""
    monkeypatch.setattr("symgrad.codegen.equations.SHORT", -1)


@pytest.mark.parametrize("name", BORDERS)
def test_borders_of_conditions_in_long_programs(name, unwritten):
    check(BORDERS[name], ["Python"])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("end", ENDS)
def test_ends_of_regions_in_long_programs(end, unwritten):
    check(before(end, "sqrt"), ["Python"])
    check(after(end, "sqrt"), ["Python"])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("op", [op for op in SELECTING if op.arity == 1], ids=lambda op: op.name)
def test_inside_a_region(op):
    rng = np.random.default_rng(len(op.name))
    for inner, at in selections(op, rng):
        value = inner(symgrad.tensor(at)).item()
        if math.isfinite(value) and math.isfinite(at):
            outer = list(OUTER)[rng.integers(len(OUTER))]
            f = lambda x, inner=inner, value=value, outer=outer: OUTER[outer](inner(x) - value)  # noqa: E731
            assert derivatives(f, at, "Python") == [0, 0], (outer, at)


SQUARES = [(lambda u: u.abs() ** 2.0, 2.0), (lambda u: (u**6) ** (1 / 3), 2.0), (lambda u: u.abs() ** 4.0 / 3, 0.0)]


@pytest.mark.parametrize("formula, second", SQUARES)
def test_even_powers_of_a_modulus_have_no_kink(formula, second):
    """Also where SymPy has a float as the exponent, as that of a root of a power."""
    assert derivatives(lambda x: formula(1.3 * x) / 3, 0.0, "Python") == pytest.approx([0, 1.69 * second / 3], rel=1e-12)


LOGARITHMS = {"xlogy": (lambda x: symgrad.xlogy(x, x), 0.0), "xlogy of a remainder": (lambda x: symgrad.xlogy(x.fmod(1.0), x.fmod(1.0)), 1.0),
              "xlogy of a maximum": (lambda x: symgrad.xlogy(x.fmax(symgrad.tensor(0.0)), x.fmax(symgrad.tensor(0.0))), 0.0),
              "xlog1py": (lambda x: symgrad.xlog1py(x, x - 1), 0.0), "entr": (symgrad.special.entr, 0.0),
              "entr of a remainder": (lambda x: symgrad.special.entr((x + 1).fmod(1.0)), 0.0),
              "entr of a square": (lambda x: symgrad.special.entr(x * x), 0.0)}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("language", ["Python", "C"])
@pytest.mark.parametrize("name", LOGARITHMS)
def test_logarithms_that_are_taken_for_0(name, language):
    """Their derivatives are infinite, or do not exist, as the eager ones, with the same sign."""
    f, at = LOGARITHMS[name]
    for found, expected in zip(derivatives(f, at, language), eager(f, at)):
        assert found == expected if math.isfinite(expected) else not math.isfinite(found) and found * expected != -math.inf, (found, expected)
