"""Every wrong op of JAX of a rare kind is found, and no right one is accused, with one seed each."""

from collections import Counter

import jax  # noqa: F401
import pytest

from tests.power import measuring
from tests.power.rarely_jax import RIGHT, WRONG


def cases(table):
    return [pytest.param(entry, k % measuring.SEEDS, id=name) for k, (name, entry) in enumerate(table.items())]


@pytest.mark.sweep
@pytest.mark.parametrize("entry, seed", cases(WRONG))
def test_a_wrong_op_is_caught(entry, seed):
    assert measuring.attacked(entry, seed)


@pytest.mark.sweep
@pytest.mark.parametrize("entry, seed", cases(RIGHT))
def test_a_right_op_is_not_accused(entry, seed):
    assert measuring.attacked(entry, seed) == {}


def test_every_kind_has_at_least_four_wrong_ops():
    assert min(Counter(entry.category for entry in WRONG.values()).values()) >= 4 and len(WRONG) >= 32 and len(RIGHT) >= 12
