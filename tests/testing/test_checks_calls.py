"""Side effects of a call."""

import random

import numpy as np
import pytest

import symgrad
from symgrad.testing import check_mutation
from symgrad.testing.failure import CheckFailure


def drawing(x):
    return x * x + 0 * random.random()


@pytest.mark.parametrize("change, what", [
    (lambda: symgrad.set_default_dtype(symgrad.float32), "symgrad's default dtype"), (lambda: np.seterr(over="raise"), "NumPy's handling of errors"),
    (lambda: symgrad.set_grad_enabled(False), "whether symgrad records")])
def test_changes_of_global_state_are_reported_and_undone(change, what):
    def state():
        return symgrad.get_default_dtype(), symgrad.is_grad_enabled(), np.geterr()

    def changing(x):
        change()
        return x * x

    before = state()
    with pytest.raises(CheckFailure, match=f"{what} is not what was there before the call"):
        check_mutation(changing, gradient=lambda x: 2 * x, inputs=[np.array([1.0, 2.0])])
    assert state() == before


def test_a_random_op_may_draw():
    assert check_mutation(drawing, gradient=lambda x: 2 * x, random=True, inputs=[np.array(1.0)]).verdict == "passed"
