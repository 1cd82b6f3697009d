"""The incomplete gamma functions, with all derivatives by both arguments (DLMF chapter 8).

A function of the order a is computed as a truncated power series in ε at a + ε, a list of its coefficients. With
J(a, x) = xᵃ e⁻ˣ / Γ(a), the density is J / x, and P and Q are J times integrals of positive numbers:
P = J ∫ exp(-a s - x (e⁻ˢ - 1)) ds and Q = J ∫ exp(a s - x (eˢ - 1)) ds over the positive numbers. Of the two that one is computed in which
the terms of the derivative by a have one sign: P for x <= a, and Q for larger x. Next to x = 0 P has a power series.
"""

from __future__ import annotations

import importlib
from fractions import Fraction
from functools import cache
from math import comb, factorial
from typing import Any

import numpy as np

from symgrad.carriers.digits import Undecided
from symgrad.carriers.special.expansions import PI
from symgrad.carriers.special.inverses import sources

__all__ = ["BERNOULLI", "ROWS", "exact", "exponential", "times"]

BATCH = 512  # of the elements whose integrals are computed at once
STEPS = 3000  # of sums and fractions: enough for a up to 10,000
SMALLEST_STEP = 2.0**-66
EULER = np.longdouble("0.57721566490153286060651209008240243")
LARGE = 20.0  # from here on Stirling's series has all digits of a long double
BERNOULLI = [Fraction(p, q) for p, q in ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798),
                                         (-174611, 330), (854513, 138), (-236364091, 2730))]


def times(p: list[Any], q: list[Any]) -> list[Any]:
    return [sum(p[i] * q[k - i] for i in range(k + 1)) for k in range(min(len(p), len(q)))]


def exponential(p: list[Any], value: Any) -> list[Any]:
    """The series of exp(p), whose first coefficient is `value`."""
    out = [value]
    for k in range(1, len(p)):
        out.append(sum(i * p[i] * out[k - i] for i in range(1, k + 1)) / k)
    return out


def exact(x: Fraction) -> Any:
    return np.longdouble(x.numerator) / np.longdouble(x.denominator)


@cache
def _stirling(count: int) -> list[list[Any]]:
    """The coefficients of 1/z²ᵏ⁻¹⁺ʲ in the coefficient of order j of the series of log Γ. DLMF 5.11.1."""
    return [[(-1) ** j * exact(b * comb(2 * k - 2 + j, j) / (2 * k * (2 * k - 1))) for k, b in enumerate(BERNOULLI, 1)] for j in range(count)]


def _log_gamma(z: Any, count: int) -> list[Any]:
    """The series of log Γ at z >= 20 without (z - 1/2) log z - z + log(2π)/2 in the first coefficient."""
    out: list[Any] = [0 * z, np.log(z) - 1 / (2 * z)]
    for j in range(2, count):
        out.append((-1) ** j * (1 / (j * (j - 1) * z ** (j - 1)) + 1 / (2 * j * z**j)))
    inverse = 1 / z
    for j, coefficients in enumerate(_stirling(count)):
        series = np.zeros_like(z)
        for c in coefficients[::-1]:
            series = series * inverse**2 + c
        out[j] = out[j] + series * inverse ** (j + 1)
    return out[:count]


def _density(a: Any, x: Any, count: int, shifted: bool = False) -> list[Any]:
    """The series of xᵃ e⁻ˣ / Γ(a), or of xᵃ e⁻ˣ / Γ(a + 1) for small a."""
    product, z = [np.ones_like(a), *[np.zeros_like(a)] * (count - 1)], a
    for i in range(int(LARGE)):
        small = z < LARGE
        if i or not shifted:
            factor = [np.where(small, z, 1), small.astype(np.longdouble), *[np.zeros_like(a)] * count]
            product = times(product, factor)
        z = np.where(small, z + 1, z)
    logarithm = _log_gamma(z, count + 1)
    distance = (x - a) / a
    ratio = np.where(np.abs(distance) < 0.5, np.log1p(distance), np.log(x / a))
    stirling = np.where(a < LARGE, a * np.log(x) - x - (z - 0.5) * np.log(z) + z, a * (ratio - distance) + np.log(a) / 2)
    exponent = [0 * z, np.log(x) - logarithm[1], *[-c for c in logarithm[2:count]]]
    return times(product, exponential(exponent[:count], np.exp(stirling - np.log(2 * PI) / 2 - logarithm[0])))


