"""Comparison of two expressions, numerically with measured errors and then by algebra; the verdict with a counterexample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice
from math import inf
from random import Random
from typing import Any

import sympy

from symgrad.algebra.deciding import FAILURES, tractable, vanishes
from symgrad.algebra.evaluating import Evaluator, Unknown, exact_float, undefined_functions
from symgrad.algebra.ladder import rungs
from symgrad.algebra.limits import OutOfTime, clock, limited
from symgrad.algebra.ranges import Range, points_in, ranges_of
from symgrad.algebra.stochastic import EXACT, Arithmetic, Exact, Gaussian, Sample
from symgrad.algebra.visits import Visits
from symgrad.carriers.digits import Undecided
from symgrad.reports.base import NOT_CHECKABLE, PROVED, REFUTED, VERIFIED, BaseReport, Formula, Line, Part
from symgrad.sampling.conditions import boundaries
from symgrad.sampling.points import shrink_values

FIRST, LAST = 75, 600  # the digits of the first and of the last rung
AGREED = 50  # equal digits that are required
SHARE = 0.5  # the part of the time for numbers, before the algebra
BOUNDARIES = 24  # the most boundaries of conditions that are tested
SHRINKING = 120  # the most evaluations to simplify a refuting point
PATIENCE = 1.0  # the seconds for the values at one point
GRACE = 0.5  # additional seconds for the first point that can be compared
REPEATED = (sympy.Sum, sympy.Product)


@dataclass(frozen=True)
class Identity(BaseReport):
    """The result of `identical`; true if the expressions are proved or verified to be the same function.

    `points` is the number of points of comparison, and `digits` the smallest number of digits that agreed (infinite: exactly equal).
    A refutation has the `point`, the `values` of both expressions and their `difference` as a formula; `notes` name points at which only one is
    defined. `index` is the element of an array or a matrix that determines the verdict.
    """

    verdict: str
    reason: str
    points: int = 0
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
            yield Line((f"at {where}: " if where else "") + " and ".join(_shown(self.values)))
            if self.difference is not None:
                yield Formula("difference", self.difference)
        yield from (Line(f"note: {note}") for note in self.notes)


def _shown(values: Sequence[Any]) -> list[str]:
    """Numbers with enough digits to show that they differ."""
    texts = [str(x) for x in values]
    for digits in (15, 30, 50, 75, 100):
        rounded = [str(x if isinstance(x, (bool, sympy.Rational)) or not isinstance(x, sympy.Expr) else sympy.N(x, digits)) for x in values]
        if rounded[0] != rounded[1]:
            return rounded
    return texts


@dataclass
class _Witness:
    point: list[Exact]
    values: tuple[Any, Any]


class Comparison:
    """The comparison of two expressions over ranges of their symbols: first numerically, then by algebra."""

    def __init__(self, a: Any, b: Any, assumptions: Mapping[Any, Any] | None, seconds: float, points: int, seed: int):
        self.start = clock()
        self.deadline = self.start + seconds
        self.seconds, self.wanted, self.rng = seconds, points, Random(seed)
        self.floats = bool(a.atoms(sympy.Float) | b.atoms(sympy.Float))
        if self.floats:
            a, b = (e.xreplace({x: sympy.Rational(*exact_float(x).as_integer_ratio()) for x in e.atoms(sympy.Float)}) for e in (a, b))
        self.given = (a, b)
        self.symbols: list[sympy.Symbol] = sorted(a.free_symbols | b.free_symbols, key=lambda s: (str(s), str(s.assumptions0)))
        self.ranges = ranges_of(self.symbols, assumptions)
        self.unknown: list[str] = []
        self.notes: list[str] = []
        a, b = (e.as_dummy() if e.has(*REPEATED) else e for e in (a, b))
        self._count(a, b)
        # Symbols with the assumptions of their range, so that SymPy simplifies with them.
        known = {s: sympy.Dummy(s.name, **r.assumptions) for s, r in zip(self.symbols, self.ranges) if not r.empty}
        try:
            a, b = a.xreplace(known), b.xreplace(known)
        except FAILURES:  # SymPy may fail, for instance for a Max of nan
            known = {}
        self.a, self.b = (self._evaluate_held(e) for e in (a, b))
        self.inner: list[Any] = [known.get(s, s) for s in self.symbols]
        undefined = {**undefined_functions(self.a), **undefined_functions(self.b)}
        if undefined:
            self.unknown = sorted({str(f.func if not isinstance(f, sympy.Derivative) else f) for f in undefined})
            self.a, self.b = self.a.xreplace(undefined), self.b.xreplace(undefined)
            self.inner += list(undefined.values())
            self.ranges += [Range()] * len(undefined)
        # Sums are added up term by term, so that the numbers are independent of SymPy's closed form.
        self.numbers = (a, b) if not undefined and any(e.has(*REPEATED) for e in (a, b)) else (self.a, self.b)
        self.compared, self.digits, self.lost, self.patience = 0, inf, 0, PATIENCE
        self.arithmetic = Arithmetic(FIRST)

    def _count(self, *expressions: Any) -> None:
        """Restrict the symbols in the limits of sums and products to integers."""
        bounds = [bound for e in expressions for held in e.atoms(*REPEATED) for limit in held.limits for bound in limit[1:]]
        for k, s in enumerate(self.symbols):
            if not s.is_integer and any((bound - s).is_integer or (bound + s).is_integer for bound in bounds):
                self.ranges[k] = self.ranges[k].integers()
                self.notes.append(f"{s} is taken as an integer, because it bounds a sum or a product")

    def _evaluate_held(self, e: Any) -> Any:
        """The expression with unevaluated derivatives, integrals and sums evaluated where SymPy can."""
        held = e.atoms(sympy.Derivative, sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit, sympy.Subs) if isinstance(e, sympy.Basic) else ()
        if not held:
            return e
        try:
            with limited(self.seconds * SHARE):
                return e.doit()
        except (OutOfTime, NotImplementedError, ValueError, TypeError):
            return e

    def answer(self) -> Identity:
        """The verdict, first by numbers and then by algebra."""
        for symbol, r in zip(self.symbols, self.ranges):
            if r.empty:
                return self._identity(NOT_CHECKABLE, f"no point to check at: the range of {symbol} is empty")
        try:
            self.visits = Visits([self.a, self.b], self.inner, self.ranges)
            conditions = self.visits.conditions
            try:
                self.program = Evaluator([*self.numbers, *conditions, *self._terms()], self.inner)
            except Unknown:
                self.program = Evaluator([self.a, self.b, *conditions, *self._terms()], self.inner)
        except Unknown as unknown:
            return self._identity(NOT_CHECKABLE, str(unknown))
        witness = self._first_difference()
        if witness is not None:
            if self.unknown:
                return self._identity(NOT_CHECKABLE, f"it depends on what {', '.join(self.unknown)} is")
            return self._refutation(witness)
        if not self.compared:
            return self._identity(NOT_CHECKABLE, self._why_nothing_compared())
        literal = self._vanishes()
        if literal:
            return self._identity(PROVED, f"the difference is literally 0, and {self._agreement()}")
        condition = self.visits.unvisited()
        if condition is not None:
            names = {inner: s for inner, s in zip(self.inner, self.symbols)}
            return self._identity(NOT_CHECKABLE, f"{self._agreement()}, but on one side of a condition: {condition.xreplace(names)}")
        return self._identity(VERIFIED, f"{self._agreement()}; the difference was not brought to a literal 0")

    def _agreement(self) -> str:
        where = f"at {self.compared} point{'s' if self.compared != 1 else ''}"
        return f"the values are exactly equal {where}" if self.digits == inf else f"{self.digits:.0f} digits agree {where}"

    def _why_nothing_compared(self) -> str:
        if self.notes:
            return "the two are never defined at the same point"
        if self.lost:
            return f"no point could be decided with {LAST} digits"
        return "neither of the two has a value at any point of the ranges that was tried"

    def _identity(self, verdict: str, reason: str, **more: Any) -> Identity:
        return Identity(verdict, reason, self.compared, self.digits if self.compared else 0.0, notes=tuple(self.notes), **more)

    def _refutation(self, witness: _Witness) -> Identity:
        witness = self._shrink(witness)
        shown = [self._number(x) for x in witness.point]
        values = tuple(self._number(x) for x in witness.values)
        reason = "they differ at a point" + ("; floats are taken as exactly the binary numbers they are" if self.floats else "")
        return self._identity(REFUTED, reason, point=dict(zip(self.symbols, shown)), values=values, difference=self._difference())

    def _number(self, x: Any) -> Any:
        """A number as a SymPy number with all its digits."""
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
        plain = a - b
        left = min(self.deadline - clock(), 0.1)
        if left < 0.02 or plain.count_ops() > 60 or not tractable(plain):
            return plain
        try:
            with limited(left):
                return min((plain, sympy.factor_terms(sympy.cancel(plain))), key=lambda e: e.count_ops())
        except (OutOfTime, NotImplementedError, sympy.PolynomialError, ValueError, TypeError, AttributeError, RecursionError):
            return plain

    def _terms(self) -> list[Any]:
        """The terms of both expressions; a 0 that results from their cancellation is accurate relative to their size."""
        return [term for e in (self.a, self.b) if isinstance(e, sympy.Add) for term in e.args]

    def _evaluate(self, point: Sequence[Exact], digits: int) -> list[Any]:
        self.arithmetic.set_digits(digits)
        if self.program.quick:
            return self.program.at(point, self.arithmetic)
        try:  # mpmath may need more than the total time for one number
            with limited(min(max(self.deadline - clock(), self.seconds / 4) / 2, self.patience)):
                return self.program.at(point, self.arithmetic)
        except OutOfTime:
            self.patience *= 2  # the first call of a function may be slow, since mpmath computes constants
            return [Undecided("time")] * 2

    def _constants(self) -> list[Fraction]:
        """The boundaries of conditions and the kinks, and the constants in the expressions, which are often poles or jumps."""
        found_boundaries = [Fraction(x) for _, x in boundaries([self.a, self.b], self.inner, [1.0] * len(self.inner), poles=False)]
        self.wanted += 2 * len(found_boundaries[:BOUNDARIES])
        found = self.a.atoms(sympy.Number) | self.b.atoms(sympy.Number)
        values = {Fraction(int(x.p), int(x.q)) if isinstance(x, sympy.Rational) else exact_float(x)
                  for x in found if isinstance(x, (sympy.Rational, sympy.Float)) and x.is_finite}
        numbers = sorted({s * v for v in values if abs(v) < 10**6 and v.denominator < 10**6 for s in (1, -1)}, key=lambda v: (abs(v), v))
        return list(dict.fromkeys([*found_boundaries[:BOUNDARIES], *numbers[:8]]))

    def _candidates(self) -> Iterator[list[Exact]]:
        first: list[list[Exact]] = [list(point) for point in self.visits.points() if all(x in r for x, r in zip(point, self.ranges))]
        constants = self._constants()
        self.wanted += len(first)
        return chain(first, islice(points_in(self.ranges, constants, self.rng), 3 * self.wanted + 20))

    def _first_difference(self) -> _Witness | None:
        """The first point where the expressions differ, None if there is none; also counts the points and digits of agreement."""
        until = self.start + self.seconds * SHARE
        for point in self._candidates():
            if self.compared >= self.wanted or clock() > (until if self.compared else self.deadline + GRACE):
                break
            digits, values = self._compare_at(point)
            if digits is None:
                return _Witness(point, values)
            if digits >= AGREED:
                self.compared += 1
                self.digits = min(self.digits, digits)
        return None

    def _compare_at(self, point: Sequence[Exact]) -> tuple[float | None, Any]:
        """The number of digits that agree at a point (0: the point does not count), None if the expressions differ; and the two values."""
        for digits in rungs(FIRST, LAST):
            a, b, *terms = self._evaluate(point, digits)
            conditions, terms = terms[:len(self.visits.conditions)], terms[len(self.visits.conditions):]
            if isinstance(a, Undecided) or isinstance(b, Undecided):
                if digits < 4 * FIRST and clock() < self.deadline:
                    continue
                self.lost += 1
                return 0.0, None
            if isinstance(a, ArithmeticError) or isinstance(b, ArithmeticError):
                if isinstance(a, ArithmeticError) != isinstance(b, ArithmeticError) and not self.notes:
                    where = ", ".join(f"{s} = {self._number(x)}" for s, x in zip(self.symbols, point))
                    self.notes.append(f"only the {'second' if isinstance(a, ArithmeticError) else 'first'} is defined at {where or 'all'}")
                return 0.0, None
            self.visits.note(conditions)
            if isinstance(a, bool) or isinstance(b, bool):
                return (inf if a is b else None), (a, b)
            if self.arithmetic.apart(a, b):
                return (None, (a, b)) if self._is_confirmed(point, digits) else (0.0, None)
            # The error of terms that cancel completely also with more digits is relative to their size.
            agreed = self._agreeing_digits([a, b, *(terms if digits > FIRST else ())])
            if agreed >= AGREED:
                return agreed, (a, b)
            if clock() > self.deadline:
                break
        self.lost += 1
        return 0.0, None

    def _agreeing_digits(self, numbers: Sequence[Any]) -> float:
        """The number of digits to which the first two numbers agree, relative to the largest of all."""
        error = max(map(self.arithmetic.error, numbers[:2]))
        size = max(self.arithmetic.magnitude(self.arithmetic.sample(x).value) for x in numbers if not isinstance(x, ArithmeticError))
        return max(0.0, 0.30103 * (size - error)) if error > EXACT else inf

    def _is_confirmed(self, point: Sequence[Exact], digits: int) -> bool:
        """Whether a difference stays the same with twice the digits, so that it is not due to an underestimated error."""
        differences = []
        for more in (digits, 2 * digits):
            a, b, *_ = self._evaluate(point, more)
            if isinstance(a, ArithmeticError) or isinstance(b, ArithmeticError):
                return False
            differences.append(self.arithmetic.sum([a, self.arithmetic.product([Fraction(-1), b])]))
        return not self.arithmetic.apart(*differences)

    def _shrink(self, witness: _Witness) -> _Witness:
        """A simpler point at which the two expressions differ."""
        def differ(point: list[Exact]) -> bool:
            nonlocal witness
            if clock() > self.deadline or not all(x in r for x, r in zip(point, self.ranges)):
                return False
            digits, values = self._compare_at(point)
            if digits is None:
                witness = _Witness(point, values)
            return digits is None

        shrink_values(witness.point, differ, SHRINKING)
        return witness

    def _vanishes(self) -> bool:
        return vanishes(self.a, self.b, dict(zip(self.inner, self.ranges)), self.deadline)
