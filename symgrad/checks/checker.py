"""The check of a function: its derivatives are computed in three ways at the given point and at others, and compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import sympy

from symgrad.algebra.limits import Budget
from symgrad.autograd.modes import enable_grad
from symgrad.carriers.digits import Undecided, Undefined
from symgrad.checks.measuring import DEFAULT, Tolerances, find_wrong_op
from symgrad.diagnose.kinks.kinks import note
from symgrad.engine.graph_breaks import difference
from symgrad.frameworks.differentiation_task import DifferentiationTask, NotCheckable, silence
from symgrad.graph.common import Refused
from symgrad.proofs import formulas
from symgrad.reference.accuracy import Accuracy, is_worse, worst_errors
from symgrad.reference.exact import FULL, ComparedNumber, Exact, agreement
from symgrad.reference.rigorous import carrier, enclosures
from symgrad.reference.run import Run
from symgrad.reference.sources import differences
from symgrad.reference.template import NoFormula
from symgrad.reports.base import NOT_CHECKABLE, PROVED, REFUTED, VERIFIED, label
from symgrad.reports.report import Counterexample, Report
from symgrad.sampling.conditions import boundary_points, constants_of_code, constants_of_graph, numbers_around
from symgrad.sampling.points import Point, as_point, flat, random_direction, random_points, shrink_values, special_points
from symgrad.system.restoring import workdps

MAX_HESSIAN_INPUTS, MAX_THIRD_INPUTS = 64, 6  # inputs up to which all second, and all third, derivatives are computed at the given point
PROOF_SECONDS, PROOF_SHARE = 3.0, 0.15  # the time for a symbolic proof, or the part of the time for the check if that is longer
MIN_RANDOM_POINTS = 4  # random points that are compared even after the time is used up
MAX_CONDITION_INPUTS = 8  # inputs up to which conditions are solved, and inputs that are set to the constants one at a time
MAX_CONDITION_POINTS, CONDITION_SHARE = 96, 0.4  # points derived from conditions, and the part of the time for them
MAX_CONSTANTS = 16  # constants of the source
SHORT_NUMBERS = (12.0, 3.0, -2.0, 0.5)  # numbers with few bits, with which equalities between inputs can hold exactly
Progress = Callable[[str, int, int], None]


class Checker:
    """One check of a problem; `run()` returns the report. `progress(what, done, total)` is called during the check."""

    def __init__(self, problem: DifferentiationTask, order: int, points: int, seconds: float, seed: int, progress: Progress,
                 rigorous: bool = False, tolerances: Tolerances = DEFAULT):
        self.problem, self.order, self.requested, self.progress, self.tolerances = problem, order, points, progress, tolerances
        self.budget = Budget(seconds)
        self.rng = np.random.default_rng(seed)
        self.names = problem.names
        self.report = Report(problem.name, NOT_CHECKABLE, "", order, {i.name: i.value for i in problem.inputs}, self.names)
        self.errors: dict[int, Accuracy] = {}
        self.refuted: tuple[Point, ComparedNumber] | None = None
        self.departure: tuple[Point, str] | None = None  # a point where the recorded graph is not the function, and the difference
        self.by = "sympy.diff"
        self.local_reason: str | None = None  # the reason why the formula holds near the given point only
        self.compared: list[np.ndarray] = []
        self.visited: dict[bytes, np.ndarray] = {}  # points inside the range of the tolerances
        self.rigorous = rigorous
        if rigorous:
            carrier()  # raises early if its dependency is missing

    def run(self) -> Report:
        """The report. Exceptions of the function at the given point propagate; every other failure becomes a verdict."""
        report = self.report
        try:
            with enable_grad():
                self._check()
        except (NotCheckable, NoFormula, Refused) as error:
            report.verdict, report.reason = NOT_CHECKABLE, str(error)
        report.errors = [self.errors[order] for order in sorted(self.errors)]
        report.notes += [f"the library loses accuracy at order {e.order}: {_loss_text(e)}" for e in report.errors if not e.within]
        report.seconds = self.budget.spent
        return report

    def _check(self) -> None:
        report, problem = self.report, self.problem
        self.progress("recording the function", 0, 1)
        base = problem.run(problem.point, named=True)
        report.value, report.shape = float(base.result.value), base.shape
        with silence():
            again = problem.run(problem.point)
        if not np.array_equal(base.result.value, again.result.value, equal_nan=True):
            raise NotCheckable(f"two calls with the same inputs gave {float(base.result.value)} and {float(again.result.value)}: the function is "
                               f"random or keeps a state; fix its seed inside it, or pass what it draws as an argument")
        self._differentiate_by_library(base)
        self.rules = formulas.add_formulas(report, base, self.order)
        if not np.isfinite(base.result.value):
            raise NotCheckable(f"the value at the given point is {float(base.result.value)}; choose inputs where it is finite")
        found = note(base)
        if found is not None:
            report.notes.append(found)
        self.progress("comparing the given point", 0, 1)
        self.base = base
        self._compare(problem.point, base, given=True)
        if self.rigorous:
            self.progress("enclosing the given point", 0, 1)
            self._add_enclosures(base)
        self._sample(base)
        self._set_verdict(base)

    def _differentiate_by_library(self, base: Run) -> None:
        """Add the derivatives by the library's pullback at the given point to the report."""
        report, n = self.report, len(self.names)
        with silence():
            gradient = base.gradient()
            at = 0
            for i in self.problem.inputs:
                part = gradient[at:at + i.value.size].reshape(i.value.shape)
                report.gradient[i.name] = part if part.ndim else float(part)
                at += i.value.size
            if self.order >= 2 and n <= MAX_HESSIAN_INPUTS:
                report.hessian = base.derivatives(2)
            if self.order >= 3 and n <= MAX_THIRD_INPUTS:
                report.third = base.derivatives(3)
        if n > MAX_HESSIAN_INPUTS and self.order >= 2:
            report.notes.append(f"with {n} inputs the Hessian is compared along random directions, not entry by entry")
        for what, values in (("gradient", gradient), ("Hessian", report.hessian), ("third derivative", report.third)):
            if values is not None and not np.all(np.isfinite(values)):
                report.notes.append(f"the {what} at the given point is not finite everywhere")

    def _add_enclosures(self, base: Run) -> None:
        """Add intervals that contain the exact value and derivatives at the given point to the report."""
        report = self.report
        values = {0: np.asarray(base.result.value), 1: np.concatenate([np.ravel(v) for v in report.gradient.values()])}
        values |= {k: v for k, v in ((2, report.hessian), (3, report.third)) if v is not None}
        try:
            report.enclosures = enclosures(base, values, self.names, max(1.0, self.budget.seconds / 2))
        except (TypeError, AttributeError, NotImplementedError) as error:
            report.notes.append(f"no enclosures: {error}")
        report.notes += [f"the enclosure of {e.where} stays wide at {e.bits} bits: {e.reason}" for e in report.enclosures if not e.narrow]

    # Comparing

    def _compare(self, point: Point, run: Run, given: bool = False, random: bool = False) -> bool:
        """Compare the derivatives at one point, and return whether they agree or cannot be compared there."""
        found = self.report.points
        n = len(self.names)
        full = None if not given else 3 if n <= MAX_THIRD_INPUTS and self.order == 3 else 2 if n <= MAX_HESSIAN_INPUTS and self.order >= 2 else 1
        exact = Exact(run, self.order, random_direction(n, self.rng), full, replay=True)
        self.by = "the difference quotient of the value in many digits" if exact.replayed else "sympy.diff"
        try:
            digits, culprit = agreement(exact)
        except Undefined as error:
            found.singular += 1
            if given:
                why = "too many digits would be needed to compare" if isinstance(error, Undecided) else "the derivative does not exist or is infinite"
                self.report.notes.append(f"at the given point {why}; other points were compared")
            return True
        if exact.kink:
            found.kinks += 1
            if given:
                self.report.notes.append("the given point is a kink or the border of a branch, where a derivative is a convention; "
                                         "other points were compared")
            return True
        departure = self.problem.departure(run)
        if departure is not None:
            self.departure = point, departure
            return False
        if run is not self.base and (run.escapes.lines or self.base.escapes.lines) and run.escapes.truths == self.base.escapes.truths:
            self.local_reason = self.local_reason or difference(self.base, run)
        if random:
            found.random += 1
        else:
            found.special += 1
        if culprit is not None:
            self.refuted = point, culprit
            return False
        found.digits = min(found.digits or digits, digits)
        self.compared.append(flat(point))
        self._measure_floats(run, exact, given)
        return True

    def _measure_floats(self, run: Run, exact: Exact, given: bool) -> None:
        """Update the largest errors of the library's floats with those at one point."""
        values: dict[int, np.ndarray] = {0: np.asarray(run.result.value)}
        with silence():
            values[1] = run.gradient()
            if given:
                values |= {k: v for k, v in ((2, self.report.hessian), (3, self.report.third)) if v is not None}
            elif self.order >= 2 and len(self.names) <= FULL:
                values[2] = run.derivatives(2)
        for found in worst_errors(run, exact, exact.entries(), values, self.names, self.rng):
            best = self.errors.get(found.order)
            if best is None or is_worse(found, best):
                self.errors[found.order] = found

    def _run_at(self, point: Point) -> Run | None:
        """A run at another point; None if the function raises or has no finite value there."""
        try:
            with silence():
                run = self.problem.run(point, named=True)
        except Exception:  # a user's function can raise anything outside its domain
            return None
        return run if np.isfinite(run.result.value) else None

    def _sample(self, base: Run) -> None:
        """Compare at special points, then at random ones, until a point refutes or the requested number is reached."""
        found = self.report.points
        special = special_points(self.problem.point, base)
        own = len(special)
        special += self._condition_points(base)
        tries = 0
        source = random_points(self.problem.point, self.rng)
        while self.refuted is None and self.departure is None:
            random = tries >= len(special)
            if random and (found.random >= self.requested or tries >= len(special) + 6 * self.requested):
                break
            if self.budget.used() and found.random >= min(MIN_RANDOM_POINTS, self.requested):
                break
            self.progress("comparing other points", found.random, self.requested)
            if own < tries < len(special) and self.budget.used(CONDITION_SHARE):
                tries = len(special)  # the remaining time is for random points
                continue
            vector = self.tolerances.inside(flat(next(source) if random else special[tries]))
            tries += 1
            if self.visited.setdefault(vector.tobytes(), vector) is not vector and self.tolerances.range is not None:
                continue  # points beyond an end of the range coincide
            point = as_point(self.problem.point, vector)
            run = self._run_at(point)
            if run is None:
                found.outside += 1
            else:
                self._compare(point, run, random=random)

    def _condition_points(self, base: Run) -> list[Point]:
        """Points at which conditions of the rules hold or change, and points with numbers at and around constants of the graph and the source."""
        point, n = flat(self.problem.point), len(self.names)
        found: list[Any] = []
        if n <= MAX_CONDITION_INPUTS and self.rules:
            symbols = [sympy.Symbol(name, real=True) for name in self.names]
            found += boundary_points([*self.rules, *self.report.conditions], symbols, [point.tolist(), np.resize(SHORT_NUMBERS, n).tolist()],
                                     limit=MAX_CONDITION_POINTS)
        named = constants_of_code(self.problem.function)
        if not self.rules:
            with silence():
                roots: list[Any] = [g._node for g in base.gradients(base.result, create_graph=True) if g.requires_grad]
            named += [x for root in roots for x in constants_of_graph(root)]
        for i in (None, *range(n))[:MAX_CONDITION_INPUTS]:
            for x in numbers_around(named, MAX_CONSTANTS):
                found.append(np.where((i is None) | (np.arange(n) == i), x, point))
        unique = {tuple(v): np.array(v, np.float64) for v in found[:MAX_CONDITION_POINTS]}
        return [as_point(self.problem.point, v) for v in unique.values()]

    # The verdict

    def _set_verdict(self, base: Run) -> None:
        report, points = self.report, self.report.points
        if self.refuted is not None:
            self._refute(*self.refuted)
            return
        if self.departure is not None:
            self._refute_graph(*self.departure)
            return
        if not points.compared:
            raise NotCheckable(f"there was no point to compare at: {points.outside} were outside the domain, {points.singular} without a "
                               f"derivative, {points.kinks} on kinks; give inputs inside the domain")
        self.progress("proving", 0, 1)
        where = f"{points.random} random and {points.special} special points"
        failure = (f"the formula is that near the given point: {self.local_reason}, by {base.escapes}" if self.local_reason is not None else
                   formulas.reason_unproved(base, self.names, self.order, self.compared,
                                            min(max(PROOF_SECONDS, PROOF_SHARE * self.budget.seconds), self.budget.seconds)))
        if failure is None:
            report.verdict = PROVED
            report.reason = (f"the formulas of the rules minus sympy.diff of the formula reduce to 0 up to order {self.order}, and {where} agree "
                             f"to {points.digits:.0f} digits")
        else:
            report.verdict = VERIFIED
            report.reason = f"the rules agree with {self.by} to {points.digits:.0f} digits at {where}"
            report.notes.append(f"not proved: {failure}")

    def _refute_graph(self, point: Point, how: str) -> None:
        """Compare the derivatives of a graph that is not the function with difference quotients of the function."""
        report, problem = self.report, self.problem
        run = problem.run(point)
        claims = [(1, lambda x: problem.run(as_point(problem.point, x)).result.value, run.gradient)]
        if 2 <= self.order and len(self.names) <= MAX_HESSIAN_INPUTS:
            claims.append((2, lambda x: problem.run(as_point(problem.point, x)).gradient(), lambda: run.derivatives(2)))
        with silence():
            for order, below, claim in claims:
                claimed = claim()
                quotients, bounds = differences(below, flat(point))
                wrong = np.argwhere(np.isfinite(bounds) & ~(abs(claimed - quotients) <= 4 * bounds + 1e-6 * abs(quotients)))
                if not wrong.size:
                    continue
                index = tuple(map(int, wrong[0]))
                where = label(order, index, self.names, False)
                graph, function = float(claimed[index]), float(quotients[index])
                report.verdict = REFUTED
                report.counterexample = Counterexample({i.name: v for i, v in zip(problem.inputs, point)}, where, graph, function)
                report.reason = (f"the recorded graph is not the function: {how}. The graph gives {where} = {graph:.12g}, difference quotients "
                                 f"of the function give {function:.6g}")
                return
        raise NotCheckable(f"the recorded graph is not the function: {how}. Compute with tensors, or give the number as an argument")

    def _refute(self, point: Point, culprit: ComparedNumber) -> None:
        """Simplify the refuting point, and report the wrong derivative and op."""
        report, problem = self.report, self.problem
        u = random_direction(len(self.names), self.rng)
        budget = Budget(max(2.0, min(10.0, self.budget.seconds)))
        latest: dict[bytes, ComparedNumber] = {flat(point).tobytes(): culprit}
        plain = _differ_as_floats(culprit)

        def refutes(vector: np.ndarray) -> bool:
            self.progress("simplifying the counterexample", len(latest), len(latest) + 1)
            inside = np.array_equal(vector, self.tolerances.inside(vector), equal_nan=True)
            run = self._run_at(as_point(problem.point, vector)) if inside and not budget.used() else None
            if run is None:
                return False
            try:
                exact = Exact(run, max(culprit.order, 1), u, replay=True)
                _, found = agreement(exact)
            except (Undefined, NoFormula):
                return False
            if found is None or exact.kink or plain and not _differ_as_floats(found):
                return False
            latest[vector.tobytes()] = found
            return True

        vector = shrink_values(flat(point), refutes)
        found = latest[vector.tobytes()]
        simple = as_point(problem.point, vector)
        run = self._run_at(simple) or problem.run(simple)
        where = label(found.order, found.index, self.names, found.directional)
        with workdps(mpmath.mp, 50):
            rule, truth = float(found.rule), float(found.reference)
        wrong = find_wrong_op(run, found.order)
        report.verdict = REFUTED
        report.counterexample = Counterexample({i.name: v for i, v in zip(problem.inputs, simple)}, where, rule, truth, wrong and wrong[0],
                                               formulas.difference(run, self.names, found))
        report.reason = f"the rules give {where} = {rule:.12g}, {self.by} gives {truth:.12g}"
        if wrong is not None and not wrong[1]:
            report.reason += f"; {wrong[0]} declares a formula with another value than its forward computes"
        elif wrong is not None:
            report.reason += f"; the rule of the op {wrong[0]} is wrong" if wrong[1] == 1 else (
                f"; the op {wrong[0]} by itself has a wrong derivative of order {wrong[1]}, by a rule that its own rule calls")
        if np.isnan(rule):
            report.notes.append("NaN on the way back comes from 0 times a value that is not finite, often in a branch that is not taken")
        elif not plain:
            report.notes.append("the two differ only beyond the digits of a float: look for a constant in the rule that was rounded, "
                                "such as (2/3)*x for 2*x/3")


def _differ_as_floats(e: ComparedNumber) -> bool:
    """Whether the two values of an entry differ as floats; NaN differs from everything."""
    rule, truth = float(e.rule), float(e.reference)
    return not abs(rule - truth) <= 1e-12 * abs(truth)


def _loss_text(e: Accuracy) -> str:
    digits = "all digits" if not np.isfinite(e.ulp) or e.ulp >= 2.0**52 else f"{e.ulp:.3g} ULP, {np.log10(max(e.ulp, 1)):.0f} of 16 digits,"
    where = ", ".join(np.array2string(v, precision=6, threshold=6) for v in e.point)
    return f"{digits} of {e.where} at ({where})"