@cache
def _nodes() -> tuple[Any, Any]:
    """Those of the trapezoidal rule for v = exp(u - exp(-u)), with the weights."""
    u = np.arange(-76, 80, dtype=np.longdouble) / 16
    v = np.exp(u - np.exp(-u))
    return v, v * (1 + np.exp(-u)) / 16


def _moments(a: Any, x: Any, count: int, sign: int) -> list[Any]:
    """The integrals of (sign s)ʲ/j! exp(sign a s - x (exp(sign s) - 1)) over the positive numbers, of flat arrays."""
    out = []
    nodes, weights = _nodes()
    for i in range(0, len(a), BATCH):
        u, v = a[i:i + BATCH], x[i:i + BATCH]
        scale = 1 / (np.sqrt(np.maximum(u, v)) + np.abs(v - u))
        s = sign * nodes[:, None] * scale
        term = np.exp(u * s - v * np.expm1(s)) * weights[:, None] * scale
        out.append([np.sum(term * s**j / factorial(j), axis=0) for j in range(count)])
    return [np.concatenate(parts) for parts in zip(*out)]


def _near_zero(a: Any, x: Any, count: int) -> list[Any]:
    """The series of P, for x up to 3/2. DLMF 8.7.1."""
    total = [np.ones_like(a), *[np.zeros_like(a)] * (count - 1)]
    term = np.ones_like(a)
    for n in range(1, 40):
        term = -term * x / n
        for j in range(count):  # (a + ε) / (a + n + ε) = 1 - n / (a + n + ε)
            total[j] = total[j] + term * (a / (a + n) if j == 0 else -n * (-1) ** j / (a + n) ** (j + 1))
    return [c * np.exp(x) for c in times(_density(a, x, count, shifted=True), total)]


def _fraction(a: Any, x: Any) -> Any:
    """Q Γ(a) / (xᵃ e⁻ˣ) for x > a by its continued fraction, with Lentz's method. DLMF 8.9.2."""
    here = x + 1 - a
    ratio, above = 1 / here, np.full_like(here, np.inf)
    total = ratio
    for n in range(1, STEPS):
        factor, here = n * (a - n), here + 2
        ratio = 1 / (here + factor * ratio)
        above = here + factor / above
        change = above * ratio
        total = total * change
        if np.all(np.abs(change - 1) < 64 * SMALLEST_STEP):  # rounding lets it not become much smaller
            break
    return total


def _sum(a: Any, x: Any) -> Any:
    """P Γ(a) / (xᵃ e⁻ˣ) for x <= a, a sum of positive numbers. DLMF 8.7.1."""
    term = total = 1 / a
    for n in range(1, STEPS):
        term = term * x / (a + n)
        total = total + term
        if np.all(term < SMALLEST_STEP * total):
            break
    return total


def _complement_near_zero(special: Any, a: Any, x: Any) -> Any:
    """Q for x up to 3/2, where P is next to 1 if a is small."""
    inner = np.minimum(a, 0.5)
    series = np.zeros_like(a)  # of log Γ(1 + a), DLMF 5.7.3
    for k in range(50, 1, -1):
        series = special.zetac(float(k)) / k - inner * series
    logarithm = inner * np.log(x) - ((1 - EULER) * inner + inner * inner * series - np.log1p(inner))
    series, term = np.zeros_like(a), np.ones_like(a)
    for n in range(1, 40):
        term = -term * x / n
        series = series + term / (inner + n)
    return np.where(a < 0.5, -np.expm1(logarithm) - np.exp(logarithm) * inner * series, 1 - _near_zero(a, x, 1)[0])


