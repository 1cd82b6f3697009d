"""The cross-check: compares a function of any framework with a formula, at special and at random points, order by order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.algebra.limits import poll
from symgrad.carriers.digits import Undecided, Undefined
from symgrad.checks.comparing import MAX_DEFINED_INPUTS
from symgrad.checks.definition import Definition
from symgrad.checks.measuring import Features, Measure, hint, is_ordinary, is_worse
from symgrad.checks.pointwise import PointwiseCheck, Progress
from symgrad.checks.tolerances import Tolerances
from symgrad.frameworks.differentiation_task import NotCheckable
from symgrad.frameworks.levels import Derivatives, Levels, ShadowDerivatives
from symgrad.graph.domains import Domain
from symgrad.reference.sides import EXISTS, JUMP, KINK, ONE_SIDED, Limit
from symgrad.reference.sources import DifferenceSource, ReferenceNumber, ReferenceValues, Source
from symgrad.reference.template import NoFormula
from symgrad.reports.base import IMPRECISE, REFUTED, VERIFIED, at, first_line, label, message_of, number, pair, ulp_text
from symgrad.reports.report import Agreement, CrossReport, Finding
from symgrad.sampling.conditions import boundary_numbers, numbers_around
from symgrad.sampling.points import NORMAL, as_point, draw_points, edge_points, flat, weight

MAX_SPECIAL_POINTS = 60  # special points with one input; a third more with several
MAX_CONDITION_POINTS = 60  # numbers at which conditions of the formula hold or change
MAX_CONSTANTS = 12  # constants of the source
MAX_CONSTANT_INPUTS = 4  # inputs that are set to these numbers
SHADOW_DIGITS = 65, 400  # numbers of digits of the shadow execution
REPEATED_CALLS = 4  # calls at one point, before and after all others: where chance has few outcomes, as in dropout of a sum, two calls often agree
ENOUGH = 8  # points at which a function must agree where none is ordinary
SHOWN = 3  # conventions that the notes name


class CrossChecker(PointwiseCheck):
    """One cross-check; `run` returns the report. `domains` has one domain per element of the inputs, `base` is the given point by argument."""

    refusals = (NotCheckable, NoFormula, NotImplementedError)

    def __init__(self, derivatives: Derivatives, truth: Source, report: CrossReport, base: Mapping[str, np.ndarray], domains: Sequence[Domain],
                 tolerances: Tolerances, points: int, effort: float, seed: int, progress: Progress):
        super().__init__(report, base, tolerances, points, effort, seed, progress)
        self.derivatives, self.truth, self.domains, self.adapter = derivatives, truth, list(domains), derivatives.adapter
        self.measure = Measure(report.names, tolerances, self.inputs_at, self.shadow_values, self._truths_at)
        self.programs: dict[tuple[bytes, int], dict[int, ShadowDerivatives | None]] = {}
        self.conventions: dict[str, tuple[np.ndarray, Limit]] = {}  # derivatives that do not exist, with the first point of each
        self.found: dict[int, list[tuple[np.ndarray, Finding]]] = {k: [] for k in range(report.order + 1)}

    levels = Levels()  # of the point that was compared last
    named: Sequence[float] = ()  # constants in the function's source
    visited: Sequence[np.ndarray] = ()  # further points
    most_special: int | None = None  # special points, if they are limited

    def _check(self) -> None:
        self._check_repeatable()
        if isinstance(self.truth, DifferenceSource) and self.first.error is not None and not self.first.error[0]:
            raise NotCheckable(f"{self.report.function} raises {first_line(message_of(self.first.error[1]))}, at "
                               f"{at(self.inputs_at(flat(self.base)))}; give inputs of the shapes it takes")
        self._compare_all()
        self._check_repeatable(self.first)
        self._set_verdict()

    # One point

    def numbers_at(self, vector: np.ndarray, order: int) -> dict[str, Any]:
        return _by_name(self._derivatives_at(vector, order))

    def _derivatives_at(self, vector: np.ndarray, order: int | None = None) -> Levels:
        return self.derivatives.at(as_point(self.base, vector), self.report.order if order is None else order)

    def _truths_at(self, vector: np.ndarray) -> ReferenceValues:
        return self.truth.reference_values(as_point(self.base, vector), self.report.order, self.derivatives.full, self.derivatives.direction)

    def compared(self, vector: np.ndarray, order: int) -> tuple[dict[int, Finding], ReferenceValues, dict[tuple[int, ...], Limit]]:
        """The worst finding of each order at a point, the reference values, and the derivatives that do not exist. Raises Undefined."""
        truths = self._truths_at(vector)
        if not truths.kink and truths.order == self.report.order or vector.size > MAX_DEFINED_INPUTS or isinstance(self.truth, DifferenceSource):
            self.levels = self._derivatives_at(vector, min(truths.order, order))
            return self.measure.findings(vector, self.levels, truths), truths, {}
        levels, known, missing = self._derivatives_at(vector, order), 0 if truths.kink else truths.order, {}
        self.levels = levels
        entries = [e for e in truths.entries if e.order <= known]

        for index, limit in Definition(vector, self.truth.oracle_at).derivatives(min(self.report.order, max(self.derivatives.full, 1))):
            values = levels.values.get(len(index))
            claimed = mpmath.nan if values is None else mpmath.mpf(float(values[index]))
            if len(index) <= known:
                continue
            if limit.kind == EXISTS or limit.kind == ONE_SIDED and mpmath.isfinite(claimed):
                entries.append(ReferenceNumber(len(index), index, False, claimed if limit.agrees(claimed) else limit.value))
            else:
                missing[index] = limit
        found = ReferenceValues(entries)
        return self.measure.findings(vector, levels, found), found, missing

    def _compared_twice(self, vector: np.ndarray, order: int) -> tuple[dict[int, Finding], ReferenceValues, dict[tuple[int, ...], Limit]]:
        """As `compared`. Raises NotCheckable if what differs from the reference values is not the same in another call."""
        found = self.compared(vector, order)
        if any(not f.agrees for f in found[0].values()):
            self.require_same(vector, _by_name(self.levels), max(self.levels.values, default=0))
        return found

    def _findings_at(self, vector: np.ndarray) -> dict[int, Finding] | None:
        """The worst finding of each order at a point; None if the formula has no value there."""
        points = self.report.points
        try:
            findings, truths, missing = self._compared_twice(vector, self.report.order)
        except Undecided:
            points.singular += 1
            return None
        except Undefined:
            points.outside += 1
            return None
        for index, limit in missing.items():
            if limit.kind in (KINK, JUMP):
                self.conventions.setdefault(label(len(index), index, self.report.names), (vector, limit))
        kink = truths.kink or any(limit.kind in (KINK, JUMP) for limit in missing.values())
        points.kinks += kink
        points.singular += not kink and (truths.order < self.report.order or bool(missing))
        if isinstance(self.truth, DifferenceSource) and np.isinf(truths.bounds.get(1, np.zeros(1))).any():
            poles = [order for order, f in findings.items() if order and f.kind == "not finite"]  # beside a pole, or where the value jumps
            points.singular += bool(poles)
            findings = {order: f for order, f in findings.items() if order not in poles}
        return findings

    def shadow_values(self, vector: np.ndarray, order: int) -> Iterator[ShadowDerivatives | None]:
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
            self.require_same(vector, _by_name(self.first), max(self.first.values, default=0))
        if before is None:
            self.require_no_chance(vector)

    def _compare_all(self) -> None:
        base = flat(self.base)
        places = boundary_numbers(self.truth.expressions[:4], self.report.names, base)[:int(MAX_CONDITION_POINTS * self.effort)]
        places += [(k, x) for x in numbers_around(self.named, MAX_CONSTANTS) for k in range(min(base.size, MAX_CONSTANT_INPUTS))]
        limit = self.most_special or MAX_SPECIAL_POINTS + MAX_SPECIAL_POINTS // 3 * (base.size > 1) + len(places)
        edges = [*edge_points(self.domains, base, places, limit, self.adapter.subnormals), *self.visited]
        others = draw_points(self.domains, self.requested, self.seed)
        vectors = [flat(as_point(self.base, v)) for v in (*edges, *others)]  # rounded to the dtypes of the inputs
        inside = [all(x in d for x, d in zip(v, self.domains)) for v in vectors]
        self.report.points.planned = sum(inside)
        for k, vector in enumerate(vectors):
            if not inside[k]:
                continue
            poll()
            at_random = k >= len(edges)
            self.progress("comparing points", k, len(vectors))
            if 0 in self.first.values:
                self.require_same(vector, self.numbers_at(vector, 0))
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
        report.notes += [f"at {at(self.inputs_at(vector))} {name} is a convention, it is {limit.text}"
                         for name, (vector, limit) in list(self.conventions.items())[:SHOWN]]
        features = Features(report.names, self.truth.expressions)
        below = True
        for order in range(report.order + 1):
            found = self.found[order]
            if order not in self.derivatives.methods or not found or order == refused:
                continue
            ordinary = [f.agrees for v, f in found if is_ordinary(v)]  # only where it agrees at most of these are digits lost at others
            if 2 * sum(ordinary) <= len(ordinary) if ordinary else sum(f.agrees for _, f in found) < ENOUGH:
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

        def at_point(candidate: np.ndarray) -> Finding | None:
            with contextlib.suppress(Undefined):
                return self._compared_twice(candidate, wrong.order)[0].get(wrong.order)
            return None

        def again(candidate: np.ndarray) -> Finding | None:
            if not all(x in d for x, d in zip(candidate, self.domains)) or is_ordinary(vector) and not is_ordinary(candidate):
                return None
            found = at_point(candidate)
            return found if found is not None and (found.kind, found.explained) == (finding.kind, finding.explained) else None

        vector, first = self.simplified(vector, finding, again)
        if self.adapter.compiled:
            self.adapter.compiled = False
            plain = at_point(vector)
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
        distance = f": {ulp_text(f.ulp)} ULP away, where {ulp_text(f.bound)} are allowed" if np.isfinite(f.ulp) else ""
        return f"{quantity} is {value}, but the true one is {truth}{distance}"


def _by_name(levels: Levels) -> dict[str, np.ndarray]:
    return {"value" if k == 0 else "gradient" if k == 1 else f"derivative of order {k}": values for k, values in levels.values.items()}


def _agreement_text(orders: Sequence[int]) -> str:
    if not orders or orders == [0]:
        return "the value agrees" if orders else "nothing agrees"
    of = f"the value and its derivatives up to order {orders[-1]}" if orders[0] == 0 else f"the derivatives of order {', '.join(map(str, orders))}"
    return f"{of} agree"
