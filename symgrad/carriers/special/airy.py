"""Airy's function Ai with its derivative (DLMF chapter 9)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from symgrad.carriers.special.expansions import PI, Expansions

__all__ = ["ROWS"]

LOW, HIGH = -20.0, 16.0  # outside: SciPy's values, and the asymptotic series


def _coefficients(mp: Any, centre: Any, count: int) -> list[Any]:
    """The Taylor coefficients of Ai, from y'' = x y."""
    out = [mp.airyai(centre), mp.airyai(centre, derivative=1)]
    for k in range(2, count):
        out.append((centre * out[k - 2] + (out[k - 3] if k > 2 else 0)) / (k * (k - 1)))
    return out


NEAR = Expansions(_coefficients, LOW, HIGH, 0.5)


@cache
def _asymptotic() -> list[tuple[Any, Any]]:
    """The numbers uₖ and vₖ of the asymptotic series. DLMF 9.7.2."""
    out, u = [], np.longdouble(1)
    for k in range(40):
        out.append((u, u * (6 * k + 1) / (1 - 6 * k)))
        u = u * (6 * k + 1) * (6 * k + 3) * (6 * k + 5) / (216 * (k + 1) * (2 * k + 1))
    return out


def _airy(order: int) -> Any:
    def call(special: Any, x: Any) -> Any:
        if np.iscomplexobj(x):
            raise TypeError("airy_ai is defined here for real numbers, got complex ones; pass the real part")
        wide = np.asarray(x, np.longdouble)
        far = np.clip(wide, HIGH, 1e4)
        exponent, series = 2 * far * np.sqrt(far) / 3, np.zeros_like(far)
        for pair in reversed(_asymptotic()):
            series = pair[order] - series / exponent
        above = (-1) ** order * np.exp(-exponent) * far ** ((2 * order - 1) / np.longdouble(4)) * series / (2 * np.sqrt(PI))
        below = special.airy(np.where(wide < LOW, wide, -1).astype(np.float64))[order]
        y = np.where(wide > HIGH, above, np.where(wide < LOW, below, NEAR(wide, order)))
        return np.where(np.isnan(wide), np.nan, y).astype(np.asarray(x).dtype)[()]

    return call


# name: arrays, digits, formula, balls; SciPy's function, with errors of 80 ULP at 62, is no source
ROWS: dict[str, tuple[Any, ...]] = {
    "airy_ai": (_airy(0), lambda mp, x: mp.airyai(x), lambda sp, x: sp.airyai(x), lambda x: x.airy_ai()),
    "airy_ai_slope": (_airy(1), lambda mp, x: mp.airyai(x, derivative=1), lambda sp, x: sp.airyaiprime(x), lambda x: x.airy_ai(derivative=1)),
}
