"""The search of `gradcheck` for a point with a wrong derivative: exact derivatives where there is a formula, differences where there is none."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from symgrad.graph import Leaf, mode, upstream
from symgrad.tensor import wrap
from symgrad.testing.gradients_points import Array, LeftOut, Points, Unattacked

if TYPE_CHECKING:
    from symgrad.testing.gradients import GradientAttack

__all__ = ["Search"]

POINTS, SPECIAL = 16, 8  # random and special points that are looked at, where the time allows it
SECONDS = 0.15  # for all points; the given one and two others are looked at in any case
FEWEST = 2
SHRINKING, TRIES = 1.0, 60  # seconds and tries for making a point simple that shows a wrong derivative
ELEMENTS = 2000  # of a recorded computation that SymPy differentiates again
DIGITS = 1e-9  # a relative error that no rounding of a float makes
DIFFERENCES = 1e-5  # the same, where the truth is a finite difference
SINGLE = 64  # inputs, or elements of an output, up to which each is looked at by itself to say which derivative is wrong
BESIDE = (1e-4, 1e-4, 1e-3, 1e-3)  # how far from a point a wrong derivative must still be wrong, at two places of four
DEFAULTS = (1e-5, 1e-3)  # atol and rtol: who allows more is taken at his word


class Entry(NamedTuple):
    """A derivative that is wrong: by which coordinate (None: along a direction), both values, whether the truth is exact, whether by a tangent."""

    coordinate: int | None
    analytical: float
    true: float
    exact: bool
    forward: bool = False


class Search:
    """One attack. What it finds it enters in the report."""

    def __init__(self, points: Points, report: GradientAttack, tolerances: tuple[float, float], backward: bool, forward: bool,
                 rng: np.random.Generator):
        self.points, self.report, self.backward, self.forward, self.rng = points, report, backward, forward, rng
        self.atol, self.rtol = tolerances if tolerances[0] > DEFAULTS[0] or tolerances[1] > DEFAULTS[1] else (0.0, 0.0)
        self.formula = points.real and backward and all(isinstance(x._node, Leaf) for x in points.leaves)
        self.special: list[Array] | None = None

    def run(self) -> None:
        """Look at the given point, and then at special and random ones, until one is wrong, there are enough, or the time is over.

        Raises Unattacked for a function that is not the same when it is called again.
        """
        from symgrad.checking.sampling import random_points

        points, report = self.points, self.report
        self.first = self._again()
        if not all(np.array_equal(a, b) for a, b in zip(self.first, self._again())):
            raise Unattacked("called twice it gives two answers: it is random or keeps a state")
        if not np.isfinite(self.first[0]).all():
            raise Unattacked("it is not finite at the given inputs")
        end = time.perf_counter() + SECONDS
        source = random_points(points.base, self.rng)
        wrong = self._look(points.given)
        compared = tries = 0
        while wrong is None and compared < POINTS + SPECIAL and tries < 4 * POINTS:
            if time.perf_counter() > end and (compared >= FEWEST or tries > 2 * FEWEST):
                break
            tries += 1
            vector = self.special.pop(0) if self.special and tries % 2 else np.concatenate([np.ravel(p) for p in next(source)])
            before = report.attacked
            wrong = self._look(vector)
            compared += report.attacked - before
        if wrong is not None:
            self._accuse(wrong)

    def _again(self) -> tuple[Array, ...]:
        """The values at the given point and, where the backward is checked, the gradient."""
        points = self.points
        return points.values(points.given), points.gradient(points.given) if self.backward else np.zeros(0)

    def _look(self, vector: Array) -> Array | None:
        """Compare at one point, and count it. Gives the point if a derivative is wrong there."""
        try:
            exact, wrong = self.compare(vector, measure=True)
        except LeftOut as error:
            self.report.left_out[str(error)] += 1
            return None
        self.report.attacked += 1
        self.report.exact += exact
        return None if wrong is None else vector

    def compare(self, vector: Array, measure: bool = False) -> tuple[bool, Entry | None]:
        """Whether the truth at a point is exact, and what is wrong there. Raises LeftOut where nothing can be said."""
        exact, found = False, None
        if self.formula:
            exact, found = self._digits(vector, measure)
        if not exact and self.backward:
            gradient = self.points.gradient(vector)
            found = self._differing(vector, lambda u: float(gradient @ u), lambda u: float(np.abs(gradient) @ np.abs(u)), False)
        if found is None and self.forward:
            found = self._differing(vector, lambda u: self.points.tangent(vector, u), lambda u: abs(self.points.tangent(vector, u)), True)
        return exact, found

    # Fifty digits

    def _digits(self, vector: Array, measure: bool) -> tuple[bool, Entry | None]:
        """Whether there is an exact truth, and the worst entry of the gradient that is not it."""
        from symgrad.checking.exact import Exact, agreement
        from symgrad.checking.heads import Undefined
        from symgrad.checking.problem import Run
        from symgrad.checking.sampling import flat, special_points
        from symgrad.checking.template import NoFormula

        points = self.points
        with points.at(vector):
            total = self._recorded()
            if total is None:
                return False, None
            run = Run(points.leaves, total, None)
            try:
                exact = Exact(run, 1, np.ones(vector.size), 1)
                if self.special is None:
                    self.special = [flat(p) for p in special_points(points.base, run, SPECIAL)]
                entries = exact.entries()[1:]
                bad = self._beyond(entries)
                if bad is not None and agreement(exact)[1] is None:  # which takes more digits where terms cancel
                    bad = None
                if exact.kink:
                    raise LeftOut("it has a kink")
                if bad is None:
                    if measure:
                        self._measure(run, exact)
                    return True, None
                mine = float(run.gradient()[bad.index[0]])
            except Undefined:
                raise LeftOut("no derivative is known") from None
            except (NoFormula, ArithmeticError, ValueError, TypeError, AttributeError, RuntimeError):  # rules that are for floats alone
                self.formula = False
                return False, None
        rule, truth = float(bad.rule), float(bad.truth)
        if np.isfinite(rule) and not abs(mine - rule) < abs(mine - truth):  # the floats are right, so that the rule was misread
            return False, None
        return True, Entry(bad.index[0], mine, truth, True)

    def _recorded(self) -> Any:
        """The weighted sum of the outputs where the inputs are now, recorded to the last operation; None where that does not work or is long."""
        points = self.points
        before, mode.complete = mode.complete, True
        try:
            total: Any = 0
            for y, w in zip(points.outputs(), points.weights):
                total = total + (y * wrap(w)).sum()
        except LeftOut:  # as by a Function that turns its tensors into arrays
            mode.complete = before
            points.outputs()
            self.formula = False
            return None
        finally:
            mode.complete = before
        if sum(np.size(node.value) for node in upstream([total._node])) > ELEMENTS:
            self.formula = False
            return None
        return total

    def _beyond(self, entries: Sequence[Any]) -> Any:
        """The entry with the largest error, relative to what is allowed; None if none is beyond it."""
        import mpmath

        with mpmath.workdps(60):
            pairs = [(e, mpmath.mpf(e.truth), mpmath.mpf(e.rule)) for e in entries]
            scale = max(abs(truth) for _, truth, _ in pairs)
            worst, found = mpmath.mpf(1), None
            for e, truth, rule in pairs:
                allowed = max(DIGITS * abs(truth) + 1e-3 * DIGITS * scale, self.atol + self.rtol * abs(truth)) or mpmath.mpf("1e-300")
                excess = abs(rule - truth) / allowed if mpmath.isfinite(rule) else mpmath.inf
                if excess > worst:
                    worst, found = excess, e
            return found

    def _measure(self, run: Any, exact: Any) -> None:
        """Keep the largest error of a float of the gradient."""
        from symgrad.checking.accuracy import measured

        report = self.report
        (found,) = measured(run, exact, [e for e in exact.entries() if e.order], {1: run.gradient()}, self.points.elements, self.rng)
        if report.ulp is None or found.ulp / max(found.condition, 1) > report.ulp / max(report.condition, 1):
            report.ulp, report.where, report.condition = found.ulp, found.where, found.condition

    # Differences

    def _differing(self, vector: Array, along: Callable[[Array], float], size: Callable[[Array], float], forward: bool) -> Entry | None:
        """What is wrong with derivatives along directions, by differences: first along one at random, then along each coordinate."""
        scale = np.maximum(np.abs(vector), 0.1)
        u = scale * self.rng.uniform(0.5, 1.5, vector.size) * self.rng.choice([-1.0, 1.0], vector.size)
        found = self._difference(vector, u, along, size)
        if found is None:
            return None
        for k in range(vector.size if vector.size <= SINGLE else 0):
            unit = np.where(np.arange(vector.size) == k, scale[k], 0.0)
            if (one := self._difference(vector, unit, along, size)) is not None:
                return Entry(k, one[0] / scale[k], one[1] / scale[k], False, forward)
        return Entry(None, *found, False, forward)

    def _difference(self, vector: Array, u: Array, along: Callable[[Array], float], size: Callable[[Array], float]) -> tuple[float, float] | None:
        """Both derivatives along a direction, if they differ. Raises LeftOut where differences say nothing."""
        found, bound = self.points.along(vector, u)
        if not np.isfinite(bound):
            raise LeftOut("it has a kink, or differences do not come together")
        mine = along(u)
        allowed = max(DIFFERENCES * (abs(found) + size(u)), self.atol * float(np.abs(u).sum()) + self.rtol * abs(found)) + 100 * bound
        return None if abs(mine - found) <= allowed else (mine, found)

    # Accusing

    def _accuse(self, vector: Array) -> None:
        """Make sure that it is the function that is wrong, and say where, at a simple point."""
        from symgrad.checking.shrink import shrunk
        from symgrad.testing.gradients import GradientMismatch

        points, report = self.points, self.report
        if not all(np.array_equal(a, b) for a, b in zip(self.first, self._again())):
            raise Unattacked("called often it gives other answers: it keeps a state")
        beside = [vector * (1 + step * self.rng.uniform(-1, 1, vector.size)) + 1e-9 * step for step in BESIDE]
        if sum(self._wrong(v) is not None for v in beside) < 2:
            report.left_out["a derivative differs, and does not beside the point"] += 1
            return
        given = vector is points.given
        end = time.perf_counter() + SHRINKING
        if not given:
            vector = shrunk(vector, lambda v: time.perf_counter() < end and self._wrong(v) is not None, TRIES)
        where, found = "a weighted sum of the outputs", self._wrong(vector)
        for name in points.each_output(SINGLE):
            single = self._wrong(vector)
            if single is not None:
                where, found = name, single
                break
        if found is None:
            report.left_out["a derivative differs, and does not when it is looked at again"] += 1
            return
        by = "the inputs, along a direction" if found.coordinate is None else points.elements[found.coordinate]
        report.failure = GradientMismatch(f"{where} with respect to {by}", found.analytical, found.true, points.shown(vector), given, found.exact,
                                          found.forward, abs(found.analytical - found.true) <= DEFAULTS[0] + DEFAULTS[1] * abs(found.true))

    def _wrong(self, vector: Array) -> Entry | None:
        try:
            return self.compare(vector)[1]
        except LeftOut:
            return None
