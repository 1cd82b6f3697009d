"""A report of any kind is true if and only if its verdict is positive."""

import dataclasses

import numpy as np
import pytest
import sympy

import symgrad
from symgrad.engine.traced import lift
from symgrad.graph.op import REGISTRY, elementwise
from symgrad.testing import check_op

X = sympy.Symbol("x", real=True)
IN_TIME = {"order": 0, "points": 200, "seconds": 2.0, "progress": False}
PROVED = ("proved", "verified")


@pytest.fixture
def wrong_op():
    yield lift(elementwise("wrong_square", lambda xp, x: x * x, lambda xp, y, x: 3 * x, doc="A wrong derivative."))
    del REGISTRY["wrong_square"]


def wrong_sine(x):
    return np.sin(x) * 1.001


def checked(function, **options):
    return check_op(function, formula="sin(x)", raise_exception=False, **options)


def kinks(function):
    x = symgrad.tensor(0.0, requires_grad=True)
    return symgrad.kinks(function(x))


REPORTS = {  # a report for the right function or the wrong one, the two, and the verdicts
    "check": (lambda f: symgrad.check(f, 1.0), symgrad.sin, None, PROVED, ("refuted",)),
    "check of nothing": (lambda f: symgrad.check(lambda x: x, f), 1.0, "text", PROVED, ("not checkable",)),
    "check against a formula": (lambda f: symgrad.check(f, formula="sin(x)", domain="0..1"), np.sin, wrong_sine, PROVED, ("refuted",)),
    "prove": (lambda f: symgrad.prove(f or "wrong_square", order=1), "sin", None, PROVED, ("refuted",)),
    "identical": (lambda e: symgrad.identical(e, 1), sympy.sin(X)**2 + sympy.cos(X)**2, sympy.cos(X), PROVED, ("refuted",)),
    "kinks": (kinks, abs, lambda x: x.relu() - (-x).relu(), ("inside",), ("outside",)),
    "explain_nan": (lambda f: symgrad.explain_nan(f, inputs=0.0), symgrad.exp, symgrad.log, ("finite",), ("not finite",)),
    "accuracy": (lambda f: symgrad.accuracy(f, (1e-12, 1.0), **IN_TIME), symgrad.expm1, lambda x: symgrad.exp(x) - 1, ("accurate",), ("imprecise",)),
    "checks of an op": (lambda f: checked(f, checks=["value"]), np.sin, wrong_sine, ("passed",), ("failed",)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", REPORTS)
def test_a_report_is_true_where_its_verdict_is_positive(kind, wrong_op):
    report, right, wrong, good, bad = REPORTS[kind]
    found, other = report(right), report(wrong if wrong is not None or kind == "prove" else wrong_op)
    assert found and found.verdict in good and not other and other.verdict in bad


@pytest.mark.sweep
def test_op_from_sympy():
    report = symgrad.op_from_sympy("verdict_of_formula", X * sympy.exp(-X)).report
    del REGISTRY["verdict_of_formula"]
    assert report and report.verdict in PROVED
    assert not dataclasses.replace(report, lines=()) and dataclasses.replace(report, lines=()).verdict == "not checkable"


def test_results_of_the_checks_of_an_op():
    assert all(checked(np.sin, checks=["value"]).results) and not any(checked(wrong_sine, checks=["value"]).results)
    none = check_op(np.sin, formula="sin(x)", checks=["symmetry"], raise_exception=True)
    assert none.verdict == "not checkable" and not none and all(none.results)


def test_gradcheck():
    result = symgrad.autograd.gradcheck(symgrad.tanh, symgrad.tensor([0.5], requires_grad=True))
    assert result and result.report and result.report.verdict == "passed"
    assert not dataclasses.replace(result.report, failure=ValueError("wrong"))
