"""The incomplete gamma functions, with all derivatives by both arguments (DLMF chapter 8).

A function of the order a is computed as a truncated power series in ε at a + ε, a list of its coefficients. With
J(a, x) = xᵃ e⁻ˣ / Γ(a), the density is J / x, and P and Q are J times integrals of positive numbers:
P = J ∫ exp(-a s - x (e⁻ˢ - 1)) ds and Q = J ∫ exp(a s - x (eˢ - 1)) ds over the positive numbers. Of the two that one is computed in which
the terms of the derivative by a have one sign: P for x <= a, and Q for larger x. Next to x = 0 P has a power series.
"""

from __future__ import annotations

import importlib
from functools import cache
from math import comb, factorial
from typing import Any

import numpy as np

from symgrad.carriers.special import incomplete_gamma_digits as digits
from symgrad.carriers.special.inverses import sources
from symgrad.carriers.special.pieces import BERNOULLI, EULER, PI

BATCH = 512  # of the elements that are computed at once
TOGETHER = 32  # terms of a sum
STEPS = np.arange(1, 20, dtype=np.longdouble)[:, None]
NEAR = np.arange(1, 40, dtype=np.longdouble)[:, None]
LOG_ROOT = np.log(2 * PI) / 2
SMALLEST_STEP = 2.0**-66
LARGE = 20.0  # from here on Stirling's series has all digits of a long double


def _times(p: list[Any], q: list[Any]) -> list[Any]:
    return [sum(p[i] * q[k - i] for i in range(k + 1)) for k in range(min(len(p), len(q)))]


def _exponential(p: list[Any], value: Any) -> list[Any]:
    """The series of exp(p), whose first coefficient is `value`."""
    out = [value]
    for k in range(1, len(p)):
        out.append(sum(i * p[i] * out[k - i] for i in range(1, k + 1)) / k)
    return out


@cache
def _stirling(count: int) -> Any:
    """The coefficients of 1/z²ᵏ⁻¹⁺ʲ in the coefficient of order j of the series of log Γ, by order and k. DLMF 5.11.1."""
    rows = [[(-1) ** j * b * comb(2 * k - 2 + j, j) / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1)] for j in range(count)]
    return np.array([[np.longdouble(c.numerator) / np.longdouble(c.denominator) for c in row] for row in rows])[:, :, None]


def _log_gamma(z: Any, count: int) -> list[Any]:
    """The series of log Γ at z >= 20 without (z - 1/2) log z - z + log(2π)/2 in the first coefficient."""
    inverse = 1 / z
    powers = np.empty((len(BERNOULLI), len(z)), np.longdouble)
    powers[0], powers[1:] = inverse, inverse * inverse
    np.cumprod(powers, 0, out=powers)
    out = list(np.sum(_stirling(count) * powers, 1))
    if count > 1:
        out[1] = np.log(z) - inverse / 2 + out[1] * inverse
    power = inverse
    for j in range(2, count):
        out[j] = (-1) ** j * (power / (j * (j - 1)) + power * inverse / (2 * j)) + out[j] * power * inverse
        power = power * inverse
    return out


def _density(a: Any, x: Any, count: int, shifted: bool = False) -> list[Any]:
    """The series of xᵃ e⁻ˣ / Γ(a), or of xᵃ e⁻ˣ / Γ(a + 1) for small a: Γ at z = a + k >= 20, divided by a (a + 1) ... (a + k - 1)."""
    small = a < LARGE
    if anywhere := small.any():
        factors = a + STEPS
        below = (factors < LARGE) & small
        factors = np.where(below, factors, 1)
        z = a + np.sum(below, 0) + small
        product = np.prod(factors, 0)
    else:
        z, product = a, np.ones_like(a)
    logarithm, log_x, distance = _log_gamma(z, count), np.log(x), (x - a) / a
    ratio = np.where(np.abs(distance) < 0.5, np.log1p(distance), np.log(x / a))
    stirling = a * (ratio - distance) + np.log(a) / 2
    if anywhere:
        stirling = np.where(small, a * log_x - x - (z - 0.5) * np.log(z) + z, stirling)
    exponent = [0 * z, *[-c for c in logarithm[1:]]]
    if count > 1:
        exponent[1] += log_x
        if anywhere:
            power = inverse = below / factors
            for j in range(1, count):
                exponent[j] += np.sum(power, 0) * (-((-1) ** j)) / j
                power = power * inverse
    out = _exponential(exponent, product * np.exp(stirling - LOG_ROOT - logarithm[0]))
    if shifted or not anywhere:
        return out
    return [c * np.where(small, a, 1) + (small * out[j - 1] if j else 0) for j, c in enumerate(out)]


