"""Functions of one number by their Taylor expansions at equidistant centres, with the digits of a long double."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["BERNOULLI", "PI", "Expansions"]

PI = np.longdouble("3.14159265358979323846264338327950288")
BERNOULLI = [Fraction(p, q) for p, q in ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798),
                                         (-174611, 330), (854513, 138), (-236364091, 2730))]  # of even numbers from 2. DLMF 24.2
DIGITS = 200  # of the recurrences for the coefficients, which may lose two thirds of them
TERMS = 24


class Expansions:
    """A function and its derivatives between `low` and `high`, from expansions at the centres low, low + step, and so on.

    `coefficients(mp, centre, count)` gives the first Taylor coefficients at a centre as numbers of an mpmath context. They are computed when a
    derivative is first asked for. `step` is a power of two, so that the distance to a centre is exact.
    """

    def __init__(self, coefficients: Callable[[Any, Any, int], Sequence[Any]], low: float, high: float, step: float) -> None:
        self.coefficients, self.low, self.high, self.step = coefficients, low, high, step
        self.table = functools.cache(self._table)

    def _table(self, order: int) -> Any:
        """The coefficients of the derivative of an order: a row for each power, a column for each centre."""
        import mpmath  # takes longer to import than NumPy

        mp = mpmath.mp.clone()
        mp.dps = DIGITS
        centres = [self.low + i * self.step for i in range(round((self.high - self.low) / self.step) + 1)]
        rows = [[c * math.perm(k + order, order) for k, c in enumerate(self.coefficients(mp, mp.mpf(centre), TERMS + 2 * order)[order:])]
                for centre in centres]
        return np.array([[np.longdouble(mp.nstr(c, 25)) for c in row] for row in rows]).T

    def __call__(self, x: Any, order: int) -> Any:
        """The derivative of an order at long doubles; any number outside the interval."""
        table = self.table(order)
        x = np.where((x >= self.low) & (x <= self.high), x, np.longdouble(self.low))
        place = np.rint((x - self.low) / self.step).astype(np.intp)
        distance, total = x - (self.low + place * self.step), np.zeros_like(x)
        for row in table[::-1]:
            total = total * distance + row[place]
        return total
