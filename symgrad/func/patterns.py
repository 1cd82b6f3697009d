"""Sparsity patterns: the positions of the entries of a sparse matrix, from pairs of inputs that interact; and colourings of its columns.

A product of a matrix with a vector of zeros and ones is the sum of the columns where the vector has a one. Columns without a common row can be
recovered from their sum, so they may have the same colour: one product per colour determines the matrix. A symmetric matrix needs fewer, since
an entry may be read at (i, j) or at (j, i): a star colouring. The colouring here gives *hubs*, the vertices with most neighbours, separate
colours, and colours the rest by columns; an entry in the row of a hub and the column of another vertex is read at the transposed position.

Sources: A. R. Curtis, M. J. D. Powell, J. K. Reid, "On the estimation of sparse Jacobian matrices" (1974); T. F. Coleman, J. J. Moré, "Estimation of
sparse Hessian matrices and graph coloring problems" (1984); A. H. Gebremedhin, F. Manne, A. Pothen, "What color is your Jacobian?" (2005);
M. T. Jones, P. E. Plassmann, "A parallel graph coloring heuristic" (1993).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched
from symgrad.carriers.guarding import not_finite, unselected
from symgrad.carriers.sets import Dense, Dependence, Inputs, broadcast, union
from symgrad.graph.node import Node

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


def _nonzero_sets(x: Dependence, factor: Any, steep: bool) -> Dependence:
    """The sets of the elements with a nonzero factor; all sets for a batched factor, and in a graph that is steep."""
    return x if steep or type(factor) is Batched else x.masked(np.asarray(factor) != 0)


def is_steep(node: Node) -> bool:
    """Whether an operation has an infinite derivative at its values, or is a length that is 0, whose second derivative is infinite."""
    op, args = node.op, node.args
    if not node.parents or args is None or type(node.value) is Batched:
        return False
    if op.square and not np.all(node.value):
        return True
    return op.kind == "elementwise" and any([slope is not None and bool(not_finite(numeric, slope)) for _, slope in _slopes(node)])


def _slopes(node: Node) -> list[tuple[int, Any]]:
    """The arguments on which the value of an elementwise op depends, and the derivatives by them; None for the derivative 1.

    At the end of a region that an op selects, as relu at 0, the derivative 0 is a convention, and 1 stands in its place.
    """
    op, found = node.op, []
    ones = np.ones(tuple(node.value.shape))
    with np.errstate(all="ignore"):
        for i, p in enumerate(node.parents):
            if p is not None and (callable(op.partials[i]) or op.partials[i] not in (None, 0)):
                needs = tuple([q if k == i else None for k, q in enumerate(node.parents)])
                slope = op.vjp(numeric, ones, node.value, node.args, needs)[i]  # type: ignore[misc]
                if op.selects and type(slope) is not Batched and not np.all(slope):
                    slope = np.where((slope == 0) & np.logical_not(unselected(numeric, op, i, node.value, node.args or ())), 1.0, slope)
                found.append((i, slope))
    return found


def local_dependence(by_kind: Callable[..., Any], steep: bool, weights: dict[Node, Any] | None = None) -> Callable[..., Any]:
    """The function that computes the dependence of elementwise ops at their values.

    `by_kind` computes it for an op without a rule of index sets, and `weights` are the derivatives of the root by the value of every node.
    An argument contributes where its partial derivative is not 0, and interactions count where the root depends on the value. In a graph that is
    `steep` somewhere everything counts, as 0 · ∞ is not 0.
    """
    def locally(node: Node, found: Sequence[Dependence | None], read: Callable[..., Any] | None) -> Dependence | None:
        op, args, count, shape = node.op, node.args, len(node.parents), tuple(node.value.shape)
        assert args is not None
        filled = [a if d is None else broadcast(d, shape) for d, a in zip(found, args)]
        weight = None if weights is None else weights.get(node)
        if weights is None or weight is not None:
            effective = [_nonzero_sets(d, weight, steep) if type(d) is Dependence and weight is not None else d for d in filled]
            if read is None:
                by_kind(next(d for d in found if d is not None).inputs, op, [d if type(d) is Dependence else None for d in effective], shape)
            else:
                read(*effective, *args[count:])
        moving = [(d, slope) for i, slope in _slopes(node) if type(d := filled[i]) is Dependence]
        return union(*[d if slope is None else _nonzero_sets(d, slope, steep) for d, slope in moving]) if moving else None

    return locally


MAX_COMPARED = 1 << 12  # the most entries for which two colourings are compared
MAX_SEQUENTIAL = 1 << 16  # the most entries for which the vertices are coloured sequentially
WORD_BITS = 62  # the number of colours in the bits of an integer


@dataclass(frozen=True)
class Colouring:
    """A colour for each column, and a mask of the columns that are hubs (None if there are none)."""

    colours: Array
    count: int
    hubs: Array | None = None

    def seeds(self) -> Array:
        """The vectors of zeros and ones to multiply by, one for each colour."""
        n = len(self.colours)
        out = np.zeros((self.count, n))
        if self.count:
            out.reshape(-1)[self.colours * n + np.arange(n)] = 1.0
        return out

    def places(self, pattern: SparsityPattern) -> Array:
        """The positions of the pattern's entries in the flattened products, which have one row for each colour."""
        rows, columns, length = pattern.rows, pattern.columns, pattern.shape[0]
        if self.hubs is None:
            out = (self.colours * length).take(columns)
            out += rows
            return out
        turned = self.hubs[rows] & ~self.hubs[columns]
        return np.where(turned, self.colours[rows] * length + columns, self.colours[columns] * length + rows)


