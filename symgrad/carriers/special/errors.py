"""The error function and its kin (DLMF chapter 7)."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["ROWS"]


def _slope(special: Any, x: Any) -> Any:
    """2/√π exp(-x²); the square is split into a rounded part and the rest, since its rounding would cost x² roundings of the result."""
    if np.iscomplexobj(x):
        return 2 / np.sqrt(np.pi) * np.exp(-x * x)
    x = np.clip(x, -30, 30)
    near = np.rint(x * 64) / 64  # its square is exact
    return np.exp(-near * near) * np.exp((near - x) * (near + x)) * x.dtype.type(2 / np.sqrt(np.pi))


SLOPE = """
def _erf_slope(x):
    x = {m}.clip(x, -30, 30)
    near = {m}.round(x * 64) / 64
    return 1.1283791670955126 * {m}.exp(-near * near) * {m}.exp((near - x) * (near + x))
"""
SLOPE_IN_C = """
static double symgrad_erf_slope(double x)
{
    double u = fmin(fmax(x, -30.0), 30.0);
    double near = rint(u * 64.0) / 64.0;
    return 1.1283791670955126 * exp(-(near * near)) * exp((near - u) * (near + u));
}
"""

# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "erf": ("erf", lambda mp, x: mp.erf(x), lambda sp, x: sp.erf(x), lambda x: x.erf(), 1,
            {"Torch": "torch.special.erf", "Jax": "jax.scipy.special.erf", "C": "erf"}),
    "erfc": ("erfc", lambda mp, x: mp.erfc(x), lambda sp, x: sp.erfc(x), lambda x: x.erfc(), 1,
             {"Torch": "torch.special.erfc", "Jax": "jax.scipy.special.erfc", "C": "erfc"}),
    "erf_slope": (_slope, lambda mp, x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x), lambda sp, x: 2 / sp.sqrt(sp.pi) * sp.exp(-(x**2)),
                  lambda x: (-x * x).exp() * 2 / type(x).pi().sqrt(), 1, {"Python": SLOPE, "C": SLOPE_IN_C}),
}
