"""Objects of other libraries and of Python as data, operands, indices and numbers: they are read as NumPy reads them, or refused in words."""

import array
import ctypes
import datetime
import decimal
import enum
import fractions
import io
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
import sympy

import symgrad as sg

X = sg.arange(3.0)
Kind = enum.IntEnum("Kind", "one two")


class Duck:
    """An object that NumPy can read, as a column of a table is."""

    def __init__(self, data):
        self.data = np.asarray(data)

    def __array__(self, dtype=None, copy=None):
        return self.data if dtype is None else self.data.astype(dtype)


def within(depth):
    """A list that contains itself."""
    inner = outer = []
    for _ in range(depth):
        inner.append([])
        inner = inner[0]
    inner.append(outer)
    return outer


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
BIG = np.arange(3, dtype=">f8")
NOT_NUMBERS = {
    "big-endian": (BIG, ValueError, r"byte order.*newbyteorder\('='\)"),
    "dates": (np.array(["2020-01-01"] * 3, "M8[D]"), TypeError, r"np.timedelta64\(1, 's'\)"),
    "durations": (np.arange(3).astype("m8[s]"), TypeError, "divide by a unit"),
    "objects": (np.array([1, 2, 3], object), TypeError, r"astype\(float\)"),
    "records": (np.zeros(3, [("a", "f8")]), TypeError, "the fields one by one"),
    "texts": (np.array(["1", "2", "3"]), TypeError, r"astype\(float\)"),
    "bytes": (np.array([b"1", b"2", b"3"]), TypeError, "frombuffer"),
    "long doubles": (np.arange(3, dtype=np.longdouble), TypeError, r"astype\(np.float64\)"),
    "masked": (MASKED, TypeError, r"masked elements.*x.filled\(number\)"),
    "list of masked": ([MASKED, MASKED], TypeError, "masked elements"),
    "itself": (within(0), ValueError, "contains itself"),
    "itself, deeper": (within(3), ValueError, "contains itself"),
    "list of dates": ([np.datetime64("2020-01-01")] * 3, TypeError, "M8"),
    "ragged": ([[1.0, 2.0], [3.0]], ValueError, "rectangular"),
    "list of texts": (["1", "2", "3"], TypeError, "<U1"),
    "list of None": ([None, 1.0, 2.0], TypeError, "could not read list"),
    "list of decimals": ([decimal.Decimal(1)] * 3, TypeError, "could not read list"),
}
if np.dtype(np.longdouble) == np.float64:  # the long doubles of some systems
    del NOT_NUMBERS["long doubles"]
NO_OPERANDS = [datetime.datetime(2020, 1, 1), datetime.timedelta(1), "1", b"1", bytearray(b"abc"), memoryview(b"abc"),
               array.array("d", [1, 2, 3]), (i for i in range(3)), {0: 1.0}, {1, 2}, range(3), decimal.Decimal(1), fractions.Fraction(1, 2),
               sympy.Symbol("x"), None, object(), len,
               Duck([1.0, 2.0, 3.0]), ctypes.c_double(1.0), scipy.sparse.eye_array(3), slice(2), ...]
OPERATIONS = [("add", lambda v: X + v), ("mul", lambda v: X * v), ("pow", lambda v: X**v), ("lt", lambda v: X < v),
              ("add", lambda v: sg.zeros(3).add_(v)), ("maximum", lambda v: sg.maximum(X, v))]
READERS = {"tensor": sg.tensor, "as_tensor": sg.as_tensor, "float32": lambda v: sg.tensor(v, dtype=sg.float32), "new_tensor": X.new_tensor,
           "from_numpy": sg.from_numpy, "int64": lambda v: sg.tensor(v, dtype=sg.int64),
           "assignment": lambda v: sg.zeros(3).__setitem__(slice(None), v)}


@pytest.mark.parametrize("name", NOT_NUMBERS)
def test_what_is_no_array_of_numbers_is_refused_with_a_remedy(name):
    data, error, words = NOT_NUMBERS[name]
    for reader, read in READERS.items():
        expected = (TypeError, "np.ndarray") if reader == "from_numpy" and isinstance(data, list) else (error, words)
        with pytest.raises(expected[0], match=expected[1]):
            read(data)
    for op, operate in OPERATIONS:
        with pytest.raises(error, match=f"(?s)^{op}: .*{words}"):
            operate(data)


@pytest.mark.parametrize("value", NO_OPERANDS, ids=lambda v: type(v).__name__)
def test_an_operand_that_is_none_is_named_by_its_type(value):
    for op, operate in OPERATIONS:
        with pytest.raises(TypeError, match=f"({op}|<).*{type(value).__name__}"):
            operate(value)


@pytest.mark.parametrize("value", [v for v in NO_OPERANDS if not isinstance(v, (Duck, ctypes.c_double))], ids=lambda v: type(v).__name__)
def test_a_value_that_is_no_number_is_refused(value):
    calls = {"fill_": lambda: sg.zeros(2).fill_(value), "full": lambda: sg.full((2,), value), "full_like": lambda: sg.full_like(X, value),
             "arange": lambda: sg.arange(value), "linspace": lambda: sg.linspace(0, value, 3), "logspace": lambda: sg.logspace(value, 1, 3),
             "roll": lambda: sg.roll(X, value), "eye": lambda: sg.eye(value), "scalar_tensor": lambda: sg.scalar_tensor(value),
             "zeros": lambda: sg.zeros(value)}
    for name, call in calls.items():
        if name == "zeros" and isinstance(value, (range, memoryview, bytearray, array.array)):
            continue  # sequences of sizes
        with pytest.raises(TypeError, match=name):
            call()