def colour_columns(pattern: SparsityPattern, width: int | None = None) -> Colouring:
    """Colours of the columns such that no two columns of one colour share a row. `width` is the largest distance of two entries of one row, plus one.

    Colour j mod p is tried first, with p the number of entries in the fullest row, or slightly more: this is optimal for matrices that are diagonal,
    banded or made of equal blocks. Otherwise every column gets the first free colour: sequentially if there are few
    entries, else in rounds of columns without a common row, by random priorities with a fixed seed.

    >>> import numpy as np
    >>> from symgrad.func.patterns import SparsityPattern
    >>> rows, columns = np.eye(6, k=1).nonzero()
    >>> colour_columns(SparsityPattern(rows, columns, (6, 6))).count
    1
    """
    n, most = pattern.shape[1], pattern.most
    if not most:
        return Colouring(np.zeros(n, np.int64), 0)
    found = None
    for p in range(most, min(most + 4, n)):
        if width is not None and width <= p or _is_cycle_valid(pattern, p):
            found = Colouring(_cyclic_colours(n, p), p)
            break
    if found is None and width is not None and width <= most + most // 2:
        found = Colouring(_cyclic_colours(n, width), width)
    if found is not None and (found.count == most or pattern.nonzeros > MAX_COMPARED):
        return found
    colours = _colour_sequentially(pattern) if pattern.nonzeros <= MAX_SEQUENTIAL or most > WORD_BITS // 2 else _colour_in_rounds(pattern)
    count = int(colours.max(initial=-1)) + 1
    return found if found is not None and found.count <= count else Colouring(colours, count)


