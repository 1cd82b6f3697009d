"""The floats of a type by their ranks, and the regions of a domain of floats.

The rank is an integer for each float, such that neighbouring floats have neighbouring ranks, and 0 has rank 0.
Uniformly drawn ranks give floats that are uniform in their representation: every binade is equally likely.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from symgrad.dtypes.dtype import numpy_dtype
from symgrad.dtypes.ulp import ulp_of
from symgrad.graph.domains import Domain, Interval


class Floats:
    """The numbers of a floating-point type; for a complex type, those of its real and imaginary parts.

    `digits` is the number of bits after the leading one, `normal` the smallest normal number. Without `subnormals` the numbers below
    `normal` count as zero, as in XLA. Raises TypeError for other types.

    >>> floats = Floats("float64")
    >>> [int(floats.rank(x)) for x in (0.0, -0.0, 5e-324, -5e-324)], float(floats.at(floats.rank(1.0) - 1))
    ([0, 0, 1, -1], 0.9999999999999999)
    >>> Floats("float16").largest, Floats("bfloat16").digits
    (65504.0, 7)
    """

    def __init__(self, dtype: Any, subnormals: bool = True):
        self.subnormals = subnormals
        found = numpy_dtype(dtype)
        self.dtype = np.dtype(f"f{found.itemsize // 2}") if found.kind == "c" else found
        try:
            limits = ml_dtypes.finfo(self.dtype)
        except ValueError as error:
            raise TypeError(f"numbers are drawn for floating-point types, not for {found}") from error
        self.digits, self.largest, self.normal, self.smallest = (
            int(limits.nmant), float(limits.max), float(limits.smallest_normal), float(limits.smallest_subnormal))
        self.bits = np.dtype(f"i{self.dtype.itemsize}")
        self.top = int(self.rank(self.largest))
        self.ulp = ulp_of(self.dtype.name, subnormals)

    def rank(self, x: Any) -> np.ndarray:
        """The ranks of floats, in the order of the floats; both zeros have rank 0."""
        bits = np.asarray(x, self.dtype).view(self.bits).astype(np.int64)
        return np.where(bits < 0, np.iinfo(self.bits).min - bits, bits)

    def at(self, rank: Any) -> np.ndarray:
        """The floats with given ranks, at most the largest float."""
        rank = np.clip(np.asarray(rank, np.int64), -self.top, self.top)
        out = np.asarray(np.abs(rank), self.bits).view(self.dtype)
        return np.where(rank < 0, -out, out).astype(self.dtype)

    def nearest(self, x: Any) -> np.ndarray:
        """The nearest numbers of the type as float64, at most the largest."""
        with np.errstate(all="ignore"):
            return np.asarray(np.clip(np.asarray(x, np.float64), -self.largest, self.largest).astype(self.dtype), np.float64)

    def moved(self, x: Any, steps: Any) -> np.ndarray:
        """The numbers, as float64, a number of steps up or down among the type's finite numbers.

        >>> Floats("float64").moved(1.0, 1) == np.nextafter(1.0, 2.0), float(Floats("bfloat16").moved(0.0, -1))
        (np.True_, -9.183549615799121e-41)
        """
        rank = self.rank(np.asarray(x, np.float64))
        kept = np.maximum(np.minimum(np.asarray(steps, np.int64), self.top - np.maximum(rank, 0)), -self.top - np.minimum(rank, 0))
        return np.asarray(self.at(rank + kept), np.float64)

    def part(self, i: Interval, integers: bool = False) -> tuple[float, float] | None:
        """The first and the last number (or integer) of the type in an interval; None if there is none."""
        low, high = (float(self.nearest(end)) for end in (i.low, i.high))
        if low < i.low or i.open_low and low == i.low:
            low = float(self.moved(low, 1))
        if high > i.high or i.open_high and high == i.high:
            high = float(self.moved(high, -1))
        if integers:
            exact = 2.0 ** (self.digits + 1)
            low, high = (float(np.ceil(max(low, -exact))), float(np.floor(min(high, exact)))) if high > -exact and low < exact else (1.0, 0.0)
        return (low, high) if low <= high and low in i and high in i else None

    def inside(self, x: Any, parts: Sequence[tuple[float, float]], domain: Domain, which: Any = 0) -> np.ndarray:
        """Numbers moved into the parts `which` of a domain: numbers outside to the nearest end, excluded points to a neighbour."""
        low, high = (np.array([p[k] for p in parts])[which] for k in (0, 1))
        out = np.clip(self.nearest(np.rint(x) if domain.integer else x), low, high)
        step: Any = 1
        for _ in range(2 * len(domain.excluded)):
            hit = np.isin(out, domain.excluded)
            if not hit.any():
                break
            aside = out + step if domain.integer else self.moved(out, step)
            step = np.where(hit & (aside > high), -1, step)
            out = np.where(hit, np.where(aside > high, out + step if domain.integer else self.moved(out, step), aside), out)
        return out

    def between(self, low: float, high: float, count: int, rng: np.random.Generator) -> np.ndarray:
        """`count` floats of an interval: its ends, and one from each of equal ranges of ranks."""
        first, last = int(self.rank(low)), int(self.rank(high))
        if last - first < count:
            return self.at(np.arange(first, last + 1))
        places = (np.arange(count - 2) + rng.random(count - 2)) / max(count - 2, 1)
        return self.at(np.concatenate([[first], first + np.floor(places * (last - first)).astype(np.int64), [last]]))

    def beside(self, x: float, reach: int, count: int, rng: np.random.Generator) -> np.ndarray:
        """Floats within `reach` steps of x, the first of them its neighbour; the logarithms of the distances are uniform."""
        steps = np.floor(np.exp(rng.random(count) * np.log(max(abs(reach), 1) + 0.5))).astype(np.int64)
        steps[:1] = 1
        return self.at(int(self.rank(x)) + np.sign(reach) * np.minimum(steps, abs(reach)))

    def changes(self, sign: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """For each pair, the rank of the first float whose sign differs from that of the lower one, by bisection of the ranks."""
        start, low, high = sign(low), self.rank(low), self.rank(high)
        while (high - low > 1).any():
            middle = low + (high - low) // 2
            same = sign(self.at(middle)) == start
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        return high

    def ulps(self, values: np.ndarray, references: Any) -> np.ndarray:
        """The errors of floats in units in the last place of the reference values (see `symgrad.dtypes.ulp`).

        >>> import mpmath
        >>> Floats("float64").ulps(np.array([1.0, 1.0, np.inf, np.nan]), [1.0, 1 + 2.0**-52, mpmath.mpf("1e400"), 1.0])
        array([ 0.,  1.,  0., inf])
        >>> Floats("float64", subnormals=False).ulps(np.array([0.0]), [1e-310]) <= 1
        array([ True])
        """
        return np.array(list(map(self.ulp.error, np.asarray(values, np.float64).tolist(), references)))


NEAR = 1 / 16  # the relative distance up to which floats count as next to a point


@dataclass(frozen=True)
class FloatRegion:
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


def regions_of(domain: Domain, floats: Floats, argument: int = 0, name: str = "") -> list[FloatRegion]:
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
                out.append(FloatRegion(prefix + label, argument, *ends))
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


def regions_beside(c: float, domain: Domain, floats: Floats, argument: int = 0, name: str = "", what: str = "") -> list[FloatRegion]:
    """The regions next to a point, below and above, as far as they lie in the domain; none for 0 and infinity, which have regions of their own."""
    if c == 0 or not abs(c) <= floats.largest or float(floats.dtype.type(c)) == 0:
        return []
    prefix, c = f"{name}: " if name else "", float(floats.dtype.type(c))
    out = []
    for side, low, high in (("below", c - abs(c) * NEAR, c), ("above", c, c + abs(c) * NEAR)):
        low, high = (float(floats.dtype.type(e)) for e in (low, high))
        middle = floats.at(floats.rank(low) + (floats.rank(high) - floats.rank(low)) // 2)
        if low < high and abs(high) <= floats.largest and is_inside(domain, np.asarray(middle)).all():
            out.append(FloatRegion(f"{prefix}just {side} {c:.9g}{what}", argument, low, high, beside=c))
    return out


def ordinary_floats(domain: Domain, floats: Floats, count: int, rng: np.random.Generator) -> np.ndarray:
    """Floats of ordinary size in a domain, in random order; floats of any size if it has no ordinary ones."""
    found = [r for r in regions_of(domain, floats) if r.name.startswith("ordinary")] or regions_of(domain, floats)
    drawn = np.concatenate([r.draw(floats, max(count, 3), rng) for r in found])
    drawn = drawn[is_inside(domain, drawn)]
    return rng.choice(drawn, count) if drawn.size else np.zeros(0, floats.dtype)
