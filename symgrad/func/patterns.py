"""Sparsity patterns: the positions of the entries of a sparse matrix, from pairs of inputs that interact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from symgrad.carriers.sets import Dense, Inputs

__all__ = ["Grid", "SparsityPattern", "entries", "grids", "pattern_name"]

Array = np.ndarray
MAX_TINY_INPUTS = 16  # the most inputs for which only the number of colours decides whether a matrix is dense
MIN_MASK = 1 << 16  # the size of a mask of positions that may always be scanned for entries
MAX_PAIRS = 1 << 26  # the most pairs that are stored explicitly


@dataclass(frozen=True)
class SparsityPattern:
    """The positions where a sparse matrix may be nonzero: the rows and columns of its entries, in row order."""

    rows: Array
    columns: Array
    shape: tuple[int, int]

    @property
    def nonzeros(self) -> int:
        """The number of entries."""
        return len(self.rows)

    @cached_property
    def counts(self) -> Array:
        """The number of entries in each row."""
        return np.bincount(self.rows, minlength=self.shape[0])

    @cached_property
    def most(self) -> int:
        """The largest number of entries in a row."""
        return int(self.counts.max(initial=0))

    @cached_property
    def starts(self) -> Array:
        """The number of the first entry of each row, and the number of entries."""
        out = np.zeros(self.shape[0] + 1, np.int32 if self.nonzeros < 1 << 31 else np.int64)
        np.cumsum(self.counts, out=out[1:])
        return out

    @cached_property
    def bandwidth(self) -> int:
        """The largest distance of an entry from the diagonal."""
        if not self.nonzeros:
            return 0
        off = self.columns - self.rows
        return int(max(off.max(), -off.min()))

    def transposed(self) -> SparsityPattern:
        """The pattern of the transpose."""
        order = np.lexsort((self.rows, self.columns))
        return SparsityPattern(self.columns[order], self.rows[order], self.shape[::-1])


def pattern_name(pattern: SparsityPattern, hubs: bool = False) -> str:
    """The kind of a square pattern: "diagonal", "block diagonal", "tridiagonal", "banded", "arrow" or "sparse"."""
    columns, (m, n) = pattern.columns, pattern.shape
    if m == n and not pattern.bandwidth:
        return "diagonal"
    if m == n and pattern.nonzeros and (pattern.counts > 0).all():
        starts = pattern.starts
        first, last = columns[starts[:-1]], columns[starts[1:] - 1]
        if ((first[first] == first) & (last[first] == last) & (last - first + 1 == pattern.counts)).all() and pattern.most < n:
            return "block diagonal"
    if m == n and pattern.bandwidth == 1:
        return "tridiagonal"
    if pattern.bandwidth <= max(2, min(m, n) // 8):
        return "banded"
    return "arrow" if hubs else "sparse"


# From pairs to entries

Axes = tuple[tuple[int, int, int], ...]  # for each axis its length, and its steps in rows and columns
Grid = tuple[int, int, Axes]  # the row and the column of the first entry of a set, and its axes


def grids(inputs: Inputs, symmetric: bool) -> frozenset[Grid]:
    """The pairs of blocks with constant strides, as sets of entries with constant steps."""
    out = set()
    for row, column, shape, steps, other_shape, other_steps, nd in inputs.affine:
        lead, other = len(shape) - nd, len(other_shape) - nd
        axes = [(n, s >> 3, 0) for n, s in zip(shape[:lead], steps) if n > 1]
        axes += [(n, 0, s >> 3) for n, s in zip(other_shape[:other], other_steps) if n > 1]
        axes += [(n, s >> 3, t >> 3) for n, s, t in zip(shape[lead:], steps[lead:], other_steps[other:]) if n > 1 and (s or t)]
        out.add((row, column, tuple(axes)))
        if symmetric and (row != column or any(s != t for _, s, t in axes)):
            out.add((column, row, tuple([(n, t, s) for n, s, t in axes])))
    return frozenset(out)


def _keys_of(grid: Grid, columns: int) -> np.ndarray:
    """The keys row * columns + column of a set of entries."""
    row, column, axes = grid
    out = np.array([row * columns + column])
    for n, s, t in axes:
        out = (out[:, None] + np.arange(n) * (s * columns + t)).ravel()
    return out


def _unique_keys(keys: np.ndarray) -> np.ndarray:
    keys.sort()
    return keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if keys.size else keys


def entries(grids: frozenset[Grid], keys: Sequence[np.ndarray], rows: int, columns: int) -> tuple[np.ndarray, np.ndarray, int]:
    """The rows and columns of all entries, in order, and the largest distance of two in one row, plus one. Raises Dense if there are too many."""
    weight, low, high = 0, columns, -rows
    for row, column, axes in grids:
        size, least = 1, column - row
        most = least
        for n, s, t in axes:
            size *= n
            step = (t - s) * (n - 1)
            least, most = least + min(step, 0), most + max(step, 0)
        if columns > MAX_TINY_INPUTS and 4 * size > rows * columns and len(axes) <= 2 and all(not s or not t for _, s, t in axes):
            raise Dense
        weight += size
        low, high = min(low, least), max(high, most)
    if weight > MAX_PAIRS:
        raise Dense
    width = high - low + 1
    if keys or rows * width > max(MIN_MASK, 16 * weight):
        found = _unique_keys(np.concatenate([*keys, *(_keys_of(grid, columns) for grid in grids)]))
        at = found // columns
        column_at = found - at * columns
        off = column_at - at
        return at, column_at, int(off.max() - off.min()) + 1 if off.size else 1
    if not grids:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), 1
    band = np.zeros(rows * width, bool)  # entry (i, j) at i * width + (j - i - low)
    for row, column, axes in grids:
        start = row * (width - 1) + column - low
        steps = [s * (width - 1) + t for _, s, t in axes]
        if len(axes) == 1 and steps[0] > 0:
            band[start:start + steps[0] * (axes[0][0] - 1) + 1:steps[0]] = True
        elif axes:
            np.ndarray([n for n, _, _ in axes], bool, band, start, steps)[...] = True
        else:
            band[start] = True
    (places,) = band.nonzero()
    if width == 1:
        return places, places + low, 1
    if band.size < 1 << 31:  # int32 and in place, since the allocation of large arrays dominates the cost
        places = places.astype(np.int32)
    at = places // places.dtype.type(width)
    off = at * at.dtype.type(width - 1)
    off -= low
    places -= off
    return at, places, width
