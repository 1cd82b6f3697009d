"""The functions of a carrier that move, add and multiply elements, common to floats, SymPy expressions and many-digit floats."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from operator import add, mul, neg, pow, sub
from operator import truediv as div
from typing import Any

import numpy as np

from symgrad.carriers.batched import Batched, batch, unbatch
from symgrad.carriers.contracting import added, contract
from symgrad.carriers.duck import DuckArray
from symgrad.carriers.recorded import Recorded

__all__ = [
    "add", "batch", "broadcast_to", "cat", "copy", "cumprod", "cumsum", "diag", "diagonal", "diagonal_place", "div", "dot", "einsum", "eye_like",
    "flip", "getitem", "indicator", "matmul", "mm", "mul", "mv", "neg", "ones_like", "permute", "place", "pow", "prod", "put", "reshape", "roll",
    "stack", "strided", "strided_add", "strided_put", "sub", "sum", "sum_to_size", "trace", "tril", "triu", "unbatch", "unfold", "view",
    "zeros_like",
]

Axes = int | tuple[int, ...] | None
float64, float32 = np.dtype(np.float64), np.dtype(np.float32)


def copy(x: Any, order: str | tuple[int, ...] = "K") -> Any:
    """A copy with the memory order of `x` ("K"), in row-major order ("C"), or row-major for a permutation of the axes."""
    if isinstance(order, tuple):
        return x.transpose(order).copy("C").transpose(tuple(order.index(i) for i in range(x.ndim)))
    return x.copy(order)


def sum(x: Any, dim: Axes = None, keepdim: bool = False) -> Any:
    if type(x) is np.float64:
        return +x  # a new object, since saved values are compared by identity
    if x.dtype is float64 and x.size <= 1024:  # as `added`, without its call
        return np.add.reduce(x, axis=dim, keepdims=keepdim)
    return added(signed(x) if x.dtype.kind == "u" else x, dim, keepdim)


def signed(x: Any) -> Any:
    """Unsigned integers and booleans as int64, in which torch adds and multiplies them; other values as they are."""
    return x.astype(np.int64) if x.dtype.kind in "bu" else x


def prod(x: Any, dim: Axes = None, keepdim: bool = False) -> Any:
    if x.dtype.char in "eE":  # float16 and bfloat16
        return np.multiply.reduce(x, axis=dim, keepdims=keepdim, dtype=np.float32).astype(x.dtype)
    return np.multiply.reduce(signed(x), axis=dim, keepdims=keepdim)


def _accumulated(x: Any, dim: int, name: str) -> Any:
    """A running sum or product: of float16 and bfloat16 in float32, of integers in int64."""
    if x.dtype.char in "eE":
        return _accumulated(x.astype(np.float32), dim, name).astype(x.dtype)
    if x.dtype.kind in "biu":
        x = x.astype(np.int64)
    return getattr(x, name)(dim) if type(x) is np.ndarray and x.ndim else getattr(np, name)(x, axis=dim) if x.ndim else x + 0


def cumsum(x: Any, dim: int) -> Any:
    if x.dtype.kind not in "fc" or x.dtype.char == "e":
        return _accumulated(x, dim, "cumsum")
    if type(x) is np.ndarray and x.ndim:
        return x.cumsum(dim)  # unlike np.cumsum, the method attributes an overflow warning to this module, where it is filtered
    return np.cumsum(x, axis=dim) if x.ndim else x + 0


def cumprod(x: Any, dim: int) -> Any:
    if x.dtype.kind not in "fc" or x.dtype.char == "e":
        return _accumulated(x, dim, "cumprod")
    if type(x) is np.ndarray and x.ndim:
        return x.cumprod(dim)
    return np.cumprod(x, axis=dim) if x.ndim else x + 0


def reshape(x: Any, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape)


view = reshape  # in the numeric carrier a copy is an error


def permute(x: Any, dims: tuple[int, ...]) -> Any:
    return x.transpose(dims)


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    return np.broadcast_to(x, shape, subok=True)


def sum_to_size(g: Any, shape: tuple[int, ...]) -> Any:
    """Undo a broadcast: sum `g` over every axis along which `shape` was stretched to `g.shape`."""
    if g.dtype.char in "eE":  # sums of float16 and bfloat16 are computed in float32
        return sum_to_size(g.astype(np.float32), shape).astype(g.dtype)
    extra = g.ndim - len(shape)
    stretched = tuple([i + extra for i, n in enumerate(shape) if n == 1 and g.shape[i + extra] != 1])
    if extra == 1 and not stretched:
        return sum(g, 0)
    out = sum(g, tuple(range(extra)) + stretched)
    return out.reshape(shape)


def getitem(x: Any, index: Any) -> Any:
    return x[index]


def place(g: Any, index: Any, shape: tuple[int, ...]) -> Any:
    """The transpose of `getitem`: zeros of `shape` with `g` added at `index`, which may repeat elements."""
    if type(g) is Batched and type(g.data) is np.ndarray and type(index) in (slice, int):
        out = np.zeros((len(g.data), *shape), g.data.dtype)
        out[:, index] = g.data
        return Batched(out, g.level)
    if type(g) is Recorded:
        return g.recorder.emit_index("place", (g,), index, tuple(shape))
    basic = is_basic(index)
    if not basic and g.dtype.char in "eE":
        return place(g.astype(np.float32), index, shape).astype(g.dtype)
    if basic and type(g) is Batched:
        return Batched(place(g.data, (slice(None), *(index if type(index) is tuple else (index,))), (g.data.shape[0], *shape)), g.level)
    out = np.zeros(shape, g.dtype) if type(g) is np.ndarray else zeros_like(g, shape)
    if basic:
        out[index] = g
    else:
        np.add.at(out, index, g)
    return out


def put(x: Any, values: Any, index: Any, accumulate: bool = False) -> Any:
    """A copy of `x` with `values` written at `index`, or added there."""
    if accumulate:
        return x + place(np.broadcast_to(values, np.shape(x[index])), index, x.shape)
    out = _copy_for(x, values) if x.ndim else zeros_like(x, x.shape) + x
    out[index] = values
    return out


def _copy_for(x: Any, values: Any) -> Any:
    """A copy of an array, into which the values of a batch can be written, too."""
    return x + zeros_like(values, x.shape) if isinstance(values, DuckArray) else x.copy()


def strided(x: Any, geometry: Any) -> Any:
    """The elements of a view of `x`."""
    return x.reshape(-1)[geometry.positions]


def strided_put(x: Any, piece: Any, geometry: Any) -> Any:
    """A copy of `x` with values written to the elements of a view."""
    out = _copy_for(x.reshape(-1), piece)
    out[geometry.positions] = piece
    return out.reshape(x.shape)


def strided_add(g: Any, geometry: Any, shape: tuple[int, ...]) -> Any:
    """The transpose of `strided`: zeros of `shape` with `g` added at the elements of the view."""
    out = zeros_like(g, (geometry.size,))
    np.add.at(out, geometry.positions, g)
    return out.reshape(shape)


def is_basic(index: Any) -> bool:
    """Whether an index consists of integers, slices, None and Ellipsis, so that it does not repeat elements."""
    if type(index) is slice or type(index) is int:
        return True
    for part in index if isinstance(index, tuple) else (index,):
        kind = type(part)
        if kind is not slice and kind is not int and part is not None and part is not Ellipsis and not isinstance(part, np.integer):
            if kind is bool or not isinstance(part, int):
                return False
    return True


def cat(xs: Sequence[Any], dim: int = 0) -> Any:
    return np.concatenate(xs, axis=dim)


def stack(xs: Sequence[Any], dim: int = 0) -> Any:
    if all([type(x) is np.ndarray for x in xs]):  # equal to the general case, and twice as fast
        dim %= xs[0].ndim + 1
        apart = (slice(None),) * dim + (None,)
        return np.concatenate([x[apart] for x in xs], dim)
    return np.stack(xs, axis=dim)


def flip(x: Any, dims: tuple[int, ...]) -> Any:
    return np.flip(x, dims).copy()


def roll(x: Any, shifts: Any, dims: Any) -> Any:
    if type(dims) is type(shifts) is tuple and len(dims) == len(shifts) == 1:
        (dims,), (shifts,) = dims, shifts
    if type(x) is np.ndarray and type(dims) is type(shifts) is int and x.ndim and x.size:
        before = (slice(None),) * (dims % x.ndim)
        shift = shifts % x.shape[dims]
        return np.concatenate((x[(*before, slice(-shift, None))], x[(*before, slice(None, -shift))]), dims) if shift else x.copy()
    return np.roll(x, shifts, dims)


def matmul(a: Any, b: Any) -> Any:
    y = np.matmul(a, b)
    return y.astype(a.dtype) if a.dtype.kind == "V" else y  # NumPy multiplies bfloat16 in float32


def mm(a: Any, b: Any) -> Any:
    """The product of vectors and matrices; for plain floats by the method with the least overhead.

    With an array of one element, which is 0, that method has 0 for the products by infinities and NaN, and -0 for a sum of one -0.
    """
    if type(a) is type(b) is np.ndarray and (dtype := a.dtype) is b.dtype and (dtype is float64 or dtype is float32) and (
            len(b) != 1 or a.size != 1 != b.size):
        return a.dot(b)
    return matmul(a, b)


mv = dot = mm


def einsum(equation: str, xs: Sequence[Any]) -> Any:
    if xs[0].dtype.char in "eE":  # sums of float16 and bfloat16 are computed in float32
        return einsum(equation, [x.astype(np.float32) for x in xs]).astype(xs[0].dtype)
    return contract(equation, xs)


def diag(x: Any, diagonal: int = 0) -> Any:
    return np.diag(x, diagonal).copy() if x.ndim == 2 else diagonal_place(x, diagonal, None)


def diagonal(x: Any, offset: int, dim1: int, dim2: int) -> Any:
    """The diagonal of two dimensions as a new last one."""
    return x.diagonal(offset, dim1, dim2).copy()


def unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    """Every window of slices along a dimension, with the window as a new last dimension."""
    if not x.ndim:
        return x.reshape((1,))[:size]
    at = np.arange(0, x.shape[dimension] - size + 1, step)[:, None] + np.arange(size)
    return np.moveaxis(x[(slice(None),) * dimension + (at,)], dimension + 1, -1)


def diagonal_place(g: Any, diagonal: int, shape: tuple[int, ...] | None) -> Any:
    """A matrix with the vector `g` on one diagonal: the transpose of reading it (`shape` None: the smallest square)."""
    n = g.shape[0]
    side = n + np.abs(diagonal)
    out = zeros_like(g, shape or (side, side))
    rows = np.arange(n) + max(-diagonal, 0)
    out[rows, rows + diagonal] = g
    return out


def trace(x: Any) -> Any:
    return np.add.reduce(signed(x.diagonal() if type(x) is np.ndarray else np.diag(x)))


@functools.lru_cache(64)
def _triangle(rows: int, columns: int, diagonal: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Where the lower triangle of a small matrix is, and a zero."""
    return np.tri(rows, columns, diagonal, bool), np.zeros((), dtype)


