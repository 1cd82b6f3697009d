"""Blocks of index sets: integer arrays whose last axes are those of an array, and whose other axes, if any, list members of its elements' sets."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["LIMIT", "alone", "compact", "keys", "merge", "same", "spread"]

Blocks = tuple[np.ndarray, ...]
Shape = tuple[int, ...]
LIMIT = 1 << 22  # entries that a block may have; beyond it a larger set that takes less room stands in


def compact(b: np.ndarray) -> np.ndarray:
    """A block without its repetitions."""
    return b[tuple(slice(0, 1) if not s else slice(None) for s in b.strides)] if 0 in b.strides else b


def spread(b: np.ndarray, shape: Shape, nd: int, numbers: np.ndarray) -> np.ndarray:
    """A block with `nd` axes of elements broadcast to a shape, as a view."""
    lead, extra = b.ndim - nd, len(shape) - nd
    members, old = b.shape[:lead], b.shape[lead:]
    if b.base is not numbers or not b.size:
        return np.broadcast_to(b.reshape((*members, *(1,) * extra, *old)), (*members, *shape))
    strides = tuple(0 if n == 1 and m != 1 else s for n, m, s in zip(old, shape[extra:], b.strides[lead:]))
    return np.ndarray((*members, *shape), b.dtype, numbers, b.item(0) * b.itemsize, (*b.strides[:lead], *(0,) * extra, *strides))


def same(a: np.ndarray, b: np.ndarray, numbers: np.ndarray) -> bool:
    """Whether two blocks hold the same sets."""
    if a is b:
        return True
    if a.shape != b.shape or a.item(0) != b.item(0):
        return False
    if a.base is numbers and b.base is numbers:
        return a.strides == b.strides
    return a.item(-1) == b.item(-1) and a.size <= LIMIT and bool((a == b).all())


def alone(a: np.ndarray, b: np.ndarray, nd: int) -> tuple[np.ndarray, np.ndarray]:
    """Two blocks without the axes of elements along which neither changes."""
    index = tuple(slice(0, 1) if not a.strides[i] and not b.strides[i] else slice(None) for i in range(-nd, 0))
    return a[(..., *index)], b[(..., *index)]


def merge(blocks: Blocks, nd: int) -> np.ndarray:
    """Several blocks as one, with one axis of members."""
    if len(blocks) == 1 and blocks[0].ndim == nd + 1:
        return blocks[0]
    shape = blocks[0].shape[blocks[0].ndim - nd:]
    kept = tuple(i for i in range(-nd, 0) if any([b.strides[i] for b in blocks]))
    index = (..., *(slice(None) if i in kept else slice(0, 1) for i in range(-nd, 0)))
    small = tuple(n if i in kept else 1 for i, n in zip(range(-nd, 0), shape))
    joined = np.concatenate([b[index].reshape(-1, *small) for b in blocks])
    return np.broadcast_to(joined, (len(joined), *shape))


def outer(a: np.ndarray, b: np.ndarray, nd: int) -> tuple[np.ndarray, np.ndarray]:
    """Two blocks with axes for the members of both, to be broadcast."""
    la, lb = a.ndim - nd, b.ndim - nd
    return a.reshape((*a.shape[:la], *(1,) * lb, *a.shape[la:])), b


def keys(a: np.ndarray, b: np.ndarray, nd: int, count: int) -> np.ndarray:
    """The keys of the pairs of two blocks."""
    rows, columns = np.broadcast_arrays(*outer(a, b, nd))
    kept = (rows >= 0) & (columns >= 0)
    return rows[kept] * count + columns[kept]
