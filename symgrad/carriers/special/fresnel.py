"""Fresnel's integrals (DLMF 7.2.6) and the waves that they are the integrals of, with the digits of large arguments."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import numpy as np

from symgrad.carriers.special.pieces import PI, Expansions, Pieces, piecewise

HIGH = 6.0  # above: the asymptotic series, whose terms fall below 1e-24 there


def _real(x: Any) -> Any:
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


def _coefficients(kind: int) -> Any:
    """The Taylor coefficients of S (kind 0) or C, whose derivative is the wave w = sin or cos(πx²/2), part of v with v' = iπx v."""
    def coefficients(mp: Any, centre: Any, count: int) -> list[Any]:
        value = mp.expjpi(centre * centre / 2)
        wave = [value, mp.mpc(0, mp.pi) * centre * value]
        for k in range(2, count):
            wave.append(mp.mpc(0, mp.pi) * (centre * wave[-1] + wave[-2]) / k)
        return [(mp.fresnels, mp.fresnelc)[kind](centre), *((w.real if kind else w.imag) / (k + 1) for k, w in enumerate(wave[:count - 1]))]

    return coefficients


NEAR = Expansions(_coefficients(0), 0.0, HIGH, 0.125), Expansions(_coefficients(1), 0.0, HIGH, 0.125)


@cache
def _pieces(kind: int) -> Pieces:
    """S/x³ or C/x, which tend to other numbers than 0."""
    return Pieces(lambda x: NEAR[kind](x, 0) / x ** (1 if kind else 3), None, 0.0, HIGH, 384)  # 64 cells per unit, so that places are exact


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
        wide = _real(x)
        return piecewise(wide, [np.isnan(wide), np.abs(wide) <= HIGH], [lambda x: x, near, far]).astype(np.asarray(x).dtype)[()]

    return call


def _recurrence(x: Any, first: Any, second: Any, order: int, pi: Any) -> tuple[Any, Any]:
    """The derivatives of the cosine and the sine of πx²/2 of an order, by v⁽ⁿ⁺¹⁾ = iπ (x v⁽ⁿ⁾ + n v⁽ⁿ⁻¹⁾)."""
    (c, s), (c_before, s_before) = (first, second), (0 * first, 0 * first)
    for n in range(order):
        c, s, c_before, s_before = -pi * (x * s + n * s_before), pi * (x * c + n * c_before), c, s
    return c, s


def _wave(kind: int) -> Any:
    def call(special: Any, x: Any, order: int) -> Any:
        wide = _real(x)
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


PHASE = """
def _{name}(x, order):
    half = {m}.round(x / 2)
    rest = x - 2 * half
    turns = half * rest
    quarters = 4 * (turns - {m}.round(turns)) + rest * rest
    sines, cosines = [{m}.sin(1.5707963267948966 * quarters)], [{m}.cos(1.5707963267948966 * quarters)]
    u = 3.141592653589793 * x
    for n in range(order):
        sine = u * cosines[n] + 3.141592653589793 * n * cosines[n - 1]
        cosines.append(-u * sines[n] - 3.141592653589793 * n * sines[n - 1])
        sines.append(sine)
    return {wave}s[order]
"""  # with x² reduced modulo 4 without rounding


def _source(wave: str) -> dict[str, str]:
    return {"Python": PHASE.replace("{name}", f"fresnel_{wave}").replace("{wave}", wave)}


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "fresnel_s": (_integral(0), _exact_integral(0), lambda sp, x: sp.fresnels(x), _ball_integral("fresnel_s"), 1,
                  {"NumPy": "9 scipy.special.fresnel({0})[0]", "Jax": "9 jax.scipy.special.fresnel({0})[0]"}),
    "fresnel_c": (_integral(1), _exact_integral(1), lambda sp, x: sp.fresnelc(x), _ball_integral("fresnel_c"), 1,
                  {"NumPy": "9 scipy.special.fresnel({0})[1]", "Jax": "9 jax.scipy.special.fresnel({0})[1]"}),
    "fresnel_sine": (_wave(0), _exact_wave(0), _formula(0), _ball_wave(0), 1, _source("sine")),
    "fresnel_cosine": (_wave(1), _exact_wave(1), _formula(1), _ball_wave(1), 1, _source("cosine")),
}
