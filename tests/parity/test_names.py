"""Public names of torch's modules are here, or absent with what to use instead; modules of devices answer as torch without them."""

import fnmatch
import importlib
import pkgutil
import types
from typing import TypeVar

import pytest
import torch

import symgrad
from symgrad.compat.modules import FAMILIES, advice
from tests.support.pages import ROOT

PLACES = {"Tensor": (torch.Tensor, symgrad.Tensor), "fft": (torch.fft, symgrad.fft), "linalg": (torch.linalg, symgrad.linalg),
          "special": (torch.special, symgrad.special), "nn.functional": (torch.nn.functional, symgrad.nn.functional)}
IMPORTED = ("_BatchNorm", "_ConvNd", "_InstanceNorm", "_LRScheduler", "_Loss", "_NormBase", "_WeightedLoss", "_get_activation_fn", "_get_clones")
# What is absent from Tensor and from these modules
ABSENT = set("""
    ccol_indices coalesce col_indices crow_indices dense_dim indices is_coalesced resize_as_sparse_ row_indices smm sparse_dim sparse_mask
    sparse_resize_ sparse_resize_and_clear_ sspaddmm to_dense to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc
    to_sparse_csr values dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme
    ipu mtia record_stream to_mkldnn xpu eig lstsq solve symeig reinforce share_memory_ index chalf
    Optional grouped_mm scaled_grouped_mm scaled_mm assert_int_or_pair boolean_dispatch handle_torch_function has_torch_function
    has_torch_function_unary has_torch_function_variadic""".split())
INSIDE = set("classproperty compiled_with_cxx11_abi get_file_path prepare_multiprocessing_environment thread_safe_generator "
             "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12".split())  # of torch itself


def functions(owner):
    return {name for name in dir(owner) if not name.startswith("_") and callable(getattr(owner, name))
            and not isinstance(getattr(owner, name), (types.ModuleType, type))}


@pytest.mark.parametrize("place", PLACES)
def test_every_function_of_torch_is_here(place):
    theirs, ours = PLACES[place]
    assert {name for name in functions(theirs) if not hasattr(ours, name)} <= ABSENT


def test_every_function_of_the_package_is_here_or_has_an_advice():
    missing = {name for name in functions(torch) if not hasattr(symgrad, name)}
    assert {name for name in missing if advice(name) is None} == INSIDE
    for name in missing - INSIDE:
        with pytest.raises(AttributeError, match=f"module 'symgrad' has no attribute '{name}': ") as caught:
            getattr(symgrad, name)
        assert str(caught.value).endswith(advice(name))


@pytest.mark.parametrize("patterns", FAMILIES)
def test_a_family_has_names_of_torch_that_are_absent(patterns):
    for pattern in patterns.split():
        place, _, pattern = pattern.rpartition(".")
        ours, theirs = (importlib.import_module(f"{root}.{place}".rstrip(".")) for root in ("symgrad", "torch"))
        assert [name for name in dir(ours) if fnmatch.fnmatchcase(name, pattern) and not name.startswith("_")] == []
        known = {*dir(theirs), *(m.name for m in pkgutil.iter_modules(theirs.__path__))}
        assert fnmatch.filter(known, pattern), pattern


def test_the_page_lists_the_families():
    page = (ROOT / "examples" / "guide" / "absent.md").read_text(encoding="utf-8")
    rows = [tuple(cell.strip(" `") for cell in line.split("|")[1:3]) for line in page.splitlines() if line.startswith("| `")]
    assert rows == [*FAMILIES.items()] and len(page.encode()) <= 4096


def test_absent_names_are_attribute_and_import_errors():
    for owner, name in ((symgrad.zeros(2), "coalesce"), (symgrad.nn.Linear(1, 1), "compile"), (symgrad.testing, "nothing"), (symgrad, "nothing")):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'$"):
            getattr(owner, name)
    with pytest.raises(AttributeError, match="the only device is the CPU"):
        symgrad.cuda.graphs  # noqa: B018
    with pytest.raises(ImportError, match="autocast"):
        from symgrad import autocast  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match="No module named 'symgrad.amp'"):
        importlib.import_module("symgrad.amp")


def public(module):
    """What a module lists, or what it has of its own, and the private names that programs import."""
    listed = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items()
        if not name.startswith("_") and (getattr(value, "__module__", None) or "").startswith(module.__name__) and not isinstance(value, TypeVar)]
    return {*listed, *(name for name in IMPORTED if hasattr(module, name))}


def walk(places):
    """The modules of these places, those of torch with ours."""
    found, places = [], [*places]
    while places:
        place = places.pop()
        try:
            ours = importlib.import_module("symgrad" + place[5:])
        except ModuleNotFoundError:
            continue
        found.append((theirs := importlib.import_module(place), ours))
        places += [f"{place}.{m.name}" for m in pkgutil.iter_modules(getattr(theirs, "__path__", ())) if not m.name.startswith("_")]
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place, modules, absent", [("nn", 48, 9), ("optim", 16, 12), ("autograd", 9, 9), ("func", 1, 4), ("utils", 12, 31),
                                                    ("distributed", 2, 51)])
def test_modules_have_the_names_of_torch(place, modules, absent):
    found = walk([f"torch.{place}"])
    assert len(found) >= modules
    assert len({name for theirs, ours in found for name in public(theirs) if not hasattr(ours, name)}) <= absent


def answer(call, library):
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
    assert set(module.__all__) <= set(dir(module))
