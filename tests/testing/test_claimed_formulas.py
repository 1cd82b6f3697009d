"""Claimed formulas: of the op's own arguments, and evaluated with as many digits as necessary."""

import pytest

import symgrad
from symgrad.testing import check_op


def verdict(op, **claims):
    return check_op(op, checks=["value"], raise_exception=False, **claims).verdict


def test_one_argument_may_have_any_name():
    assert verdict(symgrad.tanh, formula="tanh(x)") == verdict(symgrad.tanh, formula="tanh(input)") == "passed"
    assert verdict(symgrad.tanh, formula="sinh(x)") == verdict(symgrad.tanh, formula="sinh(input)") == "failed"


def test_a_formula_of_other_arguments_is_refused():
    assert verdict(symgrad.hypot, formula="sqrt(input**2 + other**2)") == "passed"
    with pytest.raises(ValueError, match="the formula .* names a, but the arguments of the op are input, other"):
        verdict(symgrad.hypot, formula="sqrt(a**2 + b**2)")


def test_a_formula_that_cancels_next_to_zero_is_read_with_enough_digits():
    """1 - exp(-5e-324) is 0 to 160 digits, and the op is right that its logarithm is not infinite."""
    def log1mexp(x):
        return symgrad.log(-symgrad.expm1(-x))

    result = symgrad.testing.check_value(log1mexp, formula="log(1 - exp(-x))", domain="positive", inputs=[[5e-324, 1e-300, 1e-100, 1.0]])
    assert result.verdict == "passed"
    with pytest.raises(AssertionError, match="inf"):
        symgrad.testing.check_value(lambda x: symgrad.log(1 - symgrad.exp(-x)), formula="log(1 - exp(-x))", domain="positive", inputs=[[1e-300]])
