"""Every public name of torch's modules is here, or its error gives a reason and what to use instead."""

import importlib.util
import pkgutil
import types
from typing import TypeVar

import pytest
import torch

import symgrad
from symgrad.types.absent import TABLES, page
from tests.support.pages import ROOT

PLACES = {"torch": (torch, symgrad), "Tensor": (torch.Tensor, symgrad.Tensor), "fft": (torch.fft, symgrad.fft),
          "linalg": (torch.linalg, symgrad.linalg), "special": (torch.special, symgrad.special),
          "nn.functional": (torch.nn.functional, symgrad.nn.functional)}
ROOMS = ["torch.nn", "torch.optim", "torch.utils", "torch.autograd", "torch.func", "torch.distributed", "torch.types", "torch.testing",
         "torch.linalg", "torch.fft", "torch.special", "torch.accelerator", "torch.backends", "torch.cpu", "torch.cuda", "torch.mps", "torch.xpu"]
IMPORTED = ("_BatchNorm", "_ConvNd", "_InstanceNorm", "_LRScheduler", "_Loss", "_NormBase", "_WeightedLoss", "_get_activation_fn", "_get_clones")


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
    assert {name for name in set(TABLES[place]) - {"*"} if not hasattr(theirs, name) and importlib.util.find_spec(f"{place}.{name}") is None} == set()
    assert {name for name in TABLES[place] if hasattr(ours, name)} == set()


def public(module):
    """What a module lists, or what it has of its own, and the private names that programs import."""
    listed = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items()
        if not name.startswith("_") and (getattr(value, "__module__", None) or "").startswith(module.__name__) and not isinstance(value, TypeVar)]
    return {*listed, *(name for name in IMPORTED if hasattr(module, name))}


def unexplained(module, name):
    """Whether a name is not there, without a reason."""
    try:
        getattr(module, name)
    except AttributeError as error:
        return ": " not in str(error)
    return False


def walk(places):
    """The modules of these places, those of torch with ours, and the names of torch's modules that are not here without a reason."""
    found, unknown, places = [], [], [*places]
    while places:
        place = places.pop()
        try:
            ours = importlib.import_module("symgrad" + place[5:])
        except ModuleNotFoundError as error:
            unknown += [] if "has no attribute" in str(error) and ": " in str(error) else [place]
            continue
        found.append((theirs := importlib.import_module(place), ours))
        places += [f"{place}.{m.name}" for m in pkgutil.iter_modules(getattr(theirs, "__path__", ())) if not m.name.startswith("_")]
    return found, unknown


@pytest.mark.filterwarnings("ignore")
def test_every_name_of_a_room_is_here_or_has_a_reason():
    found, unknown = walk(ROOMS)
    assert len(found) > 70
    assert unknown == []
    missing = {theirs.__name__: [name for name in sorted(public(theirs)) if unexplained(ours, name)] for theirs, ours in found}
    assert {place: names for place, names in missing.items() if names} == {}


@pytest.mark.parametrize("place", TABLES)
def test_an_import_of_an_absent_name_gives_the_reason(place):
    if place.rpartition(".")[2][:1].isupper():
        return  # a class: its members are not imported
    for name in set(TABLES[place]) - {"*"}:
        with pytest.raises(ModuleNotFoundError, match="has no attribute '.*': "):
            exec(f"from {place.replace('torch', 'symgrad', 1)} import {name}", {})


def answer(call, library):
    """What a query returns, or the type of its error."""
    try:
        return eval(call, {"torch": library})
    except (AssertionError, AttributeError, RuntimeError) as error:
        return type(error)


@pytest.mark.parametrize("call", """
    accelerator.is_available() accelerator.current_accelerator() accelerator.device_count() accelerator.synchronize() accelerator.current_stream()
    cuda.is_available() cuda.device_count() cuda.empty_cache() cuda.synchronize() mps.is_available() mps.device_count() mps.synchronize() mps.seed()
    xpu.is_available() xpu.device_count() xpu.synchronize() xpu.empty_cache() cpu.is_available() cpu.device_count() cpu.current_device()
    cpu.synchronize() backends.mps.is_available() backends.mps.is_built() backends.cuda.is_built() backends.cuda.matmul.allow_tf32
    backends.cudnn.is_available() backends.cudnn.version() backends.cudnn.benchmark backends.cudnn.deterministic backends.cudnn.enabled
    backends.cuda.math_sdp_enabled() backends.cuda.enable_flash_sdp(False)""".split())
def test_queries_of_devices_answer_as_torch_without_them(call):
    assert answer(f"torch.{call}", symgrad) == answer(f"torch.{call}", torch)


def test_settings_of_backends_are_kept_and_have_no_effect():
    import symgrad.backends.cudnn as cudnn
    with cudnn.flags(enabled=False, benchmark=True):
        assert not cudnn.benchmark
    cudnn.benchmark = True
    try:
        assert symgrad.backends.cudnn.benchmark
    finally:
        cudnn.benchmark = False


@pytest.mark.parametrize("place", ["autograd", "optim", "utils", "testing"])
def test_names_that_are_imported_later_are_listed(place):
    module = importlib.import_module(f"symgrad.{place}")
    assert set(module.__all__) <= set(vars(module)["__dir__"]())


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
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'compile': use symgrad.compile of a function that calls the module"):
        symgrad.nn.Linear(1, 1).compile()
    for owner in (symgrad, symgrad.nn.functional, symgrad.utils.data, symgrad.nn.parallel, symgrad.testing):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'$"):
            owner.nothing  # noqa: B018