@cache
def _nodes() -> tuple[Any, Any]:
    """Those of the trapezoidal rule for v = exp(u - exp(-u)), with the weights."""
    u = np.arange(-76, 84, dtype=np.longdouble) / 20
    v = np.exp(u - np.exp(-u))
    return v, v * (1 + np.exp(-u)) / 20


def _moments(a: Any, x: Any, count: int, sign: int) -> list[Any]:
    """The integrals of (sign s)ʲ/j! exp(sign a s - x (exp(sign s) - 1)) over the positive numbers."""
    nodes, weights = _nodes()
    scale = 1 / (np.sqrt(np.maximum(a, x)) + np.abs(x - a))
    s = sign * nodes[:, None] * scale
    term = np.exp(a * s - x * np.expm1(s)) * weights[:, None] * scale
    out = [np.sum(term, 0)]
    for j in range(1, count):
        term *= s
        out.append(np.sum(term, 0) / factorial(j))
    return out


def _near_zero(a: Any, x: Any, count: int) -> list[Any]:
    """The series of P, for x up to 3/2. DLMF 8.7.1."""
    term, inverse = np.cumprod(-x / NEAR, 0), 1 / (a + NEAR)
    total = [1 + np.sum(term * inverse, 0) * a]
    part = term * NEAR * inverse
    for j in range(1, count):  # (a + ε) / (a + n + ε) = 1 - n / (a + n + ε)
        part *= inverse
        total.append(-((-1) ** j) * np.sum(part, 0))
    return [c * np.exp(x) for c in _times(_density(a, x, count, shifted=True), total)]


def _fraction(a: Any, x: Any) -> Any:
    """Q Γ(a) / (xᵃ e⁻ˣ) for x > a by its continued fraction, with as many steps as it needs next to a = x. DLMF 8.9.2."""
    count = int(160 / x.min() + 3.5 * np.sqrt(x.max())) + 15
    n = np.arange(1, count + 1)[:, None]
    factors, terms = n * (a - n), 2 * n + 1 - a + x
    tail = np.zeros_like(x)
    for k in range(count - 1, -1, -1):
        tail = factors[k] / (terms[k] + tail)
    return 1 / (x + 1 - a + tail)


def _sum(a: Any, x: Any) -> Any:
    """P Γ(a) / (xᵃ e⁻ˣ) for x <= a, a sum of positive numbers. DLMF 8.7.1."""
    n, term = np.arange(1, TOGETHER + 1)[:, None], 1 / a
    total = term
    while np.any(term >= SMALLEST_STEP * total):
        terms = term * np.cumprod(x / (a + n), 0)
        term, total, n = terms[-1], total + np.sum(terms, 0), n + TOGETHER
    return total


@cache
def _zeta_series(special: Any) -> Any:
    """The coefficients of (-a)ᵏ in log Γ(2 + a), from k = 2 on. DLMF 5.7.3."""
    k = np.arange(2.0, 51.0)
    return (special.zetac(k) / k).astype(np.longdouble)[:, None]


