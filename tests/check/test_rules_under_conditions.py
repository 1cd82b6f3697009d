"""Rules that are wrong only under a condition: at a number, on a line, far away, in a narrow band. None is proved, verified or accepted."""

import pytest

import symgrad
from symgrad.methods import extending
from symgrad.testing import check_op
from tests.support.rules_under_conditions import RIGHT, UNSOLVED, WRONG


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
    assert proof.verdict == "verified" and all(s.reason.startswith("not visited: where ") for s in proof.statements)


@pytest.mark.sweep
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_rule_with_conditions_is_accepted(name):
    function, parameters = made(RIGHT[name])
    assert symgrad.prove(function.op, 2, complex=False).verdict == "proved"
    assert checked(RIGHT[name]).verdict in ("proved", "verified")
    assert check_op(function.op, profile="dev", parameters=parameters)
