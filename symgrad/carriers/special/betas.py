"""The beta function and differences of polygamma functions, without the cancellation of values at a and a + b (DLMF 5.11, 5.12)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from math import comb, factorial, log, pi
from typing import Any

import numpy as np

from symgrad.carriers.special.elementary import product_error
from symgrad.carriers.special.gammas import lgamma_digits, psi_digits
from symgrad.carriers.special.pieces import BERNOULLI
from symgrad.system.restoring import workprec

STEP, CHUNK = 0.2, 4096
NODES = np.arange(-225, 226) * STEP
LARGE = 12.0  # from here on the series of Stirling have all digits
NUMBERS = tuple(float(b) for b in BERNOULLI[:10])
STIRLING = tuple(c / (2 * k * (2 * k - 1)) for k, c in enumerate(NUMBERS[:7], 1))


def _apart(x: Any, gap: Any, k: int) -> Any:
    """x⁻ᵏ - (x + b)⁻ᵏ for the gap log(1 + b / x)."""
    return -np.expm1(-k * gap) * x ** (-float(k))


def _correction(x: Any) -> Any:
    """What log Γ(x) has beside (x - 1/2) log x - x + log(2π) / 2, for large x."""
    inverse = 1 / x
    square, out = inverse * inverse, 0.0
    for c in reversed(STIRLING):
        out = out * square + c
    return out * inverse


def _falling(special: Any, a: Any, b: Any) -> Any:
    """log Γ(b) - log Γ(a + b) for large b."""
    gap = np.log1p(a / b)
    return a - (b - 0.5) * gap - a * np.log(a + b) + sum(c * _apart(b, gap, 2 * k + 1) for k, c in enumerate(STIRLING))


def _of_positive(positive: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays from its rule for positive numbers in float64, and that for others."""
    def compute(special: Any, a: Any, b: Any, *order: int) -> Any:
        if np.iscomplexobj(a) or np.iscomplexobj(b):
            raise TypeError("the beta function is computed for real numbers only; take the real part")
        dtype = np.result_type(a, b)
        a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
        regular = (a > 0) & (b > 0) & np.isfinite(a) & np.isfinite(b)
        if regular.all():
            return np.asarray(positive(special, a, b, *order)).astype(dtype)[()]
        safe = [np.where(regular, x, 1.0) for x in (a, b)]
        return np.where(regular, positive(special, *safe, *order), other(special, a, b, *order)).astype(dtype)[()]

    return compute


def _betaln(special: Any, a: Any, b: Any) -> Any:
    low, high = np.minimum(a, b), np.maximum(a, b)
    out = special.gammaln(low) + special.gammaln(high) - special.gammaln(low + high)
    one = high >= LARGE
    if one.any():
        out = np.where(one, special.gammaln(low) + _falling(special, low, np.maximum(high, LARGE)), out)
    both = low >= LARGE
    if both.any():
        x, y = np.maximum(low, LARGE), np.maximum(high, LARGE)
        size = 0.5 * log(2 * pi) - 0.5 * np.log(y) - (x - 0.5) * np.log1p(y / x) - y * np.log1p(x / y)
        out = np.where(both, size + (_correction(x) + _correction(y) - _correction(x + y)), out)
    return out


def _power(part: Any, whole: Any, error: Any, exponent: Any) -> Any:
    """(part / (whole + error)) ** exponent, where the rounding error of the ratio is not multiplied by the exponent."""
    ratio = part / whole
    rounding = product_error(ratio, whole)
    rest = ((part - ratio * whole) - np.where(np.isfinite(rounding), rounding, 0)) - ratio * error
    return ratio**exponent * np.exp(np.minimum(exponent * (rest / part), 700))  # which is large where the power is 0


def _beta_of_few(special: Any, a: Any, b: Any) -> Any:
    """By gamma functions; log(x - 1/2) is close to ψ(x), which the rounding error of x is multiplied by."""
    total = a + b
    turned = 1 - np.log(np.maximum(total, 2) - 0.5) * (a - (total - b))
    return special.gamma(a) * (special.gamma(b) / special.gamma(total) * turned)


def _beta_of_one(special: Any, a: Any, b: Any) -> Any:
    """By the series of Stirling for a large b."""
    total = a + b
    error = a - (total - b)
    rest = np.exp(_correction(b) - _correction(total) - a * (error / total)) * np.sqrt(total / b)
    return special.gamma(a) * total**-a * (_power(b, total, error, b) * np.exp(a) * rest)


