"""Functions of one number as polynomials in many cells: as exact as a slow computation with more digits, and as fast as a polynomial."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Pieces", "piecewise"]

DEGREE = 11
DIGITS = 40  # of zeros


def piecewise(x: Any, conditions: list[Any], functions: list[Any]) -> Any:
    """The first function whose condition holds, else the last one: as `np.piecewise`, without a copy where one function is used throughout."""
    x = np.asarray(x)
    y, rest = np.empty_like(x), np.ones(x.shape, bool)
    for condition, function in zip([*conditions, True], functions):
        at = np.flatnonzero(rest & condition)
        if at.size == x.size:
            return function(x)
        if at.size:
            y.put(at, function(x.take(at)))
            rest.put(at, False)
    return y


class Pieces:
    """A function of x, low <= x <= high, by a polynomial in each cell, made of values with the digits of a long double.

    The cells are equal in x, or, with a number `power`, in 1/(1 + x/centre), for a function that tends to a multiple of x^-(power + 1/2).
    A function with zeros is computed as (x - z) p(x) with the zero z next to the cell, so that it has all digits there, too.

    `exact(x)` are the values; `digits(mp, x)` is one with many digits, by mpmath, and is called only next to zeros; None if there are none.
    """

    def __init__(self, exact: Callable[..., Any], digits: Callable[..., Any] | None, low: float, high: float, cells: int, *, power: int | None = None,
                 centre: float = 1.0):
        self.low, self.high, self.count, self.power, self.centre = low, high, cells, power, centre
        ends = sorted(self._place(np.array([low, high])))
        self.first, self.last = math.floor(ends[0]), math.ceil(ends[1])
        angles = np.arange(DEGREE + 1, dtype=np.longdouble) + np.longdouble(0.5)
        angles *= np.longdouble("3.14159265358979323846264338327950288") / (DEGREE + 1)
        nodes = np.cos(angles)
        p = np.arange(self.first, self.last)[:, None] + (1 + nodes) / 2
        x = low + p * ((high - low) / cells) if power is None else centre * (cells - p) / p
        values = exact(x) / self._weight(p)
        self.zeros = digits and self._zeros(np.sort(x.ravel()), values.ravel()[np.argsort(x.ravel())], digits)
        if self.zeros is not None:
            middle = x.mean(1, keepdims=True)
            nearest = np.abs(middle - self.zeros[0]).argmin(1)
            self.zeros = self.zeros[:, nearest]
            values /= ((x - self.zeros[0][:, None]) - self.zeros[1][:, None]) * (1 if power is None else p)
        cosines = np.cos(np.arange(DEGREE + 1)[:, None] * angles) * 2 / (DEGREE + 1)
        cosines[0] /= 2
        powers = [np.polynomial.chebyshev.cheb2poly(row).astype(np.longdouble) for row in np.eye(DEGREE + 1)]
        series = cosines @ values.T  # the coefficients of Chebyshev polynomials
        self.coefficients = sum(c * np.pad(row, (0, DEGREE - k))[:, None] for k, (c, row) in enumerate(zip(series, powers))).astype(float)

    def _place(self, x: Any) -> Any:
        """The position of x, whose whole part is the number of its cell."""
        return (x - self.low) * (self.count / (self.high - self.low)) if self.power is None else self.count / (1 + x / self.centre)

    def _weight(self, p: Any) -> Any:
        return 1 if self.power is None else math.prod([p] * self.power, start=np.sqrt(p))

    def _zeros(self, x: Any, values: Any, digits: Callable[..., Any]) -> Any:
        """The zeros between points, as numbers of two floats, one column for each; None if there is none."""
        import mpmath  # takes long to import

        mp = mpmath.MPContext()
        mp.dps = DIGITS
        found = [mp.findroot(lambda t: digits(mp, t), (mp.mpf(float(x[i])), mp.mpf(float(x[i + 1]))), solver="illinois", verify=False)
                 for i in np.flatnonzero(values[1:] * values[:-1] < 0)]
        return np.array([[float(z) for z in found], [float(z - float(z)) for z in found]]) if found else None

    def __call__(self, x: Any) -> Any:
        x = np.clip(x, self.low, self.high)
        p = self._place(x)
        cell = np.clip(p.astype(np.intp), self.first, self.last - 1)
        t = 2 * (p - cell) - 1
        cell -= self.first
        y = self.coefficients[-1].take(cell, mode="clip")
        for line in self.coefficients[-2::-1]:
            y *= t
            y += line.take(cell, mode="clip")
        if self.zeros is not None:
            y *= (x - self.zeros[0].take(cell, mode="clip")) - self.zeros[1].take(cell, mode="clip")
            if self.power is not None:
                y *= p
        return y * self._weight(p)
