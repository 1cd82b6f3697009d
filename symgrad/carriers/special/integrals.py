"""Functions that are integrals of elementary ones, and the inverse of x eˣ (DLMF 4.13, chapter 6)."""

from __future__ import annotations

import functools
import importlib
from functools import cache
from math import e, factorial, perm
from typing import Any

import numpy as np

from symgrad.carriers.special.pieces import EULER, PI, Expansions, Pieces, piecewise, with_many_digits
from symgrad.carriers.special.printed import TEMPLATES


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


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "expi": (_real("expi", _expi), lambda mp, x: mp.ei(x), lambda sp, x: sp.Ei(x), lambda x: x.ei()),
    "expi_derivative": (_real("expi", _expi_derivative), lambda mp, x, n: mp.exp(x) * _terms(x, n) / x ** (n + 1),
                        lambda sp, x, n: sp.exp(x) / x if n == 0 else sp.exp(x) * _terms(x, n) / x ** (n + 1),
                        lambda x, n: x.exp() * _terms(x, n) / x ** (n + 1), 1),
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


# Fresnel's integrals (DLMF 7.2.6) and the waves that they are the integrals of, with the digits of large arguments

FAR = 6.0  # above: the asymptotic series, whose terms fall below 1e-24 there


def _in_double(x: Any) -> Any:
    if np.iscomplexobj(x):
        raise TypeError("Fresnel's integrals are defined here for real numbers, got complex ones; pass the real part")
    return np.asarray(x, np.float64)


def _sine_and_cosine(x: Any) -> tuple[Any, Any]:
    """The sine and the cosine of πx²/2 as long doubles.

    With x = n + f, x² = n² + 2nf + f² modulo 4: the second term has no more digits than x, and the square of the leading part of f has 60, so that
    all but the last sum are exact, and digits are kept next to the zeros.
    """
    n = np.rint(x)
    f = x - n
    twice = 2 * (n * f)
    whole = (twice - 4 * np.rint(twice / 4)) + np.abs(n - 2 * np.rint(n / 2))
    leading = np.rint(f * 2.0**30) / 2.0**30
    rest = np.asarray(f - leading, np.longdouble)
    exact = whole + np.asarray(leading, np.longdouble) ** 2
    turns = np.rint(exact)  # right angles
    angle = PI / 2 * (((exact - turns) + 2 * leading * rest) + rest * rest)
    sine, cosine, odd = np.sin(angle), np.cos(angle), turns.astype(np.int8)
    sine, cosine = np.where(odd & 1, cosine, sine), np.where(odd & 1, sine, cosine)
    return np.where(odd & 2, -sine, sine), np.where((odd + 1) & 2, -cosine, cosine)


def _fresnel_coefficients(kind: int) -> Any:
    """The Taylor coefficients of S (kind 0) or C, whose derivative is the wave w = sin or cos(πx²/2), part of v with v' = iπx v."""
    def coefficients(mp: Any, centre: Any, count: int) -> list[Any]:
        value = mp.expjpi(centre * centre / 2)
        wave = [value, mp.mpc(0, mp.pi) * centre * value]
        for k in range(2, count):
            wave.append(mp.mpc(0, mp.pi) * (centre * wave[-1] + wave[-2]) / k)
        return [(mp.fresnels, mp.fresnelc)[kind](centre), *((w.real if kind else w.imag) / (k + 1) for k, w in enumerate(wave[:count - 1]))]

    return coefficients


FRESNEL = Expansions(_fresnel_coefficients(0), 0.0, FAR, 0.125), Expansions(_fresnel_coefficients(1), 0.0, FAR, 0.125)


@cache
def _pieces(kind: int) -> Pieces:
    """S/x³ or C/x, which tend to other numbers than 0."""
    return Pieces(lambda x: FRESNEL[kind](x, 0) / x ** (1 if kind else 3), None, 0.0, FAR, 384)  # 64 cells per unit, so that places are exact


def _far(kind: int) -> Any:
    def call(x: Any) -> Any:
        """The asymptotic series of the auxiliary functions f and g. DLMF 7.5.3, 7.5.4, 7.12.2, 7.12.3."""
        size = np.minimum(np.abs(x), 1e30)
        square = np.pi * size * size
        f, g = np.ones_like(size), np.ones_like(size)
        for k in range(12, 0, -1):
            f, g = 1 - (4 * k - 3) * (4 * k - 1) / square**2 * f, 1 - (4 * k - 1) * (4 * k + 1) / square**2 * g
        sine, cosine = (wave.astype(np.float64) for wave in _sine_and_cosine(size))
        f, g = f / (np.pi * size), g / (np.pi * size * square)
        return np.copysign(0.5 + (f * sine - g * cosine if kind else -f * cosine - g * sine), x)

    return call


def _near(kind: int) -> Any:
    def call(x: Any) -> Any:
        y = _pieces(kind)(np.abs(x)) * x
        return y if kind else y * x * x

    return call


