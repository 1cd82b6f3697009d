"""The Euler-Maclaurin formula for the zeta function of Hurwitz, as a series by powers of ε (DLMF 25.11.7)."""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from math import factorial
from typing import Any

from symgrad.system.restoring import workprec


@cache
def bernoulli(count: int) -> list[Fraction]:
    """B₂ₖ/(2k)! for k = 1 to count. DLMF 24.5.3."""
    import mpmath  # takes longer to import than NumPy

    return [Fraction(int(p), int(q) * factorial(2 * k)) for k in range(1, count + 1) for p, q in [mpmath.bernfrac(2 * k)]]


def product(a: list[Any], b: list[Any]) -> list[Any]:
    """The product of two series by powers of ε, both of the same length."""
    return [sum(a[i] * b[k - i] for i in range(k + 1)) for k in range(len(a))]


def times_linear(a: list[Any], c: Any) -> list[Any]:
    """(c + ε) a."""
    return [c * x + (a[k - 1] if k else 0) for k, x in enumerate(a)]


def _tail(s: Any, a: Any, log: Any, power: Any, count: int, numbers: list[Any]) -> list[Any]:
    """Σ (a + k)⁻⁽ˢ⁺ᵋ⁾ by the Euler-Maclaurin formula, as a series by powers of ε; `power` is a⁻ˢ. DLMF 25.11.7."""
    distance, inverse = s - 1, 1 / a
    out = [(-1) ** k * a / distance ** (k + 1) for k in range(count)]
    out[0] = out[0] + s**0 / 2
    rising = times_linear([inverse, *[0 * a] * (count - 1)], s)  # (s + ε) (s + 1 + ε) ... by powers of a
    for j, b in enumerate(numbers, 1):
        out = [x + b * y for x, y in zip(out, rising)]
        rising = [y * inverse * inverse for y in times_linear(times_linear(rising, s + 2 * j - 1), s + 2 * j)]
    return product([power * x for x in out], [(-log) ** k / factorial(k) for k in range(count)])


@lru_cache(4096)  # as derivatives ask for neighbouring coefficients again
def by_sum(mp: Any, s: Any, q: Any, count: int, bits: int) -> list[Any]:
    """The first Taylor coefficients of ζ(s + ε, q) to so many bits, by the Euler-Maclaurin formula in numbers of mpmath. DLMF 25.11.7."""
    terms = int(0.35 * bits) + 1
    with workprec(mp, bits + 60 + max(0, mp.mag(s)) + mp.mag(mp.log(q) + 1)):
        least = (s + 2 * terms) * 0.43
        total = [mp.zero] * count
        while q < least:
            log = mp.log(q)
            added = [mp.exp(-s * log)]
            for k in range(1, count):
                added.append(added[-1] * -log / k)
            total = [x + y for x, y in zip(total, added)]
            if q > 1 and all(x and mp.mag(y) < mp.mag(x) - bits - 60 for x, y in zip(total, added)):
                return total
            q += 1
        log = mp.log(q)
        tail = _tail(s, q, log, mp.exp(-s * log), count, [mp.mpf(b.numerator) / b.denominator for b in bernoulli(terms)])
        return [x + y for x, y in zip(total, tail)]
