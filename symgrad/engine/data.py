"""NumPy values of the data that users give: numbers, nested sequences, arrays and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.carriers.duck import DuckArray
from symgrad.engine.tensor import Tensor
from symgrad.graph.modes import special
from symgrad.types.dtypes import dtype_of, get_default_dtype, numpy_dtype

__all__ = ["as_value", "copied", "from_python"]


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


def copied(x: Any) -> Any:
    """A value in memory of its own; of a scalar another object, for which `+` takes a tenth of the time of its `copy`."""
    return +x if isinstance(x, np.generic) and type(x) is not np.bool_ else x.copy()  # type: ignore[operator]


def from_python(data: Any, by_default: bool = True) -> Any:
    """A NumPy value of a number or nested sequences; with `by_default` floats get the default dtype, else float64."""
    try:
        value = np.asarray(data if not isinstance(data, (list, tuple)) else _plain(data))
    except ValueError as error:
        raise ValueError(f"tensor: the nested sequences are not rectangular ({error})") from None
    if value.dtype == object:
        raise TypeError(f"tensor: could not read {type(data).__name__} {data!r} as numbers")
    if by_default and (value.dtype == np.float64 or not value.size):
        value = value.astype(get_default_dtype().numpy, copy=False)
    elif by_default and value.dtype == np.complex128:
        value = value.astype(get_default_dtype().to_complex().numpy, copy=False)
    return value if value.ndim else value[()]


def _plain(data: Any) -> Any:
    return [_plain(d) if isinstance(d, (list, tuple)) else (as_value(d) if isinstance(d, Tensor) else d) for d in data]
