"""Other ways to call an op: by one argument alone, with one tensor twice, in many axes; a cotangent of zeros; and side effects of a call."""

import random

import numpy as np
import pytest

import symgrad
from symgrad.autograd import Function
from symgrad.testing import check_aliasing, check_linearity, check_mutation, check_structure
from symgrad.testing.failure import CheckFailure


class Alone(Function):
    """a*b, whose gradient by b counts twice where a is not differentiated by."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a if ctx.needs_input_grad[0] else 2 * g * a


class Divided(Function):
    """x*x, whose pullback is 0/0 for zeros."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g * (g / g)


def squeezed(x):
    return (x * x).squeeze() if x.ndim == 2 else x * x


def in_blocks(x):
    y = np.array(x * x)
    if y.size > 512:
        y.reshape(-1)[512:] = 0
    return y


@pytest.mark.parametrize("check, op, claims, said", [
    (check_structure, Alone, {}, "the gradient by this argument alone is not that among others"),
    (check_linearity, Divided, {}, r"vjp\(0\) is not 0"),
    (check_aliasing, lambda a, b: a * b * (2.0 if a is b else 1.0), {"elementwise": True}, "the value for one tensor given twice is not that"),
    (check_aliasing, lambda a, b: a * (b.detach() if a is b else b), {"elementwise": True}, "the gradient by one tensor given twice is not the sum"),
    (check_structure, squeezed, {"elementwise": True}, r"the shape of the value is \(\) and should be \(1, 1\)"),
    (check_structure, in_blocks, {"elementwise": True, "gradient": lambda x: 2 * x}, r"the value for the shape \([\d, ]+, 60\) is not that"),
], ids=["alone", "zeros", "value twice", "gradient twice", "column", "blocks"])
def test_wrong_calls(check, op, claims, said):
    with pytest.raises(CheckFailure, match=said):
        check(op, **claims)
    assert check(lambda a, b: a * b).verdict == "passed"


def seeding(x):
    np.random.seed(1)
    return x * x


def drawing(x):
    return x * x + 0 * random.random()


def converting(x):
    symgrad.set_default_dtype(symgrad.float32)
    return x * x


def not_recording(x):
    symgrad.set_grad_enabled(False)
    return x * x


def warning(x):
    np.seterr(over="raise")
    return x * x


@pytest.mark.parametrize("op, what", [(seeding, "NumPy's generator of random numbers"), (drawing, "Python's generator of random numbers"),
                                      (converting, "symgrad's default dtype"), (not_recording, "whether symgrad records"),
                                      (warning, "NumPy's handling of errors")])
def test_changes_of_global_state_are_reported_and_undone(op, what):
    def state():
        return symgrad.get_default_dtype(), symgrad.is_grad_enabled(), np.geterr()

    before = state()
    with pytest.raises(CheckFailure, match=f"{what} is not what was there before the call"):
        check_mutation(op, gradient=lambda x: 2 * x, inputs=[np.array([1.0, 2.0])])
    assert state() == before


def test_a_random_op_may_draw():
    assert check_mutation(drawing, gradient=lambda x: 2 * x, random=True, inputs=[np.array(1.0)]).verdict == "passed"
