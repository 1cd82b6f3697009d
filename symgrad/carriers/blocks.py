"""Blocks of index sets: integer arrays whose last axes are those of an array, and whose other axes list the members of each element's set."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

Blocks = tuple[np.ndarray, ...]
Shape = tuple[int, ...]
LIMIT = 1 << 22  # the most entries of a block; a larger block is replaced by a superset that needs less memory
BITS = 1 << 24  # the most elements of one mask


def broadcast_shape(a: Shape, b: Shape) -> Shape:
    """The shape to which two broadcast."""
    return a if a == b or not b else b if not a else np.broadcast_shapes(a, b)


def compact(b: np.ndarray) -> np.ndarray:
    """A block with its stride-0 axes reduced to size 1."""
    return b[tuple(slice(0, 1) if not s else slice(None) for s in b.strides)] if 0 in b.strides else b


def broadcast_block(b: np.ndarray, shape: Shape, nd: int, numbers: np.ndarray) -> np.ndarray:
    """A block with `nd` axes of elements broadcast to a shape, as a view."""
    lead, extra = b.ndim - nd, len(shape) - nd
    members, old = b.shape[:lead], b.shape[lead:]
    if b.base is not numbers or not b.size:
        return np.broadcast_to(b.reshape((*members, *(1,) * extra, *old)), (*members, *shape))
    strides = tuple(0 if n == 1 and m != 1 else s for n, m, s in zip(old, shape[extra:], b.strides[lead:]))
    return np.ndarray((*members, *shape), b.dtype, numbers, b.item(0) * b.itemsize, (*b.strides[:lead], *(0,) * extra, *strides))


def is_same_block(a: np.ndarray, b: np.ndarray, numbers: np.ndarray) -> bool:
    """Whether two blocks hold the same sets."""
    if a is b:
        return True
    if a.shape != b.shape or a.item(0) != b.item(0):
        return False
    if a.base is numbers and b.base is numbers:
        return a.strides == b.strides
    return a.item(-1) == b.item(-1) and a.size <= LIMIT and bool((a == b).all())


def without_constant_axes(a: np.ndarray, b: np.ndarray, nd: int) -> tuple[np.ndarray, np.ndarray]:
    """Two blocks without the element axes along which both are constant."""
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


def keys(a: np.ndarray, b: np.ndarray, nd: int, count: int) -> Iterator[np.ndarray]:
    """The keys row * count + column of the pairs of two blocks, computed in chunks of elements."""
    rows, columns = np.broadcast_arrays(*outer(a, b, nd))
    axis = rows.ndim - nd + int(np.argmax(rows.shape[rows.ndim - nd:])) if nd else 0
    parts = min(-(-rows.size // LIMIT), rows.shape[axis]) if rows.ndim else 1
    for some, others in zip(np.array_split(rows, parts, axis), np.array_split(columns, parts, axis)) if parts > 1 else [(rows, columns)]:
        out = some * count
        out += others
        yield out[(some >= 0) & (others >= 0)]


def mask_of(table: np.ndarray, size: int, count: int) -> np.ndarray:
    """A block of `size` elements as a mask of the inputs that each element depends on; the last column, for -1, is always true."""
    out = np.zeros((size, count + 1), bool)
    out[np.arange(size), table.reshape(-1, size)] = True
    out[:, -1] = True
    return out


def contains_members(mask: np.ndarray, table: np.ndarray, size: int) -> bool:
    """Whether the sets of a mask contain those of a block."""
    return bool(mask[np.arange(size), table.reshape(-1, size)].all())


def deduplicate(block: np.ndarray, nd: int, count: int) -> np.ndarray:
    """The same sets without repeated members, with one member axis of minimal length."""
    shape = block.shape[block.ndim - nd:]
    size = math.prod(shape)
    if size * count > min(BITS, 256 * block.size):
        table = np.sort(block.reshape(-1, size), axis=0)
        table[1:][table[1:] == table[:-1]] = -1
        table.sort(axis=0)
        return table[(table < 0).all(axis=1).sum():].reshape(-1, *shape)
    mask = mask_of(block, size, count)
    mask[:, -1] = False
    (places,) = mask.reshape(-1).nonzero()
    at = places // (count + 1)
    counts = np.bincount(at, minlength=size)
    table = np.full((counts.max(initial=0), size), -1)
    table[np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts), at] = places - at * (count + 1)
    return table.reshape(-1, *shape)