def _beta_of_both(special: Any, a: Any, b: Any) -> Any:
    """By the series of Stirling for large numbers."""
    total = a + b
    error = a - (total - b)
    rest = np.exp(_correction(a) + _correction(b) - _correction(total)) * np.sqrt(2 * pi / a) * np.sqrt(total / b)
    return _power(b, total, error, b) * rest * _power(a, total, error, a)


def _beta(special: Any, a: Any, b: Any) -> Any:
    """By gamma functions and powers: the exponential of a large logarithm would have its error."""
    low, high = np.minimum(a, b), np.maximum(a, b)
    few, both = high < LARGE, low >= LARGE
    out = np.empty(low.shape)
    for rule, places in ((_beta_of_few, few), (_beta_of_both, both), (_beta_of_one, ~(few | both))):
        if places.all():
            return rule(special, low, high)
        if places.any():
            out[places] = rule(special, low[places], high[places])
    return out


def _difference(special: Any, a: Any, b: Any, n: int) -> Any:
    """ψ⁽ⁿ⁾(a) - ψ⁽ⁿ⁾(a + b): a sum of terms of one sign, by the recurrence up to large numbers and their series. DLMF 5.15.5, 5.15.8."""
    out, x = 0.0, a
    with np.errstate(all="ignore"):
        if (a < LARGE).any():
            steps = a[..., None] + np.arange(LARGE)
            small = steps < LARGE
            out = factorial(n) * np.where(small, _apart(steps, np.log1p(b[..., None] / steps), n + 1), 0).sum(-1)
            x = a + small.sum(-1)
        gap = np.log1p(b / x)
        leading = factorial(n - 1) * _apart(x, gap, n) if n else gap
        series = sum(c * factorial(2 * k + n - 1) / factorial(2 * k) * _apart(x, gap, 2 * k + n) for k, c in enumerate(NUMBERS, 1))
    return (-1) ** (n + 1) * (out + (leading + (factorial(n) / 2 * _apart(x, gap, n + 1) + series)))


def _moment(value: Any, slopes: Callable[[int, int], Any], m: int, n: int) -> Any:
    """∂ₐᵐ∂ᵦⁿ of a function from the derivatives of its logarithm."""
    if not m and n:
        return _moment(value, lambda i, k: slopes(k, i), n, m)
    if not m:
        return value
    return sum(comb(m - 1, j) * comb(n, k) * (_moment(value, slopes, j, k) * slopes(m - j, n - k)) for j in range(m) for k in range(n + 1))


