"""Dtypes with torch's names, the default dtype, and torch's promotion: numbers and 0-d values do not widen arrays of their category.

There is no complex32, because NumPy has no complex numbers of half precision: results that torch gives in it are complex64.
"""

from __future__ import annotations

import functools
import re
import reprlib
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from symgrad.system.limits import DTYPE_LENGTH

NAME = re.compile(r"[<>=|]?[A-Za-z?][A-Za-z0-9_]*")  # in other text NumPy reads Python literals and the fields of records


class DType:
    """A data type, with torch's repr."""

    __slots__ = ("name", "numpy", "is_floating_point", "is_complex", "is_signed", "itemsize")

    numpy: Any
    itemsize: int

    def __init__(self, name: str):
        self.name = name
        if name == "bfloat16":
            kind, self.itemsize = "f", 2
        else:
            self.numpy = np.dtype(name)
            kind, self.itemsize = self.numpy.kind, int(self.numpy.itemsize)
        self.is_complex, self.is_floating_point, self.is_signed = kind == "c", kind == "f", kind not in "ub"

    def __getattr__(self, name: str) -> Any:
        """The NumPy dtype of bfloat16: its package is imported when this is first asked for, which takes as long as a tenth of symgrad."""
        if name != "numpy":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        from ml_dtypes import bfloat16

        self.numpy = np.dtype(bfloat16)
        _FROM_NUMPY[self.numpy] = self
        return self.numpy

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> Any:
        return _dtype_named, (self.name,)

    @property
    def scalar_type(self) -> str:
        """The name of the scalar type in torch: `Float` for float32, as in `FloatTensor`."""
        return SCALAR_TYPES[self.name]

    def to_complex(self) -> DType:
        """The complex dtype with parts of this precision, or of the next higher one."""
        if self.is_complex:
            return self
        if not self.is_floating_point:
            raise RuntimeError(f"to_complex: {self} has no complex dtype; only floating-point ones have")
        return DTYPES["complex128" if self.name == "float64" else "complex64"]

    def to_real(self) -> DType:
        """The dtype of the parts of a complex number."""
        return {"complex64": DTYPES["float32"], "complex128": DTYPES["float64"]}.get(self.name, self)


def _dtype_named(name: str) -> DType:
    return DTYPES[name]


DTYPES = {name: DType(name) for name in ("float64", "float32", "float16", "complex64", "complex128", "int64", "int32", "int16", "int8", "uint8",
                                         "uint16", "uint32", "uint64", "bool", "bfloat16")}
ALIASES = {"double": "float64", "float": "float32", "half": "float16", "cfloat": "complex64", "cdouble": "complex128", "long": "int64",
           "int": "int32", "short": "int16"}
