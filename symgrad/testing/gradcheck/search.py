"""The search of `gradcheck` for a point with a wrong derivative, by exact derivatives where there is a formula, else by differences."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np

from symgrad.algebra.limits import clock
from symgrad.carriers.digits import Undefined
from symgrad.engine.tensor import wrap
from symgrad.frameworks.differentiation_task import generators_restored, silence
from symgrad.graph.modes import in_mode
from symgrad.graph.node import Leaf
from symgrad.graph.order import upstream
from symgrad.reference.accuracy import worst_errors
from symgrad.reference.exact import Exact, agreement
from symgrad.reference.run import Run
from symgrad.reference.template import NoFormula
from symgrad.sampling.points import COMMON_VALUES, flat, random_points, shrink_values, special_points
from symgrad.system.restoring import workdps
from symgrad.testing.gradcheck.jacobians import Array, FlatInputs, FunctionAtPoint, GradientAttack, GradientMismatch, NotSearchable, PointSkipped

RANDOM_POINTS, SPECIAL_POINTS = 16, 8  # if time permits
SECONDS = 0.15  # of the processor, for all points but the given one, each counted as the median one, since a collection of garbage may take longer
FEWEST, AT_LEAST = 12, 2  # points that are checked in three times as long, and in any case
SHRINKING, MAX_TRIES = 0.5, 60  # seconds of the processor and tries to simplify a point with a wrong derivative
MAX_NUMBERS = 250  # numbers computed in a recorded computation that SymPy differentiates again
DIGITS = 1e-9  # a relative error beyond rounding of floats
DIFFERENCES = 1e-5  # the same if the reference is a finite difference
NOISE = 1e-8  # the resolution of differences of values of size 1, when an input changes by its own size
MAX_SINGLE = 64  # inputs, or elements of an output, up to which each is checked separately to find the wrong derivative
BESIDE = (1e-4, 1e-4, 1e-3, 1e-3)  # distances from a point at which a wrong derivative must still be wrong, at two places of four
DEFAULTS = (1e-5, 1e-3)  # atol and rtol; larger tolerances of the user are kept


Along = Callable[[Array], float]


class WrongDerivative(NamedTuple):
    """A wrong derivative: its coordinate (None for a direction), both values, whether the reference is exact, whether it is a tangent."""

    coordinate: int | None
    analytical: float
    true: float
    exact: bool
    forward: bool = False


class Search:
    """One search, which fills the report."""

    def __init__(self, points: FlatInputs, report: GradientAttack, tolerances: tuple[float, float], backward: bool, forward: bool,
                 rng: np.random.Generator):
        self.points, self.report, self.backward, self.forward, self.rng = points, report, backward, forward, rng
        self.atol, self.rtol = tolerances if tolerances[0] > DEFAULTS[0] or tolerances[1] > DEFAULTS[1] else (0.0, 0.0)
        self.formula = points.real and backward and all(isinstance(x._node, Leaf) for x in points.leaves)
        self.special: list[Array] | None = None

    def run(self) -> None:
        """Compare at the given point, then at special and random ones, until one is wrong, enough are compared, or the time is over.

        Raises Unattacked for a function whose repeated calls differ.
        """
        points, report = self.points, self.report
        self.first = self._again()
        if not all(np.array_equal(a, b) for a, b in zip(self.first, self._again())):
            raise NotSearchable("called twice it gives two answers: it is random or keeps a state")
        if not np.isfinite(self.first[0]).all():
            raise NotSearchable("it is not finite at the given inputs")
        source = random_points(points.base, self.rng)
        wrong = self._look(points.given)
        special = self.special or [np.full(points.given.size, x) for x in reversed(COMMON_VALUES)]
        durations: list[float] = []
        compared = 0
        while wrong is None and compared < RANDOM_POINTS + SPECIAL_POINTS and (tries := len(durations)) < 4 * RANDOM_POINTS:
            seconds = tries * statistics.median_low(durations) if durations else 0
            if seconds > SECONDS and max(compared, tries // 2) >= (FEWEST if seconds < 3 * SECONDS else AT_LEAST):
                break
            start = clock()
            vector = special.pop() if special and tries % 2 == 0 else np.concatenate([np.ravel(p) for p in next(source)])
            before = report.attacked
            wrong = self._look(vector)
            compared += report.attacked - before
            durations.append(clock() - start)
        if wrong is not None:
            self._accuse(wrong)

    def _again(self) -> tuple[Array, ...]:
        """The values at the given point and, if the backward pass is checked, the gradient."""
        points = self.points
        return points.values(points.given), points.gradient(points.given) if self.backward else np.zeros(0)

    def _look(self, vector: Array) -> Array | None:
        """Compare at one point and count it. Return the point if a derivative is wrong there."""
        try:
            exact, wrong = self.compare(vector, measure=True)
        except PointSkipped as error:
            self.report.left_out[str(error)] += 1
            return None
        self.report.attacked += 1
        self.report.exact += exact
        return None if wrong is None else vector

    def compare(self, vector: Array, measure: bool = False) -> tuple[bool, WrongDerivative | None]:
        """Whether the reference at a point is exact, and the wrong entry there. Raises LeftOut if nothing can be compared."""
        exact, found = False, None
        if self.formula:
            exact, found = self._digits(vector, measure)
        if not exact and self.backward:
            gradient = self.points.gradient(vector)
            found = self._differing(vector, lambda u: float(gradient @ u), lambda u: float(np.abs(gradient) @ np.abs(u)), False)
        if found is None and self.forward:
            found = self._differing(vector, lambda u: self.points.tangent(vector, u), lambda u: abs(self.points.tangent(vector, u)), True, exact)
        return exact, found

    # Fifty digits

    def _digits(self, vector: Array, measure: bool) -> tuple[bool, WrongDerivative | None]:
        """Whether there is an exact reference, and the worst entry of the gradient that differs from it."""
        points = self.points
        with points.at(vector):
            total = self._recorded()
            if total is None:
                return False, None
            run = Run(points.leaves, total, None)
            try:
                exact = Exact(run, 1, np.ones(vector.size), 1)
                if self.special is None:
                    self.special = [flat(p) for p in special_points(points.base, run, SPECIAL_POINTS)]
                entries = exact.entries()[1:]
                bad = self._beyond(entries)
                if bad is not None and agreement(exact)[1] is None:  # which takes more digits where terms cancel
                    bad = None
                if exact.kink:
                    raise PointSkipped("it has a kink")
                if bad is None and measure:  # keep the largest error of a float of the gradient
                    report = self.report
                    (found,) = worst_errors(run, exact, entries, {1: run.gradient()}, points.elements, self.rng)
                    if report.ulp is None or found.ulp / max(found.condition, 1) > report.ulp / max(report.condition, 1):
                        report.ulp, report.where, report.condition = found.ulp, found.where.removeprefix("df/d"), found.condition
                if bad is None:
                    return True, None
                mine = float(run.gradient()[bad.index[0]])
            except Undefined:
                raise PointSkipped("no derivative is known") from None
            except (NoFormula, ArithmeticError, ValueError, TypeError, AttributeError, RuntimeError):  # the rules work for floats only
                self.formula = False
                return False, None
        rule, truth = float(bad.rule), float(bad.reference)
        if np.isfinite(rule) and not abs(mine - rule) < abs(mine - truth):  # the floats are right, so the rule was misread
            return False, None
        return True, WrongDerivative(bad.index[0], mine, truth, True)

    def _recorded(self) -> Any:
        """The weighted sum of the outputs at the current inputs, fully recorded; None if it cannot be recorded or is too long."""
        points = self.points
        try:
            with in_mode(keep_values=True):
                total: Any = 0
                for y, w in zip(points.outputs(), points.weights):
                    total = total + (y * wrap(w)).sum()
        except PointSkipped:  # for instance a Function that converts its tensors to arrays
            points.outputs()
            self.formula = False
            return None
        nodes = list(upstream([total._node]))
        if sum(map(_number_count, nodes)) > MAX_NUMBERS or max(map(_formula_length, nodes)) > MAX_NUMBERS:
            self.formula = False
            return None
        return total

    def _beyond(self, entries: Sequence[Any]) -> Any:
        """The entry with the largest error relative to what is allowed; None if all are allowed."""
        with workdps(mpmath.mp, 60):
            pairs = [(e, mpmath.mpf(e.reference), mpmath.mpf(e.rule)) for e in entries]
            scale = max(abs(truth) for _, truth, _ in pairs)
            worst, found = mpmath.mpf(1), None
            for e, truth, rule in pairs:
                allowed = max(DIGITS * abs(truth) + 1e-3 * DIGITS * scale, self.atol + self.rtol * abs(truth)) or mpmath.mpf("1e-300")
                excess = abs(rule - truth) / allowed if mpmath.isfinite(rule) else mpmath.inf
                if excess > worst:
                    worst, found = excess, e
            return found

    # Differences

    def _differing(self, vector: Array, along: Along, size: Along, forward: bool, exact: bool = False) -> WrongDerivative | None:
        """The wrong derivative along a direction: first along a random one, then along each coordinate.

        The reference is the difference, or the gradient if it is known to be `exact`.
        """
        truth = self._truth(vector, size, exact)
        scale = np.maximum(np.abs(vector), 0.1)
        u = scale * self.rng.uniform(0.5, 1.5, vector.size) * self.rng.choice([-1.0, 1.0], vector.size)

        def wrong(u: Array, coordinate: int | None, divisor: float) -> WrongDerivative | None:
            true, allowed = truth(u)
            mine = along(u)
            return None if abs(mine - true) <= allowed else WrongDerivative(coordinate, float(mine / divisor), float(true / divisor), exact, forward)

        found = wrong(u, None, 1.0)
        for k in range(vector.size if found is not None and vector.size <= MAX_SINGLE else 0):
            one = wrong(np.where(np.arange(vector.size) == k, scale[k], 0.0), k, float(scale[k]))
            if one is not None:
                return one
        return found

    def _truth(self, vector: Array, size: Along, exact: bool) -> Callable[[Array], tuple[float, float]]:
        """Derivatives along directions, and the error allowed: by a gradient that is right, or by differences.

        Raises PointSkipped if differences do not converge.
        """
        gradient = self.points.gradient(vector) if exact else np.zeros(0)
        noise = 0.0 if exact else NOISE * float(np.abs(self.points.values(vector)).sum())

        def truth(u: Array) -> tuple[float, float]:
            if exact:
                return float(gradient @ u), DIFFERENCES * float(np.abs(gradient) @ np.abs(u)) + DEFAULTS[0] * float(np.abs(u).sum())
            true, bound = self.points.along(vector, u)
            if not np.isfinite(bound):
                raise PointSkipped("it has a kink, or differences do not come together")
            allowed = max(DIFFERENCES * (abs(true) + size(u)), self.rtol * abs(true)) + max(self.atol, DEFAULTS[0]) * float(np.abs(u).sum())
            return true, allowed + 100 * bound + noise

        return truth

    # Reporting a failure

    def _accuse(self, vector: Array) -> None:
        """Confirm that the function's derivative is wrong, and report it at a simple point."""
        points, report = self.points, self.report
        if not all(np.array_equal(a, b) for a, b in zip(self.first, self._again())):
            raise NotSearchable("called often it gives other answers: it keeps a state")
        beside = [vector * (1 + step * self.rng.uniform(-1, 1, vector.size)) + 1e-9 * step for step in BESIDE]
        if sum(self._wrong(v) is not None for v in beside) < 2:
            report.left_out["a derivative differs, and does not beside the point"] += 1
            return
        given = vector is points.given
        end = clock() + SHRINKING
        if not given:
            vector = shrink_values(vector, lambda v: clock() < end and self._wrong(v) is not None, MAX_TRIES)
        where, found = "a weighted sum of the outputs", self._wrong(vector)
        for name in points.each_output(MAX_SINGLE):
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

    def _wrong(self, vector: Array) -> WrongDerivative | None:
        try:
            return self.compare(vector)[1]
        except PointSkipped:
            return None


