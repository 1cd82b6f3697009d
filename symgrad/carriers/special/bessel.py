"""Bessel functions of every order, and the moments that derivatives of the scaled ones are sums of (DLMF chapter 10).

The derivative of e^-|x| I₀ is e^-|x| (I₁ - I₀), and this difference cancels. As integrals (DLMF 10.32.1, 10.32.9) both scaled functions are
the first of a family in which a derivative is one member, and every member is an integral of positive numbers: for I the mean of
(1 - cos t)ᵏ e^(-|x| (1 - cos t)) over a period, for K the integral of (cosh t - 1)ᵏ e^(-x (cosh t - 1)) from 0 on. The trapezoidal rule computes
them to the last digits.

Against mpmath, J and Y of whole orders up to 32 are within 4 ULP for |x| < 25, next to their zeros as well, where a long double has more digits than
a float. For larger arguments SciPy's `jv` and `yv` are within 8 ULP but next to zeros: at 3 of 100 points of (25, 300) they lose more (J₅ 1240 ULP at
50.81, Y₁ 483 ULP at 159.4). Of orders that are not whole, J of order 1/2 has an error of 185 ULP at 10.95. `j0`, `j1`, `y0` and `y1` of SciPy lose
the digits that the argument has before the point, and are not used.
"""

from __future__ import annotations

import functools
from math import comb, factorial
from typing import Any

import numpy as np

__all__ = ["ROWS"]

STEPS = 64  # of the trapezoidal rule: enough for all digits of a float up to the fifth moment
LARGEST_ORDER, MIDDLE = 32, 25.0  # whole orders and arguments up to these are computed with more digits, since `jv` and `yv` lose some next to zeros
PI = "3.14159265358979323846264338327950288"
LOG_TWO = 0.6931471805599453
NEAR_POLE = 0.02  # below it the moments of K are sums without cancellation


def _real(x: Any) -> Any:
    """The array, in float64; complex numbers are refused."""
    if np.iscomplexobj(x):
        raise TypeError("Bessel functions are defined here for real numbers, got complex ones; pass the real part")
    return np.asarray(x, np.float64)


def _of_order(function: Any, reflected: int) -> Any:
    """A function (special, x, order) of nonnegative whole orders extended to others: the one of -n is that of n times `reflected`ⁿ."""
    def call(special: Any, x: Any, order: Any) -> Any:
        sign = 1
        if order == int(order):
            sign, order = (reflected ** abs(int(order)) if order < 0 else 1), abs(int(order))
        return (sign * function(special, _real(x), order)).astype(np.asarray(x).dtype)[()]

    return call


def _j(special: Any, x: Any, order: Any) -> Any:
    y = np.asarray(special.jv(float(order), x))
    if type(order) is int and order <= LARGEST_ORDER:
        size = np.abs(x)
        sign = np.where(x < 0, -1.0 if order % 2 else 1.0, 1.0)
        y = np.where(size < 1, _series(np.minimum(x, 1), order, -1), y)
        middle = (size >= 1) & (size < MIDDLE)
        y[middle] = sign[middle] * _neumann(size[middle], order)[0]
    return y


def _y(special: Any, x: Any, order: Any) -> Any:
    y = np.asarray(special.yv(float(order), x))
    if order in (0, 1):
        y = np.where(x < 0.5, (special.y0, special.y1)[int(order)](x), y)
    if type(order) is int and order <= LARGEST_ORDER:
        middle = (x >= 0.5) & (x < MIDDLE)
        y[middle] = _neumann(x[middle], order)[1]
    return y


def _i(special: Any, x: Any, order: Any) -> Any:
    if order in (0, 1):
        return (special.i0, special.i1)[int(order)](x)
    y = special.iv(float(order), x)
    return np.where(np.abs(x) < 1, _series(np.minimum(x, 1), order, 1), y) if type(order) is int else y


def _k(special: Any, x: Any, order: Any) -> Any:
    scaled = (special.k0e, special.k1e)[int(order)](x) if order in (0, 1) else special.kve(float(order), x)
    near = special.kv(float(order), x)
    if order in (0, 1):  # those of SciPy overflow for subnormal numbers
        tiny = np.maximum(x, 5e-324)
        near = np.where(x < 1e-9, (LOG_TWO - np.euler_gamma) - np.log(tiny) if order == 0 else 1 / x, (special.k0, special.k1)[int(order)](x))
        near = np.where(x == 0, np.inf, np.where(x < 0, np.nan, near))
    return np.where(x > 1, scaled * np.exp(-np.maximum(x, 0)), near)


def _series(x: Any, order: int, sign: int) -> Any:
    """The power series of J (sign -1) and I (sign 1) for |x| < 1."""
    half = np.maximum(x, -1) / 2
    term = half**order / factorial(order)
    total = 0.0
    for i in range(1, 10):
        total = total + term
        term = sign * term * (half * half) / (i * (i + order))
    return total