SCALAR_TYPES = {"float64": "Double", "float32": "Float", "float16": "Half", "bfloat16": "BFloat16", "complex64": "ComplexFloat",
                "complex128": "ComplexDouble", "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
                "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "bool": "Bool"}
_FROM_NUMPY = {d.numpy: d for d in DTYPES.values() if d.name != "bfloat16"}
_FROM_PYTHON = {float: DTYPES["float64"], int: DTYPES["int64"], bool: DTYPES["bool"], complex: DTYPES["complex128"]}
_default = DTYPES["float64"]


def get_default_dtype() -> DType:
    """The dtype of new floating-point tensors: float64 unless changed.

    >>> get_default_dtype()
    torch.float64
    """
    return _default


def set_default_dtype(d: DType) -> None:
    """Make `d` the dtype of new floating-point tensors.

    Raises TypeError for anything but a floating-point dtype.
    """
    global _default
    d = dtype_of(d)
    if not d.is_floating_point:
        raise TypeError(f"set_default_dtype: the default must be a floating-point dtype, not {d}")
    _default = d


def is_supported(dtype: np.dtype) -> bool:
    """Whether there are tensors of a NumPy dtype."""
    return dtype in _FROM_NUMPY or dtype.kind == "V" and dtype == DTYPES["bfloat16"].numpy


def dtype_of(value: Any) -> DType:
    """The DType of a DType, NumPy dtype or Python type."""
    if isinstance(value, np.dtype) and is_supported(value):
        return _FROM_NUMPY[value]
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in _FROM_PYTHON:
        return _FROM_PYTHON[value]
    try:
        if isinstance(value, str) and (len(value) > DTYPE_LENGTH or not NAME.fullmatch(value)):
            raise TypeError
        found = np.dtype(DTYPES["bfloat16"].numpy if isinstance(value, str) and value == "bfloat16" else value)
        if not is_supported(found):
            raise TypeError
        return _FROM_NUMPY[found]
    except (KeyError, TypeError, ValueError):
        names = ", ".join(DTYPES)
        shown = reprlib.repr(value) if isinstance(value, str) else repr(value)
        raise TypeError(f"{shown} is not a supported dtype; use one of {names}") from None


def numpy_dtype(value: Any) -> np.dtype:
    """The NumPy dtype for an argument of `dtype_of`; None is the default dtype."""
    return (_default if value is None else dtype_of(value)).numpy


class finfo:
    """The limits of a floating-point dtype (of the default one, if none is given); of a complex one, those of its parts.

    Raises TypeError for other dtypes.

    >>> finfo(DTYPES["float16"])
    finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, smallest_normal=6.10352e-05, tiny=6.10352e-05, dtype=float16)
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: Any = None):
        d = (_default if type is None else dtype_of(type)).to_real()
        if not d.is_floating_point:
            raise TypeError(f"finfo: the dtype must be floating-point, not {d}; use iinfo")
        info = _limits(d)
        self.bits, self.dtype = d.itemsize * 8, d.name
        self.eps, self.max, self.min, self.tiny = float(info.eps), float(info.max), float(info.min), float(info.tiny)
        self.smallest_normal, self.resolution = self.tiny, float(f"1e-{info.precision}")

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


def _limits(d: DType) -> Any:
    if d.name != "bfloat16":
        return np.finfo(d.numpy)
    from ml_dtypes import finfo as limits

    return limits(d.numpy)


class iinfo:
    """The limits of an integer dtype.

    Raises TypeError for other dtypes.

    >>> iinfo(DTYPES["int8"])
    iinfo(min=-128, max=127, dtype=int8)
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: Any):
        if not isinstance(type, (DType, np.dtype)) and type is not int:
            raise TypeError(f"iinfo: type must be a dtype, not {type.__class__.__name__}")
        d = dtype_of(type)
        if d.numpy.kind not in "iu":
            raise TypeError(f"iinfo: the dtype must be an integer one, not {d}; use finfo")
        info = np.iinfo(d.numpy)
        self.bits, self.dtype, self.max, self.min = info.bits, d.name, int(info.max), int(info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


NUMBERS = frozenset((bool, int, float, complex))
_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}
_WIDE_UNSIGNED = frozenset(map(np.dtype, ("uint16", "uint32", "uint64")))


def category(dtype: np.dtype) -> int:
    """0 for bool, 1 for integers, 2 for real and 3 for complex floating-point numbers (bfloat16 has the kind V)."""
    try:
        return _CATEGORY[dtype.kind]
    except KeyError:
        raise TypeError(f"numbers of dtype {dtype} are not supported; convert them with .astype(float)") from None


@functools.cache
def promoted(a: np.dtype, b: np.dtype) -> np.dtype:
    """The dtype to which two dtypes are promoted: the higher category wins, within a category the larger type.

    Raises RuntimeError for a pair of an unsigned integer of 16 bits or more and anything but real floating-point numbers.
    """
    if a == b:
        return a
    low, high = sorted((a, b), key=category)
    if (a in _WIDE_UNSIGNED or b in _WIDE_UNSIGNED) and category(high) != 2:
        raise RuntimeError(f"{dtype_of(a)} and {dtype_of(b)} are not promoted to one dtype; convert one with .to()")
    if category(low) != category(high):
        return _complex(low) if high == np.complex64 and low == np.float64 else high
    if high.kind != low.kind and "V" in (low.kind, high.kind):  # bfloat16 with float16, float32 or float64
        return np.dtype(np.float64 if np.float64 in (low, high) else np.float32)
    return np.promote_types(a, b)


