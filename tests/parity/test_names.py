"""Every public function of torch, torch.linalg, torch.fft, torch.special and Tensor is here, or is in the table of absent names with a reason."""

import types

import pytest
import torch

import symgrad
from symgrad.types.absent import ABSENT, OF_TENSOR
from tests.parity.not_yet import NOT_YET

PLACES = {"torch": (torch, symgrad, ABSENT), "Tensor": (torch.Tensor, symgrad.Tensor, OF_TENSOR), "fft": (torch.fft, symgrad.fft, {}),
          "linalg": (torch.linalg, getattr(symgrad, "linalg", None), {}), "special": (torch.special, getattr(symgrad, "special", None), {})}


def functions(owner):
    return {name for name in dir(owner) if not name.startswith("_") and callable(getattr(owner, name))
            and not isinstance(getattr(owner, name), (types.ModuleType, type))}


@pytest.mark.parametrize("place", PLACES)
def test_every_name_is_here_or_has_a_reason(place):
    theirs, ours, absent = PLACES[place]
    missing = {name for name in functions(theirs) if not hasattr(ours, name)}
    assert missing - set(absent) - set(NOT_YET[place].split()) == set()


@pytest.mark.parametrize("place", ["torch", "Tensor"])
def test_absent_names_are_names_of_torch_that_are_not_here(place):
    theirs, ours, absent = PLACES[place]
    assert {name for name in absent if not hasattr(theirs, name)} == set()
    assert {name for name in absent if hasattr(ours, name)} == set()
    assert not set(absent) & set(NOT_YET[place].split())


def test_an_absent_name_says_why_and_what_to_use():
    with pytest.raises(AttributeError, match="has no attribute 'symeig': torch has removed it; use linalg.eigh"):
        symgrad.symeig  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'nothing'$"):
        symgrad.nothing  # noqa: B018
