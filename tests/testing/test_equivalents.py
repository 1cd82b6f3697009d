"""Which mutants of the rule tables count as no mistake."""

import pytest

from tests.mutants.equivalents import equivalent
from tests.mutants.killing import Killers
from tests.mutants.source import mutants_of_source


@pytest.mark.sweep
def test_a_rule_that_is_wrong_at_ties_alone_is_not_equivalent():
    """As a formula it is right: two symbols are not equal."""
    (mutant,) = mutants_of_source(("selection",), lambda name: name.endswith("at / xp.sum(at, None, False) -> at"))
    assert not equivalent(mutant) and Killers("dev").kill(mutant)
