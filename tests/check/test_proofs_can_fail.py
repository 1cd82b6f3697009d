"""Rules that are wrong, by a millionth or only under a condition, are refuted, and in no way proved, verified or accepted."""

from unittest import mock

import pytest

import symgrad
from symgrad.algebra.effort import Effort
from symgrad.graph.domains import POSITIVE
from symgrad.graph.op import REGISTRY, elementwise
from symgrad.methods import extending
from symgrad.proofs import statements as proving
from symgrad.proofs.prove import cases
from symgrad.testing import check_op
from tests.check.test_prove import Agreeing
from tests.mutants.killing import differentiable_ops, mutated
from tests.support.points import examples

FACTOR = 1 + 1e-6
POINTS = 20
ELEMENTWISE = [pytest.param(op, id=op.name) for op in differentiable_ops() if op.kind == "elementwise"]


def with_partial(op, i):
    """An elementwise op declared again with one wrong partial derivative."""
    partial = op.partials[i]
    wrong = (lambda xp, y, *xs: FACTOR * partial(xp, y, *xs)) if callable(partial) else FACTOR * partial or 1e-6
    partials = (*op.partials[:i], wrong, *op.partials[i + 1:])
    try:
        made = elementwise("to be broken", op.forward, *partials, domain=op.domain)
    finally:
        REGISTRY.pop("to be broken", None)
    return mutated(op, partials=partials, vjp=made.vjp, jvp=made.jvp, examples=examples(op)[:1])


def proved_by_formulas(op):
    """Whether the rules would be proved without numeric comparison."""
    with mock.patch.object(proving, "NumericComparison", Agreeing):
        return all(s.verdict == "proved" for case in cases(op, False, []) for s in proving.CaseProof(case, 1, POINTS, Effort(1e6), 1.0).statements())


@pytest.mark.sweep
@pytest.mark.parametrize("op", ELEMENTWISE)
def test_every_partial_off_by_a_millionth_is_refuted(op):
    for i in range(op.arity if op.name != "power_of_length" else 1):  # that by its square is 0 but where the length is 0
        wrong = with_partial(op, i)
        proof = symgrad.prove(wrong, 1, complex=False)
        assert proof.verdict == "refuted" and "(mutant)" in proof.op
        assert not proved_by_formulas(wrong)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["exp", "tanh", "mul", "div", "atan2", "sinc_derivative", "pow", "logaddexp"])
@pytest.mark.parametrize("order", [2, 3])
def test_higher_derivatives_off_by_a_millionth_are_refuted(name, order):
    proof = symgrad.prove(with_partial(REGISTRY[name], 0), order, complex=False)
    refuted = any(s.verdict == "refuted" for s in proof.statements if s.order == order)
    assert refuted == ((name, order) != ("mul", 3))  # all third derivatives of a product are zero


def when(condition, wrong=lambda xp, x: 2 * x):
    """The rule of x²/2, wrong where the condition (xp, y, x) holds."""
    return lambda xp, x: x * x / 2, (lambda xp, y, x: xp.where(condition(xp, y, x), wrong(xp, x), x),), {}


def where(condition):
    """The rules of x*y, the first one wrong where the condition (xp, x, y) holds."""
    return lambda xp, a, b: a * b, (lambda xp, y, a, b: xp.where(condition(xp, a, b), 2 * b + 1, b), lambda xp, y, a, b: a), {}


def both(xp, *conditions):
    return xp.logical_and(*conditions)


def scaled(xp, x, scale=2.0):
    return x * x * scale / 2


