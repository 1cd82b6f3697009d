"""Every module in the texts of `modules` beside torch's.

A line is the text of a constructor, and the lines below it are inputs, which are given in turn. What stands under EVALUATED is random in training,
and under FIRST torch has no second gradients, or wrong ones; REFUSED has inputs that are refused, and none where the constructor is. FUNCTIONS are
what stands beside modules.
"""

import pathlib
import re

import pytest
import torch

from tests.parity.module_kit import compare_function, compare_module, compare_refusal, compare_start, compare_transforms

pytestmark = [pytest.mark.usefixtures("double_precision", "one_thread"), pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")]

TABLES = {"CASES": {}, "EVALUATED": {}, "FIRST": {}, "FUNCTIONS": {}, "FIRST_FUNCTIONS": {}, "REFUSED": {}}
for path in sorted((pathlib.Path(__file__).parent / "modules").glob("*.txt")):
    for name, lines in re.findall(r"^\[(\w+)\]\n((?:.+\n)*)", path.read_text(encoding="utf-8"), re.MULTILINE):
        for text, given in re.findall(r"^(\S.*)\n((?:    .+\n)*)", lines, re.MULTILINE):
            TABLES[name][text] = [line.strip() for line in given.splitlines()]
CASES, EVALUATED, FIRST, FUNCTIONS, FIRST_FUNCTIONS, _ = TABLES.values()
REFUSED = [(text, one) for text, given in TABLES["REFUSED"].items() for one in given or [None]]


@pytest.fixture
def one_thread():
    """Torch's threads take longer to meet than these sizes take to compute."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("text", CASES)
def test_modules(text):
    compare_module(text, CASES[text])


@pytest.mark.parametrize("text", [text for text in CASES if "max_norm" not in text])  # which writes to the weight
def test_modules_under_transforms(text):
    for given in CASES[text]:
        compare_transforms(text, given)


@pytest.mark.parametrize("text", EVALUATED)
def test_modules_that_are_random_in_training(text):
    compare_module(text, EVALUATED[text], (False,))


@pytest.mark.parametrize("text", FIRST)
def test_modules_without_second_gradients(text):
    compare_module(text, FIRST[text], second=False)


@pytest.mark.parametrize("text", [*CASES, *EVALUATED, *FIRST])
def test_first_parameters(text):
    compare_start(text)


@pytest.mark.parametrize("text", FUNCTIONS)
def test_functions(text):
    compare_function(text, FUNCTIONS[text])


@pytest.mark.parametrize("text", FIRST_FUNCTIONS)
def test_functions_without_second_gradients(text):
    compare_function(text, FIRST_FUNCTIONS[text], second=False)


@pytest.mark.parametrize("text, given", REFUSED)
def test_refusals(text, given):
    compare_refusal(text, given)


@pytest.mark.parametrize("compare", [
    lambda: compare_refusal("Linear(3, 2)", "wave(4, 3)"), lambda: compare_module("Linear(3, 2 + (m.__name__ == 'torch'))", "wave(4, 3)"),
    lambda: compare_module("LeakyReLU(0.1)", "wave(4, 3, at=m.__name__ == 'torch')"),
    lambda: compare_start("Linear(3, 20 + 20 * (m.__name__ == 'torch'), dtype=m.float64)") or compare_start("PReLU(3, 1 + (m.__name__ == 'torch'))"),
])
def test_the_comparison_can_fail(compare):
    with pytest.raises(AssertionError):
        compare()
