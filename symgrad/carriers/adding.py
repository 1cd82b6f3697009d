"""Sums of arrays along axes, whose rounding errors do not grow with the number of elements.

NumPy adds in pairs along the axes that are adjacent in memory, and along all others one row after the other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["ROWS", "added"]

ROWS, BLOCK = 128, 32  # the most rows that are added one after the other, and how many of more rows are


def added(x: Any, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
    """The sum along axes; of float16 and bfloat16 in float32, and of many rows by blocks."""
    if x.dtype.char in "eE":
        return added(x.astype(np.float32), axis, keepdims).astype(x.dtype)
    if axis is not None and type(x) is np.ndarray and x.size > 1024 and (x.size > ROWS * x.shape[-1] or not x.flags.c_contiguous):
        x = _shortened(x, {i % x.ndim for i in (axis if isinstance(axis, tuple) else (axis,))})
    return np.add.reduce(x, axis=axis, keepdims=keepdims)


def _shortened(x: np.ndarray, axes: set[int]) -> np.ndarray:
    """An array with the same sums along some axes, of which NumPy adds at most `ROWS` rows one after the other."""
    if len(axes) == x.ndim:
        return x
    rows, step = set(axes), 0
    for stride, i in sorted([(abs(s), -i) for i, (s, n) in enumerate(zip(x.strides, x.shape)) if n > 1]):
        if -i not in axes or not stride or step and stride != step:
            break
        rows.discard(-i)  # it is added in pairs
        step = stride * x.shape[-i]
    shape = [*x.shape]
    for i in sorted(rows):
        if i + 1 in rows and x.strides[i] == x.strides[i + 1] * x.shape[i + 1]:  # as one long axis
            shape[i], shape[i + 1] = 1, shape[i] * shape[i + 1]
    x = x.reshape(shape)
    while math.prod([x.shape[i] for i in rows]) > ROWS:
        longest = max(rows, key=x.shape.__getitem__)
        x = _in_blocks(x, longest)
    return x


def _in_blocks(x: np.ndarray, axis: int) -> np.ndarray:
    """The sums of blocks along an axis, and what is left over."""
    count, before = x.shape[axis], (slice(None),) * axis
    if count <= BLOCK:
        return np.add.reduce(x, axis=axis, keepdims=True)
    end = count // BLOCK * BLOCK
    blocks = x[(*before, slice(end))].reshape((*x.shape[:axis], end // BLOCK, BLOCK, *x.shape[axis + 1:]))
    sums = np.add.reduce(blocks, axis=axis + 1)
    return np.concatenate([sums, x[(*before, slice(end, None))]], axis) if end < count else sums
