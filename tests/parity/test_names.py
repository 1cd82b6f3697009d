"""Every public function of torch, linalg, fft, special, nn.functional and Tensor is here, or is in the table of absent names with a reason."""

import types

import pytest
import torch

import symgrad
from symgrad.types.absent import ABSENT, OF_FUNCTIONAL, OF_NN, OF_TENSOR

PLACES = {"torch": (torch, symgrad, ABSENT), "Tensor": (torch.Tensor, symgrad.Tensor, OF_TENSOR), "fft": (torch.fft, symgrad.fft, {}),
          "linalg": (torch.linalg, symgrad.linalg, {}), "special": (torch.special, symgrad.special, {}),
          "functional": (torch.nn.functional, symgrad.nn.functional, OF_FUNCTIONAL)}


def functions(owner):
    return {name for name in dir(owner) if not name.startswith("_") and callable(getattr(owner, name))
            and not isinstance(getattr(owner, name), (types.ModuleType, type))}


@pytest.mark.parametrize("place", PLACES)
def test_every_name_is_here_or_has_a_reason(place):
    theirs, ours, absent = PLACES[place]
    missing = {name for name in functions(theirs) if not hasattr(ours, name)}
    assert missing == set(absent) & functions(theirs)


@pytest.mark.parametrize("place", ["torch", "Tensor", "functional"])
def test_absent_names_are_names_of_torch_that_are_not_here(place):
    theirs, ours, absent = PLACES[place]
    assert {name for name in absent if not hasattr(theirs, name)} == set()
    assert {name for name in absent if hasattr(ours, name)} == set()


def test_every_module_and_room_of_nn_is_here_or_has_a_reason():
    theirs = {name for name in dir(torch.nn) if not name.startswith("_")}
    assert {name for name in theirs if not hasattr(symgrad.nn, name)} == set(OF_NN) <= theirs
    for theirs, ours in ((torch.nn.utils, symgrad.nn.utils), (torch.nn.utils.rnn, symgrad.nn.utils.rnn), (torch.nn.grad, symgrad.nn.grad)):
        assert {name for name in getattr(theirs, "__all__", functions(theirs)) if not hasattr(ours, name)} == set()


def test_an_absent_name_says_why_and_what_to_use():
    with pytest.raises(AttributeError, match="has no attribute 'symeig': torch has removed it; use linalg.eigh"):
        symgrad.symeig  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'grouped_mm': it is for numbers of eight bits and for GPUs; use matmul"):
        symgrad.nn.functional.grouped_mm  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'coalesce': there are no sparse tensors; use dense ones"):
        symgrad.zeros(2).coalesce  # noqa: B018
    for owner in (symgrad, symgrad.nn.functional):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'$"):
            owner.nothing  # noqa: B018
