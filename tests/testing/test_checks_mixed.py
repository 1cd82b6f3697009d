"""The check of one pass through another: the mistakes that it finds, and ops to which it does not apply."""


import pytest

import symgrad
from symgrad.graph.op import REGISTRY
from symgrad.testing import check_mixed
from tests.support.failing import failure_of


def detached(x):
    return x.detach() if hasattr(x, "detach") else x


def changed(name, **rules):
    """An op of the registry with other rules, that is not registered."""
    return REGISTRY[name].but(**rules)


@pytest.mark.parametrize("name", ["exp", "mul"])
def test_a_pushforward_that_takes_its_arguments_for_constants(name):
    op = REGISTRY[name]
    wrong = changed(name, jvp=lambda xp, ts, y, args: op.jvp(xp, ts, detached(y), tuple(map(detached, args))))
    assert failure_of(check_mixed, wrong).wrong.what == "the pushforward, pulled back, is not the second derivative"


@pytest.mark.parametrize("name", ["exp", "mul", "sum"])
def test_a_pushforward_that_takes_its_tangents_for_constants(name):
    op = REGISTRY[name]
    wrong = changed(name, jvp=lambda xp, ts, y, args: op.jvp(xp, [t if t is None else detached(t) for t in ts], y, args))
    assert failure_of(check_mixed, wrong).wrong.what == "the pushforward, pulled back by its tangent, is not the pullback"


def test_ops_without_a_second_derivative_are_not_checked():
    assert check_mixed(REGISTRY["exp"], order=1).reason == "it has no second derivative"


def test_an_op_that_is_made_of_others_is_attacked_as_its_public_function():
    assert check_mixed(REGISTRY["norm"]).verdict == check_mixed(symgrad.norm).verdict == "passed"