def _integral(kind: int) -> Any:
    far, near = _far(kind), _near(kind)

    def call(special: Any, x: Any) -> Any:
        wide = _in_double(x)
        return piecewise(wide, [np.isnan(wide), np.abs(wide) <= FAR], [lambda x: x, near, far]).astype(np.asarray(x).dtype)[()]

    return call


def _recurrence(x: Any, first: Any, second: Any, order: int, pi: Any) -> tuple[Any, Any]:
    """The derivatives of the cosine and the sine of πx²/2 of an order, by v⁽ⁿ⁺¹⁾ = iπ (x v⁽ⁿ⁾ + n v⁽ⁿ⁻¹⁾)."""
    (c, s), (c_before, s_before) = (first, second), (0 * first, 0 * first)
    for n in range(order):
        c, s, c_before, s_before = -pi * (x * s + n * s_before), pi * (x * c + n * c_before), c, s
    return c, s


def _wave(kind: int) -> Any:
    def call(special: Any, x: Any, order: int) -> Any:
        wide = _in_double(x)
        sine, cosine = _sine_and_cosine(np.where(np.isfinite(wide), wide, 0))
        out = _recurrence(wide, cosine, sine, order, PI)[1 - kind]
        return np.where(np.isfinite(wide), out, np.nan).astype(np.asarray(x).dtype)[()]

    return call


def _exact_wave(kind: int) -> Any:
    def call(mp: Any, x: Any, order: int) -> Any:
        with mp.extraprec(30 + 2 * max(0, mp.mag(x) if x else 0)):
            square = mp.fmul(x, x, exact=True) / 2
            return _recurrence(x, mp.cospi(square), mp.sinpi(square), order, mp.pi)[1 - kind]

    return call


def _exact_integral(kind: int) -> Any:
    """The integral; for large numbers by the asymptotic series, where mpmath takes long and has too few digits of the angle."""
    def call(mp: Any, x: Any) -> Any:
        size = abs(x)
        if not mp.isfinite(x) or size * size < 0.45 * mp.prec + 20:  # where the least term is not small enough
            return (mp.fresnels, mp.fresnelc)[kind](x)
        with mp.extraprec(20):
            square = mp.fmul(size, size, exact=True)
            cosine, sine, step = mp.cospi(square / 2), mp.sinpi(square / 2), (mp.pi * square) ** -2
            term = 1 / (mp.pi * size)
            f = g = mp.zero
            k = 0
            while term and mp.mag(term) > -mp.prec:
                k += 4
                f, g = f + term, g + term * (k - 3) / (mp.pi * square)
                term *= -(k - 3) * (k - 1) * step
            return mp.sign(x) * (mp.mpf(0.5) + (f * sine - g * cosine if kind else -f * cosine - g * sine))

    return call


@cache
def _derivative(sp: Any, kind: int, order: int) -> tuple[Any, Any]:
    u = sp.Dummy("u", real=True)
    return u, sp.diff((sp.sin, sp.cos)[kind](sp.pi * u**2 / 2), u, order)


def _formula(kind: int) -> Any:
    def call(sp: Any, x: Any, order: int) -> Any:
        u, formula = _derivative(sp, kind, order)
        return formula.xreplace({u: x})

    return call


def _ball_wave(kind: int) -> Any:
    def call(x: Any, order: int) -> Any:
        sine, cosine = (x * x / 2).sin_cos_pi()
        return _recurrence(x, cosine, sine, order, type(x).pi())[1 - kind]

    return call


def _ball_integral(name: str) -> Any:
    """The integral, with the digits that the angle of a large number and the third power of a small one take."""
    def call(x: Any) -> Any:
        mantissa, exponent = x.mid().man_exp() if x.is_finite() else (0, 0)
        size = abs(int(exponent) + int(mantissa).bit_length())
        with importlib.import_module("flint").ctx.extraprec(4 * min(size, 1100)):
            y = getattr(x, name)()
        return +y

    return call


def _source(wave: str) -> dict[str, str]:
    return {"Python": TEMPLATES["PHASE"].replace("{name}", f"fresnel_{wave}").replace("{wave}", wave)}


# name: arrays, digits, formula, balls, arity, sources
ROWS |= {
    "fresnel_s": (_integral(0), _exact_integral(0), lambda sp, x: sp.fresnels(x), _ball_integral("fresnel_s"), 1,
                  {"NumPy": "9 scipy.special.fresnel({0})[0]", "Jax": "9 jax.scipy.special.fresnel({0})[0]"}),
    "fresnel_c": (_integral(1), _exact_integral(1), lambda sp, x: sp.fresnelc(x), _ball_integral("fresnel_c"), 1,
                  {"NumPy": "9 scipy.special.fresnel({0})[1]", "Jax": "9 jax.scipy.special.fresnel({0})[1]"}),
    "fresnel_sine": (_wave(0), _exact_wave(0), _formula(0), _ball_wave(0), 1, _source("sine")),
    "fresnel_cosine": (_wave(1), _exact_wave(1), _formula(1), _ball_wave(1), 1, _source("cosine")),
}
