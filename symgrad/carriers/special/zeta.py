"""The zeta function of Hurwitz, Σ (q + k)⁻ˢ, and its derivatives by both arguments, of every order (DLMF 25.11)."""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from math import comb, factorial
from typing import Any

import numpy as np

from symgrad.carriers.special.zeta_sum import bernoulli, by_sum, product, times_linear
from symgrad.system.restoring import workprec

TERMS = 20  # of the Euler-Maclaurin formula in long doubles, beside q + k >= (s + 2 TERMS)/2: the next one is below 2⁻⁶⁴ of the integral
NEGLIGIBLE = np.longdouble(2.0) ** -80
BLOCK = 24  # terms that are summed at once
CHUNK = 1024  # numbers that are computed at once


@cache
def _wide_bernoulli() -> Any:
    return np.array([np.longdouble(b.numerator) / np.longdouble(b.denominator) for b in bernoulli(TERMS)])


def _mixed(s: Any, series: list[Any], n: int, m: int) -> Any:
    """∂ⁿ/∂sⁿ of (-1)ᵐ s (s + 1) ... (s + m - 1) ζ(s + m, q), from the Taylor coefficients of ζ by s, n + 1 of them. DLMF 25.11.17."""
    rising = [1 + 0 * s, *[0 * s] * n]
    for i in range(m):
        rising = times_linear(rising, s + i)
    return (-1) ** m * factorial(n) * product(rising, series)[n]


def _sum(s: Any, q: Any, count: int) -> Any:
    """The Taylor coefficients of Σ (q + k)⁻⁽ˢ⁺ᵋ⁾ over q + k < (s + 2 TERMS)/2, but not far beyond the last term that counts: a row for each."""
    total, first, rest = np.zeros((count, s.size), np.longdouble), 0, np.arange(s.size)
    while rest.size:
        a, t = q[rest] + np.arange(first, first + BLOCK)[:, None], s[rest]
        log, go_on = np.log(a), np.zeros(rest.shape, bool)
        term = np.where(a < t / 2 + TERMS, np.exp(np.minimum(-t * log, 11000)), 0)  # a power takes thirty times as long
        for k in range(count):
            total[k, rest] += term.sum(0)
            go_on |= np.abs(term[-1]) > NEGLIGIBLE * np.abs(total[k, rest])
            term = term * -log / (k + 1)
        first, rest = first + BLOCK, rest[go_on]
    return total


def _complete(s: Any, q: Any, count: int) -> list[Any]:
    """The first Taylor coefficients of ζ(s + ε, q) for long doubles s > 1, q > 0: the sum, and the tail from (s + 2 TERMS)/2 on, as in `zeta_sum`."""
    total = _sum(s, q, count)
    a = q + np.maximum(0, np.ceil(s / 2 + TERMS - q))
    log, distance, factors = np.log(a), s - 1, s + np.arange(2 * TERMS - 1)[:, None]
    rising = _wide_bernoulli()[:, None] * np.cumprod(factors / a, axis=0)[::2]
    symmetric, tail = np.ones_like(factors), []
    for k in range(count):
        tail.append((-1) ** k * a / distance ** (k + 1) + (rising * symmetric[::2]).sum(0) + (0 if k else 0.5))
        before = np.concatenate([np.zeros_like(symmetric[:1]), symmetric[:-1]]) if k else symmetric
        symmetric = np.cumsum(before / factors, axis=0)  # of the inverse factors so far, of degree k + 1
    power = np.exp(-s * log)
    tail = product([power * x for x in tail], [(-log) ** k / factorial(k) for k in range(count)])
    return [x + np.where(np.abs(y) > NEGLIGIBLE * np.abs(x), y, 0) for x, y in zip(total, tail)]


def _arrays(special: Any, x: Any, q: Any, n: int, m: int) -> Any:
    """The derivative of order n by x and m by q. For q < 0 a derivative by q is SciPy's zeta, and one by x is NaN."""
    if np.iscomplexobj(x) or np.iscomplexobj(q):
        raise TypeError("zeta is defined here for real numbers, got complex ones; pass the real part")
    dtype = np.result_type(x, q)
    s, q = np.broadcast_arrays(np.asarray(x, np.longdouble), np.asarray(q, np.longdouble))
    inside = ((s > 1) & (s < 1e15) & (q > 0) & (q < np.inf)).ravel()
    with np.errstate(all="ignore"):
        y = np.empty(s.size, np.longdouble) if inside.all() else np.asarray(_outside(special, s, q, n, m), np.longdouble).ravel()
        at = np.flatnonzero(inside)
        s, q, shape = s.ravel()[at], q.ravel()[at], s.shape
        for i in range(0, at.size, CHUNK):
            part = slice(i, i + CHUNK)
            y[at[part]] = _mixed(s[part], _complete(s[part] + m, q[part], n + 1), n, m)
        return y.reshape(shape).astype(dtype)[()]


def _outside(special: Any, s: Any, q: Any, n: int, m: int) -> Any:
    """SciPy's values, which are those of torch, and the derivatives by q for s > 1."""
    if n:
        return np.full(s.shape, np.nan)
    value = special.zeta(s.astype(np.float64) + m, q.astype(np.float64))
    return value if not m else np.where(s > 1, (-1) ** m * np.prod([s + i for i in range(m)], axis=0) * value, np.nan)


def _digits(mp: Any, x: Any, q: Any, n: int, m: int) -> Any:
    """The derivative in many digits, of x > 1 and q > 0."""
    if not (x > 1 and q > 0 and mp.isfinite(x) and mp.isfinite(q)):
        return mp.inf if x == 1 and not n and not m else mp.nan
    bits = mp.prec + 30
    with workprec(mp, bits + max(0, -mp.mag(x - 1))):
        found = _mixed(x, by_sum(mp, x + m, q, n + 1, bits), n, m)
    return +found


def _formula(sp: Any, x: Any, q: Any, n: int, m: int) -> Any:
    from symgrad.carriers.special.zeta_formula import zeta_derivative  # imports SymPy

    variable = sp.Dummy()
    rising = sp.Mul(*(variable + i for i in range(m)))
    parts = [comb(n, k) * sp.diff(rising, variable, k).subs(variable, x) * zeta_derivative.of(x + m, q, n - k) for k in range(min(n, m) + 1)]
    return (-1) ** m * sp.Add(*parts)  # Leibniz's rule


def _ball(x: Any, q: Any, n: int, m: int) -> Any:
    import flint

    found = flint.arb_series([x + m, flint.arb(1)], prec=n + 1).zeta(q)
    return _mixed(x, [found[k] for k in range(n + 1)], n, m)


# name: arrays, digits, formula, balls, arity, sources
ROWS: dict[str, tuple[Any, ...]] = {
    "zeta": (lambda special, x, q: _arrays(special, x, q, 0, 0), lambda mp, x, q: _digits(mp, x, q, 0, 0), lambda sp, x, q: sp.zeta(x, q),
             lambda x, q: x.zeta(q), 2,
             {"NumPy": "scipy.special.zeta", "Torch": "torch.special.zeta", "Jax": "jax.scipy.special.zeta"}),
    "zeta_derivative": (_arrays, _digits, _formula, _ball, 2),
}
