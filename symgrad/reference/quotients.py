"""Derivatives of a function of numbers as difference quotients with many digits, independent of rules and of SymPy's derivatives.

With a step of h = 10⁻³² on the scale of the smallest of the numbers and 200 digits or more, (f(x + h) - f(x))/h has 32 correct digits, and so have
higher quotients: a longer step does not resolve what varies on that scale, as the steps of floor do at a large number. A derivative
is accepted if the quotients in all directions, with different steps and different working precisions, agree to 20 digits. Otherwise smaller
steps and more digits are tried; if the quotients still disagree, there is no derivative: a kink, a jump, a pole or the end of the domain. Shifted
points are exact, so that only the values are rounded. Steps are not round numbers and differ on each side, since the values of a periodic function
may agree by chance for powers of two.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import mpmath
import numpy as np
from mpmath.libmp import from_man_exp

from symgrad.carriers import precise

Point = tuple[Any, ...]
Index = tuple[int, ...]
Reader = Callable[[Sequence[np.ndarray], Sequence[Any], int], Any]  # a function of floats, many-digit numbers next to them, and a number of digits
DIGITS, MORE = 160, 30  # the digits for steps to the right, and the additional digits for steps to the left
STEPS = {1: 0xB504F333F9DE6485, -1: 0x4F1BBCDCBFA53E0B}  # multiples of 2**-64, to the right and to the left
GRAIN = 64
AGREED, EXTRAPOLATED = 67, 87  # bits of agreement: twenty digits, and twenty-six
NEGLIGIBLE = -1300  # the binary exponent below which a number counts as 0; it is far below those of floats
UNDECIDED = object()
FAR = 20_000  # the binary exponent beyond which a value is far outside the range of floats
make = precise.context.make_mpf
mag = precise.context.mag


class Quotients:
    """The derivatives of a function of numbers, given by its reader, by multi-index at points (tuples of numbers).

    Results are cached: a derivative at a point is computed once, and all orders share evaluations.
    """

    def __init__(self, reader: Reader):
        self.reader = reader
        self._values: dict[tuple, Any] = {}
        self._found: dict[tuple, Any] = {}

    def derivative(self, k: Index, points: Sequence[Point], certain: bool = False) -> list[Any]:
        """The derivative, k[i] times by argument i, at each point; None where it does not exist.

        An infinite derivative is larger than all floats. A zero is certain to about a hundred digits, or with `certain`, below all floats.
        """
        for p in points:
            if (k, p, certain) not in self._found:
                self._found[k, p, certain] = self._derive(k, p, certain)
        return [self._found[k, p, certain] for p in points]

    def _derive(self, k: Index, p: Point, certain: bool) -> Any:
        if any(n and self._lower((*k[:i], n - 1, *k[i + 1:]), p) is None for i, n in enumerate(k)):
            return None  # a derivative exists only where those of lower order do
        if any(k):  # the value may be so far outside the range of floats that its derivatives are, too
            near = [self._value("narrow", (n,) * len(p), p, RUNGS["narrow"].digits(p, 1)) for n in (0, 1)]
            sizes = [mag(v) for v in near if v and precise.context.isfinite(v)]
            if len(sizes) == 2 and (sizes[0] > FAR or max(sizes) < -FAR):
                return mpmath.inf if sizes[0] > 0 else mpmath.mpf(0)
        return next((found for rung in RUNGS for found in [self._attempt(rung, k, p, certain)] if found is not UNDECIDED), None)

    def _lower(self, k: Index, p: Point) -> Any:
        """A derivative of lower order, of which it is asked whether it exists."""
        return self.derivative(k, [p])[0]

    def _attempt(self, rung: str, k: Index, p: Point, certain: bool) -> Any:
        digits, estimates = RUNGS[rung].digits(p, sum(k)), []
        for i, side in enumerate(directions_of(k)):
            weighted = stencil(k, side)
            row = [self._value(rung, offset, p, digits + MORE * (i > 0)) for offset, _ in weighted]
            with precise.working_precision(digits + MORE):
                estimates.append(quotient(weighted, row, scaling(rung, k, side, p)))
        with precise.working_precision(digits + MORE):
            return common_result(rung, k, estimates, self._value(rung, (0,) * len(p), p, digits), certain)

    def _value(self, rung: str, offset: Index, p: Point, digits: int) -> Any:
        """The function at a shifted point, with a number of digits; NaN if it has none."""
        key = rung, offset, p, digits
        if key not in self._values:
            floats = [np.array([np.nextafter(x, math.copysign(math.inf, n)) if n else x]) for x, n in zip(p, offset)]
            cells = [precise.Digits.fill([shifted_number(rung, p, i, n)], (1,)) if n else precise.lift_value(x)
                     for i, (n, x) in enumerate(zip(offset, floats))]
            try:
                self._values[key] = _real(np.broadcast_to(self.reader(floats, cells, digits), (1,)).tolist()[0])
            except (ArithmeticError, ValueError, mpmath.libmp.NoConvergence):
                self._values[key] = precise.context.nan
        return self._values[key]


def _real(x: Any) -> Any:
    if isinstance(x, (bool, int, float)):
        return precise.context.mpf(x)
    if hasattr(x, "_mpc_"):
        return x.real if x.imag == 0 else precise.context.nan
    return precise.context.make_mpf(x._mpf_)


def exponent(x: Any) -> int:
    """The binary exponent of a number, 0 for 0."""
    return math.frexp(x)[1] if x else 0


def spread(point: Point) -> int:
    """The number of digits between the smallest and the largest of the numbers and 1, rounded up to a multiple of forty."""
    bits = [exponent(x) for x in point if x]
    return 40 * math.ceil((max(*bits, 0) - min(*bits, 0)) * 0.30103 / 40) if bits else 0


class Rung(NamedTuple):
    """One attempt: the digits for a point and an order, and the binary exponent of the step for a number of a point."""

    digits: Callable[[Point, int], int]
    step: Callable[[Any, Point], int]


RUNGS = {
    "narrow": Rung(lambda point, order: DIGITS + 40 + 2 * (order + 1) * spread(point),
                   lambda x, point: 2 * min(*map(exponent, point), 0) - max(*map(exponent, point), 0) - 107),
    "finest": Rung(lambda point, order: 1700 + spread(point), lambda x, point: max(exponent(x), 0) - 1330),
}


def shifted_number(rung: str, p: Point, i: int, n: int) -> Any:
    """A number of a point shifted by n steps, without rounding."""
    x, n, bits = p[i], n * STEPS[1 if n > 0 else -1], RUNGS[rung].step(p[i], p) - GRAIN
    mantissa, power = math.frexp(x)
    mantissa_bits, power = int(mantissa * 2**53), power - 53
    if power >= bits or not mantissa_bits:
        return make(from_man_exp((mantissa_bits << (power - bits) if mantissa_bits else 0) + n, bits))
    return make(from_man_exp(mantissa_bits + (n << (bits - power)), power))


def directions_of(k: Index) -> list[Index]:
    """The directions of quotients: two, or four for mixed derivatives of the second order."""
    places = [i for i, n in enumerate(k) if n]
    signs = itertools.product((1, -1), repeat=len(places)) if sum(k) == 2 else [(1,) * len(places), (-1,) * len(places)]
    return [tuple(dict(zip(places, some)).get(i, 1) for i in range(len(k))) for some in signs]


@cache
def stencil(k: Index, side: Index) -> tuple[tuple[Index, int], ...]:
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
    """A product of steps, as an integer and the exponent of a power of two."""
    return (math.prod((s * STEPS[s]) ** n for s, n in zip(side, k)), sum(n * (RUNGS[rung].step(x, p) - GRAIN) for x, n in zip(p, k) if n))


def common_result(rung: str, k: Index, estimates: Sequence[Any], value: Any, certain: bool) -> Any:
    """The common result of quotients in all directions: a number, None if the derivative certainly does not exist, or UNDECIDED."""
    if not all(map(precise.context.isfinite, estimates)):
        if not any(k):
            return number(value) if precise.context.isinf(value) else None
        return mpmath.inf if precise.context.isinf(value) else None
    first, last = estimates[0], estimates[-1]
    extrapolated = (first * STEPS[-1] + last * STEPS[1]) / (STEPS[1] + STEPS[-1]) if any(k) else last
    size = max(map(mag, estimates))
    if not any(estimates):
        return mpmath.mpf(0) if rung == "finest" or not certain else UNDECIDED
    if all(mag(e - first) <= size - AGREED for e in estimates[1:]):
        return number(extrapolated)
    if rung == "finest" and size < NEGLIGIBLE:
        return mpmath.mpf(0)
    if any(k) and mag(extrapolated) <= size - EXTRAPOLATED:  # each quotient is proportional to its step, as for cos at 0
        return mpmath.mpf(0) if rung == "finest" or not certain else UNDECIDED
    return UNDECIDED


def number(x: Any) -> Any:
    """A number of the precise carrier as mpmath's global context represents it."""
    return mpmath.mp.make_mpf(x._mpf_) if hasattr(x, "_mpf_") else mpmath.mpf(x)