def _complex(dtype: np.dtype) -> np.dtype:
    """The complex dtype with parts of this floating-point dtype, or of float32 for a narrower one, since NumPy has no complex32."""
    return np.dtype(np.complex128 if dtype == np.float64 else np.complex64)


@functools.cache
def _combined(high: np.dtype, low: np.dtype) -> np.dtype:
    """The dtype of operands of which the first group wins within a category: arrays over 0-d values, and these over numbers."""
    if category(low) == 3 and category(high) == 2:
        return _complex(high)
    if category(high) == 0:
        return promoted(high, low)
    return low if category(low) > max(category(high), 1) else high


def _of_number(kind: type) -> np.dtype:
    """The dtype of a Python number of this type."""
    if kind in (bool, int):
        return np.dtype(np.bool_ if kind is bool else np.int64)
    return get_default_dtype().numpy if kind is float else get_default_dtype().to_complex().numpy


def result_dtype(operands: Iterable[Any]) -> np.dtype:
    """The common dtype of operands: arrays, 0-d values and Python numbers; each of these groups yields to the former one within a category.

    Raises RuntimeError as `promoted`.
    """
    arrays: Any = None
    values: Any = None
    numbers: Any = None
    for x in operands:
        if type(x) in NUMBERS:
            dtype = _of_number(type(x))
            numbers = dtype if numbers is None else promoted(numbers, dtype)
        elif x.ndim:
            arrays = x.dtype if arrays is None else promoted(arrays, x.dtype)
        else:
            values = x.dtype if values is None else promoted(values, x.dtype)
    if values is None:
        values = numbers
    elif numbers is not None:
        values = _combined(values, numbers)
    if arrays is None:
        return values
    return arrays if values is None else _combined(arrays, values)


def common_dtype(x: Any, z: Any) -> np.dtype:
    """The common dtype of two arrays: the higher category wins; within a category, an array wins over a 0-d value."""
    if x.dtype is z.dtype:
        return x.dtype
    return promoted(x.dtype, z.dtype) if bool(x.ndim) == bool(z.ndim) else _combined(*((x.dtype, z.dtype) if x.ndim else (z.dtype, x.dtype)))


def converted(operands: Iterable[Any]) -> list[Any]:
    """Arrays, 0-d values and Python numbers in their common dtype; integers outside of it wrap around."""
    given = list(operands)
    target = result_dtype(given)
    return [x.astype(target, copy=False) if type(x) not in NUMBERS else np.asarray(x).astype(target)[()] for x in given]


def common(*operands: Any) -> DType:
    """The common dtype of tensors and Python numbers, as `result_dtype`."""
    dtypes = {x.dtype for x in operands if type(x) not in NUMBERS}
    if len(dtypes) == 1 and not any([type(x) is complex for x in operands]):
        (dtype,) = dtypes
        if dtype.is_floating_point:
            return dtype
    return dtype_of(result_dtype([x if type(x) in NUMBERS else SimpleNamespace(dtype=x.dtype.numpy, ndim=x.ndim) for x in operands]))


def promote_types(type1: DType, type2: DType) -> DType:
    """The dtype to which two dtypes are promoted: the higher category wins, within a category the larger type.

    Raises RuntimeError for a pair of an unsigned integer of 16 bits or more and anything but real floating-point numbers.

    >>> from symgrad.dtypes.dtype import DTYPES
    >>> promote_types(DTYPES["int8"], DTYPES["uint8"])
    torch.int16
    """
    for place, d in ((1, type1), (2, type2)):
        if not isinstance(d, (DType, type, np.dtype)):
            raise TypeError(f"promote_types: type{place} must be a dtype, not {type(d).__name__}")
    return dtype_of(promoted(numpy_dtype(type1), numpy_dtype(type2)))


def can_cast(from_: DType, to: DType) -> bool:
    """Whether a dtype can be cast to another by the promotion rules: never from complex to real, float to integer, or integer to boolean.

    >>> from symgrad.dtypes.dtype import DTYPES
    >>> can_cast(DTYPES["float64"], DTYPES["float16"]), can_cast(DTYPES["float64"], DTYPES["int64"])
    (True, False)
    """
    return category(numpy_dtype(from_)) <= category(numpy_dtype(to))
