"""The checks of formulas, of one pass through another and of narrower types: the mistakes that they find, and ops to which they do not apply."""

import numpy as np
import pytest

import symgrad
from symgrad.graph.op import REGISTRY
from symgrad.testing import check_formulas, check_mixed, check_op, check_value
from tests.support.failing import failure_of
from tests.support.functions import saving


def changed(name, **rules):
    """An op of the registry with other rules, that is not registered."""
    return REGISTRY[name].but(**rules)


# That derivatives have formulas


def test_the_second_derivative():
    """A rule of the second order that makes its result constant has a formula; one that gives truth values has none."""
    op = REGISTRY["square"]
    assert check_formulas(changed("square", vjp=lambda xp, g, y, args, needs: (
        op.vjp(xp, g, y, args, needs)[0].detach() if symgrad.is_tensor(g) else g * 2 * args[0],))).verdict == "passed"
    wrong = changed("abs", vjp=lambda xp, g, y, args, needs: (g * args[0] / y + 0 * g * args[0] * (args[0] > 0),))
    assert failure_of(check_formulas, wrong).wrong.order in (1, 2)


@pytest.mark.parametrize("op, claims, reason", [
    (REGISTRY["argmax"], {}, "its value has no formula: argmax"), (lambda x: x.sin(), {"formula": "sin(x)"}, "its rules are not known"),
    ((np.sin, np.cos), {"formula": "sin(x)"}, "its rules are not known")], ids=["argmax", "a function", "a NumPy pair"])
def test_ops_without_a_formula_are_not_checked(op, claims, reason):
    result = check_formulas(op, **claims)
    assert result.verdict == "not applicable" and result.reason.startswith(reason)


# Claimed formulas: of the op's own arguments, and evaluated with as many digits as necessary


def verdict(op, **claims):
    return check_op(op, checks=["value"], raise_exception=False, **claims).verdict


@pytest.mark.sweep
def test_a_formula_is_of_the_arguments_of_the_op_of_which_a_single_one_may_have_any_name():
    assert verdict(symgrad.tanh, formula="tanh(x)") == verdict(symgrad.tanh, formula="tanh(input)") == "passed"
    assert verdict(symgrad.tanh, formula="sinh(x)") == verdict(symgrad.tanh, formula="sinh(input)") == "failed"
    assert verdict(symgrad.hypot, formula="sqrt(input**2 + other**2)") == "passed"
    with pytest.raises(ValueError, match="the formula .* names a, but the arguments of the op are input, other"):
        verdict(symgrad.hypot, formula="sqrt(a**2 + b**2)")


def test_a_formula_that_cancels_next_to_zero_is_read_with_enough_digits():
    """1 - exp(-5e-324) is 0 to 160 digits, and the op is right that its logarithm is not infinite."""
    claims = {"formula": "log(1 - exp(-x))", "domain": "positive"}
    assert check_value(lambda x: symgrad.log(-symgrad.expm1(-x)), inputs=[[5e-324, 1e-300, 1e-100, 1.0]], **claims).verdict == "passed"
    with pytest.raises(AssertionError, match="inf"):
        check_value(lambda x: symgrad.log(1 - symgrad.exp(-x)), inputs=[[1e-300]], **claims)


# One pass through another


def detached(x):
    return x.detach() if hasattr(x, "detach") else x


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["exp", "mul", "sum"])
def test_a_pushforward_that_takes_its_arguments_or_its_tangents_for_constants(name):
    op = REGISTRY[name]
    wrong = changed(name, jvp=lambda xp, ts, y, args: op.jvp(xp, [t if t is None else detached(t) for t in ts], y, args))
    assert failure_of(check_mixed, wrong).wrong.what == "the pushforward, pulled back by its tangent, is not the pullback"
    if name != "sum":  # whose pushforward reads no argument
        wrong = changed(name, jvp=lambda xp, ts, y, args: op.jvp(xp, ts, detached(y), tuple(map(detached, args))))
        said = "the pushforward of a tangent that requires no grad, pulled back, is not the second derivative"
        assert failure_of(check_mixed, wrong).wrong.what == said


@pytest.mark.sweep
def test_which_ops_are_checked():
    assert check_mixed(REGISTRY["exp"], order=1).reason == "it has no second derivative"
    assert check_mixed(REGISTRY["norm"]).verdict == check_mixed(symgrad.norm).verdict == "passed"  # made of others: as its public function


# Bounds in the narrower types


def attacked(op, seed, *dtypes):
    return check_op(op, checks=["dtypes"], seed=seed, dtypes=("float64", *dtypes), domain=(-9, 9), raise_exception=False)


def circle(x):
    return symgrad.sin(x) ** 2 + symgrad.cos(x) ** 2


@pytest.mark.sweep
@pytest.mark.parametrize("seed, dtype", [(8, "float16"), (15, "bfloat16"), (20, "float32"), (27, "float32"), (33, "float16"), (58, "bfloat16")])
def test_terms_that_cancel_in_most_roundings_of_float64_give_the_bound(seed, dtype):
    """Hardly any sample of float64 shows a rounding of 2 g sin(x) cos(x) - 2 g cos(x) sin(x)."""
    assert attacked(circle, seed, dtype)


def ruled(forward, backward):
    """A `Function` with a backward `(g, x, narrow)`, where narrow is 1 in the narrower types."""
    return saving(forward, lambda g, x: backward(g, x, int(x.dtype != symgrad.float64)), "Ruled")


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


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_in_a_narrow_type_is_found(what, dtype):
    assert all(not attacked(WRONG[what], seed, dtype) for seed in range(3))


@pytest.mark.sweep
def test_a_jump_of_the_gradient_may_be_on_either_side_of_a_number_that_is_rounded():
    assert all(attacked(lambda x: symgrad.relu(x * 3 - 3.1), seed, "float32", "float16", "bfloat16") for seed in range(5))