def _by_logarithm(beta: Callable[..., Any], difference: Callable[..., Any], polygamma: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of the derivatives of the beta function from functions of the same carrier."""
    def compute(library: Any, a: Any, b: Any, m: int, n: int) -> Any:
        def slopes(i: int, k: int) -> Any:
            return -polygamma(library, a + b, i + k - 1) if i and k else difference(library, a, b, i - 1) if i else difference(library, b, a, k - 1)

        return _moment(beta(library, a, b), functools.cache(slopes), m, n)

    return compute


def _mixed(a: Any, b: Any, m: int, n: int) -> Any:
    """∂ₐᵐ∂ᵦⁿ B for m, n > 0 by the trapezoidal rule for the integral of tᵃ⁻¹ (1 - t)ᵇ⁻¹ logᵐ t logⁿ(1 - t), where t = 1 / (1 + exp(-u)).

    All terms have one sign. The error of the sum is exp(-2π d / h) for a function that is analytic and bounded for |Im u| < d, here π/2.
    """
    u = np.log(np.maximum(a, 1) / np.maximum(b, 1))[..., None] + NODES
    tail = np.log1p(np.exp(-np.abs(u)))
    left, right = np.maximum(-u, 0) + tail, np.maximum(u, 0) + tail
    return (-1) ** (m + n) * STEP * (np.exp(-a[..., None] * left - b[..., None] * right) * left**m * right**n).sum(-1)


def _beta_derivative(special: Any, a: Any, b: Any, m: int, n: int) -> Any:
    """By the logarithm, whose terms cancel in mixed derivatives where a number is small; there by the integral."""
    out = np.asarray(_OF_ARRAYS(special, a, b, m, n))
    small = (np.minimum(a, b) < 2) & (np.maximum(a, b) < 1 / np.finfo(float).eps)
    if m and n and small.any():
        out = out.copy()
        for places in np.array_split(np.flatnonzero(small), np.count_nonzero(small) // CHUNK + 1):
            out.put(places, _mixed(a.take(places), b.take(places), m, n))
    return out


def _more_digits(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of many digits that cancel where one number is large, or small, beside the other one."""
    def compute(mp: Any, a: Any, b: Any, *order: int) -> Any:
        with workprec(mp, mp.prec + 64 + abs(int(mp.mag(a) - mp.mag(b)) if a and b and mp.isfinite(a) and mp.isfinite(b) else 0)):
            y = function(mp, a, b, *order)
        return +y

    return compute


def _betaln_digits(mp: Any, a: Any, b: Any) -> Any:
    return lgamma_digits(mp, a) + lgamma_digits(mp, b) - lgamma_digits(mp, a + b)


def _polygamma_ball(x: Any, n: int) -> Any:
    return (-1) ** (n + 1) * factorial(n) * type(x)(n + 1).zeta(x) if n else x.digamma()


def _three(special: Any, a: Any, b: Any) -> Any:
    return special.gammaln(a) + special.gammaln(b) - special.gammaln(a + b)


def _polygamma(special: Any, x: Any, n: int) -> Any:
    return (-1) ** (n + 1) * factorial(n) * special.zeta(n + 1, x) if n else special.psi(x)


def _three_of_order(special: Any, a: Any, b: Any, n: int) -> Any:
    return _polygamma(special, a, n) - _polygamma(special, a + b, n)


def _difference_digits(mp: Any, a: Any, b: Any, n: int) -> Any:
    return psi_digits(mp, a, n) - psi_digits(mp, a + b, n)


def _difference_formula(sp: Any, a: Any, b: Any, n: int) -> Any:
    return sp.polygamma(n, a) - sp.polygamma(n, a + b)


def _difference_of_balls(_: Any, a: Any, b: Any, n: int) -> Any:
    return _polygamma_ball(a, n) - _polygamma_ball(a + b, n)


def _sign(a: Any, b: Any) -> Any:
    """The sign of the beta function: that of Γ(x) alternates between the negative integers."""
    return math.prod([1 - 2 * (np.floor(np.where((x < 0) & np.isfinite(x), x, 0.0)) % 2) for x in (a, b, a + b)])


def _beta_of_others(special: Any, a: Any, b: Any) -> Any:
    return _sign(a, b) * np.exp(_three(special, a, b))


def _beta_digits(mp: Any, a: Any, b: Any) -> Any:
    sign = math.prod([1 if x >= 0 or not mp.isfinite(x) else (-1) ** int(mp.floor(x)) for x in (a, b, a + b)])
    return sign * mp.exp(_betaln_digits(mp, a, b))


def _beta_formula(sp: Any, a: Any, b: Any) -> Any:
    return sp.exp(sp.loggamma(a) + sp.loggamma(b) - sp.loggamma(a + b))


def _beta_of_balls(_: Any, a: Any, b: Any) -> Any:
    return (a.lgamma() + b.lgamma() - (a + b).lgamma()).exp()


_OF_ARRAYS = _by_logarithm(_beta, _difference, _polygamma)


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "betaln": (_of_positive(_betaln, _three), _more_digits(_betaln_digits), lambda sp, a, b: sp.loggamma(a) + sp.loggamma(b) - sp.loggamma(a + b),
               lambda a, b: a.lgamma() + b.lgamma() - (a + b).lgamma(), 2),
    "beta": (_of_positive(_beta, _beta_of_others), _more_digits(_beta_digits), _beta_formula, lambda a, b: _beta_of_balls(None, a, b), 2),
    "beta_derivative": (
        _of_positive(_beta_derivative, _by_logarithm(_beta_of_others, _three_of_order, _polygamma)),
        _more_digits(_by_logarithm(_beta_digits, _difference_digits, psi_digits)),
        _by_logarithm(_beta_formula, _difference_formula, lambda sp, x, n: sp.polygamma(n, x)),
        lambda *args: _by_logarithm(_beta_of_balls, _difference_of_balls, lambda _, x, n: _polygamma_ball(x, n))(None, *args), 2),
    "polygamma_difference": (
        _of_positive(_difference, _three_of_order), _more_digits(_difference_digits), _difference_formula,
        lambda *args: _difference_of_balls(None, *args), 2),
}
