"""The check that derivatives have formulas: the mistakes that it finds, and ops to which it does not apply."""


import numpy as np
import pytest

import symgrad
from symgrad.graph.op import REGISTRY
from symgrad.testing import check_formulas
from tests.support.failing import failure_of


def changed(name, **rules):
    """An op of the registry with other rules, that is not registered."""
    return REGISTRY[name].but(**rules)


def test_the_second_derivative():
    """A rule of the second order that makes its result constant has a formula; one that gives truth values has none."""
    op = REGISTRY["square"]
    assert check_formulas(changed("square", vjp=lambda xp, g, y, args, needs: (op.vjp(xp, g, y, args, needs)[0].detach()
                                                                              if symgrad.is_tensor(g) else g * 2 * args[0],))).verdict == "passed"
    wrong = changed("abs", vjp=lambda xp, g, y, args, needs: (g * args[0] / y + 0 * g * args[0] * (args[0] > 0),))
    assert failure_of(check_formulas, wrong).wrong.order in (1, 2)


@pytest.mark.parametrize("op, claims, reason", [
    (REGISTRY["argmax"], {}, "its value has no formula: argmax"), (lambda x: x.sin(), {"formula": "sin(x)"}, "its rules are not known"),
    ((np.sin, np.cos), {"formula": "sin(x)"}, "its rules are not known")], ids=["argmax", "a function", "a NumPy pair"])
def test_ops_without_a_formula_are_not_checked(op, claims, reason):
    result = check_formulas(op, **claims)
    assert result.verdict == "not applicable" and result.reason.startswith(reason)
