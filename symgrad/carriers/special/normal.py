"""The normal distribution function and its logarithm, and the inverse of the logistic function.

Every derivative of log Φ is a polynomial in x and the ratio r = φ/Φ, since r' = -r (x + r). It cancels for negative x; numbers have expansions
there, and an asymptotic series for x < -10.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from symgrad.carriers.special.errors import bell, hermite, scaled
from symgrad.carriers.special.inverses import sources
from symgrad.carriers.special.pieces import PI, Expansions, Pieces, piecewise
from symgrad.system.numpy_internals import clip

LEFT, RIGHT = -10.0, 9.0  # between which Φ is a polynomial in each cell
HALF_ROOT, ROOT = np.sqrt(0.5), np.sqrt(np.pi)


@functools.cache
def _distribution() -> Pieces:
    """Φ from -10 to 9, and at larger numbers 1."""
    def exact(x: Any) -> Any:
        size = np.abs(x)
        tail = scaled(size * np.sqrt(np.longdouble(0.5)), 0) * np.exp(-(size**2) / 2) / 2
        return np.where(x < 0, tail, 1 - tail)

    return Pieces(exact, None, LEFT, RIGHT, 304)


def ndtr(special: Any, x: Any) -> Any:
    if x.dtype.kind == "c":
        return special.ndtr(x)

    def tail(x: Any) -> Any:
        return bell(np.maximum(x, -40), 1, special.erfcx(-x * HALF_ROOT) / 2)

    wide = np.asarray(x, np.float64)
    return piecewise(wide, [~(wide < LEFT)], [_distribution(), tail]).astype(x.dtype, copy=False)[()]


def above(special: Any, x: Any) -> Any:
    """The integral of the density from x on."""
    return ndtr(special, -x)


def _ndtr_slope(special: Any, x: Any, order: int) -> Any:
    x = clip(x, -40, 40)
    factor = x.dtype.type(HALF_ROOT / ROOT)
    return bell(x, 1, factor * hermite(x, order, 1) if order else factor)


def _exact_logit(mp: Any, x: Any) -> Any:
    with mp.extraprec(10 + abs(int(mp.mag(2 * x - 1))) if x != 0.5 else 10):
        return mp.log(x / (1 - x))


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "ndtr": (ndtr, lambda mp, x: mp.erfc(-x / mp.sqrt(2)) / 2, lambda sp, x: sp.erfc(-x / sp.sqrt(2)) / 2,
             lambda x: (-x / type(x)(2).sqrt()).erfc() / 2, 1,
             {"NumPy": "scipy.special.ndtr", "Torch": "torch.special.ndtr", "Jax": "jax.scipy.special.ndtr",
              "C": "5 0.5 * erfc({0:5} * -0.7071067811865476)"}),
    "ndtr_slope": (_ndtr_slope, lambda mp, x, n: mp.zero if mp.isinf(x) else mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi) * hermite(x, n, 1),
                   lambda sp, x, n: sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi) * hermite(x, n, 1),
                   lambda x, n: (-x * x / 2).exp() * hermite(x, n, 1) / (2 * type(x).pi()).sqrt(), 1),
    "logit": ("logit", _exact_logit, lambda sp, x: sp.log(x / (1 - x)), lambda x: (x / (1 - x)).log(), 1,
              {"Torch": "torch.special.logit", "Jax": "jax.scipy.special.logit", "C": "9 log({0} / (1.0 - {0:5}))"}),
    "logit_slope": (lambda special, x: 1 / (x * (1 - x)), lambda mp, x: 1 / (x * (1 - x)), lambda sp, x: 1 / (x * (1 - x)),
                    lambda x: 1 / (x * (1 - x)), 1, {"Python": "7 1 / ({0:5} * (1 - {0:5}))", "C": "7 1.0 / ({0:5} * (1.0 - {0:5}))"}),
}


def _ratio_coefficients(mp: Any, centre: Any, count: int) -> list[Any]:
    """The Taylor coefficients of φ/Φ."""
    out = [_ratio_formula(mp, centre)]
    for k in range(count - 1):
        squares = mp.fsum(out[i] * out[k - i] for i in range(k + 1))
        out.append(-(centre * out[k] + (out[k - 1] if k else 0) + squares) / (k + 1))
    return out


LOWEST, HIGHEST = -10.0, 4.0
TOP = 8.0  # from here on log Φ is Φ - 1 in float64
RATIO = Expansions(_ratio_coefficients, LOWEST, HIGHEST, 0.5)


@functools.cache
def _asymptotic() -> list[int]:
    """The numbers c of φ(x)/Φ(x) = Σ c |x|^(1 - 2m) for x to minus infinity."""
    out = [1]
    for m in range(1, 37):
        out.append((3 - 2 * m) * out[-1] - sum(out[i] * out[m - i] for i in range(1, m)))
    return out


@functools.cache
def _polynomial(order: int) -> dict[tuple[int, int], int]:
    """The derivative of φ/Φ of an order as a polynomial in x and φ/Φ, by exponents."""
    if order == 0:
        return {(0, 1): 1}
    out: dict[tuple[int, int], int] = {}
    for (i, j), c in _polynomial(order - 1).items():
        for power, factor in (((i - 1, j), i), ((i + 1, j), -j), ((i, j + 1), -j)):
            if factor:
                out[power] = out.get(power, 0) + factor * c
    return out


def _of_ratio(x: Any, ratio: Any, order: int) -> Any:
    return sum(c * x**i * ratio**j for (i, j), c in _polynomial(order).items())


@functools.cache
def _pieces(order: int) -> Pieces:
    """log Φ, or φ/Φ."""
    return Pieces(lambda x: _long(x, order), None, LOWEST, TOP, 288)


def _value(special: Any, x: Any) -> Any:
    """log Φ; above 8 it is Φ - 1."""
    return piecewise(x, [(x >= LOWEST) & (x <= TOP), x < 0], [
        lambda x: _pieces(0)(x), lambda x: np.log(special.erfcx(-x * np.sqrt(0.5)) / 2) - x * x / 2, lambda x: -above(special, x)])


def _slope(special: Any, x: Any) -> Any:
    """φ/Φ; above 8 it is φ."""
    return piecewise(x, [(x >= LOWEST) & (x <= TOP), x < 0], [
        lambda x: _pieces(1)(x), lambda x: _long(x, 1).astype(np.float64), lambda x: bell(np.minimum(x, 40), 1, 1 / np.sqrt(2 * np.pi))])


def _log_ndtr(special: Any, x: Any, order: int = 0) -> Any:
    if np.iscomplexobj(x):
        raise TypeError("log_ndtr is defined here for real numbers, got complex ones; pass the real part")
    if order > 1:
        y = _long(np.asarray(x, np.longdouble), order)
    else:
        y = (_slope if order else _value)(special, np.asarray(x, np.float64))
    return y.astype(np.asarray(x).dtype)[()]


def _long(x: Any, order: int) -> Any:
    """The derivative of an order, with the digits of a long double."""
    wide = np.asarray(x, np.longdouble)
    size = np.abs(wide)
    below = scaled(size * np.sqrt(np.longdouble(0.5)), 0) / 2  # Φ(-|x|) exp(x²/2)
    if order == 0:
        return np.where(wide < 0, np.log(below) - wide**2 / 2, np.log1p(-below * np.exp(-(wide**2) / 2)))
    near = np.clip(wide, HIGHEST, 150.0)
    density = np.exp(-(near**2) / 2)
    above = _of_ratio(near, density / np.sqrt(2 * PI) / (1 - below * density), order - 1)
    inverse, series = 1 / np.maximum(size, -LOWEST), np.zeros_like(size)
    for m, c in reversed([*enumerate(_asymptotic())]):
        series = series * inverse**2 + c * _falling(1 - 2 * m, order - 1)
    series = (-1) ** (order - 1) * series * inverse ** (order - 2)
    y = np.where(wide < LOWEST, series, np.where(wide > HIGHEST, above, RATIO(wide, order - 1)))
    return np.where(np.isnan(wide), np.nan, y)


def _falling(x: int, count: int) -> int:
    """x (x - 1) ... of `count` factors."""
    return prod(range(x, x - count, -1))


def _ratio_formula(library: Any, x: Any) -> Any:
    """φ/Φ, with mpmath or SymPy."""
    return library.sqrt(2 / library.pi) * library.exp(-(x**2) / 2) / library.erfc(-x / library.sqrt(2))


def _exact_log_ndtr(mp: Any, x: Any, order: int = 0) -> Any:
    with mp.extraprec(20 + 2 * (order + 1) * max(0, mp.mag(x)) if mp.isfinite(x) else 20):
        if order:
            return _of_ratio(x, _ratio_formula(mp, x), order - 1)
        return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2) if x < 0 else mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2)


def _log_ndtr_formula(sp: Any, x: Any, order: int = 0) -> Any:
    if order:
        return _of_ratio(x, _ratio_formula(sp, x), order - 1)
    if x.is_number and x > 0:  # SymPy evaluates log(1 - 1e-30) to 0
        above = sp.erfc(x / sp.sqrt(2)) / 2
        return -2 * sp.atanh(above / (2 - above))
    return sp.log(sp.erfc(-x / sp.sqrt(2)) / 2)


def _log_ndtr_of_ball(x: Any, order: int = 0) -> Any:
    if order == 0 and x > 0:
        return (-(x / type(x)(2).sqrt()).erfc() / 2).log1p()
    twice = (-x / type(x)(2).sqrt()).erfc()
    return _of_ratio(x, (-x * x / 2).exp() * (2 / type(x).pi()).sqrt() / twice, order - 1) if order else (twice / 2).log()


ROWS |= {
    "log_ndtr": (_log_ndtr, _exact_log_ndtr, _log_ndtr_formula, _log_ndtr_of_ball, 1, sources("log_ndtr")),
    "log_ndtr_derivative": (_log_ndtr, _exact_log_ndtr, _log_ndtr_formula, _log_ndtr_of_ball, 1),
}
