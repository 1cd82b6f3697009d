"""A report of any kind is true if and only if its verdict is positive."""

import dataclasses

import numpy as np
import pytest
import sympy

import symgrad
from symgrad.graph.op import REGISTRY, elementwise
from symgrad.testing import check_op

X = sympy.Symbol("x", real=True)


@pytest.fixture
def wrong_op():
    op = elementwise("wrong_square", lambda xp, x: x * x, lambda xp, y, x: 3 * x, doc="A wrong derivative.")
    from symgrad.engine.traced import lift

    yield lift(op)
    del REGISTRY["wrong_square"]


def wrong_sine(x):
    return np.sin(x) * 1.001


def test_check(wrong_op):
    good, bad = symgrad.check(symgrad.sin, 1.0), symgrad.check(wrong_op, 1.0)
    assert good and good.verdict in ("proved", "verified")
    assert not bad and bad.verdict == "refuted"
    unknown = symgrad.check(lambda x: x, "text")
    assert not unknown and unknown.verdict == "not checkable"


def test_check_against_a_formula():
    good, bad = (symgrad.check(f, formula="sin(x)", domain="0..1") for f in (np.sin, wrong_sine))
    assert good and good.verdict == "verified" and not bad and bad.verdict == "refuted"


def test_prove(wrong_op):
    assert symgrad.prove("sin", order=1) and not symgrad.prove("wrong_square", order=1)


def test_identical():
    assert symgrad.identical(sympy.sin(X)**2 + sympy.cos(X)**2, 1) and not symgrad.identical(sympy.sin(X), sympy.cos(X))


def test_op_from_sympy():
    op = symgrad.op_from_sympy("verdict_of_formula", X * sympy.exp(-X))
    report = op.report
    del REGISTRY["verdict_of_formula"]
    assert report and report.verdict in ("proved", "verified")
    assert not dataclasses.replace(report, lines=()) and dataclasses.replace(report, lines=()).verdict == "not checkable"


def test_kinks():
    x = symgrad.tensor(0.0, requires_grad=True)
    assert symgrad.kinks(abs(x)) and not symgrad.kinks(x.relu() - (-x).relu())


def test_explain_nan():
    assert symgrad.explain_nan(symgrad.exp, inputs=0.0) and not symgrad.explain_nan(symgrad.log, inputs=0.0)


def test_accuracy():
    good = symgrad.accuracy(symgrad.expm1, (0.1, 1.0), order=0, points=200, seconds=2.0, progress=False)
    bad = symgrad.accuracy(lambda x: symgrad.exp(x) - 1, (1e-12, 1.0), order=0, points=200, seconds=2.0, progress=False)
    assert good and good.verdict == "accurate" and not bad and bad.verdict == "imprecise"


def test_checks_of_an_op():
    good = check_op(np.sin, formula="sin(x)", checks=["value"])
    bad = check_op(wrong_sine, formula="sin(x)", checks=["value"], raise_exception=False)
    assert good and all(good.results) and not bad and not any(bad.results)
    none = check_op(np.sin, formula="sin(x)", checks=["symmetry"], raise_exception=True)
    assert none.verdict == "not checkable" and not none and all(none.results)


def test_gradcheck():
    x = symgrad.tensor([0.5], requires_grad=True)
    result = symgrad.autograd.gradcheck(symgrad.tanh, x)
    assert result and result.report and result.report.verdict == "passed"
    assert not dataclasses.replace(result.report, failure=ValueError("wrong"))
