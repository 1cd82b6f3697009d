"""Bounds in the narrower types: right ops whose terms cancel pass, and what is wrong next to a kink, or by a term, is found."""

import pytest

import symgrad
from symgrad.testing import check_op
from tests.support.functions import saving


def attacked(op, seed, *dtypes, checks=("dtypes",)):
    return check_op(op, checks=list(checks), seed=seed, dtypes=("float64", *dtypes), domain=(-9, 9), raise_exception=False)


def circle(x):
    return symgrad.sin(x) ** 2 + symgrad.cos(x) ** 2


@pytest.mark.parametrize("seed, dtype", [(8, "float16"), (15, "bfloat16"), (20, "float32"), (27, "float32"), (33, "float16"), (58, "bfloat16")])
def test_terms_that_cancel_in_most_roundings_of_float64_give_the_bound(seed, dtype):
    """Hardly any sample of float64 shows a rounding of 2 g sin(x) cos(x) - 2 g cos(x) sin(x)."""
    assert attacked(circle, seed, dtype)


def ruled(forward, backward):
    """A `Function` with a backward `(g, x, narrow)`, where narrow is 1 in the narrower types."""
    Ruled = saving(lambda x: forward(x), lambda g, x: backward(g, x, int(x.dtype != symgrad.float64)), "Ruled")

    return Ruled


def near(x, number):
    return (x == number).to(x.dtype)


WRONG = {
    "five at the kink of a hinge": ruled(lambda x: symgrad.relu(x - 1), lambda g, x, narrow: g * ((x > 1).to(x.dtype) + narrow * 5 * near(x, 1))),
    "twice the slope at the kink of a Huber loss": ruled(
        lambda x: symgrad.where(symgrad.abs(x) < 1, x * x / 2, symgrad.abs(x) - 0.5),
        lambda g, x, narrow: g * symgrad.clamp(x, -1, 1) * (1 + narrow * near(symgrad.abs(x), 1))),
    "twice a term that cancels": ruled(circle, lambda g, x, narrow: (
        2 * g * symgrad.sin(x) * symgrad.cos(x) * (1 + narrow) - 2 * g * symgrad.cos(x) * symgrad.sin(x))),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_in_a_narrow_type_is_found(what, dtype):
    assert all(not attacked(WRONG[what], seed, dtype) for seed in range(3))


def test_a_jump_of_the_gradient_may_be_on_either_side_of_a_number_that_is_rounded():
    def hinge(x):
        return symgrad.relu(x * 3 - 3.1)

    assert all(attacked(hinge, seed, "float32", "float16", "bfloat16") for seed in range(5))
