"""The error function and its kin (DLMF chapter 7), and the exponentials of squares that their derivatives of every order are made of."""

from __future__ import annotations

from functools import cache
from math import perm, prod
from typing import Any

import numpy as np

from symgrad.carriers.special.pieces import PI, Expansions, Pieces, piecewise
from symgrad.system.numpy_internals import clip

LEFT, FAR = -6.0, 10.0  # between which the first two are polynomials in each cell; from here on the asymptotic series of `scaled` has all digits


def _recurrence(x: Any, value: Any, slope: Any, order: int) -> Any:
    """The derivative of exp(x²) erfc(x) of an order, from the first two: E'' = 2 (x E)'. It cancels for large positive x."""
    for k in range(1, order):
        value, slope = slope, 2 * (x * slope + k * value)
    return slope if order else value


def _scaled_coefficients(mp: Any, centre: Any, count: int) -> list[Any]:
    """The Taylor coefficients of exp(x²) erfc(x)."""
    out = [mp.exp(centre**2) * mp.erfc(centre)]
    out.append(2 * (centre * out[0] - 1 / mp.sqrt(mp.pi)))
    for k in range(2, count):
        out.append(2 * (centre * out[-1] + out[-2]) / k)
    return out


EXPANSIONS = Expansions(_scaled_coefficients, 0.0, FAR, 0.25)


def scaled(x: Any, order: int) -> Any:
    """The derivative of exp(x²) erfc(x) of an order for x >= 0, as a long double; for large x by the asymptotic series (DLMF 7.12.1)."""
    inverse = 1 / np.maximum(np.asarray(x, np.longdouble), FAR)
    series = np.zeros_like(inverse)
    for m in range(20, -1, -1):
        series = series * inverse**2 + (-1) ** m * prod(range(1, 2 * m, 2)) * perm(2 * m + order, order) / 2**m
    return np.where(x < FAR, EXPANSIONS(np.asarray(x, np.longdouble), order), (-1) ** order * inverse ** (order + 1) * series / np.sqrt(PI))


@cache
def _scaled_pieces(order: int) -> Pieces:
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
    return piecewise(x, [x < FAR], [_scaled_pieces(0), special.erfcx])


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
    y = piecewise(wide, [*near, wide < 0], [*([_scaled_pieces(order)] if near else []), lambda x: _below_0(special, x, order), far])
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


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "erfcx": (_erfcx, _exact_erfcx, _erfcx_formula, _erfcx_of_ball, 1,
              {"Python": "9 _erfcx_derivative({0}, 0)", "C": "9 symgrad_erfcx_derivative_0({0})"}),
    "erfcx_derivative": (_erfcx, _exact_erfcx, _erfcx_formula, _erfcx_of_ball, 1),
}


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


ROWS |= {
    "erf": ("erf", lambda mp, x: mp.erf(x), lambda sp, x: sp.erf(x), lambda x: x.erf(), 1,
            {"Torch": "torch.special.erf", "Jax": "jax.scipy.special.erf", "C": "erf"}),
    "erfc": (_erfc, lambda mp, x: mp.erfc(x), lambda sp, x: sp.erfc(x), lambda x: x.erfc(), 1,
             {"NumPy": "scipy.special.erfc", "Torch": "torch.special.erfc", "Jax": "jax.scipy.special.erfc", "C": "erfc"}),
    "erf_slope": (_slope, lambda mp, x, n: mp.zero if mp.isinf(x) else 2 / mp.sqrt(mp.pi) * mp.exp(-x * x) * hermite(x, n, 2),
                  lambda sp, x, n: 2 / sp.sqrt(sp.pi) * sp.exp(-(x**2)) * hermite(x, n, 2),
                  lambda x, n: (-x * x).exp() * hermite(x, n, 2) * 2 / type(x).pi().sqrt(), 1),
}
