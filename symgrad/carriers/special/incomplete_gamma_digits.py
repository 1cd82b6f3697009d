"""Many digits of the incomplete gamma functions and of their derivatives by the order a (DLMF chapter 8).

A function of the order is a truncated power series in ε at a + ε: a list of whole numbers, whose unit is 2^-bits. With
J = xᵃ e⁻ˣ / Γ(a + 1), P = J Σ xᵏ / ((a + 1) ... (a + k)), and Q = a J F with the continued fraction F, whose convergents are quotients of
two series. An argument with few binary digits, such as a float, is a short number, with which products are cheap. All series are kept, since
derivatives ask for neighbouring coefficients again.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from symgrad.system.restoring import workprec

__all__ = ["density", "lower", "order_derivative", "upper"]

GUARD = 40  # more bits than those asked for
STEP = 256  # of the numbers of bits, so that few of them occur
LONGEST = 100_000  # steps of a sum; for larger arguments next to the order there would be more
RENEWED = 8  # steps after which growing numbers are cut to their leading bits


@functools.cache
def _tangent(count: int) -> list[int]:
    """The first tangent numbers. Brent and Harvey, arXiv:1108.0286."""
    out = [0, 1] + [0] * (count - 1)
    for k in range(2, count + 1):
        out[k] = (k - 1) * out[k - 1]
    for k in range(2, count + 1):
        for j in range(k, count + 1):
            out[j] = (j - k) * out[j - 1] + (j - k + 2) * out[j]
    return out[1:]


@functools.lru_cache(256)
def _stirling(count: int, bits: int) -> list[int]:
    """B₂ₖ / (2k (2k - 1)) for k = 1, 2, ..., by the tangent numbers. DLMF 24.15.4."""
    return [(-1) ** (k + 1) * (t << bits) // ((2 * k - 1) * (4**k * (4**k - 1))) for k, t in enumerate(_tangent(count), 1)]


def _times(p: list[int], q: list[int], bits: int) -> list[int]:
    return [sum(p[i] * q[k - i] for i in range(k + 1)) >> bits for k in range(min(len(p), len(q)))]


def _quotient(p: list[int], q: list[int], bits: int) -> list[int]:
    out: list[int] = []
    for k in range(len(p)):
        out.append(((p[k] << bits) - sum(out[i] * q[k - i] for i in range(k))) // q[0])
    return out


def _cut(series: list[list[int]], bits: int) -> int:
    """Shift the numbers of all series so that the first has at most `bits` of them; returns by how many."""
    excess = max(0, series[0][0].bit_length() - bits)
    for one in series:
        one[:] = [c >> excess for c in one]
    return excess


def _fixed(x: Any, bits: int) -> int:
    """The whole number of 2^-bits in a number."""
    sign, mantissa, exponent, _ = x._mpf_
    shift = exponent + bits
    size = mantissa << shift if shift >= 0 else mantissa >> -shift
    return -size if sign else size


def _short(bits: int, *xs: Any) -> int:
    """The binary digits after the point that numbers have, at most `bits`."""
    return min(bits, max(0, *(-x.man_exp[1] for x in xs)))


@functools.lru_cache(256)
def _reciprocal(mp: Any, a: Any, precision: int) -> Any:
    """1 / Γ(a + 1) with the precision of the context."""
    return mp.rgamma(a + 1)


@functools.lru_cache(1024)
def _factor(mp: Any, a: Any, x: Any, count: int, bits: int) -> tuple[Any, list[int]]:
    """xᵃ e⁻ˣ / Γ(a + 1), and its series divided by it. DLMF 5.11.1, after steps of 5.5.1."""
    if count == 1:
        with workprec(mp, bits + 20 + 2 * max(0, mp.mag(a), mp.mag(x))):
            return mp.exp(a * mp.log(x) - x) * _reciprocal(mp, a, mp.prec), [1 << bits]
    with workprec(mp, bits + 20 + 2 * max(0, mp.mag(a), mp.mag(x))):
        steps = max(0, bits // 4 - int(min(a, bits)))
        short = _short(bits, a)
        z, first, product, scale = a + 1 + steps, _fixed(a, short), [1 << bits] + [0] * (count - 1), 0
        for k in range(1, steps + 1):
            factor = first + (k << short)
            product = [(c * factor >> short) + (product[j - 1] if j else 0) for j, c in enumerate(product)]
            if k % RENEWED == 0:
                scale += _cut([product], bits)
        wide = 5 * bits // 2  # since the numbers of the series grow
        logarithm, power = mp.log(z), (1 << wide + short) // (first + (steps + 1 << short))
        square = power * power >> wide
        exponent, inverse, k, found = [0] * count, power >> wide - bits, 0, _stirling(32, bits)
        while True:
            if k == len(found):
                found = _stirling(2 * len(found), bits)
            term = found[k] * power >> wide
            if term in (0, -1):
                break
            for j in range(count):
                exponent[j] += (-1) ** j * math.comb(2 * k + j, j) * term
            power = power * square >> wide
            k += 1
        gamma = mp.ldexp(exponent[0], -bits) + (z - mp.mpf(1) / 2) * logarithm - z + mp.log(2 * mp.pi) / 2
        out = mp.ldexp(product[0], scale - bits) * mp.exp(a * mp.log(x) - x - gamma)
        rest, power = [0] * count, 1 << bits  # of the logarithm
        for j in range(1, count):
            power = power * inverse >> bits
            known = logarithm - 1 / (2 * z) - mp.log(x) if j == 1 else (-1) ** j * (1 / (j * (j - 1) * z ** (j - 1)) + 1 / (2 * j * z**j))
            rest[j] = -_fixed(known, bits) - (exponent[j] * power >> bits)
        series = [1 << bits]
        for j in range(1, count):
            series.append((sum(i * rest[i] * series[j - i] for i in range(1, j + 1)) >> bits) // j)
        return out, _times([(c << bits) // product[0] for c in product], series, bits)


def _power_series(a: Any, x: Any, count: int, bits: int) -> list[int]:
    """The series of the sum of xᵏ / ((a + 1) ... (a + k)). DLMF 8.7.1. Raises NotImplementedError for too many terms."""
    apart = float(a - x)
    if math.hypot(apart, math.sqrt(2 * bits * float(x))) - apart > LONGEST:
        raise NotImplementedError(f"the series of gammainc has more than {LONGEST:,} terms at a = {float(a):g}, x = {float(x):g}")
    short = _short(bits, a, x)
    point, below = _fixed(x, short), _fixed(a, short)
    term = [1 << bits] + [0] * (count - 1)
    total = list(term)
    while count == 1:  # as below, for one number
        below += 1 << short
        term[0] = term[0] * point // below
        total[0] += term[0]
        if not term[0] and below > point:
            return total
    while True:
        below += 1 << short
        before = term[0] = term[0] * point // below
        for j in range(1, count):
            before = term[j] = (term[j] * point - (before << short)) // below
        for j, c in enumerate(term):
            total[j] += c
        if below > point and all(-8 < c < 8 for c in term):
            return total


def _fraction_steps(a: float, x: float, bits: int) -> int:
    """The steps after which the convergents of the continued fraction have that many bits, also next to a."""
    n, ratio, found = 0, x + 1 - a, 0.0
    while found > -bits:
        n += 1
        above = x + 2 * n + 1 - a + n * (a - n) / ratio
        found += math.log2(n * (abs(a - n) + 0.5) / abs(above * ratio))
        ratio = above
    return n + 4


def _fraction(a: Any, x: Any, count: int, bits: int) -> list[int]:
    """The series of Q Γ(a) / (xᵃ e⁻ˣ), by a continued fraction. DLMF 8.9.2."""
    short = _short(bits, a, x)
    order, unit = _fixed(a, short), 1 << short
    line = _fixed(x, short) + unit - order
    above, upper, below = [0] * count, [1 << bits] + [0] * (count - 1), [1 << bits] + [0] * (count - 1)
    here = [line << bits >> short, *([-1 << bits] + [0] * count)[:count - 1]]
    for n in range(1, _fraction_steps(float(a), float(x), bits + 20) + 1):
        line, factor = line + 2 * unit, n * (order - n * unit)
        for older, newer in ((above, upper), (below, here)):
            older[:], newer[:] = newer, [(line * c + factor * older[j] >> short) + (n * older[j - 1] - newer[j - 1] if j else 0)
                                         for j, c in enumerate(newer)]
        if n % RENEWED == 0:
            _cut([here, below, upper, above], bits)
    return _quotient(upper, here, bits)


def _lost(a: Any, x: Any) -> float:
    """About the binary digits that 1 - P loses for x > a + 1."""
    if x < a + 1:
        return 0.0
    a, x = float(a), float(min(x, 1e300))
    return max(0.0, x - (a - 1) * math.log(x) + math.lgamma(max(a, 1.0))) / math.log(2)


@functools.lru_cache(1024)
def _series(mp: Any, a: Any, x: Any, count: int, bits: int, fraction: bool) -> tuple[Any, list[int]]:
    """A number and a series whose product is Q by the continued fraction, or P by its series."""
    scale, factor = _factor(mp, a, x, count, bits)
    if not fraction:
        return scale, _times(factor, _power_series(a, x, count, bits), bits)
    order = [_fixed(a, bits), 1 << bits, *[0] * count][:count]
    return scale, _times(_times(factor, order, bits), _fraction(a, x, count, bits), bits)


def _settled(mp: Any, compute: Any, bits: int) -> Any:
    """The number `compute(bits)` returns with its error, with as many bits as the context asks for."""
    target = mp.prec + 10
    bits += target + GUARD
    while True:
        bits = -(-bits // STEP) * STEP
        with workprec(mp, bits + 20):
            y, error = compute(bits)
            missing = target + mp.mag(error) - (mp.mag(y) if y else -bits)
        if missing <= 0 or bits > 40 * target + 10_000:
            return +y
        bits += missing


def _integral(mp: Any, a: Any, x: Any, order: int, upper: bool) -> Any:
    """The derivative of Q or P by a of an order."""
    if not (a >= 0 and x >= 0) or a == x == 0 or mp.isinf(a):
        return mp.nan
    if a == 0 or x == 0 or mp.isinf(x):
        return mp.mpf(int(upper == (x == 0 and a > 0))) if order == 0 else mp.zero if a else mp.nan
    lost, count = _lost(a, x), 1 << order.bit_length()

    def compute(bits: int) -> Any:
        fraction = bits < 8 * lost or x > a + 1 and 16 * x > bits and lost > 20
        scale, series = _series(mp, a, x, count, bits, fraction)
        y = mp.ldexp(series[order] * math.factorial(order), -bits) * scale
        error = mp.ldexp(scale * ((1 << bits) + max(map(abs, series))), GUARD // 2 - 2 * bits)
        if fraction != upper:
            y = -y if order else 1 - y
        return y, error

    return _settled(mp, compute, int(lost) if 16 * x < mp.prec else 0)


def lower(mp: Any, a: Any, x: Any) -> Any:
    """P(a, x)."""
    return _integral(mp, a, x, 0, False)


def upper(mp: Any, a: Any, x: Any) -> Any:
    """Q(a, x)."""
    return _integral(mp, a, x, 0, True)


def order_derivative(mp: Any, a: Any, x: Any, order: int) -> Any:
    """The derivative of P(a, x) by a of an order."""
    return _integral(mp, a, x, order, False)


def density(mp: Any, a: Any, x: Any, order: int) -> Any:
    """The derivative of xᵃ⁻¹ e⁻ˣ / Γ(a) by a of an order."""
    if not (a > 0 and x > 0):
        return mp.nan

    def compute(bits: int) -> Any:
        scale, series = _factor(mp, a, x, 1 << order.bit_length(), bits)
        y = a * series[order] + (mp.ldexp(series[order - 1], 0) if order else 0)
        return mp.ldexp(y * math.factorial(order), -bits) * scale / x, mp.ldexp(scale / x * (1 + a), GUARD // 2 - bits)

    return _settled(mp, compute, 0)
