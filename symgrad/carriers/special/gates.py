"""SiLU and Mish, x times a gate g that opens from 0 to 1, and their derivatives, with all digits next to their roots.

The gate is p / (p + a): for SiLU p = exp(x) and a = 1, for Mish p = exp(2x) + 2 exp(x) and a = 2. Far to the left the gate is exp(x), far to the
right it is 1 - a exp(-a x).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.carriers.special.pieces import Pieces, piecewise
from symgrad.layouts.indices import check_ordered

FAR = 40.0  # from here on exp(-|x|) is lost beside 1
POWERS = {"silu": ((1, 1),), "mish": ((1, 2), (2, 1))}  # the terms c exp(m x) of p, as pairs (c, m); a is their number
ROOTS = {"silu": (-1.2784645427610737, -1.0946994183093437e-16), "mish": (-1.1924312145154952, -4.8484829848031044e-17)}
"""The roots of the first derivatives, each as a sum of two floats."""
AT_ROOT = 0.3034825352815289  # the exponential of the root of Mish's derivative


def _derivative(name: str, x: Any, order: int, exp: Any) -> Any:
    """The derivative of x g of an order for numbers of any kind, from those of 1 - g = a / (p + a)."""
    a = len(POWERS[name])
    terms = [(c * exp(m * x), m) for c, m in POWERS[name]]
    top = sum(term for term, _ in terms)
    if not order:
        return x * (top / (top + a))
    rates, closed = [sum(term * m**j for term, m in terms) / (top + a) for j in range(order + 1)], [a / (top + a)]
    for k in range(1, order + 1):
        closed.append(-sum(math.comb(k, j) * rates[j] * closed[k - j] for j in range(1, k + 1)))
    return (rates[0] if order == 1 else -order * closed[order - 1]) - x * closed[order]


def _left(x: Any, order: int) -> Any:
    """The derivative of x exp(x); the exponential is a square, since it may be a subnormal number, with few digits, where the product is none."""
    x = np.maximum(x, -2000.0)
    root = np.exp(x / 2)
    return (x + order) * root * root


def _right(x: Any, order: int, a: int) -> Any:
    """The derivative of x - a x exp(-a x) of order 2 or more."""
    x = np.minimum(x, 2000.0)
    root = np.exp(-x * (a / 2))
    return -a * (-a) ** order * ((x - order / a) * root) * root


def _silu(x: Any) -> Any:
    e = np.exp(-x)
    e += 1
    return x / e


def _slope_parts(name: str, x: Any) -> tuple[Any, Any, Any]:
    """exp(-x), the distance d from the root, and exp(-d) - 1: with these the numerator of the slope is a sum of two terms of one sign."""
    e = np.exp(-x)
    d = x - ROOTS[name][0]
    d -= ROOTS[name][1]
    return e, d, np.expm1(-d)


def _silu_slope(x: Any) -> Any:
    """(d exp(-x) + 1 - exp(-d)) / (1 + exp(-x))²."""
    e, d, rest = _slope_parts("silu", x)
    d *= e
    d -= rest
    e += 1
    d /= e
    d /= e
    return d


def _mish(x: Any) -> Any:
    e = np.exp(-x)
    e += e
    over = 1 + e
    e *= e
    e /= 2
    e += over
    over /= e
    over *= x
    return over


def _mish_slope(x: Any) -> Any:
    """(4 (1 + t) d exp(-3x) + (1 - exp(-d)) q) / (1 + 2 exp(-x) + 2 exp(-2x))², t = exp(root) and q a polynomial of x and exp(-x)."""
    e, d, rest = _slope_parts("mish", x)
    square = e * e
    part = e + square
    part += part
    part += 1
    inner = 4 * x
    inner += AT_ROOT * AT_ROOT + 4 * AT_ROOT + 6
    inner *= square
    inner += 1
    square *= e
    e *= 4 + AT_ROOT
    inner += e
    inner *= rest
    d *= 4 * (1 + AT_ROOT)
    d *= square
    d -= inner
    d /= part
    d /= part
    return d


@functools.cache
def _pieces(name: str, order: int) -> Pieces:
    return Pieces(lambda x: _derivative(name, x, order, np.exp), lambda mp, x: _derivative(name, x, order, mp.exp), -FAR, FAR, 640)


def _arrays(name: str, middle: Callable[[Any], Any] | None, order: int | None) -> Callable[..., Any]:
    """The function of arrays of real numbers, which is computed in double precision and rounded at the end."""
    def call(special: Any, x: Any, *given: int) -> Any:
        n = given[0] if order is None else order
        wide = np.asarray(check_ordered(x), np.float64)

        def right(x: Any) -> Any:
            return _right(x, n, len(POWERS[name])) if n > 1 else np.ones_like(x) if n else x

        y = piecewise(wide, [~(np.abs(wide) > FAR), wide < 0], [middle or _pieces(name, n), lambda x: _left(x, n), right])
        return np.asarray(y).astype(np.asarray(x).dtype, copy=False)[()]

    return call


def _row(name: str, middle: Callable[[Any], Any] | None, order: int | None, sources: dict[str, str]) -> tuple[Any, ...]:
    """The row of a function, of its slope, or of its derivative of the order that is a parameter."""
    def of(library: Any, x: Any, n: tuple[int, ...]) -> Any:
        return _derivative(name, x, n[0] if order is None else order, library)

    def digits(mp: Any, x: Any, *n: int) -> Any:
        from symgrad.carriers.digits import exponential  # imports mpmath, which would delay the start

        return of(exponential, x, n)

    return _arrays(name, middle, order), digits, lambda sp, x, *n: of(sp.exp, x, n), lambda x, *n: of(type(x).exp, x, n), 1, sources


ROWS: dict[str, tuple[Any, ...]] = {}
for _name, _value, _slope in (("silu", _silu, _silu_slope), ("mish", _mish, _mish_slope)):
    ROWS |= {
        f"{_name}_of_real": _row(_name, _value, 0, {}),
        f"{_name}_slope": _row(_name, _slope, 1, {}),
        f"{_name}_derivative": _row(_name, None, None, {}),
    }
