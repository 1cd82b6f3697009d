"""Reference values of a scan: those of `check`, and whether rounding explains an error."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.algebra.ladder import absolute_condition, condition, random_shift, rungs, settled
from symgrad.algebra.limits import poll
from symgrad.carriers import precise
from symgrad.carriers.digits import Undecided
from symgrad.checks.cross_checker import CrossChecker
from symgrad.checks.measuring import GROSS_ERROR, is_ordinary
from symgrad.checks.tolerances import Tolerances
from symgrad.graph.domains import Domain
from symgrad.reference.certify import enclosed
from symgrad.reference.exact import OracleComparison, rule_values
from symgrad.reference.oracle import slots
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reference.sources import RecordedSource, ReferenceNumber, ReferenceValues, Source
from symgrad.reference.template import NoFormula
from symgrad.reports.base import NOT_CHECKABLE
from symgrad.reports.report import CrossReport
from symgrad.scanning.subject import Index, Subject, derivative_indices

FIRST, MOST = 60, 1920  # digits of the first and the last precision of a rule
COSTLY = 154  # digits, from which on a number costs more than in proportion to the operations: 512 bits


class RuleValues(ReferenceValues):
    """The numbers by the library's rules in many digits, where balls or SymPy have none."""

    def __init__(self, run: Any, order: int, direction: np.ndarray):
        self.run, self.direction = run, direction
        self.places = slots(direction.size, order, order)
        numbers = settled(lambda digits, places: operator.itemgetter(*places, places[0])(self._numbers(digits, order)), len(self.places),
                          rungs(FIRST, MOST))
        super().__init__([ReferenceNumber(*slot, x) for slot, x in zip(self.places, numbers) if x is not None and mpmath.isfinite(x)])

    def _numbers(self, digits: int, order: int, rng: np.random.Generator | None = None) -> list[Any]:
        with precise.working_precision(digits):
            values = [precise.lift_value(leaf.value) for leaf in self.run.leaves]
            values = values if rng is None else [random_shift(rng)(value) for value in values]
            return rule_values(RecordingCarrier(precise, precise.lift_value), self.run, values, order, order, self.direction)

    def absolute_condition(self) -> list[Any]:
        """For each entry its size times its condition number."""
        rng, known = np.random.default_rng(0), [self.places.index((e.order, e.index, False)) for e in self.entries]
        return absolute_condition([e.value for e in self.entries], lambda: [self._numbers(4 * FIRST, self.order, rng)[k] for k in known])


class References:
    """The reference values of a function at floats, by the problem of `check`.

    `undecided` and `missing` count the numbers without one, which are not decided, or do not exist, `unenclosed` the points without balls. `digits`
    is the largest number of digits used, and `work` counts the numbers, each by the cost of its digits.
    """

    def __init__(self, subject: Subject, source: Source, domains: Sequence[Domain], dtype: Any, order: int):
        report = CrossReport(subject.name, subject.framework, NOT_CHECKABLE, "", order, names=subject.names)
        base = {name: np.zeros((), dtype) for name in subject.names}
        self.problem = CrossChecker(subject.derivatives(order), source, report, base, domains, Tolerances(), 1, 1.0, 0, lambda *progress: None)
        self.own = isinstance(source, RecordedSource) and source.run == subject.run
        self.source, self.order, self.indices = source, order, derivative_indices(subject.count, order)
        self.direction = self.problem.derivatives.direction
        self.refuted: set[bytes] = set()  # points at which a rule differs from SymPy's derivative
        self.digits, self.undecided, self.missing, self.unenclosed, self.unfollowed, self.work = FIRST, 0, 0, 0, 0, 0.0

    def values(self, point: np.ndarray) -> ReferenceValues:
        """The reference values at a point. Raises Undefined where there is no value, and Undecided."""
        if self.own:
            run = self.source.run(list(point))  # type: ignore[attr-defined]
            try:
                comparison = OracleComparison(run, self.order, self.direction, self.order)
                found = comparison.certified
            except (Undecided, NoFormula):
                found = None
            if found is None:
                return RuleValues(run, self.order, self.direction)
            self.digits = max(self.digits, int(found.bits / 3.33))
            self.work += len(self.indices) * (1 + found.bits / 3.33 / COSTLY) ** 1.5
            self.refuted |= {point.tobytes()} if found.wrong else set()
            if not found.kink:
                return ReferenceValues([ReferenceNumber(e.order, e.index, False, e.reference) for e in comparison.entries()])
        else:
            exact = self.source.reference_values(list(point), self.order, self.order, self.direction)
            self.digits = max(self.digits, getattr(exact, "digits", 0))
            if not exact.kink and exact.order == self.order:
                return exact
        return self.problem.compared(point.astype(np.float64), self.order)[1]

    def at(self, points: np.ndarray) -> dict[Index, np.ndarray]:
        """Every derivative at the points, NaN where there is none or where it is undecided."""
        out = {index: np.full(points.shape[1], mpmath.nan, object) for index in self.indices}
        for k, point in enumerate(points.T):
            poll()
            self.work += len(self.indices)
            try:
                found = self.values(point)
                known = {e.index: e.value for e in found.entries if e.index in out}
            except Undecided:
                self.undecided += len(self.indices)
                continue
            except (ArithmeticError, ValueError):
                continue
            self.missing += (len(out) - len(known)) * (() in known)
            self.unenclosed += () in known and (isinstance(found, RuleValues) or enclosed() is None)
            for index, number in known.items():
                out[index][k] = number
        return out

    def condition(self, point: np.ndarray, index: Index) -> float:
        """The condition number of a derivative at a point, as defined by `symgrad.algebra.ladder`."""
        found = self.values(point)
        if self.own and type(found) is ReferenceValues:
            found = self.source.reference_values(list(point), self.order, self.order, self.direction)
        return next((condition(e.value, moved) for e, moved in zip(found.entries, found.absolute_condition()) if e.index == index), 1.0)

    def is_wrong(self, point: np.ndarray, order: int) -> bool:
        """Whether a derivative of an order differs from its reference value at a point by more than the rounding of its steps explains.

        Of a program that cannot be followed only gross errors at ordinary points are known to be none of rounding.
        """
        if isinstance(self.values(point), RuleValues):  # there is nothing else to compare with
            return False
        found = self.problem.compared(point.astype(np.float64), order)[0].get(order)
        if found is None or not found.wrong or found.kind == "raises":
            return False
        if next(self.problem.shadow_values(point.astype(np.float64), order)) is not None:
            return True
        gross = abs(found.value - found.truth) > GROSS_ERROR * abs(found.truth) and is_ordinary(point)
        self.unfollowed += not gross
        return gross
