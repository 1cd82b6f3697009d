"""Many digits of the incomplete gamma functions and of their derivatives by the order a (DLMF chapter 8).

With J = xᵃ e⁻ˣ / Γ(a + 1), P = J Σ xᵏ / ((a + 1) ... (a + k)), and Q = a J F with the continued fraction F. The sums are of whole numbers, whose
unit is 2^-bits. An argument with few binary digits, such as a float, is a short number, with which products are cheap. Derivatives are central
differences with as many digits more as these lose.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from symgrad.system.restoring import workprec

GUARD = 40  # more bits than those asked for
STEP = 256  # of the numbers of bits, so that few of them occur
LONGEST = 100_000  # steps of a sum; for larger arguments next to the order there would be more
RENEWED = 8  # steps after which growing numbers are cut to their leading bits


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


def _factor(mp: Any, a: Any, x: Any, bits: int) -> Any:
    """xᵃ e⁻ˣ / Γ(a + 1)."""
    with workprec(mp, bits + 20 + 2 * max(0, mp.mag(a), mp.mag(x))):
        return mp.exp(a * mp.log(x) - x) * _reciprocal(mp, a, mp.prec)


def _power_series(a: Any, x: Any, bits: int) -> int:
    """The sum of xᵏ / ((a + 1) ... (a + k)). DLMF 8.7.1. Raises NotImplementedError for too many terms."""
    apart = float(a - x)
    if math.hypot(apart, math.sqrt(2 * bits * float(x))) - apart > LONGEST:
        raise NotImplementedError(f"the series of gammainc has more than {LONGEST:,} terms at a = {float(a):g}, x = {float(x):g}")
    short = _short(bits, a, x)
    point, below = _fixed(x, short), _fixed(a, short)
    term = total = 1 << bits
    while term or below <= point:
        below += 1 << short
        term = term * point // below
        total += term
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


def _fraction(a: Any, x: Any, bits: int) -> int:
    """Q Γ(a) / (xᵃ e⁻ˣ), by a continued fraction. DLMF 8.9.2."""
    short = _short(bits, a, x)
    order, unit = _fixed(a, short), 1 << short
    line = _fixed(x, short) + unit - order
    above, upper, below, here = 0, 1 << bits, 1 << bits, line << bits >> short
    for n in range(1, _fraction_steps(float(a), float(x), bits + 20) + 1):
        line, factor = line + 2 * unit, n * (order - n * unit)
        above, upper = upper, line * upper + factor * above >> short
        below, here = here, line * here + factor * below >> short
        if n % RENEWED == 0:
            excess = max(0, here.bit_length() - bits)
            above, upper, below, here = (c >> excess for c in (above, upper, below, here))
    return (upper << bits) // here


def _lost(a: Any, x: Any) -> float:
    """About the binary digits that 1 - P loses for x > a + 1."""
    if x < a + 1:
        return 0.0
    a, x = float(a), float(min(x, 1e300))
    return max(0.0, x - (a - 1) * math.log(x) + math.lgamma(max(a, 1.0))) / math.log(2)


@functools.lru_cache(1024)
def _value(mp: Any, a: Any, x: Any, bits: int, fraction: bool) -> Any:
    """Q by the continued fraction, or P by its series."""
    with workprec(mp, bits + 20):
        scale = _factor(mp, a, x, bits)
        return mp.ldexp(a * scale * _fraction(a, x, bits), -bits) if fraction else mp.ldexp(scale * _power_series(a, x, bits), -bits)


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


def _difference(mp: Any, function: Callable[[Any, int], Any], a: Any, x: Any, order: int, bits: int) -> tuple[Any, Any]:
    """The derivative of function(a, bits) by a of an order, and a bound of its error, by values around a at steps of 2^(-bits/2)."""
    scale = order and int(mp.mag(1 + abs(mp.log(x)) + 1 / mp.sqrt(a + 1)))
    digits = bits + order * (bits // 2 + scale)
    with workprec(mp, digits + 20):
        step = mp.ldexp(1, -(bits // 2) - scale)
        values = [function(a + (order - 2 * j) * step / 2, digits) for j in range(order + 1)]
        y = sum((-1) ** j * math.comb(order, j) * value for j, value in enumerate(values)) / step**order
        return y, mp.ldexp(max(map(abs, values)), GUARD // 2 + order * scale - bits)


def _integral(mp: Any, a: Any, x: Any, order: int, upper: bool) -> Any:
    """The derivative of Q or P by a of an order."""
    if not (a >= 0 and x >= 0) or a == x == 0 or mp.isinf(a):
        return mp.nan
    if a == 0 or x == 0 or mp.isinf(x):
        return mp.mpf(int(upper == (x == 0 and a > 0))) if order == 0 else mp.zero if a else mp.nan
    lost = _lost(a, x)

    def compute(bits: int) -> Any:
        fraction = bits < 8 * lost or x > a + 1 and 16 * x > bits and lost > 20
        y, error = _difference(mp, lambda a, bits: _value(mp, a, x, bits, fraction), a, x, order, bits)
        return y if fraction == upper else -y if order else 1 - y, error

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
    return _settled(mp, lambda bits: _difference(mp, lambda a, bits: a * _factor(mp, a, x, bits) / x, a, x, order, bits), 0)
