"""exp(x²) erfc(x) and its derivatives (DLMF 7.6, 7.12, 7.18): those cancel for large positive x, where they have an asymptotic series."""

from __future__ import annotations

from functools import cache
from math import perm, prod
from typing import Any

import numpy as np

from symgrad.carriers.special.pieces import PI, Expansions, Pieces, piecewise

__all__ = ["ROWS", "of_positive", "scaled"]

LEFT, FAR = -6.0, 10.0  # between which the first two are polynomials in each cell; from here on the asymptotic series of `scaled` has all digits


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


@cache
def _pieces(order: int) -> Pieces:
    """The derivative of order 0 or 1 from -6 to 10."""
    def exact(x: Any) -> Any:
        size = np.abs(x)
        near, mirrored = scaled(size, 0), 2 * np.exp(size**2)
        if not order:
            return np.where(x < 0, mirrored - near, near)
        slope = scaled(size, 1)
        return np.where(x < 0, 2 * x * mirrored + slope, slope)

    return Pieces(exact, None, LEFT, FAR, 512)


def of_positive(special: Any, x: Any) -> Any:
    """exp(x²) erfc(x) for x >= -6; SciPy's has errors of 7 ULP next to 0."""
    return piecewise(x, [x < FAR], [_pieces(0), special.erfcx])


def _below_0(special: Any, x: Any, order: int) -> Any:
    """For x < 0, where no two terms cancel; the square is split into an exact part and the rest."""
    near = np.rint(np.maximum(x, -30) * 64) / 64
    value = 2 * np.exp(near * near) * np.exp((np.maximum(x, -30) - near) * (np.maximum(x, -30) + near)) - of_positive(special, -x)
    return _recurrence(x, value, 2 * (x * value - 1 / np.sqrt(np.pi)), order)


def _erfcx(special: Any, x: Any, order: int = 0) -> Any:
    if x.dtype.kind == "c":
        raise TypeError("erfcx is defined here for real numbers, got complex ones; pass the real part")
    wide = np.asarray(x, np.float64)
    far = special.erfcx if order == 0 else lambda x: scaled(x, order).astype(np.float64)
    near = [(wide >= LEFT) & (wide < FAR)] if order < 2 else []
    y = piecewise(wide, [*near, wide < 0], [*([_pieces(order)] if near else []), lambda x: _below_0(special, x, order), far])
    return y.astype(x.dtype, copy=False)[()]


def _exact_erfcx(mp: Any, x: Any, order: int = 0) -> Any:
    with mp.extraprec(20 + 4 * order + 2 * (order + 1) * max(0, mp.mag(x)) if mp.isfinite(x) else 20):
        value = mp.exp(x * x) * mp.erfc(x)
        return _recurrence(x, value, 2 * x * value - 2 / mp.sqrt(mp.pi), order)


def _erfcx_formula(sp: Any, x: Any, order: int = 0) -> Any:
    value = sp.exp(x**2) * sp.erfc(x)
    return _recurrence(x, value, 2 * x * value - 2 / sp.sqrt(sp.pi), order)


def _erfcx_of_ball(x: Any, order: int = 0) -> Any:
    value = (x * x).exp() * x.erfc()
    return _recurrence(x, value, 2 * x * value - 2 / type(x).pi().sqrt(), order)


IN_PYTHON = """
def _erfcx_derivative(x, order):
    z, low = {m}.abs(x)[..., None], {m}.clip(x, -27.0, 0.0)
    part = 1 / (1 + z)
    u = {m}.arange(-68.0, 64.0) / 16 + 0 * part
    v = {m}.exp(u - {m}.exp(-u))
    t = v * part
    weight = (1 + {m}.exp(-u)) / 16 * t * {m}.exp(-t * t - 2 * v * (1 - part))

    def moment(n):  # the integral of t**n exp(-t * t - 2 * t * z) from 0 on
        return (weight * t**n).sum(-1)

    near = {m}.round(low * 64) / 64
    value = 2 * {m}.exp(near * near) * {m}.exp((low - near) * (low + near)) - 1.1283791670955126 * moment(0)
    slope = 2 * (low * value - 0.5641895835477563)
    for k in range(1, order):
        value, slope = slope, 2 * (low * slope + k * value)
    return {m}.where(x < 0, slope if order else value, (-2.0) ** order * 1.1283791670955126 * moment(order))
"""
# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "erfcx": (_erfcx, _exact_erfcx, _erfcx_formula, _erfcx_of_ball, 1,
              {"Python": "9 _erfcx_derivative({0}, 0)", "C": "9 symgrad_erfcx_derivative_0({0})"}),
    "erfcx_derivative": (_erfcx, _exact_erfcx, _erfcx_formula, _erfcx_of_ball, 1, {"Python": IN_PYTHON}),
}