def _complement_near_zero(special: Any, a: Any, x: Any) -> Any:
    """Q for x up to 3/2, where P is next to 1 if a is small."""
    y, small = np.empty_like(a), a < 0.5
    if not small.all():
        y[~small] = 1 - _near_zero(a[~small], x[~small], 1)[0]
    if small.any():
        a, x = a[small], x[small]
        powers = np.empty((len(_zeta_series(special)), len(a)), np.longdouble)
        powers[0], powers[1:] = a * a, -a
        gamma = (1 - EULER) * a + np.sum(_zeta_series(special) * np.cumprod(powers, 0), 0) - np.log1p(a)  # log Γ(1 + a)
        logarithm = a * np.log(x) - gamma
        series = np.sum(np.cumprod(-x / NEAR, 0) / (a + NEAR), 0)
        y[small] = -np.expm1(logarithm) - np.exp(logarithm) * a * series
    return y


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
            a, x = a[inside], x[inside]
            y[inside] = np.concatenate([compute(special, a[i:i + BATCH], x[i:i + BATCH], *order) for i in range(0, len(a), BATCH)])
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
            y[region] = -sign * _times(_density(u, v, order + 1), _moments(u, v, order + 1, sign))[order]
    return factorial(order) * y


def _zero_at_ends(special: Any, a: Any, x: Any, order: int) -> Any:
    return np.where((a > 0) & ((x == 0) | np.isinf(x)), 0, np.nan)


def _density_at_ends(special: Any, a: Any, x: Any, order: int) -> Any:
    at_zero = np.where(a > 1, 0, np.where(a < 1, np.inf, 1) if order == 0 else np.nan)
    return np.where((a > 0) & (x == 0), at_zero, _zero_at_ends(special, a, x, order))


def _density_formula(sp: Any, a: Any, x: Any, order: int) -> Any:
    u = sp.Dummy(positive=True)
    power = x ** (u - 1)
    if a.is_number and x.is_number:  # whose power takes SymPy very long
        power = sp.exp(2 * (u - 1) * sp.atanh((x - 1) / (x + 1)))
    return sp.diff(power * sp.exp(-x) / sp.gamma(u), u, order).subs(u, a)


def _derivative_formula(sp: Any, a: Any, x: Any, order: int) -> Any:
    u = sp.Dummy(positive=True)
    return sp.diff(sp.lowergamma(u, x) / sp.gamma(u), u, order).subs(u, a)


def _density_series(flint: Any, a: Any, x: Any, count: int, shift: int = 0) -> Any:
    """The series of xᵃ e⁻ˣ / Γ(a + shift), of balls."""
    return flint.arb_series([a + shift, 1], prec=count).rgamma() * flint.arb_series([a * x.log() - x, x.log()], prec=count).exp()


def _undecided(message: str) -> Exception:
    from symgrad.carriers.digits import Undecided  # imports mpmath, which would delay the start

    return Undecided(message)


def _density_of_ball(a: Any, x: Any, order: int) -> Any:
    if not (a > 0 and x > 0):
        raise _undecided("gamma_density has no enclosure outside of positive numbers")
    return _density_series(importlib.import_module("flint"), a, x, order + 1)[order] * factorial(order) / x


def _derivative_of_ball(a: Any, x: Any, order: int) -> Any:
    """By the sum of xⁿ / ((a + 1) ... (a + n)). For |ε| <= 1/2 what is left out is below twice its first term; Cauchy bounds its coefficients."""
    flint = importlib.import_module("flint")
    if not (a > 0 and 0 < x < 1e4 and a.is_finite()):
        raise _undecided("gammainc_derivative has an enclosure for positive numbers up to 10,000")
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
                 digits.lower, lambda sp, a, x: sp.lowergamma(a, x) / sp.gamma(a),
                 lambda a, x: x.gamma_lower(a, 1), 2, sources("gammainc")),
    "gammaincc": (_in_regions(lambda special, a, x: _value(special, a, x, True), _by_scipy("gammaincc")),
                  digits.upper, lambda sp, a, x: sp.uppergamma(a, x) / sp.gamma(a),
                  lambda a, x: x.gamma_upper(a, 1), 2, sources("gammaincc")),
    "gammainc_derivative": (_in_regions(_order_derivative, _zero_at_ends), digits.order_derivative, _derivative_formula, _derivative_of_ball, 2),
    "gamma_density": (_in_regions(lambda special, a, x, n: factorial(n) * _density(a, x, n + 1)[n] / x, _density_at_ends), digits.density,
                      _density_formula, _density_of_ball, 2),
}
