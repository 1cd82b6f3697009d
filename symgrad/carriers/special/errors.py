"""The error function and its kin (DLMF chapter 7)."""

from __future__ import annotations

from math import factorial, perm, prod
from typing import Any

import numpy as np

from symgrad.carriers.special.expansions import Expansions

__all__ = ["PI", "ROWS", "scaled"]

PI = np.longdouble("3.14159265358979323846264338327950288")
FAR = 10.0  # from here on the asymptotic series of `scaled` has all digits


def _slope(special: Any, x: Any) -> Any:
    """2/√π exp(-x²); the square is split into a rounded part and the rest, since its rounding would cost x² roundings of the result."""
    if np.iscomplexobj(x):
        return 2 / np.sqrt(np.pi) * np.exp(-x * x)
    x = np.clip(x, -30, 30)
    near = np.rint(x * 64) / 64  # its square is exact
    return np.exp(-near * near) * np.exp((near - x) * (near + x)) * x.dtype.type(2 / np.sqrt(np.pi))


def _recurrence(x: Any, value: Any, slope: Any, order: int) -> Any:
    """The derivative of exp(x²) erfc(x) of an order, from the first two: E'' = 2 (x E)'. It cancels for large positive x."""
    for k in range(1, order):
        value, slope = slope, 2 * (x * slope + k * value)
    return slope if order else value


def _coefficients(mp: Any, centre: Any, count: int) -> list[Any]:
    """The Taylor coefficients of exp(x²) erfc(x)."""
    out = [mp.exp(centre**2) * mp.erfc(centre)]
    out.append(2 * (centre * out[0] - 1 / mp.sqrt(mp.pi)))
    for k in range(2, count):
        out.append(2 * (centre * out[-1] + out[-2]) / k)
    return out


NEAR = Expansions(_coefficients, 0.0, FAR, 0.25)


def scaled(x: Any, order: int) -> Any:
    """The derivative of exp(x²) erfc(x) of an order for x >= 0, as a long double; for large x by the asymptotic series (DLMF 7.12.1)."""
    inverse = 1 / np.maximum(np.asarray(x, np.longdouble), FAR)
    series = np.zeros_like(inverse)
    for m in range(20, -1, -1):
        series = series * inverse**2 + (-1) ** m * prod(range(1, 2 * m, 2)) * perm(2 * m + order, order) / 2**m
    return np.where(x < FAR, NEAR(np.asarray(x, np.longdouble), order), (-1) ** order * inverse ** (order + 1) * series / np.sqrt(PI))


def _erfcx(special: Any, x: Any, order: int = 0) -> Any:
    if np.iscomplexobj(x):
        raise TypeError("erfcx is defined here for real numbers, got complex ones; pass the real part")
    wide = np.asarray(x, np.longdouble)
    size = np.abs(wide)
    value = 2 * np.exp(np.minimum(size, 100) ** 2) - special.erfcx(size.astype(np.float64))
    below = _recurrence(wide, value, 2 * (wide * value - 1 / np.sqrt(PI)), order)
    y = np.where(wide < 0, below, scaled(size, order) if order else special.erfcx(np.asarray(x, np.float64)))
    return y.astype(np.asarray(x).dtype)[()]


def _exact_erfcx(mp: Any, x: Any, order: int = 0) -> Any:
    """Kummer's U (DLMF 7.18.10) for positive numbers, where the recurrence cancels."""
    if x > 0:
        half = mp.mpf(1) / 2
        with mp.extraprec(20):
            return (-1) ** order * factorial(order) * mp.hyperu((order + 1) * half, half, x * x) / mp.sqrt(mp.pi)
    with mp.extraprec(20 + 2 * max(0, mp.mag(x)) if mp.isfinite(x) else 20):
        value = mp.exp(x * x) * mp.erfc(x)
        return _recurrence(x, value, 2 * x * value - 2 / mp.sqrt(mp.pi), order)


def _erfcx_formula(sp: Any, x: Any, order: int = 0) -> Any:
    value = sp.exp(x**2) * sp.erfc(x)
    return _recurrence(x, value, 2 * x * value - 2 / sp.sqrt(sp.pi), order)


def _erfcx_of_ball(x: Any, order: int = 0) -> Any:
    value = (x * x).exp() * x.erfc()
    return _recurrence(x, value, 2 * x * value - 2 / type(x).pi().sqrt(), order)


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
    "erfcx": (_erfcx, _exact_erfcx, _erfcx_formula, _erfcx_of_ball, 1, {"NumPy": "scipy.special.erfcx", "Torch": "torch.special.erfcx"}),
    "erfcx_derivative": (_erfcx, _exact_erfcx, _erfcx_formula, _erfcx_of_ball),
}