def _in_regions(compute: Any, at_zero: Any) -> Any:
    """A function of arrays of any real dtype, from one of flat arrays of long doubles a, x > 0; the values at x = 0 and infinity are given."""
    def call(special: Any, a: Any, x: Any, *order: int) -> Any:
        dtype = np.result_type(a, x)
        if dtype.kind == "c":
            raise TypeError("incomplete gamma functions are defined here for real numbers, got complex ones; pass the real part")
        a, x = np.broadcast_arrays(np.asarray(a, np.longdouble), np.asarray(x, np.longdouble))
        y = np.array(at_zero(special, a, x, *order), np.longdouble)
        inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
        if inside.any():
            y[inside] = compute(special, a[inside], x[inside], *order)
        return y.astype(dtype)[()]

    return call


def _by_scipy(name: str) -> Any:
    return lambda special, a, x: getattr(special, name)(a.astype(np.float64), x.astype(np.float64))


def _value(special: Any, a: Any, x: Any, upper: bool) -> Any:
    """P or Q; arguments above 10,000 are left to SciPy."""
    y = _by_scipy("gammaincc" if upper else "gammainc")(special, a, x).astype(np.longdouble)
    near = (x <= 1.5) & (a < LARGE)
    inside = ~near & (np.maximum(a, x) < 1e4)
    if near.any():
        y[near] = _complement_near_zero(special, a[near], x[near]) if upper else _near_zero(a[near], x[near], 1)[0]
    for region, compute, above in ((inside & (x <= a), _sum, False), (inside & (x > a), _fraction, True)):
        if region.any():
            small = _density(a[region], x[region], 1)[0] * compute(a[region], x[region])
            y[region] = small if above == upper else 1 - small
    return y


def _order_derivative(special: Any, a: Any, x: Any, order: int) -> Any:
    y = np.zeros_like(a)
    near = (x <= 1.5) & (a < LARGE)
    if near.any():
        y[near] = _near_zero(a[near], x[near], order + 1)[order]
    for region, sign in ((~near & (x <= a), -1), (~near & (x > a), 1)):
        if region.any():
            u, v = a[region], x[region]
            y[region] = -sign * times(_density(u, v, order + 1), _moments(u, v, order + 1, sign))[order]
    return factorial(order) * y


def _zero_at_ends(special: Any, a: Any, x: Any, order: int) -> Any:
    return np.where((a > 0) & ((x == 0) | np.isinf(x)), 0, np.nan)


def _density_at_ends(special: Any, a: Any, x: Any, order: int) -> Any:
    at_zero = np.where(a > 1, 0, np.where(a < 1, np.inf, 1) if order == 0 else np.nan)
    return np.where((a > 0) & (x == 0), at_zero, _zero_at_ends(special, a, x, order))


def _exact_density(mp: Any, a: Any, x: Any, order: int) -> Any:
    """The derivative of xᵃ⁻¹ e⁻ˣ / Γ(a) by a, from those of a / Γ(a + 1)."""
    if not (a > 0 and x > 0):
        return mp.nan
    with mp.extraprec(40 + 4 * order * max(0, mp.mag(a), mp.mag(x))):
        return factorial(order) * _exact_series(mp, a, x, order + 1)[order] * mp.exp(-x) / x


def _exact_series(mp: Any, a: Any, x: Any, count: int, shifted: bool = False) -> list[Any]:
    """The series of xᵃ / Γ(a), or of xᵃ / Γ(a + 1)."""
    exponent = [mp.zero, mp.log(x) - mp.psi(0, a + 1), *[-mp.psi(j - 1, a + 1) / mp.factorial(j) for j in range(2, count)]]
    out = exponential(exponent[:count], mp.exp(a * mp.log(x) - mp.loggamma(a + 1)))
    return out if shifted else times([a, mp.one, *[mp.zero] * count], out)


