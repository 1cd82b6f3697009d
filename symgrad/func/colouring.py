"""Colourings of sparse matrices, by which a few matrix-vector products determine all entries.

A product of a matrix with a vector of zeros and ones is the sum of the columns where the vector has a one. Columns without a common row can be
recovered from their sum, so they may have the same colour: one product per colour determines the matrix. A symmetric matrix needs fewer, since
an entry may be read at (i, j) or at (j, i): a star colouring. The colouring here gives *hubs*, the vertices with most neighbours, separate
colours, and colours the rest by columns; an entry in the row of a hub and the column of another vertex is read at the transposed position.

Sources: A. R. Curtis, M. J. D. Powell, J. K. Reid, "On the estimation of sparse Jacobian matrices" (1974); T. F. Coleman, J. J. Moré, "Estimation of
sparse Hessian matrices and graph coloring problems" (1984); A. H. Gebremedhin, F. Manne, A. Pothen, "What color is your Jacobian?" (2005);
M. T. Jones, P. E. Plassmann, "A parallel graph coloring heuristic" (1993).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symgrad.func.patterns import SparsityPattern

__all__ = ["Colouring", "colour_columns", "colour_symmetric"]

Array = np.ndarray
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
