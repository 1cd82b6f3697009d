"""Comparison of two expressions, numerically with measured errors and then by algebra; the verdict with a counterexample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain, islice, product
from math import inf
from random import Random
from typing import Any

import sympy
from sympy.core.function import AppliedUndef

from symgrad.algebra.catalogue import DEFINITIONS
from symgrad.algebra.conditions import Boundary, ConditionCoverage
from symgrad.algebra.effort import Effort
from symgrad.algebra.evaluating import Evaluator, Unknown, Unresolved, exact_float, undefined_functions
from symgrad.algebra.held import HELD, resolve
from symgrad.algebra.ladder import rungs
from symgrad.algebra.limits import poll
from symgrad.algebra.ranges import Range, intersection, points_in, ranges_of
from symgrad.algebra.simplification import FAILURES, cancelled, tractable
from symgrad.algebra.stochastic import EXACT, Arithmetic, Exact, Gaussian, Sample
from symgrad.algebra.zero_test import PAIRS, simpler_differences, vanishes
from symgrad.carriers.digits import Undecided
from symgrad.reports.base import NOT_CHECKABLE, PROVED, REFUTED, VERIFIED, BaseReport, Formula, Line, Part, pair
from symgrad.sampling.conditions import boundaries
from symgrad.sampling.domain_reader import Piece
from symgrad.sampling.points import shrink_values

FIRST, LAST = 75, 600  # the digits of the first and of the last rung
AGREED = 50  # equal digits that are required
BOUNDARIES = 24  # the most boundaries of conditions that are tested
SHRINKING = 120  # the most evaluations to simplify a refuting point
SHORT = 100  # the largest numerator and denominator of a point at which SymPy's own exact values are taken
LOST = 60  # the points that are tried if not one can be decided
DEPTH, ON_BOUNDARY = 3, 12  # the depth of boundaries on boundaries, and the points on each
AGREEING, MOST = 12, 20_000  # the points at which a simpler difference is evaluated, and the most digits of two values that are shown
REPEATED = (sympy.Sum, sympy.Product)


@dataclass(frozen=True)
class Identity(BaseReport):
    """The result of `identical`; true if the expressions are proved or verified to be the same function.

    `points` is the number of points of comparison, of `planned` ones (the others have no value, or too few digits there), and `digits` the smallest
    number of digits that agreed (infinite: exactly equal).
    A refutation has the `point`, the `values` of both expressions and their `difference` as a formula; `notes` name points at which only one is
    defined. `index` is the element of an array or a matrix that determines the verdict.
    """

    verdict: str
    reason: str
    points: int = 0
    planned: int = 0
    digits: float = 0.0
    point: Mapping[sympy.Symbol, Any] | None = None
    values: tuple[Any, Any] | None = None
    difference: Any = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    index: tuple[int, ...] | None = None

    @property
    def headline(self) -> str:
        """The first line: the verdict, and why."""
        return f"{self.verdict}: {self.reason}"

    def outline(self) -> Iterator[Part]:
        """The refuting point with both values, the difference, and the notes."""
        if self.verdict == REFUTED and self.values is not None:
            where = ", ".join(f"{s} = {x}" for s, x in (self.point or {}).items())
            yield Line((f"at {where}: " if where else "") + " and ".join(pair(*self.values, 15)))
            if self.difference is not None:
                yield Formula("difference", self.difference)
        yield from (Line(f"note: {note}") for note in self.notes)


Witness = tuple[list[Exact], tuple[Any, Any]]  # a point at which the expressions differ, and their values


class Comparison:
    """The comparison of two expressions over ranges of their symbols: first numerically, then by algebra."""

    def __init__(self, a: Any, b: Any, assumptions: Mapping[Any, Any] | None, points: int, seed: int, effort: float = 1.0,
                 depth: int = 0):
        self.seed, self.depth = seed, depth
        self.effort, self.wanted, self.rng = effort, points, Random(seed)
        self.compared, self.digits, self.lost, self.unresolved = 0, inf, 0, ""
        self.agreed: list[list[Exact]] = []
        self.floats = bool(a.atoms(sympy.Float) | b.atoms(sympy.Float))
        if self.floats:
            a, b = (e.xreplace({x: sympy.Rational(*exact_float(x).as_integer_ratio()) for x in e.atoms(sympy.Float)}) for e in (a, b))
        self.given = (a, b)
        self.symbols: list[sympy.Symbol] = sorted(a.free_symbols | b.free_symbols, key=lambda s: (str(s), str(s.assumptions0)))
        self.ranges = ranges_of(self.symbols, assumptions)
        self.given_ranges = [dict(assumptions or {}).get(s) for s in self.symbols]
        self.unknown: list[str] = []
        self.notes: list[str] = []
        a, b = (e.as_dummy() if e.has(*REPEATED) else e for e in (a, b))
        bounds = [bound for e in (a, b) for held in e.atoms(*REPEATED) for limit in held.limits for bound in limit[1:]]
        for k, s in enumerate(self.symbols):
            if not s.is_integer and any((bound - s).is_integer or (bound + s).is_integer for bound in bounds):
                self.ranges[k] = intersection(self.ranges[k], Range((Piece(step=1),)))
                self.notes.append(f"{s} is taken as an integer, because it bounds a sum or a product")
        # Symbols with the assumptions of their range, so that SymPy simplifies with them.
        known = {s: sympy.Dummy(s.name, **r.assumptions) for s, r in zip(self.symbols, self.ranges) if not r.empty}
        try:
            a, b = a.xreplace(known), b.xreplace(known)
        except FAILURES:  # SymPy may fail, for instance for a Max of nan
            known = {}
        known_ranges = dict(zip((known.get(s, s) for s in self.symbols), self.ranges))
        self.a, self.b = (resolve(e, known_ranges) for e in (a, b))
        self.inner: list[Any] = [known.get(s, s) for s in self.symbols]
        undefined = {**undefined_functions(self.a), **undefined_functions(self.b)}
        if undefined:
            names = {inner: s for s, inner in known.items()}
            self.unknown = sorted({str(f.func if isinstance(f, AppliedUndef) else f.xreplace(names)) for f in undefined})
            a, b, self.a, self.b = (e.xreplace(undefined) for e in (a, b, self.a, self.b))
            self.inner += list(undefined.values())
            self.ranges += [Range()] * len(undefined)
        # Sums are added up term by term, so that the numbers are independent of a closed form.
        self.numbers = (a, b) if not undefined and any(e.has(*REPEATED) for e in (a, b)) else (self.a, self.b)
        self.arithmetic = Arithmetic(FIRST)

    def answer(self) -> Identity:
        """The verdict, first by numbers and then by algebra. OutOfTime is raised if it is aborted."""
        for symbol, r in zip(self.symbols, self.ranges):
            if r.empty:
                return self._identity(NOT_CHECKABLE, f"no point to check at: the range of {symbol} is empty")
        try:
            self.coverage = ConditionCoverage([self.a, self.b], self.inner, self.ranges)
            # A 0 that results from the cancellation of the terms is accurate relative to their size.
            parts = [*self.coverage.conditions, *(term for e in (self.a, self.b) if isinstance(e, sympy.Add) for term in e.args)]
            try:
                self.program = Evaluator([*self.numbers, *parts], self.inner)
            except Unknown:
                self.program = Evaluator([self.a, self.b, *parts], self.inner)
        except Unknown as unknown:
            return self._identity(NOT_CHECKABLE, str(unknown))
        first: list[list[Exact]] = [list(point) for point in self.coverage.points() if all(x in r for x, r in zip(point, self.ranges))]
        # The boundaries of conditions and the kinks, and the constants in the expressions, which are often poles or jumps.
        edges = [Fraction(x) for _, x in boundaries([self.a, self.b], self.inner, [1.0] * len(self.inner), poles=False)][:BOUNDARIES]
        values = {Fraction(int(x.p), int(x.q)) for x in self.a.atoms(sympy.Rational) | self.b.atoms(sympy.Rational) if x.is_finite}
        numbers = sorted({s * v for v in values if abs(v) < 10**6 and v.denominator < 10**6 for s in (1, -1)}, key=lambda v: (abs(v), v))
        self.wanted = self.wanted + 2 * len(edges) + len(first) if self.ranges else 1
        others = islice(points_in(self.ranges, list(dict.fromkeys([*edges, *numbers[:8]])), self.rng), int(3 * self.wanted * self.effort) + 20)
        witness = self._first_difference(chain(first, others), lambda: self.compared >= self.wanted or self.lost >= LOST and not self.compared)
        if witness is not None:
            if self.unknown:
                return self._identity(NOT_CHECKABLE, f"it depends on what {', '.join(self.unknown)} is")
            if any(len(limit) == 1 for e in self.given for held in e.atoms(sympy.Integral) for limit in held.limits):
                return self._identity(NOT_CHECKABLE, "an integral without ends is determined only up to a constant")
            return self._refutation(*self._shrink(*witness))
        if not self.compared:
            return self._identity(NOT_CHECKABLE, f"there is {self.unresolved}" if self.unresolved else
                                  "the two are never defined at the same point" if self.notes else
                                  f"no point could be decided with {LAST} digits" if self.lost else
                                  "neither of the two has a value at any point of the ranges that was tried")
        found = self._difference_on(self.coverage.ends(self.given_ranges))
        if found is not None:
            return found
        held = {f: sympy.Dummy(real=True) for e in (self.a, self.b) for f in e.atoms(sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit)}
        if vanishes(self.a.xreplace(held), self.b.xreplace(held), dict(zip(self.inner, self.ranges)), Effort(PAIRS * self.effort)):
            return self._identity(PROVED, f"the difference is literally 0, and {self._agreement()}")
        witness = self._first_difference(self.coverage.sides())
        if witness is not None:
            return self._refutation(*self._shrink(*witness))
        found = self._difference_on(self.coverage.boundaries())
        found = self._literal_difference() if found is None else found
        if found is not None:
            return found
        condition = self.coverage.unvisited()
        shown = None if condition is None else condition.xreplace({inner: s for inner, s in zip(self.inner, self.symbols)})
        if condition is not None and condition not in self.coverage.kinks:
            return self._identity(NOT_CHECKABLE, f"{self._agreement()}, but on one side of a condition: {shown}")
        unmet = f", and no point is on the other side of {shown}" if condition is not None else ""
        return self._identity(VERIFIED, f"{self._agreement()}; the difference was not brought to a literal 0{unmet}")

    def _agreement(self) -> str:
        where = f"at {self.compared} of {self.wanted} planned point{'s' if self.wanted != 1 else ''}"
        return f"the values are exactly equal {where}" if self.digits == inf else f"{self.digits:.0f} digits agree {where}"

    def _identity(self, verdict: str, reason: str, **more: Any) -> Identity:
        return Identity(verdict, reason, self.compared, self.wanted, self.digits if self.compared else 0.0, notes=tuple(self.notes), **more)

    def _refutation(self, point: Sequence[Exact], values: Sequence[Any], difference: Any = None) -> Identity:
        reason = "they differ at a point" + ("; floats are taken as exactly the binary numbers they are" if self.floats else "")
        return self._identity(REFUTED, reason, point=dict(zip(self.symbols, map(self._number, point))), values=tuple(map(self._number, values)),
                              difference=self._difference() if difference is None else difference)

    def _number(self, x: Any) -> Any:
        """A number as a SymPy number with all its digits."""
        if isinstance(x, sympy.Basic):
            return x
        if isinstance(x, bool):
            return sympy.true if x else sympy.false
        if isinstance(x, Fraction):
            return sympy.Rational(x.numerator, x.denominator)
        if isinstance(x, Gaussian):
            return self._number(x.real) + sympy.I * self._number(x.imag)
        error = max(self.arithmetic.error(x) + 2, -4000)
        parts = [sympy.Float._new(part.value._mpf_, self.arithmetic.bits) if isinstance(part, Sample) else self._number(part)
                 for part in self.arithmetic.parts(x)]
        return parts[0] if abs(parts[1]) < sympy.Integer(2) ** error else parts[0] + sympy.I * parts[1]

    def _difference(self) -> Any:
        a, b = self.given
        if not isinstance(a, sympy.Expr) or not isinstance(b, sympy.Expr):
            return None
        return a - b if (a - b).has(*HELD) else cancelled(a - b)

    def _evaluate(self, point: Sequence[Exact], digits: int) -> list[Any]:
        self.arithmetic.set_digits(digits)
        poll()
        return self.program.at(point, self.arithmetic)

    def _first_difference(self, points: Iterable[list[Exact]], enough: Callable[[], bool] | None = None) -> Witness | None:
        """The first of some points where the expressions differ, None if there is none; also counts the points and digits of agreement."""
        for point in points:
            if enough is not None and enough():
                break
            lost = self.lost
            digits, values = self._compare_at(point)
            if enough is None:  # a point of its own, unless there is no value
                self.wanted += digits is None or digits >= AGREED or self.lost > lost
            if digits is None:
                return point, values
            if digits >= AGREED:
                self.compared += 1
                self.agreed += [point] if len(self.agreed) < AGREEING else []
                self.digits = min(self.digits, digits)
        return None

    def _compare_at(self, point: Sequence[Exact]) -> tuple[float | None, Any]:
        """The number of digits that agree at a point (0: the point does not count), None if the expressions differ; and the two values."""
        for digits in rungs(FIRST, LAST):
            a, b, *terms = self._evaluate(point, digits)
            conditions, terms = terms[:len(self.coverage.conditions)], terms[len(self.coverage.conditions):]
            if isinstance(a, Undecided) or isinstance(b, Undecided):
                if any(isinstance(x, Unresolved) for x in (a, b)):
                    self.unresolved = next(str(x) for x in (a, b) if isinstance(x, Unresolved))
                elif digits < 4 * FIRST:
                    continue
                return self._compare_exactly(point)
            if isinstance(a, ArithmeticError) or isinstance(b, ArithmeticError):
                if isinstance(a, ArithmeticError) != isinstance(b, ArithmeticError) and not self.notes:
                    where = ", ".join(f"{s} = {self._number(x)}" for s, x in zip(self.symbols, point))
                    self.notes.append(f"only the {'second' if isinstance(a, ArithmeticError) else 'first'} is defined at {where or 'all'}")
                return 0.0, None
            self.coverage.note(conditions)
            if isinstance(a, bool) or isinstance(b, bool):
                return (inf if a is b else None), (a, b)
            if self.arithmetic.apart(a, b):
                return (None, (a, b)) if self._stays(partial(self._difference_at, point), digits) else (0.0, None)
            # The error of terms that cancel completely also with more digits is relative to their size.
            error = max(map(self.arithmetic.error, (a, b)))
            size = max(self.arithmetic.magnitude(self.arithmetic.sample(x).value) for x in (a, b, *(terms if digits > FIRST else ()))
                       if not isinstance(x, ArithmeticError))
            agreed = max(0.0, 0.30103 * (size - error)) if error > EXACT else inf
            if agreed >= AGREED:
                return agreed, (a, b)
        self.lost += 1
        return 0.0, None

    def _compare_exactly(self, point: Sequence[Exact]) -> tuple[float | None, Any]:
        """The comparison at a short rational point by SymPy's exact values, which are on a boundary or a branch cut."""
        at = dict(zip(self.inner, map(self._number, point)))
        if at and self.depth < DEPTH and all(abs(k) <= SHORT for x in at.values() for part in x.as_real_imag() for k in (part.p, part.q)) \
                and tractable(self.a) and tractable(self.b) and not any(e.has(*HELD) for e in (self.a, self.b)):
            try:
                inner = Comparison(self.a.xreplace(at), self.b.xreplace(at), None, 1, self.seed, self.effort, self.depth + 1)
                found = inner.answer()
            except FAILURES:
                found = None
            if found is not None and found.verdict != NOT_CHECKABLE:
                self.coverage.note([c.xreplace(at) for c in self.coverage.conditions])
                return (None, found.values) if found.verdict == REFUTED else (found.digits, None)
        self.lost += 1
        return 0.0, None

    def _stays(self, number: Callable[[], Any], digits: int) -> bool:
        """Whether a number is certainly not 0, and the same with twice the digits, so that its error is not underestimated."""
        found = []
        for more in (digits, 2 * digits):
            self.arithmetic.set_digits(more)
            found.append(number())
            if isinstance(found[-1], (ArithmeticError, bool)) or not self.arithmetic.apart(found[-1], Fraction(0)):
                return False
        return not self.arithmetic.apart(*found)

    def _difference_at(self, point: Sequence[Exact]) -> Any:
        a, b, *_ = self.program.at(point, self.arithmetic)
        return next((x for x in (a, b) if isinstance(x, ArithmeticError)), None) or self.arithmetic.sum(
            [a, self.arithmetic.product([Fraction(-1), b])])

    def _shrink(self, simple: list[Exact], values: Any) -> Witness:
        """A simpler point at which the two expressions differ."""
        def differ(point: list[Exact]) -> bool:
            nonlocal simple, values
            digits, found = self._compare_at(point) if all(x in r for x, r in zip(point, self.ranges)) else (0.0, None)
            simple, values = (point, found) if digits is None else (simple, values)
            return digits is None

        shrink_values(simple, differ, SHRINKING)
        return simple, values

    def _difference_on(self, boundaries: Iterable[Boundary]) -> Identity | None:
        """A refutation exactly on the boundary of a condition, where the number may be irrational."""
        for boundary in boundaries if self.depth < DEPTH else ():
            try:
                a, b = (boundary.insert(e) for e in (self.a, self.b))
                inner = Comparison(a, b, boundary.ranges, ON_BOUNDARY, self.seed, self.effort, self.depth + 1)
                found = inner.answer()
            except FAILURES:
                self.coverage.undecided.add(boundary.condition)
                continue
            if found.verdict == REFUTED and found.point is not None:
                free = {s: self._number((r.special([]) or [r.draw(self.rng, "moderate")])[0]) for s, r in boundary.ranges.items()} | dict(found.point)
                point = free | {s: x.xreplace(free) for s, x in boundary.at.items()}
                return self._identity(REFUTED, found.reason, point={s: point[i] for s, i in zip(self.symbols, self.inner)},
                                      values=found.values, difference=self._difference())
            if found.verdict == NOT_CHECKABLE and inner.lost:
                self.coverage.undecided.add(boundary.condition)
        return None

    def _literal_difference(self) -> Identity | None:
        """A refutation by the difference in a simpler form, which has digits where both numbers have too many equal ones."""
        for d in simpler_differences(self.a, self.b):
            if d == 0 or d.has(sympy.nan, sympy.zoo) or not d.free_symbols <= set(self.inner):
                continue
            try:
                program = Evaluator([d], self.inner)
            except Unknown:
                continue
            fast = all(type(f) in Evaluator.table or type(f) in DEFINITIONS or isinstance(f, sympy.Piecewise) for f in d.atoms(
                sympy.Function, sympy.Integral))
            for point, digits in product(self.agreed, (FIRST, LAST, *[2 * LAST] * fast)):
                if self._stays(lambda point=point, program=program: program.at(point, self.arithmetic)[0], digits):  # type: ignore[misc]
                    [least] = program.at(point, self.arithmetic)
                    return self._refutation(point, self._with_difference(point, self.arithmetic.magnitude(self.arithmetic.sample(least).value)),
                                            d.xreplace(dict(zip(self.inner, self.symbols))))
        return None

    def _with_difference(self, point: list[Exact], least: int) -> list[Any]:
        """Both values, with so many digits that a difference of a size is seen if it is not extremely small."""
        found = self._evaluate(point, FIRST)[:2]
        size = self.arithmetic.magnitude(self.arithmetic.sample(found[0]).value)
        values = self._evaluate(point, min(MOST, FIRST + int(0.302 * max(size - least, 0))))[:2]
        return found if any(isinstance(x, ArithmeticError) for x in values) else values
