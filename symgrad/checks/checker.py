"""The check of a function: its derivatives are computed in three ways at the given point and at others, and compared."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import mpmath
import numpy as np
import sympy

from symgrad.algebra.limits import poll
from symgrad.carriers.digits import Undefined
from symgrad.checks.comparing import BY_DEFINITION, BY_SYMPY, Comparison, Index, compare_at, find_wrong_op, has_own_rules, wrong_in_graph
from symgrad.checks.definition import exceptions
from symgrad.checks.pointwise import PointwiseCheck, Progress
from symgrad.checks.saturated import saturated_points, wrong_in_floats
from symgrad.checks.tolerances import DEFAULT, Tolerances
from symgrad.diagnose.kinks.kinks import note
from symgrad.engine.graph_breaks import SELECTING, difference
from symgrad.frameworks.differentiation_task import DifferentiationTask, NotCheckable, silence
from symgrad.graph.order import upstream
from symgrad.proofs import formulas
from symgrad.reference.accuracy import Accuracy, is_worse, worst_errors
from symgrad.reference.exact import FULL, ComparedNumber, OracleComparison
from symgrad.reference.rigorous import carrier, enclosures
from symgrad.reference.run import Run
from symgrad.reference.sides import Limit
from symgrad.reference.template import NoFormula
from symgrad.reports.base import IMPRECISE, NOT_CHECKABLE, PROVED, REFUTED, VERIFIED, at, first_line, label, message_of, not_rigorous, pair, ulp_text
from symgrad.reports.report import Counterexample, Report
from symgrad.sampling.conditions import boundary_points, constants_of_code, constants_of_graph, numbers_around
from symgrad.sampling.points import Point, as_point, flat, random_direction, random_points, special_points
from symgrad.system.restoring import workdps

MAX_HESSIAN_INPUTS, MAX_THIRD_INPUTS = 64, 6  # inputs up to which all second, and all third, derivatives are computed at the given point
MAX_CONDITION_INPUTS = 8  # inputs up to which conditions are solved, and inputs that are set to the constants one at a time
MAX_CONDITION_POINTS = 96, 24, 12  # points derived from conditions; fewer where there is no formula, and for many inputs
MAX_DRAWS = 6  # random points that are drawn for each one that is wanted, where some are outside the domain
MAX_CONSTANTS = 16  # constants of the source
SHORT_NUMBERS = (12.0, 3.0, -2.0, 0.5)  # numbers with few bits, with which equalities between inputs can hold exactly


class Checker(PointwiseCheck):
    """One check of a problem; `run()` returns the report."""

    def __init__(self, problem: DifferentiationTask, order: int, points: int, effort: float, seed: int, progress: Progress,
                 rigorous: bool = False, tolerances: Tolerances = DEFAULT):
        inputs = {i.name: i.value for i in problem.inputs}
        super().__init__(Report(problem.name, NOT_CHECKABLE, "", order, inputs, problem.names), inputs, tolerances, points, effort, seed, progress)
        self.problem, self.order = problem, order
        self.errors: dict[int, Accuracy] = {}
        self.refuted: tuple[np.ndarray, Comparison] | None = None
        self.conventions: dict[Index, Limit] = {}  # derivatives that do not exist at the given point
        self.graph_mismatch: tuple[np.ndarray, str] | None = None  # a point where the recorded graph is not the function, and the difference
        self.given = ""  # why the given point was left out
        self.lost: list[str] = []  # the numbers at the given point whose digits are lost
        self.raised: list[str] = []  # the points at which the function raises, with the errors
        self.error: Exception | None = None  # the last one
        self.by = BY_SYMPY
        self.local_reason: str | None = None  # the reason why the formula holds near the given point only
        self.visited: dict[bytes, np.ndarray] = {}  # points inside the range of the tolerances
        self.rigorous, self.in_digits = rigorous, 0  # points at which many digits were compared, and not enclosures
        if rigorous:
            carrier()  # raises early if its dependency is missing

    def run(self) -> Any:
        """The report. Exceptions of the function at the given point propagate; every other failure becomes a verdict."""
        report = super().run()
        report.errors = [self.errors[order] for order in sorted(self.errors)]
        report.notes += not_rigorous(self.in_digits, report.points.random + report.points.special)
        for e in (e for e in report.errors if not e.within):
            digits = "all digits" if not np.isfinite(e.ulp) or e.ulp >= 2.0**52 else f"{e.ulp:.3g} ULP, {np.log10(max(e.ulp, 1)):.0f} of 16 digits,"
            report.notes.append(f"the library loses accuracy at order {e.order}: {digits} of {e.where} at "
                                f"({', '.join(np.array2string(v, precision=6, threshold=6) for v in e.point)})")
        return report

    def _check(self) -> None:
        report, problem = self.report, self.problem
        self.progress("recording the function", 0, 1)
        base = problem.run(problem.point, named=True)
        report.value, report.shape = float(base.result.value), base.shape
        self.require_same(flat(self.base), {"value": base.result.value})
        self.require_no_chance(flat(self.base))
        self._differentiate_by_library(base)
        self.rules = formulas.add_formulas(report, base, self.order)
        if not np.isfinite(base.result.value):
            raise NotCheckable(f"the value at the given point is {float(base.result.value)}; choose inputs where it is finite")
        found = note(base)
        if found is not None:
            report.notes.append(found)
        self.progress("comparing the given point", 0, 1)
        self.given_run = base
        self.selects = bool(base.escapes.lines) or any(getattr(getattr(n, "op", None), "name", "") in SELECTING for n in upstream([base.root]))
        self._compare(flat(self.base), base, given=True)
        if self.rigorous:
            self.progress("enclosing the given point", 0, 1)
            self._add_enclosures(base)
        self._sample(base)
        self._set_verdict(base)

    def numbers_at(self, vector: np.ndarray, order: int) -> dict[str, Any]:
        with silence():
            return {"value": self.problem.run(as_point(self.base, vector)).result.value}

    def _differentiate_by_library(self, base: Run) -> None:
        """Add the derivatives by the library's pullback at the given point to the report."""
        report, n, point = self.report, len(self.names), self.problem.point
        self.printed = {0: np.asarray(base.result.value)}  # the numbers by order
        with silence():
            self.printed[1] = gradient = base.gradient()
            for i, part in zip(self.problem.inputs, np.split(gradient, np.cumsum([v.size for v in point])[:-1])):
                report.gradient[i.name] = part.reshape(i.value.shape) if i.value.ndim else float(part[0])
            if self.order >= 2 and n <= MAX_HESSIAN_INPUTS:
                self.printed[2] = report.hessian = base.derivatives(2)
            if self.order >= 3 and n <= MAX_THIRD_INPUTS:
                self.printed[3] = report.third = base.derivatives(3)
        if n > MAX_HESSIAN_INPUTS and self.order >= 2:
            report.notes.append(f"with {n} inputs the Hessian is compared along random directions, not entry by entry")
        for what, k in (("gradient", 1), ("Hessian", 2), ("third derivative", 3)):
            if k in self.printed and not np.all(np.isfinite(self.printed[k])):
                report.notes.append(f"the {what} at the given point is not finite everywhere")

    def _add_enclosures(self, base: Run) -> None:
        report = self.report
        try:
            report.enclosures = enclosures(base, self.printed, self.names)
        except (TypeError, AttributeError, NotImplementedError) as error:
            report.notes.append(f"no enclosures: {error}")
        report.notes += [f"the enclosure of {e.where} stays wide at {e.bits} bits: {e.reason}" for e in report.enclosures if not e.narrow]

    # Comparing

    def _compare(self, vector: np.ndarray, run: Run, given: bool = False, random: bool = False) -> bool:
        """Compare the derivatives at one point, and return whether they agree or cannot be compared there."""
        found = self.report.points
        n = len(self.names)
        rng = np.random.default_rng([self.seed, 1, found.visited])
        full = None if not given else 3 if n <= MAX_THIRD_INPUTS and self.order == 3 else 2 if n <= MAX_HESSIAN_INPUTS and self.order >= 2 else 1
        printed = {k: v for k, v in self.printed.items() if k in (1, 2)} if given else None
        compared = compare_at(vector, run, self.order, random_direction(n, rng), full, self._run_beside, printed)
        self.by = BY_SYMPY if compared.by == BY_DEFINITION else compared.by
        if given:
            self.conventions = compared.conventions
            self.lost = [f"{label(len(i), i, self.names)} is {{}}, but the true one is {{}}".format(*pair(a, b)) for i, a, b in compared.lost]
        if compared.left_out and compared.culprit is None:
            setattr(found, compared.left_out, getattr(found, compared.left_out) + 1)
            if given:
                self.given = ("too many digits would be needed to compare" if compared.undecided else
                              "the derivative does not exist or is infinite" if compared.left_out == "singular" else
                              "there is a kink or the border of a branch, where a derivative is a convention")
                self.report.notes.append(f"at the given point {self.given}; other points were compared")
            return True
        graph_mismatch = self.problem.graph_mismatch(run)
        if graph_mismatch is not None:
            self.graph_mismatch = vector, graph_mismatch
            return False
        if run is not self.given_run and self.selects and run.escapes.truths == self.given_run.escapes.truths:
            self.local_reason = self.local_reason or difference(self.given_run, run, True)
        self.in_digits += not compared.exact.rigorous
        if random:
            found.random += 1
        else:
            found.special += 1
        if compared.culprit is not None:
            self.refuted = vector, compared
            return False
        found.measured += bool(compared.measured)
        if compared.digits is not None:
            found.digits = min(found.digits or compared.digits, compared.digits)
            if self._measure_floats(run, compared.exact, given, rng):
                compared.culprit = wrong_in_floats(vector, run, compared.exact, self._run_beside)
                compared.in_floats = compared.culprit is not None
        if compared.in_floats:
            self.refuted = vector, compared
        return not compared.in_floats

    def _run_beside(self, vector: np.ndarray) -> Run | None:
        """A run at another point; None if the function raises there."""
        try:
            with silence():
                return self.problem.run(as_point(self.problem.point, vector), named=True)
        except Exception as error:  # a user's function can raise anything outside its domain
            self.error = error
            return None

    def _measure_floats(self, run: Run, exact: OracleComparison, given: bool, rng: np.random.Generator) -> bool:
        """Update the largest errors of the library's floats with those at one point; whether a derivative has an error beyond its tolerance."""
        values = dict(self.printed) if given else {0: np.asarray(run.result.value)}
        with silence():
            values |= {} if given else {1: run.gradient()} | ({2: run.derivatives(2)} if self.order >= 2 and len(self.names) <= FULL else {})
        errors = worst_errors(run, exact, exact.entries(), values, self.names, rng)
        for found in errors:
            best = self.errors.get(found.order)
            if best is None or is_worse(found, best):
                self.errors[found.order] = found
        beyond = [e for e in errors if not e.ulp <= self.tolerances.units * max(e.condition, 1)]
        if given:
            self.lost += [f"{e.where} is {{}}, but the true one is {{}}: {ulp_text(e.ulp)} ULP away".format(*pair(e.value, e.truth)) for e in beyond]
        return any(e.order for e in beyond)

    def _run_at(self, vector: np.ndarray) -> Run | None:
        """A run at another point; None if the function raises or has no finite value there."""
        run = self._run_beside(vector)
        if run is None:
            self.raised.append(f"{at(self.inputs_at(vector))}: {first_line(message_of(self.error))}")  # type: ignore[arg-type]
        return run if run is not None and np.isfinite(run.result.value) else None

    def _sample(self, base: Run) -> None:
        """Compare at special points, at those of conditions and at random ones, until a point refutes or as many as planned are in the domain."""
        found, n = self.report.points, len(self.names)
        special = self._vectors(special_points(self.base, base))
        most = int(MAX_CONDITION_POINTS[2 if n > MAX_CONDITION_INPUTS else int(self.by != BY_SYMPY)] * self.effort)
        conditions = self._vectors(as_point(self.base, np.array(v, np.float64)) for v in self._condition_points(base, MAX_DRAWS * most))
        conditions = [v for v in conditions if not any(np.array_equal(v, other) for other in special)][:MAX_DRAWS * most]
        source = random_points(self.base, np.random.default_rng(self.seed))
        drawn = (self.tolerances.inside(flat(next(source))) for _ in range(MAX_DRAWS * self.requested))
        found.planned = 1 + len(special) + min(most, len(conditions)) + self.requested
        for vectors, wanted in ((special, len(special)), (conditions, most), (drawn, self.requested)):
            taken = 0
            for vector in vectors:
                if self.refuted is not None or self.graph_mismatch is not None:
                    return
                if taken >= wanted:
                    break
                poll()
                self.progress("comparing other points", found.random, self.requested)
                if self.visited.setdefault(vector.tobytes(), vector) is not vector and self.tolerances.range is not None:
                    continue  # points beyond an end of the range coincide
                run = self._run_at(vector)
                if run is None:
                    found.outside += 1
                else:
                    for _ in range(1 + (found.visited % 3 == 0)):  # so that the calls of a point are in step with no period of a state
                        self.require_same(vector, {"value": run.result.value})
                    self._compare(vector, run, random=vectors is drawn)
                    taken = found.random if vectors is drawn else taken + 1
                found.planned = max(found.planned, found.visited + (self.requested - found.random))
        if self.refuted is None and self.graph_mismatch is None:
            found.planned = found.visited

    def _vectors(self, points: Iterable[Point]) -> list[np.ndarray]:
        return list({v.tobytes(): v for v in (self.tolerances.inside(flat(point)) for point in points)}.values())

    def _condition_points(self, base: Run, most: int) -> Iterator[Any]:
        """Points at which conditions of the rules hold or change, and points with numbers at and around constants of the graph and the source."""
        point, n = flat(self.base), len(self.names)
        if n <= MAX_CONDITION_INPUTS and self.rules:
            symbols = [sympy.Symbol(name, real=True) for name in self.names]
            yield from boundary_points([*self.rules, *self.report.conditions], symbols, [point.tolist(), np.resize(SHORT_NUMBERS, n).tolist()],
                                       limit=most)
        if has_own_rules(base):
            yield from saturated_points(point, self._run_beside, min(self.order, 2))
        named = constants_of_code(self.problem.function)
        if not self.rules:
            with silence():
                roots: list[Any] = [g._node for g in base.gradients(base.result, create_graph=True) if g.requires_grad]
            named += [x for root in roots for x in constants_of_graph(root)]
        numbers, places = numbers_around(named, MAX_CONSTANTS), [None, *range(n)][:MAX_CONDITION_INPUTS]
        pairs = itertools.product(places, numbers) if n <= MAX_CONDITION_INPUTS else ((i, x) for x in numbers for i in places)
        for i, x in pairs:  # of many inputs few numbers are taken, but each in every place
            yield np.where((i is None) | (np.arange(n) == i), x, point)

    # The verdict

    def _set_verdict(self, base: Run) -> None:
        report, points = self.report, self.report.points
        poll()
        self.require_same(flat(self.base), {"value": base.result.value})
        if self.refuted is not None:
            self._refute(*self.refuted)
            return
        if self.graph_mismatch is not None:
            self._refute_graph(*self.graph_mismatch)
            return
        if not points.compared:
            raise NotCheckable(f"there was no point to compare at: {points.outside} were outside the domain, {points.singular} without a "
                               f"derivative, {points.kinks} on kinks; give inputs inside the domain")
        self.progress("proving", 0, 1)
        where = f"{points.random} random and {points.special} special points"
        measured = f", of which {points.measured} by the limits of difference quotients (measured)" if points.measured else ""
        failure = (f"the formula is that near the given point: {self.local_reason}" + f", by {base.escapes}" * bool(base.escapes.lines)
                   if self.local_reason is not None else
                   formulas.reason_unproved(base, self.names, self.order, self.effort))
        if failure is None:
            report.verdict = PROVED
            report.reason = (f"the formulas of the rules minus sympy.diff of the formula reduce to 0 up to order {self.order}, and {where} agree "
                             f"to {points.digits:.0f} digits{measured}")
        else:
            report.verdict = VERIFIED
            report.reason = f"the rules agree with {self.by} to {points.digits:.0f} digits at {where}{measured}"
            report.notes.append(f"not proved: {failure}")
        report.reason += exceptions(self.conventions, self.names, self.order)
        if self.given and not self.conventions:
            report.reason += f"; the derivatives at the given point were not compared: {self.given}"
        if self.raised:
            report.notes.append(f"the function raises at {len(self.raised)} of {points.planned} points, as at {self.raised[0]}")
        if self.lost:
            report.notes.append(f"but for its floats it is {report.verdict}: {report.reason}")
            report.verdict, report.reason = IMPRECISE, f"at the given point digits are lost: {'; '.join(self.lost)}"

    def _refute_graph(self, vector: np.ndarray, how: str) -> None:
        found = wrong_in_graph(self.problem, vector, 2 if 2 <= self.order and len(self.names) <= MAX_HESSIAN_INPUTS else 1)
        if found is None:
            raise NotCheckable(f"the recorded graph is not the function: {how}. Compute with tensors, or give the number as an argument")
        self.report.verdict, self.report.counterexample = REFUTED, found
        graph, function = pair(found.rule, found.truth, 6)
        self.report.reason = (f"the recorded graph is not the function: {how}. The graph gives {found.where} = {graph}, "
                              f"difference quotients of the function give {function}")

    def _refute(self, vector: np.ndarray, compared: Comparison) -> None:
        """Simplify the refuting point, and report the wrong derivative and op."""
        report, problem, culprit = self.report, self.problem, compared.culprit
        assert culprit is not None
        u = random_direction(len(self.names), np.random.default_rng(self.seed))
        plain = _differ_as_floats(culprit)

        def again(vector: np.ndarray) -> tuple[str, ComparedNumber] | None:
            inside = np.array_equal(vector, self.tolerances.inside(vector), equal_nan=True)
            run = self._run_at(vector) if inside else None
            if run is None:
                return None
            try:
                found = compare_at(vector, run, max(culprit.order, 1), u, None, self._run_beside)
                if compared.in_floats and found.culprit is None and not found.left_out:
                    found.culprit = wrong_in_floats(vector, run, found.exact, self._run_beside)
            except (Undefined, NoFormula):
                return None
            if found.culprit is None or plain and not _differ_as_floats(found.culprit) or found.by == BY_DEFINITION != compared.by:
                return None
            return found.by, found.culprit

        vector, (by, found) = self.simplified(vector, (compared.by, culprit), again)
        simple = as_point(self.base, vector)
        run = self._run_at(vector) or problem.run(simple)
        where = label(found.order, found.index, self.names, found.directional)
        with workdps(mpmath.mp, 50):
            rule, truth = float(found.rule), float(found.reference)
        texts = pair(found.rule, found.reference, 12)
        wrong = find_wrong_op(run, found.order)
        report.verdict = REFUTED
        report.counterexample = Counterexample(dict(zip(self.arguments, simple)), where, rule, truth, wrong and wrong[0],
                                               formulas.difference(run, self.names, found), pair(found.rule, found.reference, 15))
        if not found.order:
            report.reason = f"the function gives {where} = {texts[0]}, its formula {texts[1]}"
        else:
            report.reason = f"the rules{' in the branch that floats take' * compared.in_floats} give {where} = {texts[0]}, " + (
                "but the value jumps there, so that there is no derivative" if np.isnan(truth) else f"{by} gives {texts[1]}")
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
    return not abs(float(e.rule) - float(e.reference)) <= 1e-12 * abs(float(e.reference))
