"""Functions that are integrals of elementary ones, and the inverse of x eˣ (DLMF 4.13, chapter 6)."""

from __future__ import annotations

import functools
from math import e, factorial, perm
from typing import Any

import numpy as np

from symgrad.carriers.special.pieces import EULER, Expansions, Pieces, piecewise, with_many_digits


def _real(name: str, function: Any) -> Any:
    def call(special: Any, x: Any, *order: int) -> Any:
        if np.iscomplexobj(x):
            raise TypeError(f"{name} is defined here for real numbers, got complex ones; pass the real part")
        return function(special, x, *order)

    return call


def _expi(special: Any, x: Any) -> Any:
    """Ei; for x > 40, where SciPy has errors of 125 ULP, by the asymptotic series, which ends with its smallest term. DLMF 6.12.2."""
    given = np.asarray(x, np.float64)
    y = piecewise(given, [(given > 40) & (given < 709), (given > 0.25) & (given <= 40), (given > -1.5) & (given < -0.5)],
                     [lambda x: np.exp(x) / x * _horner(k / x for k in range(40, 0, -1)), _by_series(0.25, 40.25, 1280),
                      _by_series(-1.5, -0.5, 32), special.expi])
    return y.astype(np.asarray(x).dtype)[()]


def _horner(factors: Any) -> Any:
    """1 + aₙ (1 + aₙ₋₁ (1 + ...)), of which the innermost comes first."""
    total: Any = 1.0
    for factor in factors:
        total = 1 + total * factor
    return total


@functools.cache
def _by_series(low: float, high: float, cells: int) -> Pieces:
    """Ei by its power series; SciPy has errors of 22 ULP at 0.382, next to the zero, of 9.7 below 40 and of 8.4 at -1. DLMF 6.6.1."""
    def exact(x: Any) -> Any:
        term, total = np.ones_like(x), np.log(np.abs(x)) + EULER
        for k in range(1, 160):
            term = term * x / k
            total = total + term / k
        return total

    return Pieces(exact, lambda mp, x: mp.ei(x), low, high, cells)


def _terms(x: Any, order: int) -> Any:
    """xⁿ - n xⁿ⁻¹ + n (n - 1) xⁿ⁻² - ..., by which eˣ / xⁿ⁺¹ is multiplied in the derivative of eˣ/x of order n."""
    total = x * 0 + 1
    for k in range(1, order + 1):
        total = total * x + (-1) ** k * perm(order, k)
    return total


def _expi_derivative(special: Any, x: Any, order: int) -> Any:
    given = np.asarray(x, np.float64)
    y = np.exp(given) / given
    if order:
        wide = given.astype(np.longdouble)  # whose range and digits are needed where the terms of the sum are of different sizes
        y = (np.exp(given) * _terms(wide, order) / wide ** (order + 1)).astype(np.float64)
    return y.astype(np.asarray(x).dtype)[()]


def _lambertw(special: Any, x: Any) -> Any:
    """NaN below -1/e, rounded, where W is not real."""
    given = np.asarray(x)
    return np.where(given < given.dtype.type(-1 / e), np.nan, special.lambertw(x).real).astype(given.dtype)[()]


IN_PYTHON = """
def _expi_derivative(x, order):
    total, term = 1.0, 1.0
    for k in range(1, order + 1):
        term = term * (k - 1 - order)
        total = total * x + term
    return {m}.exp(x) / x * (total / x**order)
"""
# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "expi": (_real("expi", _expi), lambda mp, x: mp.ei(x), lambda sp, x: sp.Ei(x), lambda x: x.ei()),
    "expi_derivative": (_real("expi", _expi_derivative), lambda mp, x, n: mp.exp(x) * _terms(x, n) / x ** (n + 1),
                        lambda sp, x, n: sp.exp(x) / x if n == 0 else sp.exp(x) * _terms(x, n) / x ** (n + 1),
                        lambda x, n: x.exp() * _terms(x, n) / x ** (n + 1), 1,
                        {"Python": IN_PYTHON}),
    "exp1": (_real("exp1", lambda special, x: np.where(x < 0, np.nan, -_expi(special, -x)).astype(np.asarray(x).dtype)[()]),
             lambda mp, x: mp.e1(x) if x > 0 else mp.nan, lambda sp, x: sp.expint(1, x), lambda x: x.expint(1)),
    "lambertw": (_real("lambertw", _lambertw), lambda mp, x: w if mp.im(w := mp.lambertw(x)) == 0 else mp.nan, lambda sp, x: sp.LambertW(x),
                 lambda x: x.lambertw()),
}


# The sine and cosine integrals (DLMF chapter 6)

SMALL = 2.0**-10  # of the wave: where a long double has no more digits to lose, next to a zero
LOW, HIGH = 3.0, 40.0  # of Ci, below: the power series; above: asymptotic series


def _coefficients(mp: Any, centre: Any, count: int) -> list[Any]:
    """The Taylor coefficients of Ci, whose derivative is the cosine divided by x."""
    sine, cosine = mp.sin(centre), mp.cos(centre)
    out, slope = [mp.ci(centre)], mp.zero
    for k in range(count - 1):
        slope = ((cosine, -sine, -cosine, sine)[k % 4] / mp.factorial(k) - slope) / centre
        out.append(slope / (k + 1))
    return out


NEAR = Expansions(_coefficients, LOW, HIGH, 0.5)


def _cosine_integral(special: Any, x: Any) -> Any:
    """Next to its zeros with their digits."""
    wide = np.asarray(x, np.longdouble)
    size = np.abs(wide)
    far = np.maximum(size, HIGH)
    f, g = np.zeros_like(far), np.zeros_like(far)
    for k in range(19, -1, -1):  # DLMF 6.12.3
        f, g = factorial(2 * k) - f / far**2, factorial(2 * k + 1) - g / far**2
    above = np.where(np.isinf(size), 0, f / far * np.sin(far) - g / far**2 * np.cos(far))
    low, series = np.minimum(size, LOW), np.zeros_like(size)
    for k in range(18, 0, -1):
        series = -(low**2) * (1 / np.longdouble(2 * k * factorial(2 * k)) + series)
    y = np.where(size > HIGH, above, np.where(size < LOW, EULER + np.log(low) + series, NEAR(size, 0)))
    y = with_many_digits(y, np.abs(y) < SMALL / np.maximum(size, 1), size, lambda mp, x: mp.ci(x))
    return np.where((wide < 0) | np.isnan(wide), np.nan, y).astype(np.asarray(x).dtype)[()]


ROWS |= {
    "sine_integral": (_real("sine_integral", lambda special, x: np.copysign(special.sici(x)[0], x)), lambda mp, x: mp.si(x),
                      lambda sp, x: sp.Si(x), lambda x: x.si(), 1, {"NumPy": "9 scipy.special.sici({0})[0]"}),
    "cosine_integral": (_real("cosine_integral", _cosine_integral), lambda mp, x: mp.ci(x) if x > 0 else mp.nan,
                        lambda sp, x: sp.Ci(x), lambda x: x.ci(), 1, {"NumPy": "9 scipy.special.sici({0})[1]"}),
}
