"""Difference quotients with many digits: their steps, the points where the function is evaluated, and their agreement.

Shifted points are exact, so that only the values are rounded. Steps are no round numbers and differ on each side: with
powers of two the values of a periodic function may agree by chance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import mpmath
from mpmath.libmp import from_man_exp

from symgrad.carriers import precise

__all__ = ["DIGITS", "MORE", "PROVISIONAL", "RUNGS", "UNDECIDED", "Index", "Point", "decided", "exponent", "largest", "moved", "number", "quotient",
           "scaling", "sides", "smallest", "spread", "terms"]

Point = tuple[Any, ...]
Index = tuple[int, ...]
DIGITS, MORE = 160, 30  # digits to the right, and how many more to the left
STEPS = {1: 0xB504F333F9DE6485, -1: 0x4F1BBCDCBFA53E0B}  # multiples of 2**-64, to the right and to the left
GRAIN = 64
AGREED, EXTRAPOLATED = 67, 87  # bits of agreement: twenty digits, and twenty-six
NOTHING = -1300  # a number of a smaller exponent is far below every float
UNDECIDED, PROVISIONAL = object(), object()  # PROVISIONAL is a zero that may be a lack of digits
make = precise.context.make_mpf
mag = precise.context.mag


def exponent(x: Any) -> int:
    """The binary exponent of a number, 0 for 0."""
    return math.frexp(x)[1] if x else 0


def spread(point: Point) -> int:
    """How many digits lie between the smallest and the largest of the numbers and 1, in steps of forty."""
    bits = [exponent(x) for x in point if x]
    return 40 * math.ceil((max(*bits, 0) - min(*bits, 0)) * 0.30103 / 40) if bits else 0


def smallest(point: Point) -> int:
    """The binary exponent of the smallest of the numbers and 1."""
    return min(*map(exponent, point), 0)


def largest(point: Point) -> int:
    """The binary exponent of the largest of the numbers and 1."""
    return max(*map(exponent, point), 0)


class Rung(NamedTuple):
    """One attempt: the digits for a point and an order, and the binary exponent of the step for a number of a point."""

    digits: Callable[[Point, int], int]
    step: Callable[[Any, Point], int]


def _plain(point: Point, order: int) -> int:
    return DIGITS + 40 * max(order - 3, 0)


RUNGS = {
    "coarse": Rung(lambda point, order: DIGITS + spread(point), lambda x, point: max(exponent(x), 1) - 3),
    "wide": Rung(_plain, lambda x, point: max(exponent(x), 0) - 107),
    "relative": Rung(_plain, lambda x, point: exponent(x) - 107),
    "narrow": Rung(lambda point, order: DIGITS + 40 + 2 * (order + 1) * spread(point), lambda x, point: 2 * smallest(point) - largest(point) - 107),
    "precise": Rung(lambda point, order: 480 + (order + 1) * spread(point), lambda x, point: exponent(x) - 320),
    "finest": Rung(lambda point, order: 1700 + spread(point), lambda x, point: max(exponent(x), 0) - 1330),
}


def moved(rung: str, p: Point, i: int, n: int) -> Any:
    """A number of a point shifted by n steps, without rounding."""
    x, n, bits = p[i], n * STEPS[1 if n > 0 else -1], RUNGS[rung].step(p[i], p) - GRAIN
    mantissa, power = math.frexp(x)
    whole, power = int(mantissa * 2**53), power - 53
    if power >= bits or not whole:
        return make(from_man_exp((whole << (power - bits) if whole else 0) + n, bits))
    return make(from_man_exp(whole + (n << (bits - power)), power))


def sides(k: Index) -> list[Index]:
    """The directions of quotients: both, and for mixed derivatives of the second order all four."""
    places = [i for i, n in enumerate(k) if n]
    signs = itertools.product((1, -1), repeat=len(places)) if sum(k) == 2 else [(1,) * len(places), (-1,) * len(places)]
    return [tuple(dict(zip(places, some)).get(i, 1) for i in range(len(k))) for some in signs]


@cache
def terms(k: Index, side: Index) -> tuple[tuple[Index, int], ...]:
    """The offsets and weights of Σ (-1)^(k - j) C(k, j) f(x + j h), over all j up to k."""
    return tuple((tuple(s * j for s, j in zip(side, js)), math.prod((-1) ** (n - j) * math.comb(n, j) for n, j in zip(k, js)))
                 for js in itertools.product(*(range(n + 1) for n in k)))


def quotient(weighted: Sequence[tuple[Index, int]], values: Sequence[Any], scale: tuple[int, int] = (1, 0)) -> Any:
    """The sum of weighted values, divided by a product of steps, as `scaling` has it."""
    total = precise.context.zero
    for (_, weight), value in zip(weighted, values):
        total = total + value if weight == 1 else total - value if weight == -1 else total + weight * value
    return precise.context.ldexp(total / scale[0], -scale[1])


def scaling(rung: str, k: Index, side: Index, p: Point) -> tuple[int, int]:
    """A product of steps, as a whole number and a power of two."""
    return (math.prod((s * STEPS[s]) ** n for s, n in zip(side, k)), sum(n * (RUNGS[rung].step(x, p) - GRAIN) for x, n in zip(p, k) if n))


def decided(rung: str, k: Index, estimates: Sequence[Any], value: Any, certain: bool) -> Any:
    """The common result of quotients to all sides: a number, None if there is none for certain, UNDECIDED or PROVISIONAL."""
    if not all(map(precise.context.isfinite, estimates)):
        if not any(k):
            return number(value) if precise.context.isinf(value) else None
        return mpmath.inf if precise.context.isinf(value) else UNDECIDED if rung == "wide" else None
    first, last = estimates[0], estimates[-1]
    extrapolated = (first * STEPS[-1] + last * STEPS[1]) / (STEPS[1] + STEPS[-1]) if any(k) else last
    size = max(map(mag, estimates))
    if not any(estimates):
        return mpmath.mpf(0) if rung in ("narrow", "finest") else PROVISIONAL
    if all(mag(e - first) <= size - AGREED for e in estimates[1:]):
        return number(extrapolated)
    if rung == "finest" and size < NOTHING:
        return mpmath.mpf(0)
    if any(k) and rung != "wide" and mag(extrapolated) <= size - EXTRAPOLATED:  # each value is only its own step, as that of cos at 0
        return mpmath.mpf(0) if rung == "finest" or not certain else UNDECIDED
    return UNDECIDED


def number(x: Any) -> Any:
    """A number of the precise carrier as mpmath's global context represents it."""
    return mpmath.mp.make_mpf(x._mpf_) if hasattr(x, "_mpf_") else mpmath.mpf(x)
