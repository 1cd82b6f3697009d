"""Tensors print as PyTorch prints them, compared with recorded outputs.

`python -m tests.symbolic.test_printing` has PyTorch print the recorded tensors again, and writes its text and its version to the record.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad
from symgrad.methods.printing import text

RECORD = Path(__file__).parents[1] / "support" / "data" / "printing.json"
CASES = json.loads(RECORD.read_text())["cases"]
READ = {"bool": lambda word: word == "True", "int": int, "uint": int, "complex": complex, "float": float, "bfloat": float}
GRAPH = {"": lambda x: x, "leaf": lambda x: x.requires_grad_(), "mul": lambda x: x.requires_grad_() * 1, "exp": lambda x: x.requires_grad_().exp(),
         "sum": lambda x: x.requires_grad_().sum()}


def printed(library, case):
    """What a library prints for a recorded tensor: its values are repeated until they fill its shape."""
    read = READ[case["dtype"].rstrip("0123456789")]
    values = [read(word) for word in case["values"]]
    flat = [values[i % len(values)] for i in range(math.prod(case["shape"]))]
    library.set_default_dtype(getattr(library, case["default"]))
    library.set_printoptions(**{"profile": "default", **case["options"]})
    return repr(GRAPH[case["graph"]](library.tensor(flat, dtype=getattr(library, case["dtype"])).reshape(case["shape"])))


@pytest.fixture(autouse=True)
def defaults():
    yield
    symgrad.set_default_dtype(symgrad.float64)
    symgrad.set_printoptions(profile="default")


def name(case):
    return f"{case['dtype']}-{case['shape']}-{case['values'][0]}{case['graph'] and '-'}{case['graph']}"


@pytest.mark.parametrize("case", CASES, ids=name)
def test_prints_what_pytorch_prints(case):
    assert printed(symgrad, case) == case["text"]


def test_the_recorded_cases_cover_every_dtype():
    assert len(CASES) >= 150 and len({case["text"] for case in CASES}) > 140
    assert {case["dtype"] for case in CASES} == set(symgrad.dtypes.dtype.DTYPES)
    everything = "".join(case["text"] for case in CASES)
    for mark in ("...", "e+", "e-", "nan", "inf", "-0.", "size=", "dtype=", "requires_grad=True", "grad_fn=<ExpBackward0>", "\n\n", "[]", "1.+"):
        assert mark in everything, mark


@pytest.mark.parametrize(("value", "spec", "out"), [
    (3.14159, ".3f", "3.142"), (3.14159, "", "3.14159"), (3.0, "", "3.0"), (3.14159, ">10", "   3.14159"), (3, "05d", "00003"), (True, "", "True"),
    (1 + 2j, ".2f", "1.00+2.00j"), (float("nan"), ".1e", "nan"), (1e-9, "g", "1e-09"),
])
def test_a_scalar_formats_as_its_number(value, spec, out):
    assert format(symgrad.tensor(value), spec) == out
    if isinstance(value, float):
        assert format(symgrad.tensor(value, requires_grad=True), spec) == format(symgrad.tensor(value, symbol="x"), spec) == out


def test_repr_of_named_tensors_and_subclasses():
    class Mass(symgrad.Tensor):
        __slots__ = ()

    x = symgrad.tensor([1.0, 2.0], symbol="x")
    assert repr(x) == "tensor([1., 2.])"
    heavy = object.__new__(Mass)
    heavy._value, heavy._node = x.value, None
    assert repr(heavy) == "Mass([1., 2.])"
    assert text(heavy, "Parameter") == "Parameter([1., 2.])"


def test_printing_changes_nothing():
    array = np.arange(2000.0)[::-1].reshape(40, 50).T
    before = array.copy()
    x = symgrad.from_numpy(array)
    repr(x)
    assert x.value is array and np.array_equal(array, before)


def test_options_are_kept_and_restored():
    before = symgrad.get_printoptions()
    symgrad.set_printoptions(precision=2, threshold=5, sci_mode=True)
    assert symgrad.get_printoptions() == {**before, "precision": 2, "threshold": 5, "sci_mode": True}
    assert repr(symgrad.arange(6.0)) == "tensor([0.00e+00, 1.00e+00, 2.00e+00, 3.00e+00, 4.00e+00, 5.00e+00])"
    symgrad.set_printoptions(profile="full", linewidth=40)
    assert symgrad.get_printoptions() == {**before, "threshold": math.inf, "linewidth": 40}
    symgrad.set_printoptions(**before)
    assert symgrad.get_printoptions() == before


@pytest.mark.parametrize(("option", "words"), [
    ({"profile": "long"}, "unknown profile 'long'.*default, short, full"), ({"precision": -1}, "precision"), ({"edgeitems": -1}, "edgeitems"),
    ({"threshold": math.nan}, "threshold"),
])
def test_invalid_options_change_nothing(option, words):
    before = symgrad.get_printoptions()
    with pytest.raises(ValueError, match=words):
        symgrad.set_printoptions(**{"linewidth": 50, **option})
    assert symgrad.get_printoptions() == before


@given(st.lists(st.floats(width=32), min_size=1, max_size=30), st.integers(10, 100))
def test_every_number_is_shown_to_the_precision(numbers, width):
    symgrad.set_printoptions(precision=17, sci_mode=True, linewidth=width)
    shown = repr(symgrad.tensor(numbers)).removeprefix("tensor([").removesuffix("])").split(",")
    assert np.array_equal(np.array(list(map(float, shown))), np.array(numbers), equal_nan=True)


def record():
    import torch

    cases = [{**case, "text": printed(torch, case)} for case in CASES]
    lines = ",\n".join(json.dumps(case) for case in cases)
    RECORD.write_text(f'{{"printed by": "torch {torch.__version__.partition("+")[0]}", "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    record()
