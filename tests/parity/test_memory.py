"""Views in every other dtype, and storages. Calls of one line are in `calls/memory.txt`, programs in the recorded ones of memory."""


import pytest

import symgrad

from .beside import Section, differences, sections

pytestmark = pytest.mark.usefixtures("double_precision")
DTYPES = ("float64", "float32", "float16", "bfloat16", "complex64", "complex128", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32",
          "uint64", "bool")


@pytest.mark.parametrize("dtype", DTYPES)
def test_views_in_another_dtype(dtype):
    given = next(sections("memory")).given + "no_dimensions, no_elements = torch.tensor(3.0), torch.zeros(2, 0, 4)\n"
    calls = [f"x.to(torch.{dtype}).view(torch.{other})" for other in DTYPES]
    for x in ("contiguous", "permuted", "sliced", "expanded", "offset", "no_dimensions", "no_elements"):
        assert differences(Section("", f"{given}x = {x}", calls, 0.0, frozenset({"memory"}))) == []


def test_storages_write_into_tensors_and_cannot_grow():
    x = symgrad.zeros(3)
    x.storage()[1] = 5.0
    x.untyped_storage()[7] = 64
    assert x.tolist() == [2.0, 5.0, 0.0] and x._version == 0
    with pytest.raises(RuntimeError, match="resize_: the storage has the size 3"):
        x.storage().resize_(4)
    with pytest.raises(RuntimeError, match="copy_: the source has the size 2, the storage 3"):
        x.storage().copy_(symgrad.DoubleStorage(2))
