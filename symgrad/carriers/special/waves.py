"""The sine and cosine integrals (DLMF chapter 6), with digits next to their zeros."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from symgrad.carriers.special.pieces import PI, Expansions, with_many_digits

__all__ = ["ROWS"]

SMALL = 2.0**-10  # of the wave: where a long double has no more digits to lose, next to a zero
LOW, HIGH = 3.0, 40.0  # below: the power series of Ci; above: asymptotic series
EULER = np.longdouble("0.57721566490153286060651209008240243")


def _wave(mp: Any, centre: Any, kind: int, count: int) -> list[Any]:
    """The Taylor coefficients of the sine (kind 0) or the cosine (kind 1)."""
    sine, cosine = mp.sin(centre), mp.cos(centre)
    return [(sine, cosine, -sine, -cosine)[(k + kind) % 4] / mp.factorial(k) for k in range(count)]


def _integral(kind: int) -> Any:
    """The Taylor coefficients of Si or Ci, whose derivative is the wave divided by x."""
    def coefficients(mp: Any, centre: Any, count: int) -> list[Any]:
        wave, out = _wave(mp, centre, kind, count + 1), [(mp.si, mp.ci)[kind](centre)]
        slope = mp.zero
        for k in range(count - 1):
            slope = (wave[k] - slope) / centre if centre else wave[k + 1]
            out.append(slope / (k + 1))
        return out

    return coefficients


INTEGRALS = Expansions(_integral(0), 0.0, HIGH, 0.5), Expansions(_integral(1), LOW, HIGH, 0.5)


def _sine_or_cosine_integral(kind: int) -> Any:
    def call(special: Any, x: Any) -> Any:
        _refuse_complex(x)
        wide = np.asarray(x, np.longdouble)
        size = np.abs(wide)
        far = np.maximum(size, HIGH)
        f, g = np.zeros_like(far), np.zeros_like(far)
        for k in range(19, -1, -1):  # DLMF 6.12.3
            f, g = factorial(2 * k) - f / far**2, factorial(2 * k + 1) - g / far**2
        f, g = f / far, g / far**2
        sine, cosine = np.sin(far), np.cos(far)
        above = PI / 2 - f * cosine - g * sine if kind == 0 else f * sine - g * cosine
        above = np.where(np.isinf(size), PI / 2 if kind == 0 else 0, above)
        y = np.where(size > HIGH, above, INTEGRALS[kind](size, 0))
        if kind == 1:
            near, series = np.minimum(size, LOW), np.zeros_like(size)
            for k in range(18, 0, -1):
                series = -(near**2) * (1 / np.longdouble(2 * k * factorial(2 * k)) + series)
            y = np.where(size < LOW, EULER + np.log(near) + series, y)
            y = with_many_digits(y, np.abs(y) < SMALL / np.maximum(size, 1), size, lambda mp, x: mp.ci(x))
            y = np.where(wide < 0, np.nan, y)
        else:
            y = np.copysign(y, wide)
        return np.where(np.isnan(wide), np.nan, y).astype(np.asarray(x).dtype)[()]

    return call


def _refuse_complex(x: Any) -> None:
    if np.iscomplexobj(x):
        raise TypeError("this integral is defined here for real numbers, got complex ones; pass the real part")


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "sine_integral": (_sine_or_cosine_integral(0), lambda mp, x: mp.si(x), lambda sp, x: sp.Si(x), lambda x: x.si(), 1,
                      {"NumPy": "9 scipy.special.sici({0})[0]"}),
    "cosine_integral": (_sine_or_cosine_integral(1), lambda mp, x: mp.ci(x) if x > 0 else mp.nan, lambda sp, x: sp.Ci(x), lambda x: x.ci(), 1,
                        {"NumPy": "9 scipy.special.sici({0})[1]"}),
}
