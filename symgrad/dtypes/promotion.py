"""Torch's promotion of dtypes: of pairs, and of operands, among which numbers and 0-d values do not widen arrays of their category."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import DType, dtype_of, get_default_dtype, numpy_dtype

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
