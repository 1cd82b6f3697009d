"""Floating-point types as grids of float64 numbers: the neighbours of a number, and the part of an interval that a type has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from symgrad.types.domains import Domain, Interval
from symgrad.types.dtypes import numpy_dtype

__all__ = ["Grid", "grid_of", "is_complex"]


class Grid(NamedTuple):
    """The numbers of a real floating-point type, each written as the float64 that equals it.

    `digits` counts the bits after the leading one, `normal` is the smallest number that has them all.
    """

    dtype: np.dtype
    digits: int
    largest: float
    normal: float
    smallest: float

    def nearest(self, x: Any) -> np.ndarray:
        """The nearest numbers of the type; those too large become the largest."""
        with np.errstate(all="ignore"):
            return np.asarray(np.clip(np.asarray(x, np.float64), -self.largest, self.largest).astype(self.dtype), np.float64)

    def moved(self, x: Any, steps: Any) -> np.ndarray:
        """The numbers that are so many steps up, or down, in the order of the type's finite numbers.

        >>> grid_of("float64").moved(1.0, 1) == np.nextafter(1.0, 2.0), float(grid_of("bfloat16").moved(0.0, -1))
        (np.True_, -9.183549615799121e-41)
        """
        whole = np.dtype(f"i{self.dtype.itemsize}")
        low = np.iinfo(whole).min
        last = int(np.asarray(self.largest, self.dtype).view(whole))
        bits = np.asarray(np.asarray(x, np.float64), self.dtype).view(whole).astype(np.int64)
        place = np.where(bits < 0, low - bits, bits)
        kept = np.maximum(np.minimum(np.asarray(steps, np.int64), last - np.maximum(place, 0)), -last - np.minimum(place, 0))
        further = place + kept
        back = np.where(further < 0, low - further, further).astype(whole)
        return np.asarray(np.asarray(back).view(self.dtype), np.float64)

    def part(self, i: Interval, whole: bool = False) -> tuple[float, float] | None:
        """The first and the last number of the type in an interval, or the first and the last whole one; None if there is none."""
        low, high = (float(self.nearest(end)) for end in (i.low, i.high))
        if low < i.low or i.open_low and low == i.low:
            low = float(self.moved(low, 1))
        if high > i.high or i.open_high and high == i.high:
            high = float(self.moved(high, -1))
        if whole:
            exact = 2.0 ** (self.digits + 1)
            low, high = (float(np.ceil(max(low, -exact))), float(np.floor(min(high, exact)))) if high > -exact and low < exact else (1.0, 0.0)
        return (low, high) if low <= high and low in i and high in i else None

    def inside(self, x: Any, parts: Sequence[tuple[float, float]], domain: Domain, which: Any = 0) -> np.ndarray:
        """Numbers moved into the parts `which` of a domain: from beyond an end to it, from a hole to its neighbour."""
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


def grid_of(dtype: Any) -> Grid:
    """The grid of a floating-point type, in any form that symgrad takes; for a complex type, that of the parts.

    Raises TypeError for other types.

    >>> grid_of("float16").largest, grid_of("bfloat16").digits
    (65504.0, 7)
    """
    found = numpy_dtype(dtype)
    if found.kind == "c":
        found = np.dtype(f"f{found.itemsize // 2}")
    try:
        limits = ml_dtypes.finfo(found)
    except ValueError as error:
        raise TypeError(f"numbers are drawn for floating-point types, not for {found}") from error
    return Grid(found, int(limits.nmant), float(limits.max), float(limits.smallest_normal), float(limits.smallest_subnormal))


def is_complex(dtype: Any) -> bool:
    """Whether a type is one of complex numbers."""
    return bool(numpy_dtype(dtype).kind == "c")
