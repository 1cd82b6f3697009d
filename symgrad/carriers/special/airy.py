"""Airy's function Ai with its derivative, and the spherical Bessel function sin(x)/x (DLMF chapters 9 and 10)."""

from __future__ import annotations

from functools import cache
from math import factorial
from typing import Any

import numpy as np

from symgrad.carriers.cells import sinc_digits, sinc_of_ball, sinc_recurrence
from symgrad.carriers.sinc import by_recurrence
from symgrad.carriers.special.pieces import PI, Expansions, Pieces, horner, piecewise, with_many_digits

LOW, HIGH = -20.0, 16.0  # outside: SciPy's values, and the asymptotic series
SMALL = 2.0**-10  # of the amplitude of a wave: where a long double has no more digits to lose, next to a zero


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


def _digits(order: int) -> Any:
    """The function of mpmath, or for large arguments the asymptotic series, which needs none of mpmath's constants. DLMF 9.7.5 to 9.7.10."""
    def call(mp: Any, x: Any) -> Any:
        if not mp.isfinite(x) or abs(x) ** 3 < mp.mpf(mp.prec) ** 2:
            return mp.airyai(x, derivative=order)
        more = 20 + max(0, 3 * mp.mag(x) // 2)
        with mp.extraprec(more):
            size = abs(x)
            exponent = 2 * size * mp.sqrt(size) / 3
            u, terms = mp.one, list[Any]()
            while mp.mag(u) > more - mp.prec - 20:
                k = len(terms)
                terms.append(u * (6 * k + 1) / (1 - 6 * k) if order else u)
                u = u * (6 * k + 1) * (6 * k + 3) * (6 * k + 5) / (216 * (k + 1) * (2 * k + 1)) / exponent
            factor = size ** (mp.mpf(2 * order - 1) / 4) / mp.sqrt(mp.pi)
            if x > 0:
                return (-1) ** order * mp.exp(-exponent) * factor / 2 * mp.fsum((-1) ** k * t for k, t in enumerate(terms))
            even, odd = (mp.fsum((-1) ** k * t for k, t in enumerate(terms[i::2])) for i in (0, 1))
            cosine, sine = mp.cos_sin(exponent - mp.pi / 4)
            return factor * (sine * even - cosine * odd if order else cosine * even + sine * odd)

    return call


@cache
def _pieces(order: int) -> Pieces:
    return Pieces(lambda x: NEAR(x, order), lambda mp, x: mp.airyai(x, derivative=order), LOW, HIGH, 288)


def _far(x: Any, order: int) -> Any:
    far = np.minimum(np.asarray(x, np.longdouble), 1e4)
    exponent, series = 2 * far * np.sqrt(far) / 3, np.zeros_like(far)
    for pair in reversed(_asymptotic()):
        series = pair[order] - series / exponent
    return (-1) ** order * np.exp(-exponent) * far ** ((2 * order - 1) / np.longdouble(4)) * series / (2 * np.sqrt(PI))


def _airy(order: int) -> Any:
    def call(special: Any, x: Any) -> Any:
        given = _real("airy_ai", x)
        y = piecewise(given, [(given >= LOW) & (given <= HIGH), given > HIGH],
                      [lambda x: _pieces(order)(x), lambda x: _far(x, order), lambda x: special.airy(x)[order]])
        return y.astype(np.asarray(x).dtype)[()]

    return call


def _real(name: str, x: Any) -> Any:
    """The array in float64; complex numbers are refused."""
    if np.iscomplexobj(x):
        raise TypeError(f"{name} is defined here for real numbers, got complex ones; pass the real part")
    return np.asarray(x, np.float64)


SERIES = [(-1) ** k / ((2 * k + 1) * factorial(2 * k - 1)) for k in range(1, 16)]
"""The coefficients of the derivative of sin(x)/x, divided by x, as a series of x²."""


def _j0_slope(x: Any) -> Any:
    """(cos(x) - sin(x)/x) / x, in long doubles where the two terms cancel, and with many digits next to its zeros."""
    def cancelling(x: Any) -> Any:
        y = _j0_by_recurrence(x, 1)
        return with_many_digits(y, np.abs(x * y) < SMALL, x, lambda mp, x: _exact_j0(mp, x, 1))

    return piecewise(x, [np.abs(x * np.cos(x)) > 8], [lambda x: (np.cos(x) - np.sin(x) / x) / x, cancelling])


def _j0(special: Any, x: Any, order: int) -> Any:
    """The derivative of sin(x)/x of an order."""
    given = _real("spherical_bessel_j0", x)
    if order == 0:
        y = piecewise(given, [(given != 0) & ~np.isinf(given), given == 0], [lambda x: np.sin(x) / x, np.ones_like, np.zeros_like])
    elif order == 1:
        y = piecewise(given, [np.abs(given) < 3], [lambda x: x * horner(SERIES, x * x), _j0_slope])
    else:
        y = _j0_by_recurrence(given, order)
    return y.astype(np.asarray(x).dtype)[()]


def _j0_by_recurrence(x: Any, order: int) -> Any:
    u = np.asarray(x, np.longdouble)
    return np.where(np.isinf(u), 0, by_recurrence(u, np.sin(u), np.cos(u), order)).astype(np.float64)


def _exact_j0(mp: Any, x: Any, order: int) -> Any:
    with mp.extraprec(60):
        return sinc_digits(mp, x, mp.sin(x), mp.cos(x), order)


def _formula(sp: Any, x: Any, order: int) -> Any:
    limit = sp.Integer(0) if order % 2 else sp.Rational((-1) ** (order // 2), order + 1)
    if x.is_number:
        return limit if x == 0 else sinc_recurrence(sp.sin(x), sp.cos(x), x, order)
    return sp.Piecewise((sinc_recurrence(sp.sin(x), sp.cos(x), x, order), sp.Ne(x, 0)), (limit, True))


# name: arrays, digits, formula, balls, arity, sources; SciPy's airy, which is the source in NumPy, has errors of 80 ULP at 62
ROWS: dict[str, tuple[Any, ...]] = {
    "airy_ai": (_airy(0), _digits(0), lambda sp, x: sp.airyai(x), lambda x: x.airy_ai(), 1,
                {"NumPy": "9 scipy.special.airy({0})[0]"}),
    "airy_ai_prime": (_airy(1), _digits(1), lambda sp, x: sp.airyaiprime(x), lambda x: x.airy_ai(derivative=1), 1,
                      {"NumPy": "9 scipy.special.airy({0})[1]"}),
    "spherical_bessel_j0_derivative": (_j0, _exact_j0, _formula, lambda x, n: sinc_of_ball(x, *x.sin_cos(), n), 1),
}
