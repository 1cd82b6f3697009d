"""HIPS autograd under attack: functions of its NumPy, and primitives with a vjp of their own."""

import autograd.numpy as np
import pytest
from autograd.extend import defvjp, primitive

from symgrad.frameworks.adapter import NotApplicable
from symgrad.testing import check_op
from symgrad.testing.attack import Attack


def ricker(x):
    return x * np.exp(-x)


@primitive
def cube(x):
    return x**3


defvjp(cube, lambda ans, x: lambda g: 3 * x**2 * g)


@primitive
def wrong(x):
    return x**3


defvjp(wrong, lambda ans, x: lambda g: 3.0001 * x**2 * g)
CHECKS = ("value", "pullback", "second", "linearity", "structure", "mutation", "determinism")


def verdicts(report):
    return {r.check: r.verdict for r in report.results}


@pytest.mark.parametrize("op, claims", [
    (ricker, {"formula": "x*exp(-x)", "domain": (-5, 0)}),
    (cube, {"formula": "x^3"}),
    (lambda x, y: np.sin(x) * y, {"formula": "sin(x)*y", "domain": (-9, 9)}),
], ids=["ricker", "cube", "two arguments"])
def test_a_right_function_is_not_accused(op, claims):
    report = check_op(op, **claims, checks=CHECKS, raise_exception=False)
    assert set(verdicts(report).values()) == {"passed"}, str(report)


def test_a_wrong_vjp_is_caught():
    assert verdicts(check_op(wrong, formula="x^3", checks=["value", "pullback"], raise_exception=False)) == {"value": "passed", "pullback": "failed"}


def test_derivatives_of_every_order_are_those_of_nested_pullbacks():
    subject, x = Attack(cube).subject, np.array([1.0, 2.0])
    assert (subject.framework, Attack(ricker).names, Attack(ricker).order) == ("autograd", ["x"], 3)
    assert subject.gradient([x], np.ones(2), [np.array([2.0, 3.0])])[0].tolist() == [12.0, 36.0]
    assert subject.gradient([x], np.ones(2), [np.ones(2)], [np.ones(2)])[0].tolist() == [6.0, 6.0]
    assert Attack(ricker).subject.tangent([np.zeros(2)], [np.array([1.0, 3.0])]).tolist() == [1.0, 3.0]
    with pytest.raises(NotApplicable, match="no forward mode"):
        subject.tangent([x], [x])
