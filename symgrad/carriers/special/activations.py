"""Activations whose obvious formulas cancel."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from symgrad.types.indices import check_ordered

__all__ = ["ROWS"]

ROOT, REST_OF_ROOT = -0.7517915246935645, 1.4956759177009883e-17  # where the derivative of x Φ(x) is 0


def _in_double(function: Any) -> Any:
    """A function of real numbers of double precision for arrays of less, which is rounded at the end."""
    def call(special: Any, x: Any, *order: int) -> Any:
        check_ordered(x)
        return np.asarray(function(special, np.asarray(x, np.float64), *order)).astype(np.asarray(x).dtype)[()]

    return call


def _hermite(x: Any, n: int) -> tuple[Any, Any]:
    """The polynomials He of order n and n - 1. DLMF 18.9.1."""
    above, below = 0 * x + 1, 0 * x
    for k in range(n):
        above, below = x * above - k * below, above
    return above, below


@_in_double
def _gelu(special: Any, x: Any, order: int) -> Any:
    """The derivative of x Φ(x): φ has two factors, since the rounding of x² would cost x² roundings; Φ is φ times erfcx in the left tail."""
    inside = np.clip(x, -100, 100)
    near = np.rint(inside * 64) / 64  # its square is exact
    density = np.exp(-near * near / 2) * np.exp((near - inside) * (near + inside) / 2)
    if order < 2:
        tail = density * special.erfcx(np.maximum(-x, 0) / np.sqrt(2)) / 2
        below = np.where(x < -1, tail, special.erfc(-x / np.sqrt(2)) / 2)
        if order == 0:
            return np.where(x == -np.inf, 0.0, x * below)
        y = below + np.where(np.isinf(x), 0.0, x) * density / np.sqrt(2 * np.pi)
        step = np.where(np.abs(x - ROOT) < 0.3, (x - ROOT) - REST_OF_ROOT, 0.0)
        return np.where(np.abs(x - ROOT) < 0.3, np.polynomial.polynomial.polyval(step, _coefficients_at_root()), y)
    return _far(inside, order) * density / np.sqrt(2 * np.pi)


def _far(x: Any, order: int) -> Any:
    """The derivative of x Φ(x) of order 2 or more, divided by φ(x)."""
    above, below = _hermite(x, order - 1)
    return (-1) ** (order - 1) * (x * above - order * below)


@cache
def _coefficients_at_root() -> list[float]:
    """Those of the Taylor series of the derivative of x Φ(x) at its root, next to which the two terms of the formula cancel."""
    density = math.exp(-ROOT * ROOT / 2) / math.sqrt(2 * math.pi)
    return [0.0, *(_far(ROOT, k + 1) * density / math.factorial(k) for k in range(1, 22))]


def _gelu_of_numbers(erfc: Any, library: Any, x: Any, order: int) -> Any:
    """The derivative of x Φ(x), with a library's functions."""
    density = library.exp(-x * x / 2) / library.sqrt(2 * library.pi)
    if order < 2:
        below = erfc(-x / library.sqrt(2)) / 2
        return x * below if order == 0 else below + x * density
    return _far(x, order) * density


class _Balls:
    """The functions of balls that the formula needs."""

    def __init__(self, kind: Any):
        self.pi, self.exp, self.sqrt = kind.pi(), lambda x: x.exp(), lambda x: kind(x).sqrt()


ROWS: dict[str, tuple[Any, ...]] = {
    "softsign": (lambda special, x: x / (1 + np.abs(check_ordered(x))), lambda mp, x: x / (1 + abs(x)), lambda sp, x: x / (1 + sp.Abs(x)),
                 lambda x: x / (1 + abs(x)), 1, {"Python": "5 {0:6} / (1 + abs({0}))", "C": "5 {0:6} / (1.0 + fabs({0}))"}),
    "gelu_derivative": (_gelu, lambda mp, x, n: _gelu_of_numbers(mp.erfc, mp, x, n),
                        lambda sp, x, n: _gelu_of_numbers(lambda z: 1 + sp.erf(-z), sp, x, n),
                        lambda x, n: _gelu_of_numbers(lambda z: z.erfc(), _Balls(type(x)), x, n)),
}
