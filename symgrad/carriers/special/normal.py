"""The normal distribution function, the inverse of the error function, and the inverse of the logistic function.

The slope of erfinv is computed from the argument itself, since the rounding of the value would cost many digits near the ends of the domain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["ROWS"]

HALF_ROOT, ROOT = np.sqrt(0.5), np.sqrt(np.pi)


def _exponential(x: Any) -> Any:
    """exp(-x²/2); the square is split into an exact part and the rest."""
    x = np.clip(x, -40, 40)
    near = np.rint(x * 64) / 64
    return np.exp(-near * near / 2) * np.exp((near - x) * (near + x) / 2)


def _ndtr(special: Any, x: Any) -> Any:
    x = np.asarray(x)
    tail = np.where(x < -1, x, -1).astype(x.dtype)
    return np.where(x < -1, special.erfcx(-tail * x.dtype.type(HALF_ROOT)) * _exponential(tail) / 2, special.ndtr(x))[()]


def _ndtr_slope(special: Any, x: Any) -> Any:
    y = _exponential(x)
    return y * y.dtype.type(HALF_ROOT / ROOT)


def _erfinv_slope(special: Any, x: Any) -> Any:
    """√π/2 exp(erfinv(x)²), by exp(-y²) erfcx(y) = erfc(y) = 1 - |x|."""
    y = np.abs(special.erfinv(np.asarray(x)))
    return (np.where(y < 0.7, np.exp(y * y), special.erfcx(y) / (1 - np.abs(x))) * y.dtype.type(ROOT / 2))[()]


def _exact_erfinv(mp: Any, x: Any) -> Any:
    """Newton's iteration for erf(y) = x, next to ±1 for log erfc(y) = log(1 - |x|); both are concave, so that it converges from below."""
    if not 0 < abs(x) < 1:
        return x if x == 0 else mp.sign(x) * mp.inf if abs(x) == 1 else mp.nan
    with mp.extraprec(20):
        root, u = mp.sqrt(mp.pi) / 2, abs(x)
        y, step = root * u, mp.one
        while abs(step) > mp.ldexp(y, 10 - mp.prec):
            slope = root * mp.exp(y * y)
            step = (u - mp.erf(y)) * slope if u < 0.5 else mp.log(mp.erfc(y) / (1 - u)) * mp.erfc(y) * slope
            y += step
        return mp.sign(x) * y


def _exact_erfinv_slope(mp: Any, x: Any) -> Any:
    with mp.extraprec(20):
        return mp.sqrt(mp.pi) / 2 * mp.exp(_exact_erfinv(mp, x) ** 2)


def _exact_logit(mp: Any, x: Any) -> Any:
    with mp.extraprec(10 + abs(int(mp.mag(2 * x - 1))) if x != 0.5 else 10):
        return mp.log(x / (1 - x))


SLOPE = """
def _ndtr_slope(x):
    x = {m}.clip(x, -40, 40)
    near = {m}.round(x * 64) / 64
    return 0.3989422804014327 * {m}.exp(-near * near / 2) * {m}.exp((near - x) * (near + x) / 2)
"""
SLOPE_IN_C = """
static double symgrad_ndtr_slope(double x)
{
    double u = fmin(fmax(x, -40.0), 40.0);
    double near = rint(u * 64.0) / 64.0;
    return 0.3989422804014327 * exp(near * near / -2.0) * exp((near - u) * (near + u) / 2.0);
}
"""
ERFINV_SLOPE = """
def _erfinv_slope(x):
    y = {m}.abs(MODULE.erfinv(x))
    return 0.886226925452758 * {m}.where(y < 0.7, {m}.exp(y * y), MODULE.erfcx(y) / (1 - {m}.abs(x)))
"""


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "ndtr": (_ndtr, lambda mp, x: mp.erfc(-x / mp.sqrt(2)) / 2, lambda sp, x: sp.erfc(-x / sp.sqrt(2)) / 2,
             lambda x: (-x / type(x)(2).sqrt()).erfc() / 2, 1,
             {"NumPy": "scipy.special.ndtr", "Torch": "torch.special.ndtr", "Jax": "jax.scipy.special.ndtr",
              "C": "5 0.5 * erfc({0:5} * -0.7071067811865476)"}),
    "ndtr_slope": (_ndtr_slope, lambda mp, x: mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi), lambda sp, x: sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi),
                   lambda x: (-x * x / 2).exp() / (2 * type(x).pi()).sqrt(), 1, {"Python": SLOPE, "C": SLOPE_IN_C}),
    "erfinv": ("erfinv", _exact_erfinv, lambda sp, x: sp.erfinv(x), None, 1,
               {"Torch": "torch.special.erfinv", "Jax": "jax.scipy.special.erfinv"}),
    "erfinv_slope": (_erfinv_slope, _exact_erfinv_slope, lambda sp, x: sp.sqrt(sp.pi) / 2 * sp.exp(sp.erfinv(x) ** 2), None, 1,
                     {"NumPy": ERFINV_SLOPE.replace("MODULE", "scipy.special"), "Torch": ERFINV_SLOPE.replace("MODULE", "torch.special")}),
    "logit": ("logit", _exact_logit, lambda sp, x: sp.log(x / (1 - x)), lambda x: (x / (1 - x)).log(), 1,
              {"Torch": "torch.special.logit", "Jax": "jax.scipy.special.logit", "C": "9 log({0} / (1.0 - {0:5}))"}),
}
