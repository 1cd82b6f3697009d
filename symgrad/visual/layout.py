"""Boxes in rows: a layered drawing of an acyclic graph.

Each edge leads to a later row; one that passes rows has a bend in each of them. The order within rows is improved by barycentres (Sugiyama, Tagawa
and Toda 1981), and positions by least squares with given distances (isotonic regression).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from itertools import groupby

__all__ = ["place", "ranked"]

GAP, BEND = 26.0, 10.0  # between boxes of a row; the width of a bend
SWEEPS = 12
Edge = tuple[int, int]


def ranked(count: int, edges: Sequence[Edge]) -> list[int]:
    """The row of each box: the longest path to it, or just above its first successor if that does not lengthen its edges in sum.

    Boxes are numbered so that each edge leads to a larger number.

    >>> ranked(4, [(0, 2), (2, 3), (1, 3)])
    [0, 1, 1, 2]
    """
    rank, balance = [0] * count, [0] * count
    for a, b in sorted(edges, key=lambda edge: edge[1]):
        rank[b] = max(rank[b], rank[a] + 1)
        balance[a] += 1
        balance[b] -= 1
    for a, uses in groupby(sorted(edges, reverse=True), key=lambda edge: edge[0]):
        if balance[a] >= 0:
            rank[a] = min([rank[b] for _, b in uses]) - 1
    return rank


def place(widths: Mapping[int, float], rank: Mapping[int, int],
          edges: Sequence[Edge]) -> tuple[dict[int, float], dict[Edge, list[tuple[float, int]]]]:
    """The middle of each box, and for each edge its bends as pairs of a position and a row; edges lead to rows further down.

    >>> place({0: 40.0, 1: 40.0, 2: 40.0}, {0: 0, 1: 1, 2: 1}, [(0, 1), (0, 2)])[0]
    {0: 53.0, 1: 20.0, 2: 86.0}
    """
    width = dict(widths)
    rows: list[list[int]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    for i in rank:
        rows[rank[i]].append(i)
    above: dict[int, list[int]] = {i: [] for i in rank}
    below: dict[int, list[int]] = {i: [] for i in rank}
    chains: dict[Edge, list[int]] = {}
    for a, b in edges:
        chain = chains[a, b] = []
        for row in range(rank[a] + 1, rank[b]):
            bend = -1 - len(width)  # numbers that no box has
            chain.append(bend)
            width[bend] = BEND
            rows[row].append(bend)
            above[bend], below[bend] = [], []
        for p, q in zip([a, *chain], [*chain, b]):
            below[p].append(q)
            above[q].append(p)
    rows = _without_crossings(rows, above, below)
    x = _positions(rows, width, above, below)
    left = min([x[i] - width[i] / 2 for i in width], default=0.0)
    bends = {edge: [(x[b] - left, rank[edge[0]] + 1 + k) for k, b in enumerate(chain)] for edge, chain in chains.items()}
    return {i: x[i] - left for i in widths}, bends


def _without_crossings(rows: list[list[int]], above: Mapping[int, list[int]], below: Mapping[int, list[int]]) -> list[list[int]]:
    """The rows in the order with the fewest crossings of several that are tried."""
    best, fewest = rows, _crossings(rows, below)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        rows = [list(row) for row in rows]
        down = sweep % 2 == 0
        for r in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
            neighbours, at = (above, rows[r - 1]) if down else (below, rows[r + 1])
            place_of = {i: k for k, i in enumerate(at)}
            own = {i: k * len(at) / len(rows[r]) for k, i in enumerate(rows[r])}
            rows[r].sort(key=lambda i: sum([place_of[j] for j in neighbours[i]]) / len(neighbours[i]) if neighbours[i] else own[i])  # noqa: B023
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _crossings(rows: Sequence[Sequence[int]], below: Mapping[int, list[int]]) -> int:
    total = 0
    for row, following in zip(rows, rows[1:]):
        place_of = {i: k for k, i in enumerate(following)}
        ends: list[int] = []
        for i in row:
            places = sorted([place_of[j] for j in below[i]])
            total += sum([len(ends) - bisect_right(ends, k) for k in places])
            for k in places:
                insort(ends, k)
    return total


def _positions(rows: Sequence[Sequence[int]], width: Mapping[int, float], above: Mapping[int, list[int]],
               below: Mapping[int, list[int]]) -> dict[int, float]:
    """The middle of each box and bend: near those it is joined to, in the order of its row, with the gaps between boxes."""
    x: dict[int, float] = {}
    for row in rows:
        total = sum([width[i] + GAP for i in row])
        for i in row:
            x[i] = width[i] / 2 - total / 2
            total -= 2 * (width[i] + GAP)
    for sweep in range(SWEEPS):
        both = sweep >= SWEEPS - 4
        for row in rows if sweep % 2 == 0 else reversed(rows):
            near = [(above[i] + below[i] if both else (above if sweep % 2 == 0 else below)[i]) or [i] for i in row]
            pulls = [[4.0 if i < 0 or j < 0 else 1.0 for j in joined] for i, joined in zip(row, near)]  # edges that pass rows are to be straight
            wished = [sum([pull * x[j] for pull, j in zip(own, joined)]) / sum(own) for own, joined in zip(pulls, near)]
            x.update(zip(row, _apart(wished, [width[i] for i in row], list(map(sum, pulls)))))
    return x


def _apart(wished: Sequence[float], widths: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The positions nearest to those wished for (least squares) at which neighbours do not overlap."""
    offsets = [0.0]
    for a, b in zip(widths, widths[1:]):
        offsets.append(offsets[-1] + (a + b) / 2 + GAP)
    blocks: list[tuple[float, float, int]] = []  # the mean, the weight and the number of members
    for wish, offset, weight in zip(wished, offsets, weights):
        mean, total, members = wish - offset, weight, 1
        while blocks and blocks[-1][0] > mean:
            m, w, n = blocks.pop()
            mean, total, members = (m * w + mean * total) / (w + total), w + total, n + members
        blocks.append((mean, total, members))
    means = [mean for mean, _, members in blocks for _ in range(members)]
    return [mean + offset for mean, offset in zip(means, offsets)]