def _is_small(x: Any) -> bool:
    return type(x) is np.ndarray and x.ndim > 1 and x.shape[-1] * x.shape[-2] <= 4096


def tril(x: Any, diagonal: int = 0) -> Any:
    if not _is_small(x):
        return np.tril(x, diagonal)
    kept, zero = _triangle(*x.shape[-2:], diagonal, x.dtype)
    return np.where(kept, x, zero)


def triu(x: Any, diagonal: int = 0) -> Any:
    if not _is_small(x):
        return np.triu(x, diagonal)
    left_out, zero = _triangle(*x.shape[-2:], diagonal - 1, x.dtype)
    return np.where(left_out, zero, x)


def indicator(condition: Any, like: Any) -> Any:
    """1 where the condition holds, else 0, in the dtype of `like`."""
    return condition.astype(like.dtype)


def zeros_like(x: Any, shape: tuple[int, ...] | None = None) -> Any:
    if type(x) is np.ndarray and x.flags.c_contiguous:  # the same in a fifth of the time
        return np.zeros(x.shape if shape is None else shape, x.dtype)
    return np.zeros_like(x, shape=shape)


def ones_like(x: Any, shape: tuple[int, ...] | None = None) -> Any:
    if type(x) is np.ndarray and x.flags.c_contiguous:  # as in `zeros_like`
        out = np.empty(x.shape if shape is None else shape, x.dtype)
        out.fill(1)
        return out
    return np.ones_like(x, shape=shape)


def eye_like(x: Any, n: int) -> Any:
    """The n by n identity in the dtype of `x`."""
    out = zeros_like(x, (n, n))
    if type(out) is np.ndarray:
        out.ravel("K")[::n + 1] = 1  # a view also in column-major order
    else:
        out[np.arange(n), np.arange(n)] = 1
    return out