def _exact_order_derivative(mp: Any, a: Any, x: Any, order: int) -> Any:
    """By the power series of P, with as many more digits as its terms are larger than Q."""
    if not (a > 0 and x > 0):
        return mp.nan
    if x > 3000:
        return mp.diff(lambda a: -mp.gammainc(a, x, regularized=True), a, order)
    with mp.extraprec(60 + 4 * int(x) + 4 * (order + 1) * max(0, mp.mag(a), -mp.mag(x))):
        count, n, term = order + 1, 0, mp.one
        total = [mp.one, *[mp.zero] * order]
        while n < x or abs(term) > mp.ldexp(1, -mp.prec):
            n += 1
            term = -term * x / n
            below = 1 / (a + n)
            total[0] += term * a * below
            for j in range(1, count):
                total[j] -= term * n * (-1) ** j * below ** (j + 1)
        return mp.factorial(order) * times(_exact_series(mp, a, x, count, shifted=True), total)[order]


def _density_formula(sp: Any, a: Any, x: Any, order: int) -> Any:
    u = sp.Dummy(positive=True)
    return sp.diff(x ** (u - 1) * sp.exp(-x) / sp.gamma(u), u, order).subs(u, a)


def _no_formula(sp: Any, a: Any, x: Any, order: int) -> Any:
    raise TypeError("gammainc_derivative cannot be written here: the derivative of gammainc by its first argument has no formula")


def _density_series(flint: Any, a: Any, x: Any, count: int, shift: int = 0) -> Any:
    """The series of xᵃ e⁻ˣ / Γ(a + shift), of balls."""
    return flint.arb_series([a + shift, 1], prec=count).rgamma() * flint.arb_series([a * x.log() - x, x.log()], prec=count).exp()


def _density_of_ball(a: Any, x: Any, order: int) -> Any:
    if not (a > 0 and x > 0):
        raise Undecided("gamma_density has no enclosure outside of positive numbers")
    return _density_series(importlib.import_module("flint"), a, x, order + 1)[order] * factorial(order) / x


def _derivative_of_ball(a: Any, x: Any, order: int) -> Any:
    """By the sum of xⁿ / ((a + 1) ... (a + n)). For |ε| <= 1/2 what is left out is below twice its first term; Cauchy bounds its coefficients."""
    flint = importlib.import_module("flint")
    if not (a > 0 and 0 < x < 1e4 and a.is_finite()):
        raise Undecided("gammainc_derivative has an enclosure for positive numbers up to 10,000")
    count, n, bound = order + 1, 0, x / x
    term = total = flint.arb_series([1], prec=count)
    while not (bound < type(x)(2) ** -flint.ctx.prec and 2 * x < a + n):
        n += 1
        term = term * x / flint.arb_series([a + n, 1], prec=count)
        total = total + term
        bound = bound * x / (a + n - 0.5)
    rest = type(x)(0, (2 ** (order + 1) * bound).upper())
    total = total + flint.arb_series([rest] * count, prec=count)
    return (_density_series(flint, a, x, count, 1) * total)[order] * factorial(order)


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "gammainc": (_in_regions(lambda special, a, x: _value(special, a, x, False), _by_scipy("gammainc")),
                 lambda mp, a, x: mp.gammainc(a, 0, x, regularized=True), lambda sp, a, x: sp.lowergamma(a, x) / sp.gamma(a),
                 lambda a, x: x.gamma_lower(a, 1), 2, sources("gammainc")),
    "gammaincc": (_in_regions(lambda special, a, x: _value(special, a, x, True), _by_scipy("gammaincc")),
                  lambda mp, a, x: mp.gammainc(a, x, regularized=True), lambda sp, a, x: sp.uppergamma(a, x) / sp.gamma(a),
                  lambda a, x: x.gamma_upper(a, 1), 2, sources("gammaincc")),
    "gammainc_derivative": (_in_regions(_order_derivative, _zero_at_ends), _exact_order_derivative, _no_formula, _derivative_of_ball, 2),
    "gamma_density": (_in_regions(lambda special, a, x, n: factorial(n) * _density(a, x, n + 1)[n] / x, _density_at_ends), _exact_density,
                      _density_formula, _density_of_ball, 2),
}
