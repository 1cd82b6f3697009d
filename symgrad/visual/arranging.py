"""Where the boxes and edges of a picture stand: the graph downwards, and to its right that of the gradients upwards, in the same rows."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from symgrad.visual.boxes import GraphView

HEAD, LINE_HEIGHT, PADDING, MARGIN, ROW_GAP, COLUMN_GAP = 18.0, 15.0, 8.0, 14.0, 36.0, 70.0
NAME_WIDTH, TEXT_WIDTH = 8.0, 6.65  # of a character of the name, and of the other lines
Point = tuple[float, float]
Rectangle = tuple[float, float, float, float]  # left, top, width, height


@dataclass
class EdgeCurve:
    """An edge: a start, and three points for each cubic piece. `kind` is "operand", "used" (of a value in a gradient) or "cotangent"."""

    kind: str
    source: int
    target: int
    points: list[Point]


@dataclass
class Arrangement:
    """The rectangles of boxes, their lines of text, and the edges."""

    rectangles: list[Rectangle]
    lines: list[list[str]]
    curves: list[EdgeCurve]
    width: float
    height: float


def _columns(text: str) -> int:
    return sum([2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text])


def arranged(view: GraphView) -> Arrangement:
    """The places of all boxes and edges."""
    lines = [box.lines() for box in view.boxes]
    widths = [max(_columns(t) * (TEXT_WIDTH if k else NAME_WIDTH) for k, t in enumerate(own)) + 2 * PADDING for own in lines]
    heights = [HEAD + LINE_HEIGHT * (len(own) - 1) + 2 * PADDING for own in lines]
    rank = _ranks(view)
    tops, y = [], MARGIN
    for row in range(max(rank, default=-1) + 1):
        tall = max([h for r, h in zip(rank, heights) if r == row], default=0.0)
        tops.append((y, tall))
        y += tall + ROW_GAP
    right = [box.is_gradient for box in view.boxes]
    x: dict[int, float] = {}
    bends: dict[tuple[int, int], list[tuple[float, int]]] = {}
    start = MARGIN
    for side in (False, True):
        own = [i for i, r in enumerate(right) if r is side]
        edges = [(b, a) if side else (a, b) for a, b in view.edges if right[a] is side is right[b]]
        xs, found = place({i: widths[i] for i in own}, {i: rank[i] for i in own}, edges)
        x |= {i: start + position for i, position in xs.items()}
        bends |= {edge: [(start + position, row) for position, row in points] for edge, points in found.items()}
        used = [x[i] + widths[i] / 2 for i in own] + [start + position for points in found.values() for position, _ in points]
        start = max(used, default=start - COLUMN_GAP) + COLUMN_GAP
    rectangles = []
    for i, (w, h) in enumerate(zip(widths, heights)):
        top, tall = tops[rank[i]]
        rectangles.append((x[i] - w / 2, top + (tall - h) / 2, w, h))
    rows: dict[int, list[int]] = {}
    for i, r in enumerate(rank):
        rows.setdefault(r, []).append(i)
    beside = [rows[r] for r in rank]
    curves = []
    for a, b in view.edges:
        if right[a] is right[b]:
            upper, lower = (b, a) if right[a] else (a, b)
            points = _through(rectangles, upper, lower, [(p, tops[row]) for p, row in bends[upper, lower]])
            curves.append(EdgeCurve("operand", a, b, points[::-1] if right[a] else points))
        else:
            curves.append(EdgeCurve("used", a, b, _across(rectangles, beside, a, b, False)))
    curves += [EdgeCurve("cotangent", a, b, _across(rectangles, beside, a, b, True)) for a, b in view.arrows]
    return Arrangement(rectangles, lines, curves, start - COLUMN_GAP + MARGIN, y - ROW_GAP + MARGIN)


def baseline(top: float, k: int) -> float:
    """Where line `k` of the text of a box stands."""
    return top + PADDING + 12 + (HEAD - LINE_HEIGHT + LINE_HEIGHT * k if k else 0)


def _ranks(view: GraphView) -> list[int]:
    """The row of each box; a gradient stands, if it can, in the row of what it is the gradient of."""
    count, right = len(view.boxes), [box.is_gradient for box in view.boxes]
    rank = ranked(count, [(a, b) for a, b in view.edges if not right[b]])
    last = max([r for r, gradient in zip(rank, right) if not gradient], default=0)
    inner = sorted([(a, b) for a, b in view.edges if right[a] and right[b]], key=lambda edge: edge[1])
    own = {i: last for i in range(count) if right[i]} | {a: last for a, _ in inner}
    beside: dict[int, int] = {}
    for g, v in view.cotangents:
        beside[g] = min(beside.get(g, last), rank[v])
    feeding: dict[int, list[int]] = {}
    for a, b in inner:
        feeding.setdefault(b, []).append(a)
    for i in own:
        own[i] = min([beside.get(i, last), *(own[a] - 1 for a in feeding.get(i, ()))])
    nearest: dict[int, int] = {}
    for a, b in inner:
        nearest[a] = max(nearest.get(a, own[b] + 1), own[b] + 1)
    own |= {i: nearest[i] for i in own if i not in feeding and i not in beside and i in nearest}
    shift = min([0, *own.values()])
    return [own.get(i, rank[i]) - shift for i in range(count)]


def _through(rectangles: Sequence[Rectangle], upper: int, lower: int,
             bends: Sequence[tuple[float, tuple[float, float]]]) -> list[Point]:
    """A curve from the lower side of a box to the upper side of another, straight down through the rows in between."""
    left, top, width, height = rectangles[upper]
    points = [(left + width / 2, top + height)]
    left, top, width, _ = rectangles[lower]
    stops = [stop for position, (y, tall) in bends for stop in ((position, y), (position, y + tall))]
    for p, q in [*stops, (left + width / 2, top)]:
        x, y = points[-1]
        points += [(x, (y + q) / 2), (p, (y + q) / 2), (p, q)]
    return points


def _across(rectangles: Sequence[Rectangle], beside: Sequence[Sequence[int]], a: int, b: int, above: bool) -> list[Point]:
    """A curve between the sides of two boxes that face each other; where other boxes stand between them in a row, it leads above or below these."""
    out = -1 if above else 1
    ends, turns, obstacles = [], [], [[rectangles[i] for i in beside[k] if _between(*(rectangles[j] for j in (a, i, b)))] for k in (a, b)]
    for i, other, found in ((a, b, obstacles[0]), (b, a, obstacles[1])):
        left, top, width, height = rectangles[i]
        level = out * max([out * (y if above else y + h) for _, y, _, h in (rectangles[i], *found)]) + out * ROW_GAP / 3
        ends.append((left + width / 2, top if above else top + height) if found else (left + width * (left < rectangles[other][0]), top + height / 2))
        turns.append(level if found else None)
    (x, y), (p, q) = ends
    first, last = turns
    bend = min(16.0, abs(p - x) / 2) * (1 if p > x else -1)
    if first is None:
        return [(x, y), ((x + p) / 2, y), ((x + p) / 2, q) if last is None else (p, last), (p, q)]
    leaving = [(x, y), (x, first), (x, first), (x + bend, first)]
    if first == last:
        return [*leaving, *[(p - bend, first)] * 3, (p, first), (p, first), (p, q)]
    far = min([left for left, *_ in obstacles[0]]) - 4 if p < x else max([left + width for left, _, width, _ in obstacles[0]]) + 4
    return [*leaving, *[(far, first)] * 3, ((far + p) / 2, first), ((far + p) / 2, q) if last is None else (p, last), (p, q)]


def _between(one: Rectangle, box: Rectangle, other: Rectangle) -> bool:
    """Whether the middle of a box stands between two others."""
    return min(one[0] + one[2], other[0] + other[2]) < box[0] + box[2] / 2 < max(one[0], other[0])


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
