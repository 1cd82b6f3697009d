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
from collections.abc import Callable, Iterator, Sequence
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
        self._evaluations: dict[str, dict[tuple, Any]] = {}
        self._found: dict[tuple, dict[Point, Any]] = {}

    def derivative(self, k: Index, points: Sequence[Point], certain: bool = False) -> list[Any]:
        """The derivative, k[i] times by argument i, at each point; None where it does not exist.

        An infinite derivative is larger than all floats. A zero is certain to about a hundred digits, or with `certain`, below all floats.
        """
        found = self._found.setdefault((k, certain), {})
        if any(p not in found for p in points):
            found |= self._derive(k, [p for p in dict.fromkeys(points) if p not in found], certain)
        return [found[p] for p in points]

    def _derive(self, k: Index, points: list[Point], certain: bool) -> dict[Point, Any]:
        out: dict[Point, Any] = {}
        for i, n in enumerate(k):  # a derivative exists only where those of lower order do
            if n:
                lower = self._lower((*k[:i], n - 1, *k[i + 1:]), points)
                out |= {p: None for p, d in zip(points, lower) if d is None}
        if any(k):
            out |= self._out_of_range([p for p in points if p not in out])
        for rung in RUNGS:
            chosen = [p for p in points if p not in out]
            if chosen:
                out |= {p: d for p, d in self._attempt(rung, k, chosen, certain).items() if d is not UNDECIDED}
        return dict.fromkeys(points) | out

    def _lower(self, k: Index, points: list[Point]) -> list[Any]:
        """A derivative of lower order, of which it is asked whether it exists."""
        return self.derivative(k, points)

    def _out_of_range(self, points: list[Point]) -> dict[Point, Any]:
        """Infinite and zero derivatives at points where the value is so far outside the range of floats that its derivatives are, too."""
        out: dict[Point, Any] = {}
        for p, row in self._rows("narrow", [(0, (n,) * len(points[0])) for n in (0, 1)] if points else [], points, 1).items():
            sizes = [precise.context.mag(v) for v in row if v and precise.context.isfinite(v)]
            if len(sizes) == len(row) and (sizes[0] > FAR or max(sizes) < -FAR):
                out[p] = mpmath.inf if sizes[0] > 0 else mpmath.mpf(0)
        return out

    def _attempt(self, rung: str, k: Index, points: list[Point], certain: bool) -> dict[Point, Any]:
        directions = directions_of(k)
        weighted = [stencil(k, side) for side in directions]
        wanted = [(int(i > 0), offset) for i, some in enumerate(weighted) for offset, _ in some]
        rows, count, out = self._rows(rung, wanted, points, sum(k)), len(weighted[0]), {}
        with precise.working_precision(max(RUNGS[rung].digits(p, sum(k)) for p in points) + MORE):
            for p, row in rows.items():
                estimates = [quotient(some, row[i * count:(i + 1) * count], scaling(rung, k, directions[i], p)) for i, some in enumerate(weighted)]
                out[p] = common_result(rung, k, estimates, row[0], certain)
        return out

    def _rows(self, rung: str, wanted: Sequence[tuple[int, Index]], points: Sequence[Point], order: int) -> dict[Point, list[Any]]:
        """The values around each point that a quotient needs, in the order of `wanted`."""
        rows: dict[Point, list[Any]] = {p: [] for p in points}
        for _, p, value in self._evaluate(rung, [(side, offset, p) for side, offset in wanted for p in points], order):
            rows[p].append(value)
        return rows

    def _evaluate(self, rung: str, requests: Sequence[tuple[int, Index, Point]], order: int) -> Iterator[tuple[Index, Point, Any]]:
        """The function at shifted points, with the digits that a quotient of that order needs; one call for all points of the same precision."""
        count = {p: RUNGS[rung].digits(p, order) for _, _, p in requests}
        keyed = [(count[p] + MORE * side, offset, p) for side, offset, p in requests]
        known = self._evaluations.setdefault(rung, {})
        missing: dict[int, list[tuple]] = {}
        for key in dict.fromkeys(keyed):
            if key not in known:
                missing.setdefault(key[0], []).append(key)
        for digits, keys in missing.items():
            known |= zip(keys, self._read(rung, [key[1:] for key in keys], digits))
        return ((key[1], key[2], known[key]) for key in keyed)

    def _read(self, rung: str, requests: Sequence[tuple[Index, Point]], digits: int) -> list[Any]:
        cells, floats = [], []
        for i in range(len(requests[0][0])):
            plain = np.array([p[i] for _, p in requests])
            moves = [offset[i] for offset, _ in requests]
            if any(moves):
                cells.append(precise.Digits.fill([shifted_number(rung, p, i, n) for (_, p), n in zip(requests, moves)], plain.shape))
                floats.append(np.where(moves, np.nextafter(plain, np.copysign(np.inf, moves)), plain))
            else:
                cells.append(precise.lift_value(plain))
                floats.append(plain)
        try:
            found = self.reader(floats, cells, digits)
            return [_real(x) for x in np.broadcast_to(found, (len(requests),)).tolist()]
        except (ArithmeticError, ValueError, mpmath.libmp.NoConvergence):
            if len(requests) == 1:
                return [precise.context.nan]
            return [self._read(rung, [request], digits)[0] for request in requests]


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
