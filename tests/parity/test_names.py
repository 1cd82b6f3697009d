"""Every public function of torch, linalg, fft, special, nn.functional and Tensor is here, or is in the table of absent names with a reason."""

import importlib.util
import types

import pytest
import torch

import symgrad
from symgrad.types.absent import TABLES, page
from tests.support.pages import ROOT

PLACES = {"torch": (torch, symgrad), "Tensor": (torch.Tensor, symgrad.Tensor), "fft": (torch.fft, symgrad.fft),
          "linalg": (torch.linalg, symgrad.linalg), "special": (torch.special, symgrad.special),
          "nn.functional": (torch.nn.functional, symgrad.nn.functional)}
ROOMS = ["nn", "nn.functional", "nn.init", "nn.modules", "nn.parallel", "nn.utils", "nn.utils.rnn", "nn.utils.prune", "nn.utils.parametrizations",
         "nn.utils.parametrize", "nn.grad", "optim", "optim.lr_scheduler", "optim.swa_utils", "utils", "utils.data", "utils.tensorboard", "testing"]


def table(place):
    return TABLES.get("torch" if place == "torch" else f"torch.{place}", {})


def functions(owner):
    return {name for name in dir(owner) if not name.startswith("_") and callable(getattr(owner, name))
            and not isinstance(getattr(owner, name), (types.ModuleType, type))}


@pytest.mark.parametrize("place", PLACES)
def test_every_name_is_here_or_has_a_reason(place):
    theirs, ours = PLACES[place]
    missing = {name for name in functions(theirs) if not hasattr(ours, name)}
    assert missing == set(table(place)) & functions(theirs)


def room(library, place):
    """The module, or the class in one, of a library."""
    parent, _, last = place.removeprefix("torch").rpartition(".")
    return getattr(importlib.import_module(library + parent), last) if last[:1].isupper() else importlib.import_module(library + place[5:])


@pytest.mark.parametrize("place", TABLES)
def test_absent_names_are_names_of_torch_that_are_not_here(place):
    theirs, ours = room("torch", place), room("symgrad", place)
    assert {name for name in TABLES[place] if not hasattr(theirs, name) and importlib.util.find_spec(f"{place}.{name}") is None} == set()
    assert {name for name in TABLES[place] if hasattr(ours, name)} == set()


@pytest.mark.parametrize("place", ROOMS)
def test_every_name_of_a_room_is_here_or_has_a_reason(place):
    theirs, ours = room("torch", f"torch.{place}"), room("symgrad", f"torch.{place}")
    public = set(getattr(theirs, "__all__", ())) | {  # and what a room without such a list has of its own
        name for name in dir(theirs) if not name.startswith("_") and getattr(getattr(theirs, name), "__module__", "").startswith(f"torch.{place}")}
    if place == "nn":
        public |= {name for name in dir(theirs) if not name.startswith("_")}
    assert {name for name in public if not hasattr(ours, name)} == set(table(place)) & public


def test_the_page_lists_the_absent_names():
    """`python symgrad/types/absent.py > examples/guide/absent.md` writes it."""
    assert (ROOT / "examples" / "guide" / "absent.md").read_text(encoding="utf-8") == page()


def test_an_absent_name_says_why_and_what_to_use():
    with pytest.raises(AttributeError, match="has no attribute 'symeig': torch has removed it; use linalg.eigh"):
        symgrad.symeig  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'grouped_mm': it is for numbers of eight bits and for GPUs; use matmul"):
        symgrad.nn.functional.grouped_mm  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'coalesce': there are no sparse tensors; use dense ones"):
        symgrad.zeros(2).coalesce  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'IterDataPipe': data pipes are no longer developed; use an IterableDataset"):
        symgrad.utils.data.IterDataPipe  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'autocast': nothing is cast automatically"):
        symgrad.autocast("cpu")
    for owner in (symgrad, symgrad.nn.functional, symgrad.utils.data, symgrad.nn.parallel, symgrad.testing):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'$"):
            owner.nothing  # noqa: B018
