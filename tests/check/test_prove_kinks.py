"""`prove` at kinks, jumps and touching conditions, and where floats saturate: a kink is one of the function, not of the program."""

import mpmath
import numpy as np
import pytest

import symgrad
from symgrad.carriers import numeric
from symgrad.graph import op as constructors
from symgrad.graph.domains import UNIT_OPEN
from symgrad.graph.op import REGISTRY
from symgrad.proofs.prove import prove
from symgrad.proofs.saturation import differ


def made(forward, *partials, **rest):
    """An elementwise op outside of the registry."""
    try:
        return constructors.elementwise("made_for_a_proof", forward, *partials, **rest)
    finally:
        REGISTRY.pop("made_for_a_proof", None)


def wrong_where(condition, value, forward, partial):
    """An op whose rule has another value where a condition (xp, y, x) holds."""
    return made(forward, lambda xp, y, x: xp.where(condition(xp, y, x), value(x), partial(xp, x)))


def logistic_slope(xp, x):
    return xp.exp(-x) / xp.square(1 + xp.exp(-x))


SATURATED = {  # the condition, the rule's value there, the function and its derivative
    "tanh is 1": (lambda xp, y, x: xp.ge(y, 1), lambda x: 1 + 0 * x, lambda xp, x: xp.tanh(x), lambda xp, x: xp.square(xp.sech(x))),
    "tanh of a third is -1": (lambda xp, y, x: xp.le(y, -1), lambda x: 0.3 + 0 * x, lambda xp, x: xp.tanh(x / 3),
                              lambda xp, x: xp.square(xp.sech(x / 3)) / 3),
    "erf is 1": (lambda xp, y, x: xp.ge(y, 1), lambda x: 0.7 * x, lambda xp, x: xp.erf(x), lambda xp, x: xp.erf_slope(x, 0)),
    "sigmoid is 1": (lambda xp, y, x: xp.eq(y, 1), lambda x: 1 / x, lambda xp, x: xp.sigmoid(x), logistic_slope),
    "exp is 0": (lambda xp, y, x: xp.le(xp.exp(-xp.abs(x) / 3), 0), lambda x: 1 / 3 + 0 * x, lambda xp, x: xp.sigmoid(x), logistic_slope),
    "exp is infinite": (lambda xp, y, x: xp.isinf(xp.exp(x)), lambda x: 0 * x, lambda xp, x: xp.softplus(x), lambda xp, x: xp.sigmoid(x)),
    "cos is 1": (lambda xp, y, x: xp.ge(xp.cos(x), 1), lambda x: 0.7 * x, lambda xp, x: xp.square(xp.sin(x)),
                 lambda xp, x: 2 * xp.sin(x) * xp.cos(x)),
    "1 + x² is 1": (lambda xp, y, x: xp.eq(1 + x * x, 1), lambda x: x / 3, lambda xp, x: xp.log(1 + x * x), lambda xp, x: 2 * x / (1 + x * x)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", SATURATED)
def test_the_branch_that_floats_take_is_compared(what):
    op = wrong_where(*SATURATED[what])
    proof = prove(op, 1, complex=False)
    assert proof.verdict == "refuted"
    at = next(s for s in proof.refuted if s.what.startswith("vjp")).point["x"]
    condition = SATURATED[what][0]
    x = np.float64(at)
    with np.errstate(all="ignore"):
        assert condition(numeric, op.forward(numeric, x), x), "the floats of the counterexample take the wrong branch"


def test_a_branch_that_keeps_the_digits_of_floats_is_no_error():
    op = made(lambda xp, x: xp.tanh(x), lambda xp, y, x: xp.where(xp.ge(y, 1), 4 * xp.exp(-2 * x), xp.square(xp.sech(x))))
    assert prove(op, 2, complex=False).verdict == "proved"


def test_a_number_that_is_only_known_to_be_smaller_than_a_huge_one_is_no_counterexample():
    """At 3e160 ** 1e160, which floats cannot hold, the exponent has a predecessor in many digits only."""
    assert prove("pow", 1, complex=False).verdict == "proved"
    assert not differ(mpmath.mpf("1e4000"), mpmath.mpf(0), 13300) and differ(mpmath.mpf(1), mpmath.mpf(0), -1200)


SMOOTH = {  # the function, the rule, and where it is wrong although the function is smooth there
    "relu squared": (lambda xp, x: xp.relu(x) ** 2, lambda xp, y, x: xp.where(xp.eq(x, 0), 0.3 + 0 * x, 2 * xp.relu(x)), 0),
    "x |x|": (lambda xp, x: xp.abs(x) * x, lambda xp, y, x: xp.where(xp.eq(x, 0), 1 + 0 * x, 2 * xp.abs(x)), 0),
    "a parabola and its tangent": (lambda xp, x: xp.maximum(x * x, 2 * x - 1), lambda xp, y, x: xp.where(xp.eq(x, 1), 1.75 + 0 * x, 2 * x), 1),
    "a cube beyond a third": (lambda xp, x: xp.relu(x - 1 / 3) ** 3,
                              lambda xp, y, x: xp.where(xp.eq(x, 1 / 3), 1 + 0 * x, 3 * xp.square(xp.relu(x - 1 / 3))), 1 / 3),
    "huber of 0.7": (lambda xp, x: xp.where(xp.lt(xp.abs(x), 0.7), x * x / 2, 0.7 * (xp.abs(x) - 0.35)),
                     lambda xp, y, x: xp.where(xp.lt(xp.abs(x), 0.7), x, xp.where(xp.eq(x, -0.7), 0 * x, 0.7 * xp.sign(x))), -0.7),
    "a power of one and a half": (lambda xp, x: xp.relu(x) ** 1.5,
                                  lambda xp, y, x: xp.where(xp.eq(x, 0), 0.01 + 0 * x, 1.5 * xp.sqrt(xp.relu(x))), 0),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", SMOOTH)
def test_a_rule_that_is_wrong_at_a_kink_of_the_program_alone_is_refuted(what):
    forward, partial, at = SMOOTH[what]
    proof = prove(made(forward, partial), 1, complex=False)
    assert proof.verdict == "refuted" and all(abs(s.point["x"] - at) < 1e-15 for s in proof.refuted)


def test_a_tie_of_two_arguments_where_both_derivatives_are_the_same():
    def op(wrong):
        return made(lambda xp, x, z: xp.square(xp.relu(x - z)), lambda xp, y, x, z: xp.where(xp.eq(x, z), wrong + 0 * x, 2 * xp.relu(x - z)),
                    lambda xp, y, x, z: -2 * xp.relu(x - z))

    assert prove(op(0.4), 1, complex=False).verdict == "refuted"
    assert prove(op(0), 1, complex=False).verdict == "proved"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("forward, partial, where", [
    (lambda xp, x: xp.abs(x - 2), lambda xp, y, x: xp.sign(x - 2), "x = 2 (kink)"),
    (lambda xp, x: xp.relu(x), lambda xp, y, x: xp.indicator(xp.ge(x, 0), y), "x = 0 (kink)"),
    (lambda xp, x: xp.maximum(x, 5 + 0 * x), lambda xp, y, x: xp.indicator(xp.gt(x, 5), y), "x = 5 (kink)"),
    (lambda xp, x: xp.minimum(x * x, 3 * x), lambda xp, y, x: xp.where(xp.lt(x * x, 3 * x), 2 * x, 3 + 0 * x), "x = 3 (kink)"),
    (lambda xp, x: xp.relu(0.25 - x), lambda xp, y, x: -xp.indicator(xp.lt(x, 0.25), y), "x = 1/4 (kink)"),
])
def test_a_convention_is_named_in_the_first_line(forward, partial, where):
    proof = prove(made(forward, partial), 1, complex=False)
    assert proof.verdict == "proved" and where in proof.headline and where in str(proof).splitlines()[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("forward, partial, at", [
    (lambda xp, x: xp.where(xp.gt(x, 1), xp.sin(x) + 1, xp.sin(x)), lambda xp, y, x: xp.cos(x), 1),
    (lambda xp, x: xp.where(xp.ge(x, -2.75), xp.exp(x), xp.exp(x) + 1e-9), lambda xp, y, x: xp.exp(x), -2.75),
    (lambda xp, x: xp.where(xp.lt(x, 1 / 3), x * x, x * x - 0.7), lambda xp, y, x: 2 * x, 1 / 3),
    (lambda xp, x: x + 3 * xp.sign(x - 0.7), lambda xp, y, x: 1 + 0 * x, 0.7),
    (lambda xp, x: xp.where(xp.le(xp.abs(x), 5), 1e-6 + 0 * x, 0 * x), lambda xp, y, x: 0 * x, 5),
])
def test_a_value_that_jumps_has_no_derivative(forward, partial, at):
    proof = prove(made(forward, partial), 1, complex=False)
    assert proof.verdict == "refuted" and {abs(float(s.point["x"])) for s in proof.refuted} == {abs(at)} and "jumps" in str(proof)
    assert prove(made(forward, partial, special=((at,), (-at,))), 1, complex=False).verdict == "proved"


TOUCHING = {  # a condition that holds at equality only, or fails there only
    "sin is 1": lambda xp, y, x: xp.ge(xp.sin(x), 1),
    "sin is 1 at thirds": lambda xp, y, x: xp.logical_not(xp.lt(xp.sin(3 * x), 1)),
    "cos is -1": lambda xp, y, x: xp.le(xp.cos(x), -1),
    "a square is 0": lambda xp, y, x: xp.le(xp.square(x - 1 / 3), 0),
    "a square of a square": lambda xp, y, x: xp.le(xp.square(x * x - 2), 0),
    "an absolute value is 0": lambda xp, y, x: xp.le(xp.abs(x - 0.7), 0),
    "a product": lambda xp, y, x: xp.le(x * x - 3 * x + 2.25, 0),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", TOUCHING)
def test_a_condition_that_holds_at_equality_only_is_visited(what):
    op = wrong_where(TOUCHING[what], lambda x: 2 * x + 1, lambda xp, x: x * x / 2, lambda xp, x: x)
    assert prove(op, 1, complex=False).verdict == "refuted"
    right = wrong_where(TOUCHING[what], lambda x: x + 0 * x * x, lambda xp, x: x * x / 2, lambda xp, x: x)
    assert prove(right, 1, complex=False).verdict == "proved"


def test_the_end_of_a_domain_and_a_line_are_visited():
    def op(condition, **rest):
        return made(lambda xp, a, b: a * b, lambda xp, y, a, b: xp.where(condition(xp, a, b), 2 * b + 1, b), lambda xp, y, a, b: a, **rest)

    assert prove(op(lambda xp, a, b: xp.le(xp.square(a - 3 * b), 0)), 1, complex=False).verdict == "refuted"
    assert prove(op(lambda xp, a, b: xp.le(xp.square(a - 1 / 3) + xp.square(b - 2.5), 0)), 1, complex=False).verdict == "refuted"
    assert prove(op(lambda xp, a, b: xp.ge(xp.cos(a), 1), domain=(UNIT_OPEN, UNIT_OPEN)), 1, complex=False).verdict == "refuted"


def test_a_statement_says_how_many_of_its_points_were_compared():
    proof = prove("relu", 1, complex=False, points=7)
    assert {(s.points, s.planned) for s in proof.statements} and all(s.points <= s.planned for s in proof.statements)
    assert prove("exp", 1, complex=False, points=11).statements[0].planned == 11


NARROW = {  # a condition that holds on short intervals around an extremum
    "sin beyond 0.999999": lambda xp, y, x: xp.gt(xp.sin(x), 0.999999),
    "sin of 3 x": lambda xp, y, x: xp.lt(2 * xp.sin(3 * x), -1.999999),
    "cos of a third": lambda xp, y, x: xp.ge(xp.cos(x / 3 + 0.7), 0.9999999),
    "a bell at pi": lambda xp, y, x: xp.gt(xp.exp(-xp.square(x - np.pi)), 0.999999),
    "a pole that is not reached": lambda xp, y, x: xp.gt(1 / (1 + xp.square(x - 1 / 3)), 0.9999999),
    "a fast wave": lambda xp, y, x: xp.lt(xp.sin(50 * x) + xp.square(xp.cos(50 * x)), -0.9999),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", NARROW)
def test_the_extremum_of_what_is_compared_is_visited(what):
    op = wrong_where(NARROW[what], lambda x: 0 * x, lambda xp, x: x**3, lambda xp, x: 3 * x**2)
    assert prove(op, 1, complex=False).verdict == "refuted"


def test_the_extremum_of_an_argument_of_a_maximum_is_visited():
    op = made(lambda xp, x: x**3, lambda xp, y, x: 3 * x**2 + xp.maximum(0 * x, xp.sin(x / 3) - 0.999999))
    assert prove(op, 1, complex=False).verdict == "refuted"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("low, high, wrong", [
    (lambda xp, x: xp.le(x * x, 2), lambda xp, x: xp.ge(x * x, 2), True),
    (lambda xp, x: xp.le(x**3, 5), lambda xp, x: xp.ge(x**3, 5), True),
    (lambda xp, x: xp.le(xp.exp(x), 3), lambda xp, x: xp.le(3, xp.exp(x)), True),
    (lambda xp, x: xp.le(3 * x, 1), lambda xp, x: xp.ge(3 * x, 1), True),
    (lambda xp, x: xp.le(x * x, 0.7), lambda xp, x: xp.ge(2 * x * x, 1.4), True),
    (lambda xp, x: xp.lt(x * x, 2), lambda xp, x: xp.ge(x * x, 2), False),
])
def test_two_conditions_that_touch_are_visited(low, high, wrong):
    op = made(lambda xp, x: x**3, lambda xp, y, x: xp.where(low(xp, x), xp.where(high(xp, x), 0 * x, 3 * x**2), 3 * x**2))
    assert (prove(op, 1, complex=False).verdict == "refuted") == wrong


@pytest.mark.sampled(2)
@pytest.mark.parametrize("forward, partial", [
    (lambda xp, x: xp.sin(x), lambda xp, y, x: xp.cos(x) + 1e-300), (lambda xp, x: x * x, lambda xp, y, x: 2 * x - 1e-200),
    (lambda xp, x: xp.exp(x), lambda xp, y, x: y + 1e-250 * x),
    (lambda xp, x: xp.tanh(x / 3), lambda xp, y, x: xp.square(xp.sech(x / 3)) / 3 + 3e-290),
    (lambda xp, x: xp.log1p(x * x), lambda xp, y, x: 2 * x / (1 + x * x) - 7e-180 * x * x),
])
def test_a_literal_difference_is_refuted_however_small(forward, partial):
    proof = prove(made(forward, partial), 1, complex=False)
    assert proof.verdict == "refuted"
    claim, truth = (line.partition(", sympy.diff gives ")[::2] for line in str(proof).splitlines() if "sympy.diff gives" in line).__next__()
    assert claim.rpartition(" ")[2] != truth and len(truth) < 40


IN_REALS = {  # functions with a real value on a part of the line, with a right and a wrong rule
    "sqrt": (lambda xp, x: xp.sqrt(x), lambda xp, y, x: 0.5 / y, lambda xp, y, x: 0.5 / y + 0 * x + 1e-12),
    "x log x": (lambda xp, x: x * xp.log(x), lambda xp, y, x: xp.log(x) + 1, lambda xp, y, x: xp.log(x) + 1 + 1e-12),
    "circle": (lambda xp, x: xp.sqrt(1 - x * x), lambda xp, y, x: -x / y, lambda xp, y, x: -x / y * (1 + 1e-12)),
    "asin": (lambda xp, x: xp.asin(x / 3), lambda xp, y, x: 1 / (3 * xp.cos(y)), lambda xp, y, x: 0.333 / xp.cos(y)),
    "acosh": (lambda xp, x: xp.acosh(x), lambda xp, y, x: 1 / xp.sinh(y), lambda xp, y, x: 1 / xp.sinh(y) + 1e-9),
    "a power of a third": (lambda xp, x: (x - 0.7) ** 1.25, lambda xp, y, x: 1.25 * y / (x - 0.7), lambda xp, y, x: 1.24 * y / (x - 0.7)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", IN_REALS)
def test_without_a_domain_points_are_those_where_the_forward_rule_is_real(what):
    forward, right, wrong = IN_REALS[what]
    proof = prove(made(forward, right), 2, complex=False)
    assert proof.verdict == "proved" and "outside the domain" in str(proof)
    assert all(s.points >= 15 for s in proof.statements)
    assert prove(made(forward, wrong), 1, complex=False).verdict == "refuted"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("forward, partial", [
    (lambda xp, x: xp.erf(x), lambda xp, y, x: 1.1283791670955126 * xp.exp(-x * x)),
    (lambda xp, x: xp.sign(x) * xp.abs(x) ** (1 / 3), lambda xp, y, x: xp.abs(x) ** (-2 / 3) / 3),
    (lambda xp, x: xp.exp(xp.log(xp.square(x) + 1) / 3), lambda xp, y, x: (2 / 3) * x * y / (x * x + 1)),
    (lambda xp, x: xp.sin(x / 7), lambda xp, y, x: (1 / 7) * xp.cos(x / 7)), (lambda xp, x: x * np.pi, lambda xp, y, x: 3.14159265358979 + 0 * x),
])
def test_two_numbers_of_a_refutation_are_seen_to_differ(forward, partial):
    proof = prove(made(forward, partial), 1, complex=False)
    lines = [line.partition("the rule gives ")[2].split(", sympy.diff gives ") for line in str(proof).splitlines() if "sympy.diff gives" in line]
    assert proof.verdict == "refuted" and lines and all(claim != truth for claim, truth in lines)
    function = symgrad.elementwise("made_for_a_check", forward, partial)
    REGISTRY.pop("made_for_a_check")
    report = symgrad.check(function, 1.3, order=1)
    assert report.verdict == "refuted"
    found = report.counterexample.texts
    assert found[0] != found[1] and all(text[:12] in str(report) for text in found)
