"""NumPy values of the data that users give: numbers, nested sequences, arrays and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.carriers.duck import DuckArray
from symgrad.engine.tensor import Tensor
from symgrad.graph.modes import special
from symgrad.graph.node import TRACKED
from symgrad.types.dtypes import dtype_of, get_default_dtype, numpy_dtype

__all__ = ["as_value", "copied", "from_python", "has_graph", "number_in", "operand_value"]


def as_value(data: Any, dtype: Any = None) -> Any:
    """A NumPy value of a supported dtype, from a Tensor, an array, a number or nested sequences of them."""
    if isinstance(data, Tensor):
        if special:
            data._escape()
        value = data._value
    elif isinstance(data, (np.ndarray, np.generic, DuckArray)):
        value = data
    else:
        value = from_python(data, dtype is None)
    if dtype is not None:
        return value.astype(numpy_dtype(dtype), copy=False)
    dtype_of(value.dtype)
    return value


def number_in(number: Any, dtype: np.dtype) -> Any:
    """A number in a dtype, as torch converts it: a negative whole number is counted from the end of the range of an unsigned dtype.

    Raises RuntimeError for a number beyond the range of a dtype of integers.
    """
    if dtype.kind in "iu" and isinstance(number, (int, float)):
        limits = np.iinfo(dtype)
        if not (-limits.max if isinstance(number, int) and dtype.kind == "u" else limits.min) <= number <= limits.max:
            raise RuntimeError(f"value cannot be converted to type {dtype} without overflow: {number} is beyond its range")
        number = int(number) % (limits.max + 1) if dtype.kind == "u" else int(number)
    return np.asarray(number, dtype)[()]


def operand_value(data: Any) -> Any:
    """A NumPy value of an operand that is no Tensor.

    Raises TypeError for what would lose derivatives or mean something else: sequences with tensors that have a graph, and named tuples.
    """
    if isinstance(data, (list, tuple)):
        fields = getattr(data, "fields", None)
        if fields:
            raise TypeError(f"the operand is the tuple ({', '.join(fields)}) that {type(data).__name__} returns; take one item of it, as in "
                            f".{fields[0]}" + ", or call amax or amin, which return values alone" * (type(data).__name__ in ("max", "min")))
        if has_graph(data):
            raise TypeError("the operand is a sequence with tensors that have a graph, which would be constants in it; join them with symgrad.stack")
    return as_value(data)


def has_graph(data: Any) -> bool:
    """Whether a nested sequence has a Tensor that is differentiated."""
    if isinstance(data, Tensor):
        return data._node is not None and bool(data._node.flags & TRACKED)
    return isinstance(data, (list, tuple)) and any(map(has_graph, data))


def copied(x: Any) -> Any:
    """A value in memory of its own; of a scalar another object, for which `+` takes a tenth of the time of its `copy`."""
    return +x if isinstance(x, np.generic) and type(x) is not np.bool_ else x.copy()  # type: ignore[operator]


def from_python(data: Any, by_default: bool = True) -> Any:
    """A NumPy value of a number or nested sequences; with `by_default` floats get the default dtype, else float64."""
    try:
        value = np.asarray(data if not isinstance(data, (list, tuple)) else _plain(data))
    except ValueError as error:
        raise ValueError(f"tensor: the nested sequences are not rectangular ({error})") from None
    except RecursionError:
        raise ValueError("tensor: too many dimensions; a sequence contains itself, or hundreds of others are nested in it") from None
    if value.dtype == object:
        raise TypeError(f"tensor: could not read {type(data).__name__} {data!r} as numbers")
    if by_default and (value.dtype == np.float64 or not value.size):
        value = value.astype(get_default_dtype().numpy, copy=False)
    elif by_default and value.dtype == np.complex128:
        value = value.astype(get_default_dtype().to_complex().numpy, copy=False)
    return value if value.ndim else value[()]


def _plain(data: Any) -> Any:
    return [_plain(d) if isinstance(d, (list, tuple)) else (as_value(d) if isinstance(d, Tensor) else d) for d in data]
