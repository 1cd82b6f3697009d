"""The error function and its kin (DLMF chapter 7)."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["ROWS", "square_with_rest"]


def square_with_rest(x: Any) -> tuple[Any, Any]:
    """The rounded square of numbers of double precision, and its rounding error."""
    split = x * 134217729.0  # 2²⁷ + 1: two halves, whose products are exact
    large = split - (split - x)
    square = x * x
    return square, (large * large - square) + 2 * large * (x - large) + (x - large) ** 2


def _slope(special: Any, x: Any) -> Any:
    """2/√π exp(-x²); the square is split into a rounded part and the rest, since its rounding would cost x² roundings of the result."""
    if np.iscomplexobj(x):
        return 2 / np.sqrt(np.pi) * np.exp(-x * x)
    high = np.asarray(x, np.float64)
    if np.asarray(x).dtype == np.float32:
        return (2 / np.sqrt(np.pi) * np.exp(-high * high)).astype(np.float32)[()]
    square, rest = square_with_rest(high)
    y = np.exp(-square) * (1 - np.where(square < 800, rest, 0.0)) * (2 / np.sqrt(np.pi))
    return np.where(np.abs(high) > 30, np.where(np.isnan(high), high, 0.0), y)[()]


# name: arrays, digits, formula, balls, arity
ROWS: dict[str, tuple[Any, ...]] = {
    "erf": ("erf", lambda mp, x: mp.erf(x), lambda sp, x: sp.erf(x), lambda x: x.erf()),
    "erfc": ("erfc", lambda mp, x: mp.erfc(x), lambda sp, x: sp.erfc(x), lambda x: x.erfc()),
    "erf_slope": (_slope, lambda mp, x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x), lambda sp, x: 2 / sp.sqrt(sp.pi) * sp.exp(-(x**2)),
                  lambda x: (-x * x).exp() * 2 / type(x).pi().sqrt()),
}
