"""Airy's function Ai with its derivative, and the spherical Bessel function sin(x)/x (DLMF chapters 9 and 10)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from symgrad.carriers.cells import sinc_recurrence
from symgrad.carriers.special.expansions import PI, Expansions

__all__ = ["ROWS"]

LOW, HIGH = -20.0, 16.0  # outside: SciPy's values, and the asymptotic series


def _coefficients(mp: Any, centre: Any, count: int) -> list[Any]:
    """The Taylor coefficients of Ai, from y'' = x y."""
    out = [mp.airyai(centre), mp.airyai(centre, derivative=1)]
    for k in range(2, count):
        out.append((centre * out[k - 2] + (out[k - 3] if k > 2 else 0)) / (k * (k - 1)))
    return out


NEAR = Expansions(_coefficients, LOW, HIGH, 0.5)


@cache
def _asymptotic() -> list[tuple[Any, Any]]:
    """The numbers uₖ and vₖ of the asymptotic series. DLMF 9.7.2."""
    out, u = [], np.longdouble(1)
    for k in range(40):
        out.append((u, u * (6 * k + 1) / (1 - 6 * k)))
        u = u * (6 * k + 1) * (6 * k + 3) * (6 * k + 5) / (216 * (k + 1) * (2 * k + 1))
    return out


def _airy(order: int) -> Any:
    def call(special: Any, x: Any) -> Any:
        if np.iscomplexobj(x):
            raise TypeError("airy_ai is defined here for real numbers, got complex ones; pass the real part")
        wide = np.asarray(x, np.longdouble)
        far = np.clip(wide, HIGH, 1e4)
        exponent, series = 2 * far * np.sqrt(far) / 3, np.zeros_like(far)
        for pair in reversed(_asymptotic()):
            series = pair[order] - series / exponent
        above = (-1) ** order * np.exp(-exponent) * far ** ((2 * order - 1) / np.longdouble(4)) * series / (2 * np.sqrt(PI))
        below = special.airy(np.where(wide < LOW, wide, -1).astype(np.float64))[order]
        y = np.where(wide > HIGH, above, np.where(wide < LOW, below, NEAR(wide, order)))
        return np.where(np.isnan(wide), np.nan, y).astype(np.asarray(x).dtype)[()]

    return call


def _j0(special: Any, x: Any, order: int) -> Any:
    """The derivative of sin(x)/x of an order, by the recurrences of `sinc_derivative`."""
    if np.iscomplexobj(x):
        raise TypeError("spherical_bessel_j0 is defined here for real numbers, got complex ones; pass the real part")
    u = np.asarray(x, np.longdouble)
    sine, cosine = np.sin(u), np.cos(u)
    waves = (sine, cosine, -sine, -cosine)
    large = np.abs(u) > order + 1
    large_u, small_u = np.where(large, u, 1), np.where(large, 0, u)
    upward, downward = sine / large_u, np.zeros_like(u)
    for n in range(1, order + 1):
        upward = (waves[n % 4] - n * upward) / large_u
    for n in range(2 * order + 50, order, -1):
        downward = (waves[n % 4] - small_u * downward) / n
    return np.where(np.isinf(u), 0, np.where(large, upward, downward)).astype(np.asarray(x).dtype)[()]


def _exact_j0(mp: Any, x: Any, order: int) -> Any:
    size = abs(x)
    if size > order + 4:
        with mp.extraprec(40):
            return sinc_recurrence(mp.sin(x), mp.cos(x), x, order)
    total, k = mp.zero, (order + 1) // 2
    with mp.extraprec(60):
        while True:
            power = 2 * k - order
            term = (-1) ** k * x**power / (mp.factorial(power) * (2 * k + 1))
            total += term
            if power > size and abs(term) <= mp.ldexp(abs(total), -mp.prec):
                return total
            k += 1


def _formula(sp: Any, x: Any, order: int) -> Any:
    limit = sp.Integer(0) if order % 2 else sp.Rational((-1) ** (order // 2), order + 1)
    if x.is_number:
        return limit if x == 0 else sinc_recurrence(sp.sin(x), sp.cos(x), x, order)
    return sp.Piecewise((sinc_recurrence(sp.sin(x), sp.cos(x), x, order), sp.Ne(x, 0)), (limit, True))


def _j0_of_ball(x: Any, order: int) -> Any:
    """∫₀¹ tⁿ cos⁽ⁿ⁾(xt) dt, a hypergeometric series where x is small, else the recurrence."""
    if abs(x) < order + 4:
        odd, ball = order % 2, type(x)
        a = order + 1 + odd
        series = (-x * x / 4).hypgeom([ball(a) / 2], [ball(0.5 + odd), ball(a) / 2 + 1])
        return (-1) ** ((order + 1) // 2) * (x if odd else 1) * series / a
    sine, cosine = x.sin_cos()
    return sinc_recurrence(sine, cosine, x, order)


IN_PYTHON = """
def _spherical_bessel_j0_derivative(x, order):
    sine, cosine = {m}.sin(x), {m}.cos(x)
    waves = (sine, cosine, -sine, -cosine)
    large = {m}.abs(x) > order + 1
    far, near = {m}.where(large, x, 1.0), {m}.where(large, 0.0, x)
    upward, downward = sine / far, 0.0
    for n in range(1, order + 1):
        upward = (waves[n % 4] - n * upward) / far
    for n in range(2 * order + 40, order, -1):
        downward = (waves[n % 4] - near * downward) / n
    return {m}.where(large, upward, downward)
"""
# name: arrays, digits, formula, balls, arity, sources; SciPy's airy, with errors of 80 ULP at 62, is no source
ROWS: dict[str, tuple[Any, ...]] = {
    "airy_ai": (_airy(0), lambda mp, x: mp.airyai(x), lambda sp, x: sp.airyai(x), lambda x: x.airy_ai()),
    "airy_ai_slope": (_airy(1), lambda mp, x: mp.airyai(x, derivative=1), lambda sp, x: sp.airyaiprime(x), lambda x: x.airy_ai(derivative=1)),
    "spherical_bessel_j0_derivative": (_j0, _exact_j0, _formula, _j0_of_ball, 1, {"Python": IN_PYTHON}),
}