WRONG = {
    "a step over 100": when(lambda xp, y, x: xp.eq(xp.floor(x / 100), 3)),
    "0": when(lambda xp, y, x: xp.eq(x, 0), lambda xp, x: x + 1),
    "a decimal": when(lambda xp, y, x: xp.eq(x, 7.25)),
    "all but 3": when(lambda xp, y, x: xp.ne(x, 3)),
    "only 3": when(lambda xp, y, x: xp.logical_not(xp.ne(x, 3))),
    "a negative rounded": when(lambda xp, y, x: xp.eq(xp.round(x), -77)),
    "a large integer": when(lambda xp, y, x: xp.eq(x, 123456)),
    "a negative integer": when(lambda xp, y, x: xp.eq(x, -41)),
    "a rounded up": when(lambda xp, y, x: xp.eq(xp.ceil(x / 10), -12)),
    "a remainder": when(lambda xp, y, x: xp.eq(xp.remainder(x, 7), 3)),
    "a remainder far away": when(lambda xp, y, x: both(xp, xp.eq(xp.remainder(x, 64), 5), xp.gt(x, 1000))),
    "the sign": when(lambda xp, y, x: xp.eq(xp.sign(x - 17), 0)),
    "the sign of 0": when(lambda xp, y, x: xp.eq(xp.sign(x), 0), lambda xp, x: x + 1),
    "an absolute value": when(lambda xp, y, x: xp.eq(xp.abs(x), 3)),
    "a narrow band": when(lambda xp, y, x: xp.lt(xp.abs(x - 7.25), 1e-9)),
    "a band of a few ULP": when(lambda xp, y, x: xp.lt(xp.abs(x - 7.25), 4e-15)),
    "beside a number": when(lambda xp, y, x: both(xp, xp.gt(x, 7.25), xp.lt(x, 7.25 + 1e-9))),
    "beyond 40": when(lambda xp, y, x: xp.gt(x, 40)),
    "beyond 1e5": when(lambda xp, y, x: xp.gt(xp.abs(x), 1e5)),
    "between 300 and 400": when(lambda xp, y, x: both(xp, xp.gt(x, 300), xp.lt(x, 400))),
    "between 300 and 301": when(lambda xp, y, x: both(xp, xp.ge(x, 300), xp.le(x, 300.001))),
    "nested": when(lambda xp, y, x: xp.where(xp.gt(x, 31), xp.lt(x, 33), xp.eq(x, -5))),
    "by its output": when(lambda xp, y, x: xp.gt(y, 5000)),
    "one output": when(lambda xp, y, x: xp.eq(y, 12.5)),
    "a square": when(lambda xp, y, x: xp.eq(x * x, 81)),
    "a root of a cubic": when(lambda xp, y, x: xp.eq(x * x * x + x, 3)),
    "an affine function": when(lambda xp, y, x: xp.eq(3 * x + 2, 23)),
    "an exponential": when(lambda xp, y, x: xp.gt(xp.exp(x), 1e4)),
    "atan doubled beyond 40": (lambda xp, x: xp.atan(x), (lambda xp, y, x: xp.where(xp.gt(x, 40), 2 / (1 + x * x), 1 / (1 + x * x)),), {}),
    "a logarithm at 2": (lambda xp, x: xp.log(x), (lambda xp, y, x: xp.where(xp.eq(x, 2), 2 / x, 1 / x),), {"domain": POSITIVE}),
    "the diagonal": where(lambda xp, a, b: xp.eq(a, b)),
    "half": where(lambda xp, a, b: xp.eq(a, 2 * b)),
    "a sum of 1": where(lambda xp, a, b: xp.eq(a + b, 1)),
    "a thirds line": where(lambda xp, a, b: xp.eq(3 * a, b)),
    "the opposite": where(lambda xp, a, b: xp.eq(a, -b)),
    "a point in the plane": where(lambda xp, a, b: both(xp, xp.eq(a, 3), xp.eq(b, 5))),
    "a strip": where(lambda xp, a, b: xp.lt(xp.abs(a - b - 4), 1e-9)),
    "a parameter": (scaled, (lambda xp, y, x, scale=2.0: xp.where(xp.eq(x, scale * 4.5), x * 0, x * scale),), {"examples": ((2.0,),)}),
}
UNSOLVED = {"no known number": when(lambda xp, y, x: xp.eq(x * xp.exp(x) + xp.sin(x), 3))}


def piece(xp, condition, a, b):
    return xp.where(condition, a, b)