def test_subclasses_of_arrays_are_arrays():
    row = np.array([[1.0, 2.0, 3.0]]).view(np.matrix)
    for x in (sg.tensor(row), sg.from_numpy(row), sg.as_tensor(row), X.new_tensor(row)):
        assert type(x._value) is np.ndarray and (x * row).tolist() == [[1.0, 4.0, 9.0]]
    unmasked = np.ma.array([1.0, 2.0, 3.0])
    assert sg.tensor(unmasked).tolist() == (X + 1).tolist() and (X + unmasked).tolist() == [1.0, 3.0, 5.0]
    record = np.rec.array([(1.0,), (2.0,)], dtype=[("a", "f8")])
    assert sg.tensor(record.a).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("data, dtype, expected", [
    (range(3), "int64", [0, 1, 2]), (array.array("i", [1, 2]), "int32", [1, 2]), (memoryview(b"ab"), "uint8", [97, 98]),
    (bytearray(b"ab"), "uint8", [97, 98]),
    (Duck([1, 2]), "int64", [1, 2]), ([Duck([1.0]), Duck([2.0])], "float64", [[1.0], [2.0]]),
    ([np.float32(1.5), 2], "float64", [1.5, 2.0]),
    (np.arange(3.0)[::-1], "float64", [2.0, 1.0, 0.0]), (np.broadcast_to(1.0, 2), "float64", [1.0, 1.0]), (np.array(2), "int64", 2),
    (sympy.Rational(1, 2), "float64", 0.5), (sympy.Integer(2), "int64", 2), (Kind.two, "int64", 2),
    ([BIG, BIG], "float64", [[0.0, 1.0, 2.0]] * 2),
    ([1.5, 2**64], "float64", [1.5, 2.0**64]), ([2**64, 1j], "complex128", [2.0**64, 1j]), (2**63, "uint64", 2**63),
    ([2**63, 0.5], "float64", [2.0**63, 0.5]),
])
def test_what_is_read(data, dtype, expected):
    x = sg.tensor(data)
    assert x.dtype is getattr(sg, dtype) and x.tolist() == expected


def test_read_only_memory_is_read_and_not_written():
    values = np.arange(3.0)
    values.flags.writeable = False
    x = sg.from_numpy(values)
    assert (x + 1).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="read-only"):
        x += 1
    assert sg.tensor(values).add_(1).tolist() == [1.0, 2.0, 3.0]


def test_members_of_enumerations_are_numbers():
    assert (X + Kind.two).tolist() == [2.0, 3.0, 4.0] and (sg.arange(3) * Kind.two).dtype is sg.int64 and (Kind.two - X).tolist() == [2.0, 1.0, 0.0]


@pytest.mark.parametrize("data, dtype, error", [
    ([300], "uint8", RuntimeError), ([-300], "uint8", RuntimeError), ([float("nan")], "int64", RuntimeError), ([[1e30]], "int32", RuntimeError),
    ([2**63], "int64", RuntimeError), ([2**64], "int64", RuntimeError), ([10**400], "float64", OverflowError), ([1j], "float32", TypeError),
    ([2**64], None, ValueError), (-2**64, None, ValueError), ([2**63, -1], None, ValueError), ([True, 2**64], None, ValueError)])
def test_no_number_is_changed_by_its_dtype(data, dtype, error):
    with pytest.raises(error):
        sg.tensor(data, dtype=None if dtype is None else getattr(sg, dtype))


def test_numbers_of_lists_wrap_in_an_unsigned_dtype_and_lose_their_fractions():
    assert sg.tensor([-5, 255], dtype=sg.uint8).tolist() == [251, 255] and sg.tensor([1.7, -1.7], dtype=sg.int8).tolist() == [1, -1]


def test_ranges_without_an_end_are_refused():
    for end in (2**63, float("nan"), float("inf"), 1j, -2**64):
        with pytest.raises(RuntimeError):
            sg.arange(end)
    assert sg.arange(np.float32(2.5)).dtype is sg.float64 and sg.arange(np.array(2.5)).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(TypeError, match="at most 63 bits"):
        sg.zeros(10**30)
    with pytest.raises(TypeError, match="size"):
        sg.zeros(np.arange(3).astype("m8[s]"))
    assert sg.zeros([np.int8(1), sg.tensor(2)]).shape == (1, 2)


@pytest.mark.parametrize("make", [lambda x: x.expand(10**9), lambda x: x.expand(20_000, 20_000).t(), lambda x: x.as_strided((1 << 20,) * 2, (0, 0)),
                                  lambda x: sg.zeros(3000, 3000, dtype=x.dtype).t(), lambda x: x.expand(1 << 20, 3, 5).permute(2, 0, 1)],
                         ids=["expanded", "expanded matrix", "strided", "transposed", "permuted"])
@pytest.mark.parametrize("dtype", ["float64", "complex64", "bool", "int8", "bfloat16"])
def test_printing_copies_no_large_tensor(make, dtype):
    x = make(sg.zeros(1, dtype=getattr(sg, dtype)))
    tracemalloc.start()
    try:
        for text in (repr(x), str(x), f"{x}", x.__format__("")):
            assert "..." in text
        print(x, file=io.StringIO())
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
