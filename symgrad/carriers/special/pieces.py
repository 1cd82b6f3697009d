"""Functions of one number as polynomials in many cells: as exact as a slow computation with more digits, and as fast as a polynomial.

The values with more digits may be Taylor expansions at equidistant centres, with the digits of a long double.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from symgrad.layouts.strides import with_torch_layout
from symgrad.system.numpy_internals import clip

PI = np.longdouble("3.14159265358979323846264338327950288")
EULER = np.longdouble("0.57721566490153286060651209008240243")
BERNOULLI = [Fraction(p, q) for p, q in ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798),
                                         (-174611, 330), (854513, 138), (-236364091, 2730))]  # of even numbers from 2. DLMF 24.2
LONG = 200  # of the recurrences for the coefficients, which may lose two thirds of them
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
        mp.dps = LONG
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


DEGREE = 11  # at most
NEGLIGIBLE = 2.0**-53  # terms of a higher degree
DIGITS = 40  # of zeros
TINIEST = 1e-20  # a smaller zero is 0, which is only approached
NEAREST = 1e-34  # the relative distance of a zero from a float at which it is that float
BITS = 140  # of numbers next to zeros, of whose terms as many as 80 cancel
FEW = 256  # numbers
TABLE = 4096  # cells, of whose coefficients those of one degree stay in the cache
BLOCK = 16384  # numbers that are computed at once, so that the arrays of all steps stay in the cache


def piecewise(x: Any, conditions: list[Any], functions: list[Any]) -> Any:
    """The first function whose condition holds, else the last one: as `np.piecewise`, without a copy where one function is used throughout."""
    x = np.asarray(x)
    y: Any = None
    rest: Any = None  # where no condition held so far, None for everywhere
    for condition, function in zip(conditions, functions):
        at = np.asarray(condition if rest is None else rest & condition).ravel().nonzero()[0]
        if at.size == x.size:
            return _laid_out(function(x), x)
        if at.size:
            y = np.empty(x.shape, x.dtype) if y is None else y
            y.reshape(-1)[at] = function(x.take(at))  # in a third of the time of `put`
            rest = ~condition if rest is None else rest & ~condition
    if y is None:
        return _laid_out(functions[-1](x), x)
    at = rest.ravel().nonzero()[0]
    if at.size:
        y.reshape(-1)[at] = functions[-1](x.take(at))
    return _laid_out(y, x)


def _laid_out(y: Any, x: Any) -> Any:
    """The function's values in the memory order that torch gives them."""
    return with_torch_layout(y, (x,)) if x.ndim > 1 else y


def horner(coefficients: Sequence[Any], x: Any) -> Any:
    """The polynomial with two or more coefficients, the constant one first, at an array."""
    total = coefficients[-1] * x
    for c in coefficients[-2:0:-1]:
        total += c
        total *= x
    total += coefficients[0]
    return total


def with_many_digits(y: Any, at: Any, x: Any, digits: Callable[..., Any]) -> Any:
    """The numbers `y`, those where `at` is true computed again by digits(mp, x): next to zeros, where long doubles are too short."""
    places = np.flatnonzero(at)
    if not places.size:
        return y
    mp = _context(threading.get_ident())
    points, inverse = np.unique(np.ravel(x)[places].astype(np.float64), return_inverse=True)
    y = np.array(y)
    y.reshape(-1)[places] = np.array([float(digits(mp, mp.mpf(point))) for point in points.tolist()])[inverse]
    return y


@functools.lru_cache(16)
def _context(thread: int) -> Any:
    """The context of a thread, since functions change its precision for a while; one takes long to make."""
    import mpmath  # takes long to import

    mp = mpmath.MPContext()
    mp.prec = BITS
    return mp


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
        series = _to_series(angles) @ values.T  # the coefficients of Chebyshev polynomials
        parts = max(1, 2 ** math.floor(math.log2(TABLE / (self.last - self.first))))
        starts = (2 * np.arange(parts) + 1 - parts) / np.longdouble(parts)
        inner = np.cos(np.arange(DEGREE + 1) * np.arccos(starts[:, None] + nodes / parts)[..., None])  # the polynomials at the nodes of each part
        values = np.moveaxis(inner @ series, 2, 0).reshape(-1, DEGREE + 1)
        series = _to_series(angles) @ values.T
        degree = np.flatnonzero((np.abs(series) > NEGLIGIBLE * np.abs(values).min(1)).any(1))[-1]
        shifted = np.polynomial.Polynomial([-1, 2])  # of the place in a cell, from 0 to 1
        powers = [np.polynomial.Chebyshev.basis(k).convert(kind=np.polynomial.Polynomial)(shifted).coef for k in range(degree + 1)]
        lines = sum(c * np.pad(row.astype(np.longdouble), (0, degree - k))[:, None] for k, (c, row) in enumerate(zip(series, powers)))
        end = np.pad(lines.sum(0)[-1:], (0, degree))[:, None]  # one more cell, for the highest number
        self.coefficients = np.hstack([lines, end]).astype(float)
        self.rows = np.ascontiguousarray(self.coefficients[::-1].T)  # so that the smallest terms are added first
        self.exponents = np.arange(degree, -1.0, -1)
        if self.zeros is not None:
            self.zeros = np.repeat(self.zeros, parts, 1)
            self.zeros = np.hstack([self.zeros, self.zeros[:, -1:]])
        self.scale = cells / (high - low) * parts if power is None else parts
        self.start = round(low * self.scale) if power is None else self.first * parts  # the whole part of the place of the first cell
        self.end = self.start + (self.last - self.first) * parts

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
        found = [z if abs(z) > TINIEST else mp.zero for z in found]
        exact = [mp.mpf(float(z)) if abs(z - float(z)) < NEAREST * abs(z) else z for z in found]
        return np.array([[float(z) for z in exact], [float(z - float(z)) for z in exact]]) if found else None

    def __call__(self, x: Any) -> Any:
        if x.size <= 2 * BLOCK:
            return self._values(x)
        y, flat = np.empty(x.shape), x.reshape(-1)
        out = y.reshape(-1)
        for i in range(0, x.size, BLOCK):
            out[i:i + BLOCK] = self._values(flat[i:i + BLOCK])
        return y

    def _values(self, x: Any) -> Any:
        if self.power is None:
            x = x if self.zeros is None else clip(x, self.low, self.high)
            t = clip(x * self.scale, self.start, self.end)  # exact if the cells are as long as a power of two
        else:
            x = clip(x, self.low, self.high)
            p = self._place(x)
            t = p * self.scale
        cell = np.floor(t)
        t -= cell
        cell = cell.astype(np.intp)
        cell -= self.start
        if cell.size > FEW:
            part = np.empty(cell.shape)
            y = self.coefficients[-1].take(cell, mode="clip")
            for line in self.coefficients[-2::-1]:
                y *= t
                y += line.take(cell, mode="clip", out=part)
        else:  # in few calls
            y = np.vecdot(self.rows.take(cell, 0, mode="clip"), t[..., None] ** self.exponents)
        if self.zeros is not None:
            y *= (x - self.zeros[0].take(cell, mode="clip")) - self.zeros[1].take(cell, mode="clip")
            if self.power is not None:
                y *= p
        return y if self.power is None else y * self._weight(p)


def _to_series(angles: Any) -> Any:
    """The matrix from values at the zeros of the Chebyshev polynomial of degree DEGREE + 1 to the coefficients of Chebyshev polynomials."""
    cosines = np.cos(np.arange(DEGREE + 1)[:, None] * angles) * 2 / (DEGREE + 1)
    cosines[0] /= 2
    return cosines
