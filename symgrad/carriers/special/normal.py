"""The normal distribution function, and the inverse of the logistic function."""

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
# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "ndtr": (_ndtr, lambda mp, x: mp.erfc(-x / mp.sqrt(2)) / 2, lambda sp, x: sp.erfc(-x / sp.sqrt(2)) / 2,
             lambda x: (-x / type(x)(2).sqrt()).erfc() / 2, 1,
             {"NumPy": "scipy.special.ndtr", "Torch": "torch.special.ndtr", "Jax": "jax.scipy.special.ndtr",
              "C": "5 0.5 * erfc({0:5} * -0.7071067811865476)"}),
    "ndtr_slope": (_ndtr_slope, lambda mp, x: mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi), lambda sp, x: sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi),
                   lambda x: (-x * x / 2).exp() / (2 * type(x).pi()).sqrt(), 1, {"Python": SLOPE, "C": SLOPE_IN_C}),
    "logit": ("logit", _exact_logit, lambda sp, x: sp.log(x / (1 - x)), lambda x: (x / (1 - x)).log(), 1,
              {"Torch": "torch.special.logit", "Jax": "jax.scipy.special.logit", "C": "9 log({0} / (1.0 - {0:5}))"}),
}
