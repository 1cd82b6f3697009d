"""The Bessel functions J and Y of orders that are not whole, and their derivatives, with digits next to all of their zeros.

Below 3 the values are power series of J of both signs of the order (DLMF 10.2.2, 10.2.3), from there on Taylor expansions whose coefficients
follow from the differential equation. Next to a zero, where the digits of a long double do not suffice, many digits are taken.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.carriers.special.pieces import Expansions, horner, with_many_digits

SERIES_TO = 3.0  # with TERMS terms of the power series
TERMS = 24
LARGEST = 8.0  # the order and that of the derivative together: larger ones need more terms
NEAREST = 2.0**-5  # the distance from a whole number, next to which the two power series of Y cancel
SMALL = 2.0**-8  # of the terms, or of the next derivative: where a long double has no more digits to lose
Digits = Callable[..., Any]


def is_covered(order: Any, times: int) -> bool:
    """Whether an order and that of its derivative are within the limits of this module."""
    return abs(order) + times <= LARGEST and abs(order - round(order)) >= NEAREST


def of_real_order(x: Any, order: float, times: int, second: bool, high: float, digits: Digits) -> Any:
    """J, or Y if `second`, of an order, or its derivative, for 0 <= x <= high; `digits` is the function of mpmath."""
    with np.errstate(over="ignore", divide="ignore", under="ignore", invalid="ignore"):  # next to 0, of negative powers
        y, small = (np.empty(x.shape, kind) for kind in (np.longdouble, bool))
        for at, function in ((x < SERIES_TO, _series), (x >= SERIES_TO, _expanded)):
            if at.any():
                y[at], small[at] = function(x[at].astype(np.longdouble), order, times, second, high, digits)
        return with_many_digits(y, small, x, lambda mp, x: digits(mp, x, order, times)).astype(np.float64)


def modified_of_real_order(x: Any, order: float, second: bool) -> Any:
    """I, or K if `second`, of an order for 0 <= x <= 2, where SciPy's K is 10 ULP off. DLMF 10.25.2, 10.27.4."""
    with np.errstate(over="ignore", divide="ignore", under="ignore", invalid="ignore"):
        parts = ((order, _modified), (-order, _modified)) if second else ((order, _one),)
        return _of_parts(x.astype(np.longdouble), parts, 0, 1)[0].astype(np.float64)


def _series(x: Any, order: float, times: int, second: bool, high: float, digits: Digits) -> tuple[Any, Any]:
    total, size = _of_parts(x, ((order, _cotangent), (-order, _cosecant)) if second else ((order, _one),), times, -1)
    return total, np.abs(total) < SMALL * size


def _of_parts(x: Any, parts: Any, times: int, sign: int) -> tuple[Any, Any]:
    """A sum of J (sign -1) or I (sign 1) of orders with weights, or its derivative, and its largest term."""
    square = x * x
    total, size = np.zeros_like(x), np.zeros_like(x)
    for n, weight in parts:
        coefficients, power = _coefficients(n, times, weight, sign), x ** (np.longdouble(n) - times)
        part = power * horner(coefficients, square)
        total = np.where(np.isnan(total + part), part, total + part)  # the second one is more singular
        size = np.maximum(size, power * np.abs(coefficients[:4, None] * square.ravel() ** np.arange(4)[:, None]).max(0).reshape(x.shape))
    return total, size


def _one(mp: Any, n: Any) -> Any:
    return mp.one


def _cotangent(mp: Any, n: Any) -> Any:
    return mp.cospi(n) / mp.sinpi(n)


def _cosecant(mp: Any, n: Any) -> Any:
    return 1 / mp.sinpi(n)


def _modified(mp: Any, n: Any) -> Any:
    return -mp.pi / (2 * mp.sinpi(n))


@functools.lru_cache(256)
def _coefficients(order: float, times: int, weight: Callable[..., Any], sign: int) -> Any:
    """Those of the derivative of J or I of an order as a series of x², after x^(order - times), times a weight."""
    import mpmath  # takes long to import

    mp = mpmath.MPContext()
    mp.dps = 40
    n = mp.mpf(order)
    rows = [weight(mp, n) * sign**i * math.prod(n + 2 * i - j for j in range(times)) * mp.rgamma(n + i + 1)
            / (mp.factorial(i) * mp.mpf(2) ** (n + 2 * i)) for i in range(TERMS)]
    return np.array([np.longdouble(mp.nstr(c, 25)) for c in rows])


def _expanded(x: Any, order: float, times: int, second: bool, high: float, digits: Digits) -> tuple[Any, Any]:
    expansions = _expansions(order, second, 2.0 ** math.ceil(math.log2(high)), digits)
    y = expansions(x, times)
    return y, np.abs(y) < SMALL * np.abs(expansions(x, times + 1))


@functools.lru_cache(64)
def _expansions(order: float, second: bool, high: float, digits: Digits) -> Expansions:
    known: dict[float, tuple[Any, Any]] = {}

    def coefficients(mp: Any, centre: Any, count: int) -> list[Any]:
        """By x² y″ + x y′ + (x² - n²) y = 0. DLMF 10.2.1."""
        if float(centre) not in known:
            known[float(centre)] = digits(mp, centre, order, 0), digits(mp, centre, order, 1)
        out, n = list(map(mp.convert, known[float(centre)])), mp.mpf(order)
        for k in range(count - 2):
            rest = centre * (k + 1) * (2 * k + 1) * out[k + 1] + (k * k + centre * centre - n * n) * out[k]
            rest += 2 * centre * out[k - 1] if k else 0
            rest += out[k - 2] if k > 1 else 0
            out.append(-rest / (centre * centre * (k + 1) * (k + 2)))
        return out

    return Expansions(coefficients, SERIES_TO, high, 0.5)
