"""Every op that is wrong for one kind of call is found by the check of that kind, with default settings; each kind has several."""

from collections import Counter

import pytest

from tests.power.measuring import attacked
from tests.power.wrong_calls import CALLS, FOUND, OWN


@pytest.mark.parametrize("entry", [pytest.param(e, id=name) for name, e in OWN.items()])
def test_an_op_that_is_wrong_for_one_kind_of_call_is_found(entry):
    assert attacked(entry, 0, checks=FOUND[entry.category])


def test_each_kind_has_several_ops():
    assert min(Counter(e.category for e in CALLS.values()).values()) >= 4 and set(FOUND) == {e.category for e in CALLS.values()}
