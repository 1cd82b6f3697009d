"""What PyTorch said for each recorded program of `tests/support/programs`, symgrad says."""

import pytest

import symgrad
from symgrad.nn.modules import module
from tests.support.sides import FOLDER, compare, programs, recorded, same

# Relative and absolute differences of numbers that are allowed in a file, or in one program of it
PLACES = (4e-16, 1e-15)
TOLERANCES = {
    "autograd-orders": (1e-13,),
    "call_outputs": (1e-13,), "calls": (4e-16,), "containers": (4e-16,), "creation": PLACES, "function": (1e-15,), "function_graph": (1e-15,),
    "function_outputs": (1e-15,), "histories": (1e-15,), "hooks": (1e-15,), "lazy": (4e-16,), "losses": (1e-13,), "memory": (1e-12,), "mixed": PLACES,
    "module_hooks": (4e-16,), "module_utils": (1e-9, 1e-10), "nn": (4e-16,),
    "parametrize": (1e-12,), "passes": (1e-13, 1e-15), "recomputation": (1e-14,), "saved": (1e-15,),
    "schedules": (1e-15,), "selection": PLACES, "surface": PLACES, "tensor_hooks": (1e-15,), "views": (1e-14,), "vmap": (1e-14, 2e-15),
    "vmap-shared": (1e-14, 5e-14),
    # PyTorch's vector library rounds one square root in a hundred the other way (of doubles; one in six of singles): every later step carries it on
    "optim-adam": (1e-14,), "optim-adam_w": (1e-14,), "optim-complex_numbers": (1e-14,), "optim-network": (1e-13,), "optim-single_precision": (1e-6,)}
NAMES = [(path.stem, name) for path in sorted(FOLDER.glob("*.txt")) for name in programs(path.stem)]


@pytest.fixture(autouse=True)
def _hooks_of_all_modules_end_with_a_program(monkeypatch):
    monkeypatch.setattr(module, "_global_is_full_backward_hook", None)
    yield
    for name, hooks in vars(module).items():
        if name.startswith("_global_") and isinstance(hooks, dict):
            hooks.clear()


@pytest.mark.filterwarnings("ignore:Using backward", "ignore:anomalies are detected", "ignore:This DataLoader will create")
@pytest.mark.sampled(115)
@pytest.mark.parametrize("file, name", NAMES, ids=map("-".join, NAMES))
def test_programs_say_what_pytorch_said(file, name):
    compare(programs(file)[name], symgrad, recorded(file)[name], *TOLERANCES.get(f"{file}-{name}", TOLERANCES.get(file, ())))


def test_every_record_has_its_program():
    assert [(path.stem, name) for path in sorted(FOLDER.glob("*.json")) for name in recorded(path.stem)] == NAMES


def test_the_comparison_can_fail():
    assert not same("tensor([1.])", "tensor([2.])") and not same("TypeError", "ValueError") and not same(1, 1.0)
    assert not same([[1.0]], [1.0]) and not same({"a": [1.0]}, {"b": [1.0]}) and not same([1.0], [1.0 + 1e-12], 1e-13)
    expected = recorded("nn")["copies"]
    with pytest.raises(AssertionError, match=r"(?s)copies: 1 of 8 differ\nnn.txt:[0-9]+: .*\nwas recorded as Parameter"):
        compare(programs("nn")["copies"], symgrad, [*expected[:2], "Parameter", *expected[3:]])
