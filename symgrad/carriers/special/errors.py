"""The error function and its kin (DLMF chapter 7), and the exponentials of squares that their derivatives of every order are made of."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from symgrad.carriers.special.erfcx import of_positive, scaled
from symgrad.carriers.special.pieces import Pieces, piecewise
from symgrad.system.numpy_internals import clip

__all__ = ["ROWS", "bell", "bell_in_python", "hermite"]

NEAR = 6.0  # up to which 1 - erf is a polynomial in each cell
TWO_OVER_ROOT = 2 / np.sqrt(np.pi)


def hermite(x: Any, order: int, c: int) -> Any:
    """The derivative of exp(-c x²/2) of an order, divided by exp(-c x²/2); x is a number of any carrier. DLMF 18.9.1."""
    below, here = 0, 1
    for n in range(order):
        below, here = here, -c * (x * here + n * below)
    return here


def bell(x: Any, c: int, factor: Any = 1) -> Any:
    """factor exp(-c x²/2) for |x| <= 40.

    The square is split into an exact part and the rest, since its rounding would cost x² roundings of the result. The exponential of the exact
    part is a square, since it may be a subnormal number, with few digits, where the product with the factor is none.
    """
    near = np.rint(x * 64)
    near *= 0.015625
    rest = near - x
    rest *= near + x
    if c != 2:
        rest *= c / 2
    near *= near
    near *= -c / 4
    root = np.exp(near)
    y = factor * root
    y *= np.exp(rest)
    y *= root
    return y


def _slope(special: Any, x: Any, order: int) -> Any:
    if np.iscomplexobj(x):
        return 2 / np.sqrt(np.pi) * np.exp(-x * x) * hermite(x, order, 2)
    x = clip(x, -40, 40)
    factor = x.dtype.type(TWO_OVER_ROOT)
    return bell(x, 2, factor * hermite(x, order, 2) if order else factor)


@cache
def _pieces() -> Pieces:
    """1 - erf from -6 to 6, and at smaller numbers 2."""
    def exact(x: Any) -> Any:
        size = np.abs(x)
        tail = scaled(size, 0) * np.exp(-(size**2))
        return np.where(x < 0, 2 - tail, tail)

    return Pieces(exact, None, -NEAR, NEAR, 384)


def _erfc(special: Any, x: Any) -> Any:
    """1 - erf; beyond 1/2 SciPy's function has errors of 10 ULP, and of 17 at 20.3."""
    if x.dtype.kind == "c":
        return special.erfc(x)
    wide = np.asarray(x, np.float64)
    y = piecewise(wide, [~(wide > NEAR)], [_pieces(), lambda x: bell(np.minimum(x, 40), 2, of_positive(special, x))])
    return y.astype(x.dtype, copy=False)[()]


def bell_in_python(name: str, scale: float, c: int) -> str:
    """The helper for `scale` times the derivative of exp(-c x²/2) of an order."""
    return f"""
def _{name}(x, order):
    x = {{m}}.clip(x, -40, 40)
    near = {{m}}.round(x * 64) / 64
    below, here = 0.0, {scale!r}
    for n in range(order):
        below, here = here, -{c} * (x * here + n * below)
    root = {{m}}.exp(-near * near * {c / 4})
    return here * root * {{m}}.exp((near - x) * (near + x) * {c / 2}) * root
"""


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "erf": ("erf", lambda mp, x: mp.erf(x), lambda sp, x: sp.erf(x), lambda x: x.erf(), 1,
            {"Torch": "torch.special.erf", "Jax": "jax.scipy.special.erf", "C": "erf"}),
    "erfc": (_erfc, lambda mp, x: mp.erfc(x), lambda sp, x: sp.erfc(x), lambda x: x.erfc(), 1,
             {"NumPy": "scipy.special.erfc", "Torch": "torch.special.erfc", "Jax": "jax.scipy.special.erfc", "C": "erfc"}),
    "erf_slope": (_slope, lambda mp, x, n: mp.zero if mp.isinf(x) else 2 / mp.sqrt(mp.pi) * mp.exp(-x * x) * hermite(x, n, 2),
                  lambda sp, x, n: 2 / sp.sqrt(sp.pi) * sp.exp(-(x**2)) * hermite(x, n, 2),
                  lambda x, n: (-x * x).exp() * hermite(x, n, 2) * 2 / type(x).pi().sqrt(), 1,
                  {"Python": bell_in_python("erf_slope", 1.1283791670955126, 2)}),
}
