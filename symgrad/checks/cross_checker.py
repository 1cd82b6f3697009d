"""The cross-check: compares a function of any framework with a formula, at special and at random points, order by order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.algebra.limits import Budget
from symgrad.carriers.digits import Undecided, Undefined
from symgrad.checks.measuring import Features, Measure, Tolerances, hint, is_ordinary, is_worse
from symgrad.frameworks.differentiation_task import NotCheckable, generators_restored, seed_generators
from symgrad.frameworks.levels import Derivatives, Levels, ShadowValues
from symgrad.graph.domains import Domain
from symgrad.reference.sources import DifferenceSource, ReferenceValues, Source
from symgrad.reference.template import NoFormula
from symgrad.reports.base import IMPRECISE, NOT_CHECKABLE, REFUTED, VERIFIED, at, first_line, message_of, number, pair, ulp_text
from symgrad.reports.report import Agreement, CrossReport, Finding
from symgrad.sampling.conditions import boundary_numbers, numbers_around
from symgrad.sampling.points import NORMAL, as_point, draw_points, edge_points, flat, shrink_values, weight

MAX_SPECIAL_POINTS = 60  # special points with one input; a third more with several
MAX_CONDITION_POINTS = 60  # numbers at which conditions of the formula hold or change
MAX_CONSTANTS = 12  # constants of the source
MAX_CONSTANT_INPUTS = 4  # inputs that are set to these numbers
SHADOW_DIGITS = 65, 400  # numbers of digits of the shadow execution
REPEATED_CALLS = 4  # calls at one point, before and after all others: where chance has few outcomes, as in dropout of a sum, two calls often agree
MIN_RANDOM_POINTS = 8  # random points that are compared even after the time is used up
Progress = Callable[[str, int, int], None]


class CrossChecker:
    """One cross-check; `run` returns the report. `domains` has one domain per element of the inputs, `base` is the given point by argument."""

    def __init__(self, derivatives: Derivatives, truth: Source, report: CrossReport, base: Mapping[str, np.ndarray], domains: Sequence[Domain],
                 tolerances: Tolerances, points: int, seconds: float, seed: int, progress: Progress):
        self.derivatives, self.truth, self.report, self.domains = derivatives, truth, report, list(domains)
        self.adapter, self.arguments, self.base = derivatives.adapter, list(base), list(base.values())
        self.requested, self.seed, self.progress = points, seed, progress
        self.budget = Budget(seconds)
        self.measure = Measure(report.names, tolerances, self._inputs_by_name, self._shadow_values)
        self.programs: dict[tuple[bytes, int], dict[int, ShadowValues | None]] = {}
        self.found: dict[int, list[tuple[np.ndarray, Finding]]] = {k: [] for k in range(report.order + 1)}

    named: Sequence[float] = ()  # constants in the function's source
    visited: Sequence[np.ndarray] = ()  # further points

    def run(self) -> CrossReport:
        """The report."""
        report = self.report
        try:
            self._check_repeatable()
            if isinstance(self.truth, DifferenceSource) and self.first.error is not None and not self.first.error[0]:
                error = self.first.error[1]
                raise NotCheckable(f"{report.function} raises {first_line(message_of(error))}, at "
                                   f"{at(self._inputs_by_name(flat(self.base)))}; give inputs of the shapes it takes")
            self._compare_all()
            self._check_repeatable(self.first)
            self._set_verdict()
        except (NotCheckable, NoFormula, NotImplementedError) as error:
            report.verdict, report.reason = NOT_CHECKABLE, str(error)
        report.seconds = self.budget.spent
        return report

    # One point

    def _inputs_by_name(self, vector: np.ndarray) -> dict[str, Any]:
        point = as_point(self.base, vector)
        return {name: (v if v.ndim else float(v)) for name, v in zip(self.arguments, point)}

    def _derivatives_at(self, vector: np.ndarray, order: int | None = None) -> Levels:
        return self.derivatives.at(as_point(self.base, vector), self.report.order if order is None else order)

    def _reference_values(self, vector: np.ndarray) -> ReferenceValues:
        return self.truth.reference_values(as_point(self.base, vector), self.report.order, self.derivatives.full, self.derivatives.direction)

    def _findings_at(self, vector: np.ndarray) -> dict[int, Finding] | None:
        """The worst finding of each order at a point; None if the formula has no value there."""
        points = self.report.points
        try:
            truths = self._reference_values(vector)
        except Undecided:
            points.singular += 1
            return None
        except Undefined:
            points.outside += 1
            return None
        points.kinks += truths.kink
        points.singular += truths.order < self.report.order and not truths.kink
        return self.measure.findings(vector, self._derivatives_at(vector, truths.order), truths)

    def _shadow_values(self, vector: np.ndarray, order: int) -> Iterator[ShadowValues | None]:
        """The shadow values of the program up to an order, with increasing numbers of digits; None if it has no shadow execution."""
        key = vector.tobytes(), order
        if key not in self.programs:
            self.programs = {key: {}}  # a cache for one point and order
        known = self.programs[key]
        for digits in SHADOW_DIGITS:
            if digits not in known:
                known[digits] = self.derivatives.exact(as_point(self.base, vector), order, digits, isinstance(self.truth, DifferenceSource))
            yield known[digits]

    # All points

    def _check_repeatable(self, before: Levels | None = None) -> None:
        """Raise NotCheckable if calls at the given point have different results; done before and after all other calls."""
        vector = flat(self.base)
        self.first = before or self._derivatives_at(vector)
        for _ in range(REPEATED_CALLS):
            second = self._derivatives_at(vector)
            for k, value in self.first.values.items():
                again = second.values.get(k)
                if again is not None and not np.array_equal(value, again, equal_nan=True):
                    raise NotCheckable(self._unrepeatable_reason(vector, k, value, again))
            if self.budget.used(0.1 if before is None else 1.0):
                break

    def _unrepeatable_reason(self, vector: np.ndarray, k: int, value: np.ndarray, again: np.ndarray) -> str:
        later = [self._derivatives_at(vector).values.get(k) for _ in range(2 * REPEATED_CALLS)]
        changing = not all(_are_equal(later[0], found) for found in later[1:])
        results = []
        with generators_restored():
            for _ in range(2):
                seed_generators()
                results.append(self._derivatives_at(vector).values.get(k))
        is_random = changing and _are_equal(*results)
        what = "value" if k == 0 else "gradient" if k == 1 else f"derivative of order {k}"
        cause = ("is random: with the same seed it gives the same; draw outside it and pass what was drawn as an argument, or fix the seed inside it"
                 if is_random else "keeps a state that its calls change; pass it as an argument, or make it anew in every call")
        place = np.flatnonzero(np.ravel(value) != np.ravel(again))[0]
        return (f"two calls at the same point gave the {what} {np.ravel(value)[place]:.10g} and {np.ravel(again)[place]:.10g}: "
                f"{self.report.function} {cause}")

    def _compare_all(self) -> None:
        base = flat(self.base)
        places = boundary_numbers(self.truth.expressions[:4], self.report.names, base)[:MAX_CONDITION_POINTS]
        places += [(k, x) for x in numbers_around(self.named, MAX_CONSTANTS) for k in range(min(base.size, MAX_CONSTANT_INPUTS))]
        limit = MAX_SPECIAL_POINTS + MAX_SPECIAL_POINTS // 3 * (base.size > 1) + len(places)
        edges = [*edge_points(self.domains, base, places, limit, self.adapter.subnormals), *self.visited]
        others = draw_points(self.domains, self.requested, self.seed)
        total = len(edges) + len(others)
        for k, vector in enumerate([*edges, *others]):
            at_random = k >= len(edges)
            if self.budget.used() and self.report.points.random >= min(MIN_RANDOM_POINTS, self.requested):
                self.report.notes.append(f"the time was over after {k} of {total} points")
                break
            if not at_random and self.budget.used(0.6):
                continue
            vector = flat(as_point(self.base, vector))  # rounded to the dtypes of the inputs
            if not all(x in d for x, d in zip(vector, self.domains)):
                continue
            self.progress("comparing points", k, total)
            findings = self._findings_at(vector)
            if findings is None:
                continue
            if at_random:
                self.report.points.random += 1
            else:
                self.report.points.special += 1
            for order, finding in findings.items():
                self.found[order].append((vector, finding))

    # The verdict

    def _set_verdict(self) -> None:
        report, points = self.report, self.report.points
        if not points.compared:
            raise NotCheckable(f"the formula has no finite value at any of {points.outside + points.singular} points of the domain "
                               f"({', '.join(f'{n} in {d}' for n, d in report.domains.items())}); give a domain where it is defined")
        # The order at which the function raises at every point, and which it therefore does not implement
        refused = next((order for order, found in self.found.items() if found and all(f.kind == "raises" for _, f in found)), None)
        features = Features(report.names, self.truth.expressions)
        below = True
        for order in range(report.order + 1):
            found = self.found[order]
            if order not in self.derivatives.methods or not found or order == refused:
                continue
            if not _mostly_agrees(found):
                for _, f in found:
                    f.explained &= f.by == "program"
            wrong = sum(f.wrong for _, f in found)
            a = Agreement(order, self.derivatives.methods[order], len(found), wrong, sum(not f.agrees for _, f in found) - wrong)
            for _, f in found:
                if a.worst is None or is_worse(f, a.worst):
                    a.worst = f
            if not a.agrees:
                found = [(v, f) for v, f in found if not (a.wrong and f.explained)]
                relevant = [(v, f) for v, f in found if not f.agrees or f.order == 0 or NORMAL <= abs(f.truth) < np.inf]
                a.region = features.region(np.array([v for v, _ in relevant]), np.array([not f.agrees for _, f in relevant]))
                a.hint = hint(a, found, below, a.region, report.framework)
                below &= not a.wrong
            report.agreements.append(a)
        for a in report.agreements:
            if not a.agrees:
                _, a.first = self._simplest(a)
        bad = next((a for a in report.agreements if a.wrong), None) or next((a for a in report.agreements if a.imprecise), None)
        if bad is not None and bad.wrong:
            first = self._simplify(bad)
            report.verdict, report.reason = REFUTED, self._difference_text(first)
            return
        compared = [a.order for a in report.agreements]
        absent = [k for k in range(report.order + 1) if k not in compared]
        where = f"{points.random} random and {points.special} special points"
        what = _agreement_text(compared)
        if refused is not None:
            error = next(f for _, f in self.found[refused] if f.kind == "raises").message
            raise NotCheckable(f"{'the function' if refused == 0 else f'its derivative of order {refused}'} raises at every point, {error}"
                               + (f"; {what} at {where}" if compared else ""))
        if bad is not None:
            first = self._simplify(bad)
            report.verdict = IMPRECISE
            lost = f" in {first.operation}" if first.operation else " as in the steps of the formula" if first.by == "formula" else ""
            report.reason = (f"{what} with {report.against} wherever floats can show it, at {where}; digits are lost{lost}: "
                             f"{self._difference_text(first)}")
            return
        report.verdict = VERIFIED
        within = ("their error bounds" if isinstance(self.truth, DifferenceSource) else
                  f"{self.measure.tolerances.units:g} ULP times the condition of the point")
        rough = [a.order for a in report.agreements if a.method.startswith("finite differences")]
        by = f" (order {rough[0]} by {self.derivatives.methods[rough[0]]}, to their digits)" if rough else ""
        report.reason = f"{what} with {report.against} within {within}{by}, at {where}"
        for k in absent[isinstance(self.truth, DifferenceSource):]:
            why = (f"{self.report.function} brings no derivatives for it, and finite differences say too little; give them, or name the framework"
                   if k > max(self.derivatives.methods) else "the formula has no derivative of this order at any point, or it could not be decided")
            report.notes.append(f"order {k} was not compared: {why}")

    def _simplest(self, a: Agreement) -> tuple[np.ndarray, Finding]:
        """The simplest of the wrong points of an order, or of the imprecise ones if none is wrong; ordinary points are preferred."""
        return min(((v, f) for v, f in self.found[a.order] if f.wrong or not a.wrong and f.explained),
                   key=lambda found: (not is_ordinary(found[0]), weight(found[0])))

    def _simplify(self, wrong: Agreement) -> Finding:
        """The finding at a simplified counterexample for an order."""
        report = self.report
        vector, finding = self._simplest(wrong)
        latest = {vector.tobytes(): finding}
        budget = Budget(3.0)

        def refutes(candidate: np.ndarray) -> bool:
            candidate = flat(as_point(self.base, candidate))
            if budget.used() or not all(x in d for x, d in zip(candidate, self.domains)):
                return False
            self.progress("simplifying the point", len(latest), len(latest) + 1)
            found = self._finding_at(candidate, wrong.order)
            if found is None or found.kind != finding.kind or found.explained != finding.explained:
                return False
            if is_ordinary(vector) and not is_ordinary(candidate):
                return False
            latest[candidate.tobytes()] = found
            return True

        vector = flat(as_point(self.base, shrink_values(vector, refutes, 60)))
        first = latest[vector.tobytes()]
        if self.adapter.compiled:
            self.adapter.compiled = False
            plain = self._finding_at(vector, wrong.order)
            if plain is not None and plain.agrees:
                report.notes.append("this is so only when the function is compiled with jax.jit")
            elif plain is not None:
                first = plain
        wrong.first = report.counterexample = first
        if is_worse(first, wrong.worst):  # type: ignore[arg-type]
            wrong.worst = first
        return first

    def _difference_text(self, f: Finding) -> str:
        quantity = "the value" if f.order == 0 else f.where
        if f.kind == "raises":
            return f"{quantity} raises {f.message}, where the true one is {number(f.truth)}"
        if f.kind == "not finite":
            return f"{quantity} is {f.value:g}, where the true one is {number(f.truth)}"
        value, truth = pair(f.value, f.truth)
        return f"{quantity} is {value}, but the true one is {truth}: {ulp_text(f.ulp)} ULP away, where {ulp_text(f.bound)} are allowed"

    def _finding_at(self, vector: np.ndarray, order: int) -> Finding | None:
        """The worst finding of an order at a point, without counting the point in the report."""
        try:
            truths = self._reference_values(vector)
        except Undefined:
            return None
        return self.measure.findings(vector, self._derivatives_at(vector, min(truths.order, order)), truths).get(order)


def _are_equal(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    return a is not None and b is not None and np.array_equal(a, b, equal_nan=True)


def _mostly_agrees(found: Sequence[tuple[np.ndarray, Finding]]) -> bool:
    """Whether the function agrees at most ordinary points, or at `MIN_RANDOM_POINTS` others if none is ordinary.

    Only then are disagreements at other points classified as lost digits.
    """
    ordinary = [f.agrees for v, f in found if is_ordinary(v)]
    return 2 * sum(ordinary) > len(ordinary) if ordinary else sum(f.agrees for _, f in found) >= MIN_RANDOM_POINTS


def _agreement_text(orders: Sequence[int]) -> str:
    if orders == [0]:
        return "the value agrees"
    if not orders:
        return "nothing agrees"
    if orders[0] == 0:
        return f"the value and its derivatives up to order {orders[-1]} agree"
    return f"the derivatives of order {', '.join(map(str, orders))} agree"
