"""Derivatives of a function of numbers at points, as difference quotients with as many digits as it takes to be certain of them.

With a step of h = 10⁻³² and 160 digits, (f(x + h) - f(x))/h has 32 right digits, and so have higher quotients. A derivative is believed where the
quotients to each side, taken with different steps and different working precisions, agree to 20 digits; where they do not, smaller
steps and more digits are tried, and if they still do not, there is no derivative: a kink, a jump, a pole or the end of the domain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import mpmath
import numpy as np

from symgrad.carriers import precise
from symgrad.testing.truths_reading import Reader, working

__all__ = ["Points"]

Point = tuple[Any, ...]
Index = tuple[int, ...]
DIGITS, MORE = 160, 30  # digits of one side, and how many more the other has
BITS = 107  # 32 digits: how much smaller than x a step is
MOST, FINEST = 1700, 1330  # digits of the last attempt, and the bits of its step
SMALL, TINY = 1e-6, 1e-40  # what is smaller may be on the scale of a function, or nearly 0; for sure nearly 0 for a function that is smooth at 0
TERMS = 4  # of an expansion around 0
FAR = 20_000  # bits
AGREED, EXTRAPOLATED, FLAT = (mpmath.mpf(10) ** -n for n in (20, 26, 140))
NOTHING = mpmath.mpf("1e-390")  # below every float by far
NARROW = 5 / 16  # how much smaller steps are to the other side
UNDECIDED, PROVISIONAL = object(), object()  # which is a zero that may be a lack of digits


def _exponent(x: Any) -> int:
    return math.frexp(x)[1] if x else 0


def _spread(point: Point) -> int:
    """How many digits lie between the smallest and the largest of the numbers and 1, in steps of forty."""
    sizes = [math.log10(abs(x)) for x in point if x]
    return 40 * math.ceil((max(*sizes, 0.0) - min(*sizes, 0.0)) / 40) if sizes else 0


class Rung(NamedTuple):
    """One attempt: with how many digits, for a point and an order, and with which binary exponent of the step, for a number of it."""

    digits: Callable[[Point, int], int]
    step: Callable[[Any], int]


RUNGS = {
    "wide": Rung(lambda point, order: DIGITS + 40 * max(order - 3, 0), lambda x: max(_exponent(x), 0) - BITS),
    "relative": Rung(lambda point, order: DIGITS + 40 * max(order - 3, 0), lambda x: _exponent(x) - BITS),
    "precise": Rung(lambda point, order: DIGITS + (order + 1) * _spread(point), lambda x: _exponent(x) - BITS),
    "finest": Rung(lambda point, order: MOST + _spread(point), lambda x: max(_exponent(x), 0) - FINEST),
    "coarse": Rung(lambda point, order: DIGITS, lambda x: max(_exponent(x), 1) - 3),
}


def _less(k: tuple[int, ...], i: int) -> tuple[int, ...]:
    return (*k[:i], k[i] - 1, *k[i + 1:])


def number(x: Any) -> Any:
    """A many-digit number as the rest of the world knows it."""
    return mpmath.mp.make_mpf(x._mpf_) if hasattr(x, "_mpf_") else mpmath.mpf(x)


class Points:
    """A function of numbers, known by its reader, with its derivatives by multi-index at points (tuples of numbers).

    What was computed is kept: a derivative at a point is found once, and evaluations are shared by all orders.
    """

    def __init__(self, reader: Reader):
        self.reader = reader
        self._evaluations: dict[str, dict[tuple, Any]] = {}
        self._found: dict[tuple, dict[Point, Any]] = {}
        self._polynomial: set[tuple] = set()  # where a derivative vanishes not only at a point but around it

    def derivative(self, k: tuple[int, ...], points: Sequence[Point], surely: bool = False) -> list[Any]:
        """The derivative, k[i] times by argument i, at each point; None where there is none.

        An infinite one is beyond all floats. A zero is certain to about a hundred digits, and beyond all floats only with `surely`.
        """
        found = self._found.setdefault((k, surely), {})
        missing = [p for p in dict.fromkeys(points) if p not in found]
        if missing:
            found |= self._derive(k, missing, surely)
        return [found[p] for p in points]

    def _derive(self, k: tuple[int, ...], points: list[Point], surely: bool) -> dict[Point, Any]:
        out: dict[Point, Any] = {}
        for i, n in enumerate(k):  # there is no derivative where one of a lower order is missing
            if n:
                out |= {p: None for p, d in zip(points, self.derivative(_less(k, i), points)) if d is None}
        left = [p for p in points if p not in out]
        if any(k):
            out |= self._beyond(left)
        for name in ("taylor", "wide", "relative", "precise", "finest"):
            left = [p for p in left if p not in out]
            chosen = [p for p in left if self._fits(name, k, p, surely)]
            if not chosen:
                continue
            if name == "taylor":
                out |= {p: d for p in chosen for d in [self._expanded(k, p)] if d is not None}
                continue
            found = self._attempt(name, k, chosen, surely)
            zeros = [p for p, d in found.items() if d is PROVISIONAL]
            out |= {p: d for p, d in found.items() if d is not UNDECIDED and d is not PROVISIONAL}
            if zeros and not surely:
                flat = self._flat(k, zeros)
                self._polynomial |= {(k, p) for p in flat}
                out |= dict.fromkeys(flat, mpmath.mpf(0))
        return dict.fromkeys(points) | out

    def _fits(self, name: str, k: tuple[int, ...], p: Point, surely: bool) -> bool:
        """Whether a rung is for a point."""
        if name == "taylor":
            return any(k) and not surely and any(0 < abs(x) < TINY for x in p)
        if name == "wide":
            return any(x and abs(x) < SMALL for x, n in zip(p, k) if n)
        return name != "precise" or any(x and abs(x) < SMALL for x in p) or _spread(p) > 40

    def _beyond(self, points: list[Point]) -> dict[Point, Any]:
        """Where a value is so far beyond all floats that its derivatives are, too, or so small."""
        out: dict[Point, Any] = {}
        for _, p, value in self._evaluated("relative", [(0, (0,) * len(p), p) for p in points], 1):
            if value and precise.context.isfinite(value) and abs(precise.context.mag(value)) > FAR:
                out[p] = mpmath.inf if precise.context.mag(value) > 0 else mpmath.mpf(0)
        return {p: out[p] for p in points if p in out}

    def _expanded(self, k: tuple[int, ...], p: Point) -> Any:
        """By the powers of the numbers that are nearly 0, of a function that is smooth there: a few derivatives at 0 serve them all."""
        tiny = [i for i, x in enumerate(p) if 0 < abs(x) < TINY]
        centre = tuple(0.0 if i in tiny else x for i, x in enumerate(p))
        total, largest = mpmath.mpf(0), max(abs(mpmath.mpf(p[i])) for i in tiny)
        with working(DIGITS):
            for degree in range(TERMS):
                for powers in itertools.product(range(degree + 1), repeat=len(tiny)):
                    if sum(powers) != degree:
                        continue
                    higher = list(k)
                    for i, n in zip(tiny, powers):
                        higher[i] += n
                    (d,) = self.derivative(tuple(higher), [centre])
                    if d is None or not mpmath.isfinite(d):
                        return None
                    total += d * math.prod((mpmath.mpf(p[i]) ** n / math.factorial(n) for i, n in zip(tiny, powers)), start=mpmath.mpf(1))
                if largest ** (degree + 1) < abs(total) * EXTRAPOLATED or not degree and (k, centre) in self._polynomial:
                    break
        return total

    def _flat(self, k: tuple[int, ...], points: list[Point]) -> list[Point]:
        """Those of the points around which the function is a polynomial of a lower degree, to 140 digits."""
        if not any(k):
            return [p for p in points if not self._fits("precise", k, p, False)]
        kept: list[Point] = []
        for side in (1, -1):
            weights = _weights(k, (side,) * len(k))
            left = [p for p in points if p not in kept]
            rows: dict[Point, list[Any]] = {p: [] for p in left}
            for _, p, value in self._evaluated("coarse", [(0, offset, p) for offset, _ in weights for p in left], 0):
                rows[p].append(value)
            with working(DIGITS):
                kept += [p for p, row in rows.items() if abs(_sum(weights, row)) <= max(map(abs, row)) * FLAT]
        return kept

    def _attempt(self, name: str, k: tuple[int, ...], points: list[Point], surely: bool) -> dict[Point, Any]:
        """The derivative at each point as far as one rung gets: a number, None where there is none for certain, UNDECIDED or PROVISIONAL."""
        moved = [i for i, n in enumerate(k) if n]
        signs = itertools.product((1, -1), repeat=len(moved)) if sum(k) == 2 else [(1,) * len(moved), (-1,) * len(moved)]
        sides = [tuple(some[moved.index(i)] if i in moved else 1 for i in range(len(k))) for some in signs]
        weights = [_weights(k, side) for side in sides]
        requests = [(int(i > 0), offset, p) for i, terms in enumerate(weights) for offset, _ in terms for p in points]
        rows: dict[Point, list[Any]] = {p: [] for p in points}
        for _, p, value in self._evaluated(name, requests, sum(k)):
            rows[p].append(value)
        out, count = {}, len(weights[0])
        with working(max(RUNGS[name].digits(p, sum(k)) for p in points) + MORE):
            for p, row in rows.items():
                estimates = []
                for i, terms in enumerate(weights):
                    size = math.prod((self._step(name, p[j], sides[i][j]) * sides[i][j]) ** k[j] for j in moved)
                    estimates.append(_sum(terms, row[i * count:(i + 1) * count]) / size)
                out[p] = self._decided(name, k, estimates, row[0], surely)
        return out

    def _decided(self, name: str, k: tuple[int, ...], estimates: list[Any], value: Any, surely: bool) -> Any:
        isfinite = precise.context.isfinite
        if not any(k) and not isfinite(value):
            return number(value) if precise.context.isinf(value) else None
        if not all(map(isfinite, estimates)):
            if precise.context.isinf(value):
                return mpmath.inf
            return UNDECIDED if name == "wide" else None
        first, last = estimates[0], estimates[-1]
        size = max(map(abs, estimates))
        if size == 0:
            return mpmath.mpf(0) if name == "finest" else PROVISIONAL
        if all(abs(e - first) <= size * AGREED for e in estimates):
            return number((first * NARROW + last) / (1 + NARROW) if any(k) else last)
        if size < NOTHING and name == "finest":
            return mpmath.mpf(0)
        if any(k) and name != "wide" and abs(first * NARROW + last) <= size * EXTRAPOLATED:  # each is only its own step, as that of cos at 0
            return mpmath.mpf(0) if name == "finest" or not surely else UNDECIDED
        return UNDECIDED

    def _step(self, name: str, x: Any, sign: int) -> Any:
        h = precise.context.ldexp(precise.context.one, RUNGS[name].step(x))
        return h if sign > 0 else h * NARROW

    def _evaluated(self, name: str, requests: Sequence[tuple[int, Index, Point]], order: int) -> Iterator[tuple[Index, Point, Any]]:
        """The function at points moved by so many steps, with the digits that a quotient of that order takes; all of one precision at once."""
        rung = RUNGS[name]
        keyed = [(rung.digits(p, order) + MORE * side, offset, p) for side, offset, p in requests]
        known = self._evaluations.setdefault(name, {})
        missing: dict[int, dict[tuple, None]] = {}
        for key in keyed:
            if key not in known:
                missing.setdefault(key[0], {})[key] = None
        for digits, keys in missing.items():
            with working(digits):
                known |= zip(keys, self._read(name, [key[1:] for key in keys], digits))
        for key in keyed:
            yield key[1], key[2], known[key]

    def _read(self, name: str, requests: Sequence[tuple[tuple[int, ...], Point]], digits: int) -> list[Any]:
        cells, floats = [], []
        for i in range(len(requests[0][0])):
            plain = np.array([p[i] for _, p in requests])
            moves = [offset[i] for offset, _ in requests]
            if any(moves):
                mpf = precise.context.mpf
                cells.append(precise.Digits.fill([mpf(x) + n * self._step(name, x, n) if n else mpf(x) for x, n in zip(plain.tolist(), moves)],
                                                 plain.shape))
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
            return [self._read(name, [request], digits)[0] for request in requests]


@cache
def _weights(k: tuple[int, ...], side: tuple[int, ...]) -> tuple[tuple[tuple[int, ...], int], ...]:
    """The offsets and weights of Σ (-1)^(k - j) C(k, j) f(x + j h), over all j up to k."""
    return tuple((tuple(s * j for s, j in zip(side, js)), math.prod((-1) ** (n - j) * math.comb(n, j) for n, j in zip(k, js)))
                 for js in itertools.product(*(range(n + 1) for n in k)))


def _sum(weights: Sequence[tuple[Any, int]], values: Sequence[Any]) -> Any:
    total = precise.context.zero
    for (_, weight), value in zip(weights, values):
        total += weight * value
    return total


def _real(x: Any) -> Any:
    if isinstance(x, (bool, int, float)):
        return precise.context.mpf(x)
    if hasattr(x, "_mpc_"):
        return x.real if x.imag == 0 else precise.context.nan
    return precise.context.make_mpf(x._mpf_)
