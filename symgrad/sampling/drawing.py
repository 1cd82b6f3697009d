"""Points of comparison: special ones, made from the domains and the formula, and random ones. All lie in the domains."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from symgrad.sampling.numbers import HEAD, PAGE, PAGES, table
from symgrad.types.domains import Domain

__all__ = ["NORMAL", "drawn", "room_in", "special"]

SIZES = 1e-8, 1e3  # of random numbers where a domain has no end
TAILS = (40.0, 1e3, 1e-8, 20.0, 100.0, 1e-5, 1e-3, 10.0, 700.0, 1e-300, 1e8, 1e5, 1e-16, 1e-100, 2.2250738585072014e-308, 5e-324)
SPECIAL = (0.0, 1.0, -1.0, -0.0, *(s * t for t in TAILS for s in (1.0, -1.0)))
NEAR = (2.0**-10, 2.0**-26)
NORMAL = 2.2250738585072014e-308


def _ends(domain: Domain) -> Iterator[float]:
    """The ends of a domain, and the numbers next to them and to the excluded points."""
    for i in domain.intervals:
        for end, inward in ((i.low, math.inf), (i.high, -math.inf)):
            if math.isfinite(end):
                yield end
                yield float(np.nextafter(end, inward))
                size = abs(end) or 1.0
                yield from (end + math.copysign(step * size, inward) for step in NEAR)
                if abs(end) > 1e9:  # every size on the way to a far end
                    yield from (math.copysign(10.0**k, end) for k in (15, 30, 100, 150, 200, 300) if 10.0**k < abs(end))
    for x in domain.excluded:
        yield from (float(np.nextafter(x, math.inf)), float(np.nextafter(x, -math.inf)), *(x + s * (abs(x) or 1.0) for s in NEAR))


def special(domains: Sequence[Domain], base: np.ndarray, found: Sequence[tuple[int, float]], limit: int, subnormals: bool) -> list[np.ndarray]:
    """Points at which functions often fail: the base, ends, ±0, tails, subnormals, the zeros `found` in the formula, and ties.

    Each coordinate takes its special numbers with the others as in the base, and all take the same one.
    """
    own: list[list[float]] = []
    for k, d in enumerate(domains):
        numbers = [*_ends(d), *(x for i, x in found if i == k), *SPECIAL]
        own.append([x for x in numbers if x in d and (subnormals or x == 0 or abs(x) >= NORMAL)])
    out = {base.tobytes(): base}
    columns: list[Iterator[np.ndarray]] = [iter([np.where(np.arange(base.size) == k, x, base) for x in own[k]]) for k in range(len(domains))]
    if len(domains) > 1:
        columns.append(np.where([x in d for d in domains], x, base) for x in (float(base[0]), *own[0]))
    while columns and len(out) < limit:
        for column in list(columns):
            vector = next(column, None)
            if vector is None:
                columns.remove(column)
            elif len(out) < limit:
                out.setdefault(vector.tobytes(), vector)
    return list(out.values())


def drawn(domains: Sequence[Domain], count: int, seed: int) -> list[np.ndarray]:
    """So many different random points of the domains, the same ones for the same seed; fewer where the domains do not have so many.

    Two thirds of them are simple numbers and numbers near these, one third has every size and every distance from an end.
    """
    rng = np.random.default_rng(seed)
    tables = [table(d, "float64", *SIZES) for d in domains]
    out: dict[bytes, np.ndarray] = {}
    for k in range(20 * count):
        first, last = (3 * HEAD, PAGE) if k % 3 == 2 else (0, 3 * HEAD)
        vector = np.array([entries[rng.integers(PAGES), rng.integers(first, last)] for entries in tables])
        out.setdefault(vector.tobytes(), vector)
        if len(out) == count:
            break
    return list(out.values())


def room_in(domains: Sequence[Domain], vector: np.ndarray) -> np.ndarray:
    """How far each coordinate can move both ways inside its domain, with as much left."""
    out = np.full(vector.size, np.inf)
    for k, (d, x) in enumerate(zip(domains, vector)):
        for i in d.intervals:
            if float(x) in i:
                out[k] = min(float(x) - i.low, i.high - float(x)) / 2
        for hole in d.excluded:
            out[k] = min(out[k], abs(float(x) - hole) / 2)
    return out
