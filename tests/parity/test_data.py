"""What `tensor` makes of Python's numbers and NumPy's arrays, beside PyTorch: the same dtype and values, or a refusal by both."""

import numpy as np
import pytest
import torch

import symgrad

pytestmark = [pytest.mark.usefixtures("double_precision"), pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy:UserWarning")]

DATA = ["[300]", "[-1]", "[-255, 255]", "[-300]", "[0.5, -1.5]", "[float('nan')]", "[float('inf')]", "[1e30]", "[[1e300]]", "[2**63]", "[10**30]",
        "[2**64, 0.5]", "2**64", "-2**63", "10**400", "[1j]", "[True, 2]", "[True, 2.5]", "[]", "[[]]", "[np.float32(1.5)]", "[np.int8(3), 2]",
        "np.array([300])", "np.array(-1)", "np.array([1.5])", "[np.arange(3)]", "[[1], [2, 3]]", "[1, [2]]", "'1.5'", "['1']", "None", "[None]", "{}",
        "{1}", "b'a'", "np.array(['a'])", "np.array([None])", "np.array(['2020'], 'M8[D]')", "np.arange(3, dtype='>f8')",
        "object()", "[[[1, 2], [3, 4]]]"]
DTYPES = ["None", "m.float64", "m.float32", "m.float16", "m.bfloat16", "m.complex64", "m.int64", "m.int32", "m.uint8", "m.bool"]
ON_PURPOSE = {("10**400", "m.bool"), ("[2**63]", "None"),  # no float; uint64, as in NumPy, whose numbers are converted in lists, too
              *(("[np.float32(1.5)]", dtype) for dtype in ("m.int64", "m.int32", "m.uint8", "m.bool"))}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("data", DATA)
def test_tensors_of_data(data, dtype):
    found = []
    for m in (torch, symgrad):
        try:
            x = eval(f"m.tensor({data}, dtype={dtype})", {"np": np, "m": m})
            found.append((str(x.dtype), tuple(x.shape), repr(x.tolist())))
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            found.append(type(error))
    expected, got = found
    if isinstance(expected, type) and isinstance(got, type) or (data, dtype) in ON_PURPOSE:
        return  # torch has one class of error for each way of converting
    assert got == expected
