"""Complete elliptic integrals of the first and second kind (DLMF chapter 19).

The derivative of E is (E - K) / 2m, which cancels next to m = 0. As integrals all derivatives of both are positive but for a factor, and the
trapezoidal rule computes them to the last digits: with tan θ = eᵘ the integrands are analytic and decay on both sides.
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial, prod
from typing import Any

import numpy as np

from symgrad.carriers.special.incomplete import exact

__all__ = ["ROWS"]

STEP, DECAY = 0.19, 46.0  # the step in u, and where exp(-u) is below the last digit of a long double
BATCH = 512  # of the elements that are computed at once


def _factor(kind: int, order: int) -> Fraction:
    """(1/2)ₙ for the first kind (0), (-1/2)ₙ for the second (1)."""
    return prod([Fraction(1 - 2 * kind + 2 * i, 2) for i in range(order)], start=Fraction(1))


def _integral(m: Any, kind: int, order: int) -> Any:
    """The integral of sin²ⁿ (1 - m sin²)^(-n ∓ 1/2) over a quarter of a period, for m < 1."""
    rest = 1 - m
    low, high = -DECAY - np.log(np.maximum(rest, 1)) / 2, DECAY - np.log(np.minimum(rest, 1)) / 2
    count = int(np.max((high - low) / STEP)) + 1
    step = (high - low) / count
    square = np.exp(2 * (low + step * np.arange(count + 1)[:, None]))
    power = order + (1 - 2 * kind) / np.longdouble(2)
    wave = square / (1 + square)
    return step * np.sum(wave**order * ((1 + square) / (1 + rest * square)) ** power * np.sqrt(square) / (1 + square), axis=0)


def _elliptic(special: Any, m: Any, kind: int, order: int) -> Any:
    if np.iscomplexobj(m):
        raise TypeError("elliptic integrals are defined here for real numbers, got complex ones; pass the real part")
    given = np.asarray(m, np.float64)
    y = np.asarray((special.ellipk, special.ellipe)[kind](given), np.longdouble)
    if order:
        y = np.full(given.shape, np.nan, np.longdouble)
        inside = np.isfinite(given) & (given < 1)
        x = given[inside].astype(np.longdouble)
        parts = [_integral(x[i:i + BATCH], kind, order) for i in range(0, x.size, BATCH)]
        y[inside] = exact(_factor(kind, order)) * np.concatenate([*parts, x[:0]])
        y[given == 1] = (-1) ** kind * np.inf
    return y.astype(np.asarray(m).dtype)[()]


def _exact(mp: Any, m: Any, kind: int, order: int) -> Any:
    if m > 1:
        return mp.nan
    if m == 1:
        return mp.one if kind and not order else (-1) ** kind * mp.inf
    a, b = mp.mpf(1) / 2 - kind, mp.mpf(1) / 2
    if abs(m) < 0.25:
        first = _factor(kind, order) * _factor(0, order) / factorial(order)
        return mp.pi * first.numerator / first.denominator / 2 * mp.hyp2f1(a + order, b + order, order + 1, m)
    with mp.extraprec(20 + 10 * order):
        first_kind, second_kind = mp.ellipk(m), mp.ellipe(m)
        value = second_kind if kind else first_kind
        slope = (second_kind - first_kind) / (2 * m) if kind else (second_kind / (1 - m) - first_kind) / (2 * m)
        for n in range(order):  # the equation of the hypergeometric function, differentiated n times
            value, slope = slope, ((a + n) * (b + n) * value - (1 + n - (a + b + 2 * n + 1) * m) * slope) / (m * (1 - m))
        return value


def _formula(sp: Any, m: Any, kind: int, order: int) -> Any:
    u, first = sp.Dummy(), _factor(kind, order) * _factor(0, order) / factorial(order)
    formula, limit = (sp.elliptic_k, sp.elliptic_e)[kind](u).diff(u, order), sp.pi * sp.Rational(first.numerator, first.denominator) / 2
    if m.is_number or not order:
        return limit if m == 0 else formula.xreplace({u: m})
    return sp.Piecewise((formula.xreplace({u: m}), sp.Ne(m, 0)), (limit, True))


def _of_ball(m: Any, kind: int, order: int) -> Any:
    """DLMF 19.5.1 and 19.5.2."""
    first, ball = _factor(kind, order) * _factor(0, order) / factorial(order), type(m)
    return ball.pi() * first.numerator / first.denominator / 2 * m.hypgeom_2f1(ball(order + 0.5 - kind), ball(order + 0.5), ball(order + 1))


# name: arrays, digits, formula, balls
ROWS: dict[str, tuple[Any, ...]] = {"elliptic_derivative": (_elliptic, _exact, _formula, _of_ball)}
