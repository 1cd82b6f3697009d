"""Every module of the tables in `module_cases` beside torch's: one line there covers a module.

A line of CASES is the text of a constructor and the text of its inputs, or several, which are given in turn; a line of EVALUATED is the same for
a module that is random in training, and one of FIRST where torch has no second gradients, or wrong ones; a line of REFUSED has inputs that are
refused, and none where the constructor is.
"""

import importlib
import pathlib

import pytest

from tests.parity.module_kit import compare_module, compare_refusal, compare_start

pytestmark = pytest.mark.usefixtures("double_precision")

TABLES = [importlib.import_module(f"tests.parity.module_cases.{path.stem}")
          for path in sorted((pathlib.Path(__file__).parent / "module_cases").glob("[a-z]*.py"))]
CASES, EVALUATED, FIRST = ({text: given for table in TABLES for text, given in getattr(table, name, {}).items()}
                           for name in ("CASES", "EVALUATED", "FIRST"))
REFUSED = [(text, one) for table in TABLES for text, given in getattr(table, "REFUSED", {}).items() for one in given or [None]]


@pytest.mark.parametrize("text", CASES)
def test_modules(text):
    compare_module(text, CASES[text])


@pytest.mark.parametrize("text", EVALUATED)
def test_modules_that_are_random_in_training(text):
    compare_module(text, EVALUATED[text], (False,))


@pytest.mark.parametrize("text", FIRST)
def test_modules_without_second_gradients(text):
    compare_module(text, FIRST[text], second=False)


@pytest.mark.parametrize("text", [*CASES, *EVALUATED, *FIRST])
def test_first_parameters(text):
    compare_start(text)


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
