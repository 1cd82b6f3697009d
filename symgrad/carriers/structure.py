"""The functions of a carrier that move, add and multiply elements, common to floats, SymPy expressions and many-digit floats."""

from __future__ import annotations

from collections.abc import Sequence
from operator import add, mul, neg, pow, sub
from operator import truediv as div
from typing import Any

import numpy as np

from symgrad.carriers.batched import Batched, batch, unbatch
from symgrad.carriers.duck import DuckArray
from symgrad.carriers.recorded import Recorded

__all__ = [
    "add", "batch", "broadcast_to", "cat", "copy", "cumprod", "cumsum", "diag", "diagonal", "diagonal_place", "div", "dot", "einsum", "eye_like",
    "flip", "getitem", "indicator", "matmul", "mm", "mul", "mv", "neg", "ones_like", "permute", "place", "pow", "prod", "put", "reshape", "roll",
    "stack", "strided", "strided_add", "strided_put", "sub", "sum", "sum_to_size", "trace", "tril", "triu", "unbatch", "unfold", "view",
    "zeros_like",
]

Axes = int | tuple[int, ...] | None
float64 = np.dtype(np.float64)


def copy(x: Any, order: str | tuple[int, ...] = "K") -> Any:
    """A copy with the memory order of `x` ("K"), in row-major order ("C"), or row-major for a permutation of the axes."""
    if isinstance(order, tuple):
        return x.transpose(order).copy("C").transpose(tuple(order.index(i) for i in range(x.ndim)))
    return x.copy(order)


def sum(x: Any, dim: Axes = None, keepdim: bool = False) -> Any:
    if type(x) is np.float64:
        return +x  # a new object, since saved values are compared by identity
    if x.dtype.kind == "V":  # sums of bfloat16 are computed in float32
        return np.add.reduce(x, axis=dim, keepdims=keepdim, dtype=np.float32).astype(x.dtype)
    return np.add.reduce(x, axis=dim, keepdims=keepdim)


def prod(x: Any, dim: Axes = None, keepdim: bool = False) -> Any:
    return np.multiply.reduce(x, axis=dim, keepdims=keepdim)


def cumsum(x: Any, dim: int) -> Any:
    if type(x) is np.ndarray and x.ndim:
        return x.cumsum(dim)  # unlike np.cumsum, the method attributes an overflow warning to this module, where it is filtered
    return np.cumsum(x, axis=dim) if x.ndim else x + 0


def cumprod(x: Any, dim: int) -> Any:
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
    extra = g.ndim - len(shape)
    stretched = tuple([i + extra for i, n in enumerate(shape) if n == 1 and g.shape[i + extra] != 1])
    if extra == 1 and not stretched:
        return np.add.reduce(g, 0)
    out = np.add.reduce(g, axis=tuple(range(extra)) + stretched)
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
    out = zeros_like(x, x.shape) + x if not x.ndim else x.copy()
    out[index] = values
    return out


def strided(x: Any, geometry: Any) -> Any:
    """The elements of a view of `x`."""
    return x.reshape(-1)[geometry.positions]


def strided_put(x: Any, piece: Any, geometry: Any) -> Any:
    """A copy of `x` with values written to the elements of a view."""
    out = zeros_like(x, (x.size,)) + x.reshape(-1)
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
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is Ellipsis or isinstance(part, (slice, int, np.integer)) and not isinstance(part, bool)
               for part in parts)


def cat(xs: Sequence[Any], dim: int = 0) -> Any:
    return np.concatenate(xs, axis=dim)


def stack(xs: Sequence[Any], dim: int = 0) -> Any:
    return np.stack(xs, axis=dim)


def flip(x: Any, dims: tuple[int, ...]) -> Any:
    return np.flip(x, dims).copy()


def roll(x: Any, shifts: Any, dims: Any) -> Any:
    return np.roll(x, shifts, dims)


def matmul(a: Any, b: Any) -> Any:
    y = np.matmul(a, b)
    return y.astype(a.dtype) if a.dtype.kind == "V" else y  # NumPy multiplies bfloat16 in float32


def mm(a: Any, b: Any) -> Any:
    """The product of vectors and matrices; for plain floats by the method with the least overhead."""
    return a.dot(b) if type(a) is type(b) is np.ndarray and a.dtype is float64 is b.dtype else matmul(a, b)


mv = dot = mm


def einsum(equation: str, xs: Sequence[Any]) -> Any:
    if xs[0].dtype.kind == "V":  # sums of bfloat16 are computed in float32
        return einsum(equation, [x.astype(np.float32) for x in xs]).astype(xs[0].dtype)
    if len(xs) == 1 and not isinstance(xs[0], DuckArray):
        return np.array(np.einsum(equation, *xs))
    return np.einsum(equation, *xs, optimize=len(xs) > 2)


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
    return np.add.reduce(np.diag(x))


def tril(x: Any, diagonal: int = 0) -> Any:
    return np.tril(x, diagonal)


def triu(x: Any, diagonal: int = 0) -> Any:
    return np.triu(x, diagonal)


def indicator(condition: Any, like: Any) -> Any:
    """1 where the condition holds, else 0, in the dtype of `like`."""
    return condition.astype(like.dtype)


def zeros_like(x: Any, shape: tuple[int, ...] | None = None) -> Any:
    if type(x) is np.ndarray and x.flags.c_contiguous:  # the same in a fifth of the time
        return np.zeros(x.shape if shape is None else shape, x.dtype)
    return np.zeros_like(x, shape=shape)


def ones_like(x: Any, shape: tuple[int, ...] | None = None) -> Any:
    return np.ones_like(x, shape=shape)


def eye_like(x: Any, n: int) -> Any:
    """The n by n identity in the dtype of `x`."""
    out = zeros_like(x, (n, n))
    out[np.arange(n), np.arange(n)] = 1
    return out
