"""Bounds beyond the range of an integer dtype."""

import numpy as np
import pytest
import torch

import symgrad

DTYPES = ("uint8", "int8", "int16", "int32", "int64")


@pytest.mark.parametrize("low, high", [(-1, None), (None, 300), (-1, 5), (-70_000, 70_001), (3, 2**40), (-2**40, 90), (None, None)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bounds_beyond_the_dtype_bound_nothing(dtype, low, high):
    """torch wraps negative bounds around for uint8, so that clamp(-1) is 255, and refuses the others."""
    if low is high is None:
        return
    x = np.array([0, 3, 100, 127 if dtype == "int8" else 200]).astype(dtype)
    found = symgrad.clamp(symgrad.tensor(x), low, high)
    assert str(found.dtype) == f"torch.{dtype}" and found.tolist() == np.clip(x.astype(object), low, high).tolist()
    assert symgrad.compile(lambda x: symgrad.clamp(x, low, high))(symgrad.tensor(x)).tolist() == found.tolist()
    ends = np.iinfo(dtype)
    if (low is None or ends.min <= low) and (high is None or high <= ends.max):
        assert found.tolist() == torch.clamp(torch.tensor(x), low, high).tolist()


@pytest.mark.parametrize("call", [lambda x: x.clamp(min=300), lambda x: x.clamp(max=-1), lambda x: symgrad.clamp_min(x, 256),
                                  lambda x: x.clamp_(max=-7)])
def test_bounds_without_an_answer_in_the_dtype_are_refused(call):
    with pytest.raises(RuntimeError, match=r"clamp\w*: (min|max)=-?\d+ is beyond the range of torch.uint8"):
        call(symgrad.tensor([0, 3, 200], dtype=symgrad.uint8))
