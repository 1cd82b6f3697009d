"""The ops of torch and JAX in the power corpora are attacked, and what the table says of their own checkers is what they say."""

from collections import Counter

import jax  # noqa: F401  # noqa: F401
import pytest

from tests.power import measuring
from tests.power.rarely_jax import RIGHT, WRONG
from tests.power.test_power import accused, is_caught, right_of_torch, wrong_of_torch

SEEDS = range(4)
SOME = ("wrong/wrong sign", "wrong/gradient off by 1e-6", "wrong/factor detached", "wrong/cotangent clipped", "wrong/mean for sum", "right/x**20")


@pytest.mark.sampled(6)
@wrong_of_torch
def test_a_wrong_op_of_torch_is_caught(entry, seed):
    assert is_caught(entry, seed)


@pytest.mark.sampled(2)
@right_of_torch
def test_a_right_op_of_torch_is_not_accused(entry, seed):
    assert not accused(entry, seed)


@pytest.mark.parametrize("name", SOME)
def test_torch_says_what_is_recorded(name):
    found = measuring.torch_says(measuring.ENTRIES[name], SEEDS)
    assert [n == len(SEEDS) for n in found] == [n == measuring.SEEDS for n in measuring.recorded()[name]["torch"]]


@pytest.mark.parametrize("name", SOME)
def test_jax_says_what_is_recorded(name):
    found = measuring.jax_says(measuring.ENTRIES[name], SEEDS)
    assert [n == len(SEEDS) for n in found] == [n == measuring.SEEDS for n in measuring.recorded()[name]["jax"]]


def test_an_op_is_stated_once_for_every_framework():
    """The value of an op of rules is the same in symgrad and in torch, at the customary point."""
    import numpy as np
    import torch

    from symgrad.testing.attack import Attack
    from tests.power.twins_torch import torch_twin

    for name, entry in measuring.ENTRIES.items():
        if entry.rules is not None:
            xs = measuring.customary(entry, 0)
            ours = Attack(entry.make(), **entry.claims).subject.value(xs)
            theirs = torch_twin(entry)(*map(torch.from_numpy, xs)).numpy()
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-300, err_msg=name)


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
