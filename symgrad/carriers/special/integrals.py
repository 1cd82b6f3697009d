"""Functions that are integrals of elementary ones, and the inverse of x eˣ (DLMF 4.13, 6.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["ROWS"]


def _real(name: str, function: Any) -> Any:
    def call(special: Any, x: Any) -> Any:
        if np.iscomplexobj(x):
            raise TypeError(f"{name} is defined here for real numbers, got complex ones; pass the real part")
        return function(special, x)

    return call


def _expi(special: Any, x: Any) -> Any:
    """Ei; for x > 40, where SciPy has errors of 125 ULP, by the asymptotic series, which ends with its smallest term."""
    far = np.clip(np.asarray(x, np.float64), 40, 720)
    total = 0.0
    for k in range(40, 0, -1):
        total = 1 + total * k / far
    y = np.where((x > 40) & (x < 709), np.exp(far) / far * total, special.expi(np.asarray(x, np.float64)))
    return np.where((x > -1.5) & (x < -0.5), -_exp1_by_series(-x), y).astype(np.asarray(x).dtype)[()]


def _exp1_by_series(x: Any) -> Any:
    """E₁ by its power series, in which a float loses three bits, for 0.5 < x < 1.5; SciPy has an error of 8.4 ULP at 1 (DLMF 6.6.2)."""
    x = np.clip(np.asarray(x, np.longdouble), 0.5, 1.5)
    term, total = np.ones_like(x), -np.log(x) - np.longdouble("0.57721566490153286060651209008240243")
    for k in range(1, 28):
        term = -term * x / k
        total = total - term / k
    return total.astype(np.float64)


# name: arrays, digits, formula, balls, arity
ROWS: dict[str, tuple[Any, ...]] = {
    "expi": (_real("expi", _expi), lambda mp, x: mp.ei(x), lambda sp, x: sp.Ei(x), lambda x: x.ei()),
    "exp1": (_real("exp1", lambda special, x: np.where(x < 0, np.nan, -_expi(special, -x)).astype(np.asarray(x).dtype)[()]),
             lambda mp, x: mp.e1(x) if x > 0 else mp.nan, lambda sp, x: sp.expint(1, x), lambda x: x.expint(1)),
    "lambertw": (_real("lambertw", lambda special, x: special.lambertw(x).real.astype(np.asarray(x).dtype)[()]),
                 lambda mp, x: mp.lambertw(x), lambda sp, x: sp.LambertW(x), lambda x: x.lambertw()),
}