def _cyclic_colours(n: int, p: int) -> Array:
    """0, 1, ..., p - 1, 0, 1, ..."""
    if p == 1:
        return np.zeros(n, np.int64)
    return np.broadcast_to(np.arange(p), (-(-n // p), p)).reshape(-1)[:n]


def _is_cycle_valid(pattern: SparsityPattern, p: int) -> bool:
    """Whether no row has two entries in columns that are equal modulo p."""
    size = pattern.shape[0] * p
    if size > 64 * pattern.nonzeros:
        return False
    seen = np.zeros(size, bool)
    seen[pattern.rows.astype(np.int64) * p + _cyclic_colours(pattern.shape[1], p)[pattern.columns]] = True
    return int(np.count_nonzero(seen)) == pattern.nonzeros


def _colour_sequentially(pattern: SparsityPattern) -> Array:
    """The first free colour for each column, those with most entries first; the colours taken in a row are the bits of a number."""
    turned = pattern.transposed()
    taken, rows, starts = [0] * pattern.shape[0], turned.columns.tolist(), turned.starts.tolist()
    out = np.zeros(pattern.shape[1], np.int64)
    for j in np.argsort(-turned.counts, kind="stable").tolist():
        here, used = rows[starts[j]:starts[j + 1]], 0
        for i in here:
            used |= taken[i]
        bit = ~used & (used + 1)
        for i in here:
            taken[i] |= bit
        out[j] = bit.bit_length() - 1
    return out


def _colour_in_rounds(pattern: SparsityPattern) -> Array:
    """The colouring in rounds: in each round the columns with the highest priority in all their rows get their first free colour."""
    n_rows, n = pattern.shape
    turned = pattern.transposed()
    out = np.zeros(n, np.int64)
    taken = np.zeros(n_rows, np.int64)
    rows, columns = turned.columns, turned.rows  # column by column
    priority = np.lexsort((np.random.default_rng(0).permutation(n), turned.counts)).argsort() + 1
    while len(rows):
        highest = np.zeros(n_rows, np.int64)
        np.maximum.at(highest, rows, priority[columns])
        starts = np.concatenate([[0], (columns[1:] != columns[:-1]).nonzero()[0] + 1])
        which = columns[starts]
        wins = np.logical_and.reduceat(highest[rows] == priority[columns], starts)
        used = np.bitwise_or.reduceat(taken[rows], starts)[wins]
        bits = ~used & (used + 1)
        if (bits >> WORD_BITS).any():
            return _colour_sequentially(pattern)
        chosen = np.zeros(n, np.int64)
        chosen[which[wins]] = bits
        out[which[wins]] = np.log2(bits.astype(float)).astype(np.int64)
        new = chosen[columns]
        mine = new > 0
        taken[rows[mine]] |= new[mine]  # at most one column of a row is coloured per round
        rows, columns = rows[~mine], columns[~mine]
    return out


def colour_symmetric(pattern: SparsityPattern, width: int | None = None) -> Colouring:
    """A star colouring of a symmetric pattern: each hub has a separate colour, and the rest is coloured by columns.

    The number of hubs minimises the hubs plus the entries in the fullest row of the rest, so that an arrow needs two colours.

    >>> import numpy as np
    >>> from symgrad.func.patterns import SparsityPattern
    >>> arrow = np.eye(9); arrow[0] = arrow[:, 0] = 1
    >>> colour_symmetric(SparsityPattern(*arrow.nonzero(), (9, 9))).count
    2
    """
    n, most = pattern.shape[0], pattern.most
    hubs = _hubs(pattern) if most > 2 and (width is None or width > most) else None
    if hubs is None:
        return colour_columns(pattern, width)
    kept = ~(hubs[pattern.rows] | hubs[pattern.columns])
    rest = colour_columns(SparsityPattern(pattern.rows[kept], pattern.columns[kept], pattern.shape))
    colours, count = np.zeros(n, np.int64), int(np.count_nonzero(hubs))
    used, colours[~hubs] = np.unique(rest.colours[~hubs], return_inverse=True)
    colours[hubs] = len(used) + np.arange(count)
    return Colouring(colours, len(used) + count, hubs)


def _hubs(pattern: SparsityPattern) -> Array | None:
    """The mask of the vertices that are hubs; None if there are none."""
    counts = pattern.counts
    falling = np.sort(counts)[::-1]
    best, found = pattern.most, None
    drops = (falling[:-1] - falling[1:])[:max(pattern.most, 1)]
    tried = np.argsort(-drops, kind="stable")[:6] + 1
    order = np.argsort(-counts, kind="stable")
    for h in sorted({*tried[drops[tried - 1] > 0].tolist()}):
        if h >= best:
            continue
        hubs = np.zeros(len(counts), bool)
        hubs[order[:h]] = True
        kept = ~(hubs[pattern.rows] | hubs[pattern.columns])
        cost = h + int(np.bincount(pattern.rows[kept], minlength=1).max(initial=0))
        if cost < best:
            best, found = cost, hubs
    return found