def _number_count(node: Any) -> int:
    """About how many numbers are computed at a node."""
    args = [a for a in (node.args or ())[:len(node.parents)] if isinstance(a, np.ndarray)]
    inner = args[0].shape[-1] if args and node.op.kind == "multilinear" and args[0].ndim else 1
    return max([np.size(node.value) * inner, *(a.size for a in args)])


def _formula_length(node: Any) -> int:
    """The length of a Function's recorded forward as one formula per element, in which shared parts are repeated."""
    roots = [n for n in getattr(node, "inner", None) or () if n is not None]
    sizes: dict[Any, int] = dict.fromkeys(node.parents, 1)
    for n in upstream(roots, stop=sizes):
        if n not in sizes:
            sizes[n] = 1 + sum(sizes.get(p, 1) for p in n.parents)
    return sum(sizes[n] * max(np.size(n.value), 1) for n in roots)


def attack_gradients(func: Callable[..., Any], inputs: tuple[Any, ...], *, order: int = 1, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                     backward: bool = True, forward: bool = False, seed: int = 0) -> GradientAttack:
    """Search for wrong first derivatives of a function that `gradcheck` passed at these inputs; `order` is the order shown in the report.

    The inputs are written in place and restored, as `gradcheck` does, so that tensors in a closure change along; random generators are
    restored, too. Output and warnings of the function at other points are suppressed.

    >>> import symgrad
    >>> report = attack_gradients(symgrad.tanh, (symgrad.tensor([0.5, 1.0], requires_grad=True),))
    >>> report.failure is None, report.attacked > 2, report.exact == report.attacked
    (True, True, True)
    """
    start = time.perf_counter()
    report = GradientAttack(order, seed=seed)
    try:
        with generators_restored(), silence():
            rng = np.random.default_rng(seed)
            Search(FlatInputs(FunctionAtPoint(func, inputs, eps, differentiates=order > 1), rng), report, (atol, rtol), backward, forward, rng).run()
    except (NotSearchable, PointSkipped) as error:
        report.reason = str(error)
    except Exception as error:  # a repeated call may raise anything
        report.reason = f"called again it raised {type(error).__name__}: {error}"
    report.seconds = time.perf_counter() - start
    return report
