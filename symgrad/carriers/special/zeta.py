"""Hurwitz's zeta function and its derivatives by both arguments, by Euler's and Maclaurin's summation (DLMF 25.11.7)."""

from __future__ import annotations

import importlib
from math import factorial
from typing import Any

import numpy as np

from symgrad.carriers.special.incomplete import BERNOULLI, exact, exponential, times
from symgrad.carriers.special.inverses import sources

__all__ = ["ROWS"]

TERMS = 16  # of the sum itself, before the integral


def _power(q: Any, s: Any, count: int) -> list[Any]:
    """The series of q^(-s - ε)."""
    exponent = [0 * q, -np.log(q), *[0 * q] * count]
    return exponential(exponent[:count], q**-s)


def _series(s: Any, q: Any, count: int) -> list[Any]:
    """The series of ζ(s + ε, q), for s > 1 and q > 0."""
    total = [np.zeros_like(q) for _ in range(count)]
    for k in range(TERMS):
        total = [u + v for u, v in zip(total, _power(q + k, s, count))]
    last = q + TERMS
    power = _power(last, s, count)
    inverse = [(-1) ** i / (s - 1) ** (i + 1) for i in range(count)]
    factor = [last * c for c in inverse]
    factor[0] = factor[0] + 0.5
    rising = [np.ones_like(q), *[np.zeros_like(q)] * (count - 1)]
    for k, b in enumerate(BERNOULLI, 1):
        for i in (2 * k - 3, 2 * k - 2):
            if i >= 0:
                rising = times(rising, [s + i, np.ones_like(q), *[np.zeros_like(q)] * count])
        factor = [u + v * exact(b / factorial(2 * k)) * last ** (1 - 2 * k) for u, v in zip(factor, rising)]
    return [u + v for u, v in zip(total, times(power, factor))]


def _zeta(special: Any, s: Any, q: Any, order: int = 0, shift: int = 0) -> Any:
    """The derivative of ζ(s + shift, q) by s of an order; outside s > 1, q > 0 there is SciPy's value, and no derivative by s."""
    dtype = np.result_type(s, q)
    if dtype.kind == "c":
        raise TypeError("zeta is defined here for real numbers, got complex ones; pass the real part")
    s, q = np.broadcast_arrays(np.asarray(s, np.longdouble) + shift, np.asarray(q, np.longdouble))
    y = np.array(special.zeta(s.astype(float), q.astype(float)) if order == 0 else np.full(s.shape, np.nan), np.longdouble)
    inside = (s > 1) & (q > 0) & np.isfinite(s) & np.isfinite(q)
    if inside.any():
        y[inside] = factorial(order) * _series(s[inside], q[inside], order + 1)[order]
    return y.astype(dtype)[()]


def _exact_zeta(mp: Any, s: Any, q: Any, order: int = 0, shift: int = 0) -> Any:
    """By mpmath, whose errors are absolute: small values take more digits."""
    if not (s + shift > 1 and q > 0):
        return mp.nan
    with mp.extraprec(20 + max(0, int(s + shift) * (mp.mag(q) + 1))):
        return mp.zeta(s + shift, q, order)


def _formula(sp: Any, s: Any, q: Any, order: int = 0, shift: int = 0) -> Any:
    if order:
        raise TypeError("zeta_derivative cannot be written here: the derivative of zeta by its first argument has no formula")
    return sp.zeta(s + shift, q)


def _of_ball(s: Any, q: Any, order: int, shift: int) -> Any:
    flint = importlib.import_module("flint")
    series = flint.acb_series([flint.acb(s + shift), 1], prec=order + 1).zeta(flint.acb(q))
    return series[order].real * factorial(order)


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "zeta": (_zeta, _exact_zeta, _formula, lambda s, q: s.zeta(q), 2, sources("zeta")),
    "zeta_derivative": (_zeta, _exact_zeta, _formula, _of_ball, 2),
}
