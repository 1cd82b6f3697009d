"""Domains divided into regions: around zero, in the tails, and next to the points where a function has an edge, a pole or a zero."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from symgrad.graph.domains import Domain, Interval
from symgrad.sampling.floats import Floats

__all__ = ["Region", "bounds", "is_inside", "ordinary_floats", "regions_beside", "regions_of"]

NEAR = 1 / 16  # the relative distance up to which floats count as next to a point


@dataclass(frozen=True)
class Region:
    """Floats of the argument with the number `argument` from `low` to `high`, or with `beside`, those between that point and one of the ends.

    The other arguments have ordinary values, or with `jointly` any values. With `close`, all arguments are almost equal.
    """

    name: str
    argument: int
    low: float
    high: float
    beside: float | None = None
    jointly: bool = False
    close: bool = False

    def draw(self, floats: Floats, count: int, rng: np.random.Generator) -> np.ndarray:
        """Floats of the argument."""
        if self.low == self.high == 0:
            return np.array([0.0, -0.0], floats.dtype)
        if self.beside is None:
            return floats.between(self.low, self.high, count, rng)
        far = self.high if self.beside == self.low else self.low
        return floats.beside(self.beside, int(floats.rank(far) - floats.rank(self.beside)), count, rng)


def is_inside(domain: Domain, x: np.ndarray) -> np.ndarray:
    """An array of booleans: which floats lie in a domain."""
    out = np.zeros(np.shape(x), bool)
    for i in domain.intervals:
        above = x > i.low if i.open_low else x >= i.low
        out |= above & (x < i.high if i.open_high else x <= i.high)
    for point in domain.excluded:
        out &= x != point
    return out & (np.floor(x) == x if domain.integer else True)


def bounds(floats: Floats) -> list[tuple[str, float, float]]:
    """The sizes of positive floats, with their ends: subnormal, if the type has such; tiny; small, from the rounding unit on; ordinary; large; huge.

    The exponential of a huge number overflows.
    """
    tiny, largest = floats.normal, floats.largest
    unit = 2.0 ** (-floats.digits - 1)
    overflow = 2.0 ** math.ceil(math.log2(-math.log(tiny)))
    cuts = [("subnormal", floats.smallest), ("tiny", tiny), ("small", unit), ("ordinary", NEAR), ("large", 16.0),
            ("huge", max(overflow, 32.0))]
    ends = [low for _, low in cuts[1:]] + [math.inf]
    below = lambda x: largest if x == math.inf else float(floats.at(floats.rank(x) - 1))
    sized = [(name, low, below(high)) for (name, low), high in zip(cuts, ends) if low < high]
    return sized if floats.subnormals else sized[1:]


def regions_of(domain: Domain, floats: Floats, argument: int = 0, name: str = "") -> list[Region]:
    """The regions of a domain: sizes of both signs, 0, and the neighbourhoods of its ends and excluded points."""
    prefix = f"{name}: " if name else ""
    sized = bounds(floats)
    rows = [(f"{size}, negative", -high, -low) for size, low, high in reversed(sized)] + [("zero", 0.0, 0.0)]
    rows += [(f"{size}, positive" if any(i.low < 0 for i in domain.intervals) else size, low, high) for size, low, high in sized]
    out = []
    for label, low, high in rows:
        for interval in domain.intervals:
            ends = _clip(interval, low, high, floats)
            if ends is not None:
                out.append(Region(prefix + label, argument, *ends))
    for c in dict.fromkeys([*(e for i in domain.intervals for e in (i.low, i.high)), *domain.excluded]):
        out += regions_beside(c, domain, floats, argument, name)
    return out


def _clip(interval: Interval, low: float, high: float, floats: Floats) -> tuple[float, float] | None:
    """The part of [low, high] in an interval, as floats of the type; None if it is empty."""
    first, last = int(floats.rank(max(low, min(interval.low, high)))), int(floats.rank(min(high, max(interval.high, low))))
    if interval.low > high or interval.high < low:
        return None
    with np.errstate(all="ignore"):
        first += int(float(floats.at(first)) < interval.low or interval.open_low and float(floats.at(first)) <= interval.low)
        last -= int(float(floats.at(last)) > interval.high or interval.open_high and float(floats.at(last)) >= interval.high)
    return (float(floats.at(first)), float(floats.at(last))) if first <= last else None


def regions_beside(c: float, domain: Domain, floats: Floats, argument: int = 0, name: str = "", what: str = "") -> list[Region]:
    """The regions next to a point, below and above, as far as they lie in the domain; none for 0 and infinity, which have regions of their own."""
    if c == 0 or not abs(c) <= floats.largest or float(floats.dtype.type(c)) == 0:
        return []
    prefix, c = f"{name}: " if name else "", float(floats.dtype.type(c))
    out = []
    for side, low, high in (("below", c - abs(c) * NEAR, c), ("above", c, c + abs(c) * NEAR)):
        low, high = (float(floats.dtype.type(e)) for e in (low, high))
        middle = floats.at(floats.rank(low) + (floats.rank(high) - floats.rank(low)) // 2)
        if low < high and abs(high) <= floats.largest and is_inside(domain, np.asarray(middle)).all():
            out.append(Region(f"{prefix}just {side} {c:.9g}{what}", argument, low, high, beside=c))
    return out


def ordinary_floats(domain: Domain, floats: Floats, count: int, rng: np.random.Generator) -> np.ndarray:
    """Floats of ordinary size in a domain, in random order; floats of any size if it has no ordinary ones."""
    found = [r for r in regions_of(domain, floats) if r.name.startswith("ordinary")] or regions_of(domain, floats)
    drawn = np.concatenate([r.draw(floats, max(count, 3), rng) for r in found])
    drawn = drawn[is_inside(domain, drawn)]
    return rng.choice(drawn, count) if drawn.size else np.zeros(0, floats.dtype)