RIGHT = {
    "relu": (lambda xp, x: xp.relu(x), (lambda xp, y, x: xp.indicator(xp.gt(x, 0), x),), {"special": ((0.0,),)}),
    "clamp": (lambda xp, x: xp.minimum(xp.maximum(x, -1 + 0 * x), 1 + 0 * x),
              (lambda xp, y, x: xp.indicator(xp.lt(xp.abs(x), 1), x),), {"special": ((1.0,), (-1.0,))}),
    "huber": (lambda xp, x: piece(xp, xp.lt(xp.abs(x), 1), x * x / 2, xp.abs(x) - 0.5),
              (lambda xp, y, x: piece(xp, xp.lt(xp.abs(x), 1), x, xp.sign(x)),), {"special": ((1.0,), (-1.0,))}),
    "a step": (lambda xp, x: piece(xp, xp.gt(x, 7.25), x * x, 3 * x), (lambda xp, y, x: piece(xp, xp.gt(x, 7.25), 2 * x, 3 + 0 * x),),
               {"special": ((7.25,),)}),
    "half at the border": (lambda xp, x: xp.abs(x - 3), (lambda xp, y, x: piece(xp, xp.eq(x, 3), 0.5 + 0 * x, xp.sign(x - 3)),),
                           {"special": ((3.0,),)}),
    "floor": (lambda xp, x: x * xp.floor(x), (lambda xp, y, x: xp.floor(x),), {"special": tuple((float(k),) for k in range(-3, 4))}),
    "the same twice": (lambda xp, x: x * x / 2, (lambda xp, y, x: piece(xp, xp.gt(x, 40), x + 0 * x, x),), {}),
    "the same at a number": (lambda xp, x: x * x / 2, (lambda xp, y, x: piece(xp, xp.eq(x, 7.25), xp.abs(x), x),), {}),
    "the same on a line": (lambda xp, a, b: a * b,
                           (lambda xp, y, a, b: piece(xp, xp.eq(a, 2 * b), xp.maximum(b, b - 1), b), lambda xp, y, a, b: a), {}),
    "a safe division": (lambda xp, x: x * x / 2,
                        (lambda xp, y, x: piece(xp, xp.eq(x, 0), x, x * (x / piece(xp, xp.eq(x, 0), xp.ones_like(x), x))),), {}),
}


def made(entry):
    """The public function of an entry outside the registry, and its parameters."""
    forward, partials, rest = entry
    try:
        return symgrad.elementwise("under_condition", forward, *partials, **rest), rest.get("examples", ((),))[0]
    finally:
        extending._unregister("under_condition")


def checked(entry):
    function, parameters = made(entry)
    return symgrad.check(lambda *xs: function(*xs, *parameters), *(1.3, 2.5)[:len(entry[1])], progress=False)


@pytest.mark.sweep
@pytest.mark.parametrize("name", WRONG)
def test_a_rule_that_is_wrong_under_a_condition_is_refuted(name):
    function, parameters = made(WRONG[name])
    assert symgrad.prove(function.op, 1, complex=False).verdict == "refuted"
    assert checked(WRONG[name]).verdict == "refuted"
    assert not check_op(function.op, profile="dev", parameters=parameters, raise_exception=False, shrink=False)


@pytest.mark.sweep
@pytest.mark.parametrize("name", list(WRONG)[::6])
def test_it_fails_in_the_profile_ci(name):
    function, parameters = made(WRONG[name])
    assert not check_op(function.op, profile="ci", parameters=parameters, raise_exception=False, shrink=False)


@pytest.mark.parametrize("name", UNSOLVED)
def test_a_condition_without_known_solutions_is_named(name):
    function, _ = made(UNSOLVED[name])
    proof = symgrad.prove(function.op, 1, complex=False)
    assert proof.verdict == "verified" and all("on one side of a condition: Eq" in s.reason for s in proof.statements)


@pytest.mark.sweep
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_rule_with_conditions_is_accepted(name):
    function, parameters = made(RIGHT[name])
    assert symgrad.prove(function.op, 2, complex=False).verdict == "proved"
    assert checked(RIGHT[name]).verdict in ("proved", "verified")
    assert check_op(function.op, profile="dev", parameters=parameters)
