"""The functions of the numeric carrier that move numbers: indices, views and copies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.carriers import structure
from symgrad.carriers.batched import Batched
from symgrad.carriers.batching import scatter, take
from symgrad.carriers.duck import DuckArray
from symgrad.carriers.structure import is_basic, zeros_like
from symgrad.errors import VIEW
from symgrad.layouts.strides import empty_like, with_index_layout

FEW = 64  # additions at index arrays take less time one by one than as those of a flat array
FLOATS = (np.float64, np.float32)
PARTS = frozenset((np.ndarray, slice, int, type(None), type(...)))  # types of the parts of an index


def _is_batched_index(index: Any) -> bool:
    """Whether an index differs between the members of a batch."""
    return type(index) is Batched or type(index) is tuple and Batched in map(type, index)


def getitem(x: Any, index: Any) -> Any:
    """The elements at an index; a basic index gives a view of the memory, also for a single element."""
    if type(index) is Batched or type(index) is tuple and Batched in map(type, index):
        return take(x, index)
    out = x[index]
    if type(out) is np.ndarray:
        base = out.base
        shared = out.ndim < 2 or base is x or base is not None and base is x.base
        if shared or type(x) is not np.ndarray or type(index) is np.ndarray and index.ndim == 1 and x.flags.c_contiguous:
            return out
        return with_index_layout(out, x, index)
    if isinstance(out, np.ndarray) or not isinstance(x, np.ndarray):
        return out
    return x[(*index, ...) if isinstance(index, tuple) else (index, ...)] if is_basic(index) else out


def view(x: Any, shape: tuple[int, ...]) -> Any:
    """A view of `x` with another shape. Raises RuntimeError if this needs a copy."""
    out = x.reshape(shape)
    base = out.base
    if isinstance(x, np.ndarray) and base is not x and (base is None or base is not x.base) and out.size:
        raise RuntimeError(VIEW)
    return out


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """The array broadcast to a shape without a copy; it is writeable if `x` is."""
    if type(x) in FLOATS:
        return np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))  # equal to the general case, and six times as fast
    if type(x) is np.ndarray and x.flags.c_contiguous and x.ndim <= len(shape):
        kept = shape if x.ndim == len(shape) else shape[len(shape) - x.ndim:]
        strides = [s if n == m else 0 if n == 1 else None for n, m, s in zip(x.shape, kept, x.strides)]
        if None not in strides:
            if kept is not shape:
                for i in range(len(shape) - x.ndim - 1, -1, -1):  # as in torch, a new axis of size 1 has the stride of a contiguous one
                    strides.insert(0, strides[0] * shape[i + 1] if shape[i] == 1 and strides else 0)
            return np.ndarray(shape, x.dtype, x, 0, strides)  # as the general case, and three times as fast
    out = np.broadcast_to(x, shape)
    if isinstance(x, np.ndarray) and x.flags.writeable:
        out.flags.writeable = True
    return out


def _positions(index: tuple[np.ndarray, ...], shape: tuple[int, ...]) -> np.ndarray:
    """The places in a flat array of the elements that index arrays of the first dimensions name."""
    first, rest = shape[:len(index)], math.prod(shape[len(index):])
    at = np.ravel_multi_index(np.broadcast_arrays(*index), first, "wrap")
    return at if rest == 1 else np.asarray(at)[..., None] * rest + np.arange(rest)


def place(g: Any, index: Any, shape: tuple[int, ...]) -> Any:
    """The transpose of `getitem`: zeros of `shape` with `g` added at `index`, which may repeat elements."""
    if type(g) is np.ndarray:
        kinds = {type(index)} if type(index) is not tuple else {*map(type, index)}
        if kinds <= PARTS:
            if np.ndarray in kinds and g.dtype.char in "eE":
                return place(g.astype(np.float32), index, shape).astype(g.dtype)
            out = np.zeros(shape, g.dtype)
            if np.ndarray in kinds:  # positions may repeat
                arrays = index if type(index) is tuple else (index,)
                if g.size >= FEW and kinds == {np.ndarray} and all([a.dtype.kind in "iu" for a in arrays]):
                    np.add.at(out.reshape(-1), _positions(arrays, shape).reshape(-1), g.reshape(-1))
                else:
                    np.add.at(out, index, g)
            else:
                out[index] = g
            return out
    return scatter(zeros_like(g, shape), index, g, True) if _is_batched_index(index) else structure.place(g, index, shape)


def put(x: Any, values: Any, index: Any, accumulate: bool = False) -> Any:
    """A copy of `x` with `values` written at `index`, or added there."""
    if _is_batched_index(index):
        return scatter(x, index, values, accumulate)
    if accumulate:
        shape = np.shape(x[index])
        return x + place(values if np.shape(values) == shape else np.broadcast_to(values, shape), index, x.shape)
    if isinstance(values, DuckArray) or isinstance(x, DuckArray):
        if isinstance(values, DuckArray):
            zeros = np.zeros_like(values, shape=x.shape, dtype=x.dtype)
            x = x | zeros if x.dtype.kind == "b" else x - zeros  # -0 + 0 would be 0
        else:
            x = x.copy()
        x[index] = values
        return x
    out = copy(x) if isinstance(x, np.ndarray) else np.array(x)
    out[index] = values
    return out


def diagonal(x: Any, offset: int, dim1: int, dim2: int) -> Any:
    """The diagonal of two dimensions as a new last one: a view of the memory, writeable if `x` is."""
    out = x.diagonal(offset, dim1, dim2)
    if isinstance(x, DuckArray):
        return out
    out.flags.writeable = x.flags.writeable
    return out


def astype(x: Any, dtype: Any, source: Any = None) -> Any:
    """The values in another dtype; the real part for complex values and a real dtype. `source` is for carriers whose values have no dtype."""
    x = x.real if x.dtype.kind == "c" and np.dtype(dtype).kind != "c" else x
    if type(x) is np.ndarray and 0 in x.strides:  # torch and NumPy choose different memory orders for broadcast axes
        out = empty_like(x, dtype)
        np.copyto(out, x, casting="unsafe")
        return out
    return x.astype(dtype)


def copy(x: Any, order: str | tuple[int, ...] = "K") -> Any:
    """A copy with the memory order of `x` ("K"), in row-major order ("C"), or row-major for a permutation of the axes."""
    if isinstance(order, tuple) or order == "K" and type(x) is np.ndarray and 0 in x.strides:
        return structure.copy(x, order) if order != "K" else astype(x, x.dtype)
    return x.copy(order)
