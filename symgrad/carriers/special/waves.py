"""The sine and cosine integrals and Fresnel's integrals (DLMF chapters 6 and 7), with all digits next to their zeros."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from symgrad.carriers.special.expansions import PI, Expansions

__all__ = ["ROWS"]

LOW, HIGH, FAR = 3.0, 40.0, 6.0  # Ci below LOW: a power series; above HIGH and, for Fresnel's integrals, FAR: asymptotic series
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
            y = np.where(wide < 0, np.nan, np.where(size < LOW, EULER + np.log(near) + series, y))
        else:
            y = np.copysign(y, wide)
        return np.where(np.isnan(wide), np.nan, y).astype(np.asarray(x).dtype)[()]

    return call


def _refuse_complex(x: Any) -> None:
    if np.iscomplexobj(x):
        raise TypeError("this integral is defined here for real numbers, got complex ones; pass the real part")


def _phase(x: Any) -> Any:
    """x² / 4 without its whole part, exact to the digits of a long double, for |x| < 2⁵⁰."""
    x = np.asarray(x, np.float64)
    high = (x * (2.0**27 + 1)) - (x * (2.0**27 + 1) - x)
    low = x - high
    return sum(np.fmod(np.asarray(part, np.longdouble), 4) for part in (high * high, 2 * high * low, low * low)) / 4


def _fresnel_wave(special: Any, x: Any, kind: int) -> Any:
    """sin(πx²/2) or cos(πx²/2)."""
    _refuse_complex(x)
    turns = _phase(np.where(np.abs(x) < 2.0**50, x, np.nan))
    turns = turns - np.rint(turns)
    quarter = np.rint(4 * turns)
    angle = 2 * PI * (turns - quarter / 4)
    sine, cosine, place = np.sin(angle), np.cos(angle), (np.nan_to_num(quarter).astype(int) + kind) & 3
    return np.choose(place, (sine, cosine, -sine, -cosine)).astype(np.asarray(x).dtype)[()]


def _fresnel_coefficients(kind: int) -> Any:
    """The Taylor coefficients of S or C, from those of the waves: w' = i π x w for w = exp(iπx²/2)."""
    def coefficients(mp: Any, centre: Any, count: int) -> list[Any]:
        wave, out = [mp.expjpi(centre**2 / 2)], [(mp.fresnels, mp.fresnelc)[kind](centre)]
        for k in range(count - 1):
            out.append((mp.re if kind else mp.im)(wave[k]) / (k + 1))
            wave.append(mp.j * mp.pi * (centre * wave[k] + (wave[k - 1] if k else 0)) / (k + 1))
        return out

    return coefficients


FRESNEL = Expansions(_fresnel_coefficients(0), 0.0, FAR, 0.125), Expansions(_fresnel_coefficients(1), 0.0, FAR, 0.125)


def _fresnel(special: Any, x: Any, kind: int) -> Any:
    _refuse_complex(x)
    size = np.abs(np.asarray(x, np.longdouble))
    far = np.maximum(size, FAR)
    square = PI * far**2
    f, g = np.zeros_like(far), np.zeros_like(far)
    for k in range(24, -1, -1):  # DLMF 7.12.2
        f = 1 - (4 * k + 1) * (4 * k + 3) * f / square**2
        g = 1 - (4 * k + 3) * (4 * k + 5) * g / square**2
    f, g = f / (PI * far), g / (square * PI * far)
    sine, cosine = (_fresnel_wave(special, np.minimum(far, 2.0**49).astype(np.float64), n).astype(np.longdouble) for n in (0, 1))
    above = 0.5 + f * sine - g * cosine if kind else 0.5 - f * cosine - g * sine
    y = np.copysign(np.where(size > FAR, above, FRESNEL[kind](size, 0)), x)
    return np.where(np.isnan(size), np.nan, y).astype(np.asarray(x).dtype)[()]


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "sine_integral": (_sine_or_cosine_integral(0), lambda mp, x: mp.si(x), lambda sp, x: sp.Si(x), lambda x: x.si(), 1,
                      {"NumPy": "9 scipy.special.sici({0})[0]"}),
    "cosine_integral": (_sine_or_cosine_integral(1), lambda mp, x: mp.ci(x) if x > 0 else mp.nan, lambda sp, x: sp.Ci(x), lambda x: x.ci(), 1,
                        {"NumPy": "9 scipy.special.sici({0})[1]"}),
    "fresnel_integral": (_fresnel, lambda mp, x, kind: (mp.fresnels, mp.fresnelc)[kind](x), lambda sp, x, kind: (sp.fresnels, sp.fresnelc)[kind](x),
                         lambda x, kind: x.fresnel_c() if kind else x.fresnel_s(), 1, {"NumPy": "9 scipy.special.fresnel({0})[{1}]"}),
    "fresnel_wave": (_fresnel_wave, lambda mp, x, kind: (mp.sin, mp.cos)[kind](mp.pi * x * x / 2),
                     lambda sp, x, kind: (sp.sin, sp.cos)[kind](sp.pi * x**2 / 2),
                     lambda x, kind: (x * x / 2).cos_pi() if kind else (x * x / 2).sin_pi()),
}