def _neumann(x: Any, order: int) -> tuple[Any, Any]:
    """J and Y of an order with the digits of a long double, for 0.5 <= x < 25 (DLMF 3.6, 10.8.1, 10.8.3).

    J by the recurrence downwards, divided by J₀ + 2 J₂ + 2 J₄ + ... = 1; Y₀ and Y₁ by series of them, and the recurrence upwards.
    """
    x = x.astype(np.longdouble)
    above, here, total, even, odd, found = np.zeros_like(x), np.ones_like(x), 0 * x, 0 * x, 0 * x, 0 * x
    for n in range(80, -1, -1):  # `here` is of order n
        sign = (-1) ** (n // 2)
        found = here if n == order else found
        if n % 2 == 0:
            total += here if n == 0 else 2 * here
            even += sign * here / (n // 2) if n else 0
        elif n > 1:
            k = n // 2
            odd += sign * n * here / (k * (k + 1))
        above, here = here, 2 * n * here / x - above
    zeroth, first = above, -here  # the last step gives the order -1
    logarithm, pi = np.log(x / 2) + np.longdouble("0.57721566490153286060651209008240243"), np.longdouble(PI)
    below, here = 2 / pi * (logarithm * zeroth - 2 * even) / total, 2 / pi * ((logarithm - 1) * first - odd - zeroth / x) / total
    for n in range(1, order):
        below, here = here, 2 * n * here / x - below
    return found / total, here if order else below


def _i_moment(special: Any, x: Any, order: int) -> Any:
    size = np.abs(_real(x))
    if order == 0:
        return special.i0e(x)
    step = 2 * np.arcsin(np.sqrt(np.minimum(1.0, (20.0 + 4 * order) / np.maximum(size, 1.0)))) / STEPS
    return (_trapezoids(np.sin, size, step, order) * step / np.pi).astype(np.asarray(x).dtype)[()]


def _i1e_derivative(special: Any, x: Any, order: int) -> Any:
    size = np.abs(_real(x))
    if order == 0:
        return special.i1e(x)
    size = size.astype(np.longdouble)  # the terms cancel next to the zeros
    step = 2 * np.arcsin(np.sqrt(np.minimum(1.0, (20.0 + 4 * order) / np.maximum(size, 1.0)))) / STEPS
    y = _trapezoids(np.sin, size, step, order, lambda u: 1 - u) * step * ((-1) ** order / np.longdouble(PI))
    return (y if order % 2 else np.sign(x) * y).astype(np.asarray(x).dtype)[()]


def _k_moment(special: Any, x: Any, order: int) -> Any:
    given = _real(x)
    if order == 0:
        return np.where(given < 1e-9, _k(special, given, 0), special.k0e(given)).astype(np.asarray(x).dtype)[()]
    size = np.maximum(given, NEAR_POLE)
    step = 2 * np.arcsinh(np.sqrt((20.0 + 4 * order) / size)) / STEPS
    far = _trapezoids(np.sinh, size, step, order) * step
    near = np.where(given < NEAR_POLE, given, NEAR_POLE)
    terms = [sum(comb(j, i) * special.kn(abs(j - 2 * i), near) for i in range(j + 1)) / 2**j for j in range(order + 1)]
    total = np.exp(near) * sum((-1) ** (order - j) * comb(order, j) * term for j, term in enumerate(terms))
    total = np.where(np.isinf(terms[-1]), terms[-1], total)
    return np.where(given < NEAR_POLE, total, far).astype(np.asarray(x).dtype)[()]


def _trapezoids(sine: Any, size: Any, step: Any, order: int, factor: Any = lambda u: 1.0) -> Any:
    """The sum of factor(u) uᵏ e^(-size u) for u = 2 sine(t/2)² at the ends of the steps; at the first it is 0, at the last it counts half."""
    total = np.zeros_like(size)
    for i in range(1, STEPS + 1):
        u = 2 * sine(step * (i / 2)) ** 2
        total += factor(u) * u**order * np.exp(-size * u) * (0.5 if i == STEPS else 1.0)
    return total


def _i_moment_formula(sp: Any, x: Any, order: int) -> Any:
    powers = [sp.sign(x) ** (j % 2) * sum(comb(j, i) * sp.besseli(abs(j - 2 * i), x) for i in range(j + 1)) / sp.Integer(2) ** j
              for j in range(order + 1)]
    return sp.exp(-sp.Abs(x)) * sum((-1) ** j * comb(order, j) * power for j, power in enumerate(powers))


def _k_moment_formula(sp: Any, x: Any, order: int) -> Any:
    powers = [sum(comb(j, i) * sp.besselk(abs(j - 2 * i), x) for i in range(j + 1)) / sp.Integer(2) ** j for j in range(order + 1)]
    return sp.exp(x) * sum((-1) ** (order - j) * comb(order, j) * power for j, power in enumerate(powers))


def _i1e_formula(sp: Any, x: Any, order: int) -> Any:
    return sp.exp(-sp.Abs(x)) * sum((-sp.sign(x)) ** ((order - j) % 2) * comb(order, j) * _i1_derivative(sp.besseli, x, j) / sp.Integer(2) ** j
                                    for j in range(order + 1))


def _i1e_digits(mp: Any, x: Any, order: int) -> Any:
    if not mp.isfinite(x):
        return x * 0
    with mp.workprec(mp.prec + (order + 1) * (max(mp.mag(x), 0) + 10) * 2):
        return mp.exp(-abs(x)) * mp.fsum((-mp.sign(x)) ** ((order - j) % 2) * comb(order, j) * _i1_derivative(mp.besseli, x, j) / 2**j
                                         for j in range(order + 1))


def _i1_derivative(function: Any, x: Any, order: int) -> Any:
    return sum(comb(order, i) * function(abs(1 - order + 2 * i), x) for i in range(order + 1))


def _i_moment_digits(mp: Any, x: Any, order: int) -> Any:
    half = mp.mpf(1) / 2
    return mp.mpf(2) ** order * mp.rf(half, order) / factorial(order) * mp.hyp1f1(order + half, order + 1, -2 * abs(x))


@functools.lru_cache(4096)
def _second_kind(mp: Any, x: Any, order: int, sign: int, precision: int) -> Any:
    """Y (sign -1) or K (sign 1) of a whole order for 0 < x < 1000 by its series (DLMF 10.8.1, 10.31.1); mpmath takes a limit.

    Neighbouring orders are asked for again by derivatives, so the numbers are kept.
    """
    with mp.workprec(precision + 30 + int(3 * x) + 8 * order):
        half = x / 2
        square, logarithm = sign * half * half, mp.log(half) + mp.euler
        tail, first, k = mp.zero, mp.one / mp.factorial(order), 0
        term, digamma = first, mp.fsum(mp.one / j for j in range(1, order + 1))
        while abs(term) * (abs(logarithm) + digamma + 1) > abs(first) * mp.eps / 4:
            tail += term * (2 * logarithm - digamma)
            k += 1
            term *= square / (k * (k + order))
            digamma += mp.one / k + mp.one / (k + order)
        head = mp.fsum(mp.factorial(order - i - 1) / mp.factorial(i) * (-square) ** i for i in range(order)) / half**order
        return (head - (-1) ** order * half**order * tail) / 2 if sign > 0 else (half**order * tail - head) / mp.pi


def _second_digits(name: str, sign: int) -> Any:
    def call(mp: Any, x: Any, order: Any) -> Any:
        if x == 0:
            return mp.inf if sign > 0 else -mp.inf
        if type(order) is int and 0 < x < 1000:
            value = _second_kind(mp, x, abs(order), sign, mp.prec)
            return -value if sign < 0 and order < 0 and order % 2 else value
        return getattr(mp, name)(order, x) if x > 0 else mp.nan

    return call


_y_digits, _k_digits = _second_digits("bessely", -1), _second_digits("besselk", 1)


def _k_moment_digits(mp: Any, x: Any, order: int) -> Any:
    if not x > 0:
        return mp.inf if x == 0 else mp.nan
    if x > 1000:
        half = mp.mpf(1) / 2
        return mp.mpf(2) ** order * mp.gamma(order + half) * mp.hyperu(order + half, order + 1, 2 * x)
    with mp.workprec(mp.prec + 20 + order * max(10, mp.mag(x) + 5)):
        powers = [mp.fsum(comb(j, i) * _k_digits(mp, x, abs(j - 2 * i)) for i in range(j + 1)) / 2**j for j in range(order + 1)]
        return mp.exp(x) * mp.fsum((-1) ** (order - j) * comb(order, j) * power for j, power in enumerate(powers))


# name: arrays, digits, formula, balls, arity
ROWS: dict[str, tuple[Any, ...]] = {
    "bessel_j": (_of_order(_j, -1), lambda mp, x, n: mp.besselj(n, x), lambda sp, x, n: sp.besselj(sp.Rational(n), x),
                 lambda x, n: x.bessel_j(n), 1, {"NumPy": "9 scipy.special.jv({1}, {0})", "C": "9 jn({1}, {0})"}),
    "bessel_y": (_of_order(_y, -1), _y_digits, lambda sp, x, n: sp.bessely(sp.Rational(n), x),
                 lambda x, n: x.bessel_y(n)),
    "bessel_i": (_of_order(_i, 1), lambda mp, x, n: mp.besseli(n, x), lambda sp, x, n: sp.besseli(sp.Rational(n), x),
                 lambda x, n: x.bessel_i(n), 1, {"NumPy": "9 scipy.special.iv({1}, {0})"}),
    "bessel_k": (_of_order(_k, 1), _k_digits, lambda sp, x, n: sp.besselk(sp.Rational(n), x),
                 lambda x, n: x.bessel_k(n)),
    "i1e_derivative": (_i1e_derivative, _i1e_digits, _i1e_formula),
    "k1e": ("k1e", lambda mp, x: _k_digits(mp, x, 1) * mp.exp(x), lambda sp, x: sp.exp(x) * sp.besselk(1, x), lambda x: x.bessel_k(1, True)),
    "bessel_i_moment": (_i_moment, _i_moment_digits, _i_moment_formula),
    "bessel_k_moment": (_k_moment, _k_moment_digits, _k_moment_formula),
}
