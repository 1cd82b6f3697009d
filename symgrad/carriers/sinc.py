"""sin(πx)/(πx) and its derivatives of arrays."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from symgrad.carriers.batched import raw
from symgrad.carriers.recorded import word
from symgrad.carriers.special.pieces import PI, Pieces, piecewise

pi = np.pi


def _sine_of_pi(x: Any) -> tuple[Any, Any]:
    """sin(πx) and cos(πx), exact at integers and half integers."""
    if x.dtype.kind == "c":
        part = np.fmod(x.real, 2.0)
        n, x = np.rint(2 * part), x - (x.real - part)
    else:
        x = np.fmod(x, 2.0)
        n = np.rint(2 * x)
    r = (PI if x.dtype == np.longdouble else pi) * (x - n / 2)
    s, c, quadrant = np.sin(r), np.cos(r), n.astype(int) & 3
    return np.choose(quadrant, (s, c, -s, -c)), np.choose(quadrant, (c, -s, -c, s))


@word
def sinc_derivative(x: Any, order: int = 0) -> Any:
    """d^n/dx^n of sin(πx)/(πx)."""
    if order < 2 and type(x) is np.float64:
        return sinc_derivative(np.asarray(x), order)[()]
    if order < 2 and type(x) is np.ndarray and x.dtype == np.float64:
        return piecewise(x, [np.abs(x) < 1, np.abs(x) < 1e300], [(_near, _near_slope)[order], (_far, _far_slope)[order],
                                                                  lambda x: _by_recurrence(x, order)])
    y = _by_recurrence(x, order)
    return y.astype(x.dtype) if x.dtype.kind == "V" else y


@cache
def _pieces() -> Pieces:
    """The first derivative divided by x, for 0 <= x <= 1."""
    return Pieces(lambda x: _by_recurrence(np.asarray(x, np.longdouble), 1) / x, None, 0.0, 1.0, 16)


def _near(x: Any) -> Any:
    at_0 = x == 0
    u = np.where(at_0, 1.0, pi * x)
    return np.where(at_0, 1.0, np.sin(pi * (x - np.rint(x))) * np.where(np.abs(x) > 0.5, -1.0, 1.0) / u)


def _near_slope(x: Any) -> Any:
    return x * _pieces()(np.abs(x))


def _sign(n: Any) -> Any:
    """(-1)ⁿ."""
    return 1 - 2 * np.abs(n - 2 * np.rint(n / 2))


def _far(x: Any) -> Any:
    n = np.rint(x)
    return np.sin(pi * (x - n)) * _sign(n) / (pi * x)


def _far_slope(x: Any) -> Any:
    """The cosine is the sine of the distance to its root, which is exact next to it."""
    n = np.rint(x)
    return (np.sin(pi * (0.5 - np.abs(x - n))) * _sign(n) - _far(x)) / x


def _by_recurrence(x: Any, order: int) -> Any:
    sine, cosine = _sine_of_pi(x)
    turn = PI if x.dtype == np.longdouble else pi
    u = turn * x
    out = by_recurrence(u, sine, cosine, order) * turn**order
    if not np.all(np.isfinite(raw(u))):  # beyond 5e307, where only the first term is left
        out = np.where(np.isfinite(u), out, (sine, cosine, -sine, -cosine)[order % 4] * turn ** (order - 1) / x)
    return out


def by_recurrence(u: Any, sine: Any, cosine: Any, order: int) -> Any:
    """The derivative of sin(u)/u of an order: Sₙ = d^n/du^n of sin(u)/u has u Sₙ + n Sₙ₋₁ = d^n/du^n sin(u).

    This recurrence is stable upwards where |u| > n, and downwards, from any start far above, where |u| < n.
    """
    waves = (sine, cosine, -sine, -cosine)
    large = np.abs(u) > order + 1
    large_u, small_u = np.where(large, u, 1.0), np.where(large, 0.0, u)
    upward, downward = sine / large_u, 0.0
    for n in range(1, order + 1):
        upward = (waves[n % 4] - n * upward) / large_u
    for n in range(2 * order + 50, order, -1):
        downward = (waves[n % 4] - small_u * downward) / n
    return np.where(large, upward, downward)
