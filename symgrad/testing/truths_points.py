"""Derivatives of a function of numbers at points, as difference quotients with as many digits as needed to be certain.

With a step of h = 10⁻³² and 160 digits, (f(x + h) - f(x))/h has 32 right digits, and so have higher quotients. A derivative is accepted if the
quotients to all sides, with different steps and different working precisions, agree to 20 digits. If they do not, smaller
steps and more digits are tried; if they still do not, there is no derivative: a kink, a jump, a pole or the end of the domain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.carriers import precise
from symgrad.testing.truths_quotients import (
    DIGITS,
    MORE,
    PROVISIONAL,
    RUNGS,
    UNDECIDED,
    Index,
    Point,
    decided,
    exponent,
    largest,
    moved,
    quotient,
    scaling,
    sides,
    smallest,
    spread,
    terms,
)
from symgrad.testing.truths_reading import Reader

__all__ = ["Points"]

SMALL, TINY = 1e-6, 1e-40  # smaller numbers may be on the scale of a function, or nearly 0; the second bound is for a function that is smooth at 0
LARGE = 50  # bits from the smallest number or 1, the scale on which a function may change
PROBES, SAME = 3, mpmath.mpf("1e-10")
TERMS = 4  # of an expansion around 0
FAR = 20_000  # bits
FLAT = 20  # digits that rounding may leave in a difference that is 0


class Points:
    """A function of numbers, given by its reader, with its derivatives by multi-index at points (tuples of numbers).

    Results are cached: a derivative at a point is computed once, and all orders share evaluations.
    """

    def __init__(self, reader: Reader):
        self.reader = reader
        self._evaluations: dict[str, dict[tuple, Any]] = {}
        self._found: dict[tuple, dict[Point, Any]] = {}
        self._polynomial: set[tuple] = set()  # whether a derivative vanishes in a neighbourhood of a point
        self._fine: set[Point] = set()  # whether a smaller scale than that of the numbers matters

    def derivative(self, k: Index, points: Sequence[Point], certain: bool = False, others: Sequence[Point] = ()) -> list[Any]:
        """The derivative, k[i] times by argument i, at each point; None where there is none.

        An infinite one is larger than all floats. A zero is certain to about a hundred digits, and for all floats only with `certain`. If a point
        is new, the `others` are computed as well: many at once cost less.
        """
        found = self._found.setdefault((k, certain), {})
        if any(p not in found for p in points):
            found |= self._derive(k, [p for p in dict.fromkeys((*points, *others)) if p not in found], certain)
        return [found[p] for p in points]

    def _derive(self, k: Index, points: list[Point], certain: bool) -> dict[Point, Any]:
        out: dict[Point, Any] = {}
        for i, n in enumerate(k):  # there is no derivative where one of a lower order is missing
            if n:
                lower = self.derivative((*k[:i], n - 1, *k[i + 1:]), points)
                out |= {p: None for p, d in zip(points, lower) if d is None}
        if any(k):
            out |= self._beyond([p for p in points if p not in out])
        for rung in ("taylor", "wide", "relative", "precise", "narrow", "finest"):
            chosen = [p for p in points if p not in out and self._fits(rung, k, p, certain)]
            if rung == "taylor":
                out |= {p: d for p in chosen for d in [self._expanded(k, p)] if d is not None}
            elif chosen:
                found = self._attempt(rung, k, chosen, certain)
                if sum(k) == 1 and rung not in ("narrow", "finest"):
                    found = self._scaled(k, found)
                out |= {p: d for p, d in found.items() if d is not UNDECIDED and d is not PROVISIONAL}
                flat = [] if certain or rung == "wide" else self._flat(k, [p for p, d in found.items() if d is PROVISIONAL])
                self._polynomial |= {(k, p) for p in flat}
                out |= dict.fromkeys(flat, mpmath.mpf(0))
        return dict.fromkeys(points) | out

    def _fits(self, rung: str, k: Index, p: Point, certain: bool) -> bool:
        """Whether an attempt suits a point."""
        if rung == "taylor":
            return any(k) and not certain and any(0 < abs(x) < TINY for x in p)
        if p in self._fine or rung == "narrow":
            return p in self._fine and rung == "narrow"
        if rung == "wide":
            return any(n and 0 < abs(x) < SMALL for x, n in zip(p, k))
        return rung != "precise" or RUNGS[rung].digits(p, sum(k)) < RUNGS["finest"].digits(p, sum(k))

    def _scaled(self, k: Index, found: dict[Point, Any]) -> dict[Point, Any]:
        """The derivatives found, without those that differ on a smaller scale: a long step does not resolve the steps of floor.

        This is tested at a few points; if a function has such a scale at one of them, it is tested at all points.
        """
        far = [p for p, d in found.items() if d is not UNDECIDED and largest(p) > smallest(p) + LARGE]
        far.sort(key=lambda p: sum(exponent(x) for x, n in zip(p, k) if n))
        for some in (list(dict.fromkeys(far[:PROBES] + far[-PROBES:])), far):
            for p, d in self._attempt("narrow", k, some, False).items() if some else ():
                before, after = (mpmath.mpf(0) if v is PROVISIONAL else v for v in (found[p], d))
                if before is not after and (before is None or after is None or after is UNDECIDED or abs(after - before) > abs(after) * SAME):
                    self._fine.add(p)
            if self._fine.isdisjoint(some):
                break
        return {p: d for p, d in found.items() if p not in self._fine}

    def _beyond(self, points: list[Point]) -> dict[Point, Any]:
        """Infinite and zero derivatives, where a value is so far beyond the range of floats that its derivatives are, too."""
        out: dict[Point, Any] = {}
        for p, row in self._rows("relative", [(0, (n,) * len(points[0])) for n in (0, 1)] if points else [], points, 1).items():
            sizes = [precise.context.mag(v) for v in row if v and precise.context.isfinite(v)]
            if len(sizes) == len(row) and (sizes[0] > FAR or max(sizes) < -FAR):
                out[p] = mpmath.inf if sizes[0] > 0 else mpmath.mpf(0)
        return out

    def _expanded(self, k: Index, p: Point) -> Any:
        """Derivatives at numbers near 0 by a power series of a function that is smooth there: a few derivatives at 0 suffice."""
        tiny = [i for i, x in enumerate(p) if 0 < abs(x) < TINY]
        centre = tuple(0.0 if i in tiny else x for i, x in enumerate(p))
        further = [self.derivative((*k[:i], k[i] + 1, *k[i + 1:]), [centre])[0] for i in tiny]
        if None in further:
            return None  # the function changes at 0
        total, largest = mpmath.mpf(0), max(abs(mpmath.mpf(p[i])) for i in tiny)
        with precise.working(DIGITS):
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
                if largest ** (degree + 1) < abs(total) * mpmath.mpf("1e-26") or not degree and not any(further) and (k, centre) in self._polynomial:
                    break
        return total

    def _flat(self, k: Index, points: list[Point]) -> list[Point]:
        """The points around which the function is a polynomial of a lower degree, to 140 digits or more."""
        if not any(k):
            return [p for p in points if not any(0 < abs(x) < SMALL for x in p)]
        kept: dict[Point, None] = {}
        mag = precise.context.mag
        for side in (1, -1):
            weighted = terms(k, (side,) * len(k))
            left = [p for p in points if p not in kept]
            for p, row in self._rows("coarse", [(0, offset) for offset, _ in weighted], left, 0).items():
                digits = RUNGS["coarse"].digits(p, 0)
                with precise.working(digits):
                    if mag(quotient(weighted, row)) <= max(map(mag, row)) - 3.32 * (digits - FLAT):
                        kept[p] = None
        return list(kept)

    def _attempt(self, rung: str, k: Index, points: list[Point], certain: bool) -> dict[Point, Any]:
        """The result of one attempt for the derivative at each point, as `decided` returns it."""
        directions = sides(k)
        weighted = [terms(k, side) for side in directions]
        wanted = [(int(i > 0), offset) for i, some in enumerate(weighted) for offset, _ in some]
        rows, count, out = self._rows(rung, wanted, points, sum(k)), len(weighted[0]), {}
        with precise.working(max(RUNGS[rung].digits(p, sum(k)) for p in points) + MORE):
            for p, row in rows.items():
                estimates = [quotient(some, row[i * count:(i + 1) * count], scaling(rung, k, directions[i], p)) for i, some in enumerate(weighted)]
                out[p] = decided(rung, k, estimates, row[0], certain)
                if rung == "relative" and spread(p) > DIGITS // 2 and precise.context.isinf(row[0]):
                    out[p] = UNDECIDED  # 1 - exp(-x) is 0 for lack of digits
        return out

    def _rows(self, rung: str, wanted: Sequence[tuple[int, Index]], points: Sequence[Point], order: int) -> dict[Point, list[Any]]:
        """The values around each point that a quotient needs, in order."""
        rows: dict[Point, list[Any]] = {p: [] for p in points}
        for _, p, value in self._evaluated(rung, [(side, offset, p) for side, offset in wanted for p in points], order):
            rows[p].append(value)
        return rows

    def _evaluated(self, rung: str, requests: Sequence[tuple[int, Index, Point]], order: int) -> Iterator[tuple[Index, Point, Any]]:
        """The function at points shifted by steps, with the digits that a quotient of that order needs; all points of one precision at once."""
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
                cells.append(precise.Digits.fill([moved(rung, p, i, n) for (_, p), n in zip(requests, moves)], plain.shape))
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
