"""The search of `gradcheck` for a point with a wrong derivative, by exact derivatives where there is a formula, else by differences."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np

from symgrad.autograd.engine import grad
from symgrad.carriers.digits import Undefined
from symgrad.engine.tensor import Tensor, wrap
from symgrad.frameworks.differentiation_task import generators_restored, silence
from symgrad.graph.modes import in_mode
from symgrad.graph.node import Leaf
from symgrad.graph.order import upstream
from symgrad.reference.accuracy import worst_errors
from symgrad.reference.exact import OracleComparison, agreement
from symgrad.reference.run import Run
from symgrad.reference.sources import differences
from symgrad.reference.template import NoFormula
from symgrad.sampling.points import COMMON_VALUES, as_point, flat, random_points, shrink_values, special_points
from symgrad.system.restoring import changed, restored, workdps
from symgrad.testing.gradcheck.jacobians import Array, FunctionAtPoint, as_real, push_forward, random_weights
from symgrad.testing.gradcheck.report import GradientAttack, GradientMismatch

RANDOM_POINTS, SPECIAL_POINTS = 12, 12  # planned beside the given one, unless a point needs more than its share of WORK
AT_LEAST, TRIES = 2, 3  # points that are planned in any case; tries for a planned point, of which some are outside the domain
WORK, MANY_DIGITS = 5e7, 2e4  # numbers computed at all points together; what one in many digits counts as
MAX_TRIES = 60  # tries to simplify a point with a wrong derivative
MAX_NUMBERS = 250  # numbers computed in a recorded computation that SymPy differentiates again
DIGITS = 1e-9  # a relative error beyond rounding of floats
DIFFERENCES = 1e-5  # the same if the reference is a finite difference
NOISE = 1e-8  # the resolution of differences of values of size 1, when an input changes by its own size
MAX_SINGLE = 64  # inputs, or elements of an output, up to which each is checked separately to find the wrong derivative
BESIDE = (1e-4, 1e-4, 1e-3, 1e-3)  # distances from a point at which a wrong derivative must still be wrong, at two places of four
DEFAULTS = (1e-5, 1e-3)  # atol and rtol; larger tolerances of the user are kept
Along = Callable[[Array], float]


class PointSkipped(Exception):
    """The reason why a point is skipped."""


class NotSearchable(Exception):
    """The reason why the function cannot be searched."""


class Search:
    """One search, which fills the report.

    The inputs are one vector, with two numbers for a complex one, and the value is the weighted sum of the outputs. Raises NotSearchable if no input
    can be changed, or if no output depends on one.
    """

    def __init__(self, problem: FunctionAtPoint, report: GradientAttack, tolerances: tuple[float, float], backward: bool, forward: bool,
                 rng: np.random.Generator):
        self.problem, self.report, self.backward, self.forward, self.rng = problem, report, backward, forward, rng
        self.atol, self.rtol = tolerances if tolerances[0] > DEFAULTS[0] or tolerances[1] > DEFAULTS[1] else (0.0, 0.0)
        self.leaves = list({id(x): x for x in problem.leaves}.values())
        self.names = [f"input {next(j for j, y in enumerate(problem.leaves) if y is x)}" for x in self.leaves]
        self.arrays = [x.data._value for x in self.leaves]
        self.base = [as_real(np.array(a)) for a in self.arrays]
        self.given = flat(self.base)
        outputs = problem.outputs
        for wrong, reason in ((not sum(y.numel() for y in outputs), "no output depends on the inputs"),
                              (any(x.dtype.name not in ("float64", "complex128") for x in self.leaves), "an input is not of double precision"),
                              (not self.given.size, "no input has elements"),
                              (any(np.shares_memory(a, b) for i, a in enumerate(self.arrays) for b in self.arrays[:i]), "inputs share memory"),
                              (not all(a.flags.writeable for a in self.arrays), "the memory of an input cannot be written")):
            if wrong:
                raise NotSearchable(reason)
        self.form = [(y.shape, y.dtype, y.requires_grad) for y in problem.every]
        self.weights = [random_weights(y, rng) for y in outputs]
        self.formula = backward and not any(t.is_complex() for t in (*self.leaves, *outputs)) and all(isinstance(x._node, Leaf) for x in self.leaves)
        self.special: list[Array] | None = None

    def run(self) -> None:
        """Compare at the given point, then at special and random ones, until one is wrong or all planned ones are compared.

        Fewer are planned for a long computation, and for one that is called often at a point. Raises NotSearchable for a function whose repeated
        calls differ.
        """
        report = self.report
        self.first = self._again()
        self._require_same("called twice it gives two answers: it is random or keeps a state")
        if not np.isfinite(self.first[0]).all():
            raise NotSearchable("it is not finite at the given inputs")
        calls = self.problem.calls
        wrong = self._is_wrong(self.given)
        numbers = sum(map(_number_count, upstream([y._node for y in self.problem.outputs])))
        work = max(numbers, 1) * (self.problem.calls - calls + MANY_DIGITS * self.formula)
        more = int(min(max(WORK // work, AT_LEAST), RANDOM_POINTS + SPECIAL_POINTS))
        report.planned, vector = 1 + more, self.given
        special = self.special or [np.full(self.given.size, x) for x in reversed(COMMON_VALUES)]
        random = map(flat, random_points(self.base, self.rng))
        for k in range(TRIES * more):
            if wrong or report.attacked == report.planned:
                break
            vector = special.pop() if special and k % 2 == 0 else next(random)
            wrong = self._is_wrong(vector)
        if wrong:
            self._accuse(vector)

    def _again(self) -> tuple[Array, ...]:
        return self._values(self.given), self._gradient(self.given) if self.backward else np.zeros(0)

    def _require_same(self, reason: str) -> None:
        if not all(np.array_equal(a, b) for a, b in zip(self.first, self._again())):
            raise NotSearchable(reason)

    # The function at a point

    @contextlib.contextmanager
    def _at(self, vector: Array) -> Iterator[None]:
        before = [a.copy() for a in self.arrays]

        def write(parts: Sequence[Array]) -> None:
            for a, part in zip(self.arrays, parts):
                a[...] = part

        with restored(lambda: write(before)):
            write(self._split(vector))
            yield

    def _split(self, vector: Array) -> list[Array]:
        return [part if a.dtype.kind != "c" else part.view(np.complex128)[..., 0]
                for a, part in zip(self.arrays, map(np.ascontiguousarray, as_point(self.base, vector)))]

    def _outputs(self) -> list[Tensor]:
        """The differentiable outputs at the current inputs. Raises PointSkipped if there is nothing to differentiate."""
        try:
            every = self.problem.evaluate(self.problem.inputs)
        except Exception as error:  # a function may raise anything outside its domain
            raise PointSkipped(f"it raises {type(error).__name__}") from None
        if [(y.shape, y.dtype, y.requires_grad) for y in every] != self.form:
            raise PointSkipped("its outputs change in shape or dtype")
        found = [every[i] for i in self.problem.places]
        if not all(np.isfinite(y._value).all() for y in found):
            raise PointSkipped("it is not finite")
        return found

    def _values(self, vector: Array) -> Array:
        """All outputs at a point, weighted, as one vector of real numbers; NaN where there are none."""
        with self._at(vector):
            try:
                return flat([as_real(y._value) * as_real(w) for y, w in zip(self._outputs(), self.weights)])
            except PointSkipped:
                return np.full(sum(as_real(w).size for w in self.weights), np.nan)

    def _gradient(self, vector: Array) -> Array:
        with self._at(vector):
            found = grad(self._outputs(), self.leaves, [wrap(w) for w in self.weights], allow_unused=True)
            out = flat([as_real(np.zeros_like(a) if g is None else g._value.astype(a.dtype).reshape(a.shape)) for g, a in zip(found, self.arrays)])
        if not np.isfinite(out).all():
            raise PointSkipped("its gradient is not finite")
        return out

    def _tangent(self, vector: Array, u: Array) -> float:
        parts = {id(x): part for x, part in zip(self.leaves, self._split(u))}
        with self._at(vector):
            found = push_forward(self.problem, {j: parts[id(x)] for j, x in enumerate(self.problem.leaves)})
            return sum(float(np.sum(as_real(t._value.astype(w.dtype)) * as_real(w))) for t, w in zip(found, self.weights) if t is not None)

    # Comparing

    def _is_wrong(self, vector: Array) -> bool:
        """Whether a derivative is wrong at a point, which is counted."""
        try:
            exact, wrong = self._compare(vector, measure=True)
        except PointSkipped as error:
            self.report.left_out[str(error)] += 1
            return False
        self.report.attacked += 1
        self.report.exact += exact
        return wrong is not None

    def _compare(self, vector: Array, measure: bool = False) -> tuple[bool, GradientMismatch | None]:
        """Whether the reference at a point is exact, and the wrong entry there. Raises PointSkipped if nothing can be compared."""
        exact, found = self._digits(vector, measure) if self.formula else (False, None)
        if not exact and self.backward:
            gradient = self._gradient(vector)
            found = self._differing(vector, lambda u: float(gradient @ u), lambda u: float(np.abs(gradient) @ np.abs(u)), False)
        if found is None and self.forward:
            found = self._differing(vector, lambda u: self._tangent(vector, u), lambda u: abs(self._tangent(vector, u)), True, exact)
        return exact, found

    def _digits(self, vector: Array, measure: bool) -> tuple[bool, GradientMismatch | None]:
        """Whether there is an exact reference, and the worst entry of the gradient that differs from it."""
        with self._at(vector):
            try:
                with in_mode(keep_values=True):
                    total: Any = sum((y * wrap(w)).sum() for y, w in zip(self._outputs(), self.weights))
            except PointSkipped:  # for instance a Function that converts its tensors to arrays
                self._outputs()
                self.formula = False
                return False, None
            nodes = list(upstream([total._node]))
            self.formula = sum(map(_number_count, nodes)) <= MAX_NUMBERS and max(map(_formula_length, nodes)) <= MAX_NUMBERS
            if not self.formula:
                return False, None
            run, report = Run(self.leaves, total, None), self.report
            try:
                exact = OracleComparison(run, 1, np.ones(vector.size), 1)
                if self.special is None:
                    self.special = [flat(p) for p in special_points(self.base, run, SPECIAL_POINTS)]
                entries = exact.entries()[1:]
                with workdps(mpmath.mp, 60):
                    scale = max(abs(mpmath.mpf(e.reference)) for e in entries)

                    def excess(e: Any) -> Any:
                        rule, truth = mpmath.mpf(e.rule), mpmath.mpf(e.reference)
                        allowed = max(DIGITS * abs(truth) + 1e-3 * DIGITS * scale, self.atol + self.rtol * abs(truth)) or mpmath.mpf("1e-300")
                        return abs(rule - truth) / allowed if mpmath.isfinite(rule) else mpmath.inf

                    bad = max(entries, key=excess)
                    right = excess(bad) <= 1
                right = right or agreement(exact)[1] is None  # which takes more digits where terms cancel
                if exact.kink:
                    raise PointSkipped("it has a kink")
                if right and measure:  # keep the largest error of a float of the gradient
                    (found,) = worst_errors(run, exact, entries, {1: run.gradient()}, self._elements(), self.rng)
                    if report.ulp is None or found.ulp / max(found.condition, 1) > report.ulp / max(report.condition, 1):
                        report.ulp, report.where, report.condition = found.ulp, found.where.removeprefix("df/d"), found.condition
                if right:
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
        return True, GradientMismatch(mine, truth, True, False, bad.index[0])

    def _differing(self, vector: Array, along: Along, size: Along, forward: bool, exact: bool = False) -> GradientMismatch | None:
        """The wrong derivative along a direction: first along a random one, then along each coordinate.

        The reference is the difference, or the gradient if it is known to be `exact`. Raises PointSkipped if differences do not converge.
        """
        gradient = self._gradient(vector) if exact else np.zeros(0)
        noise = 0.0 if exact else NOISE * float(np.abs(self._values(vector)).sum())
        scale = np.maximum(np.abs(vector), 0.1)

        def wrong(u: Array, coordinate: int | None, divisor: float) -> GradientMismatch | None:
            length = float(np.abs(u).sum())
            if exact:
                true, allowed = float(gradient @ u), DIFFERENCES * float(np.abs(gradient) @ np.abs(u)) + DEFAULTS[0] * length
            else:
                true, bound = (float(x.sum()) for x in differences(lambda t: self._values(vector + t[0] * u), np.zeros(1)))
                if not np.isfinite(bound):
                    raise PointSkipped("it has a kink, or differences do not come together")
                allowed = max(DIFFERENCES * (abs(true) + size(u)), self.rtol * abs(true)) + max(self.atol, DEFAULTS[0]) * length + 100 * bound + noise
            mine = along(u)
            return None if abs(mine - true) <= allowed else GradientMismatch(float(mine / divisor), float(true / divisor), exact, forward, coordinate)

        found = wrong(scale * self.rng.uniform(0.5, 1.5, vector.size) * self.rng.choice([-1.0, 1.0], vector.size), None, 1.0)
        for k in range(vector.size if found is not None and vector.size <= MAX_SINGLE else 0):
            one = wrong(np.where(np.arange(vector.size) == k, scale[k], 0.0), k, float(scale[k]))
            if one is not None:
                return one
        return found

    # Reporting a failure

    def _accuse(self, vector: Array) -> None:
        report = self.report
        self._require_same("called often it gives other answers: it keeps a state")
        beside = [vector * (1 + step * self.rng.uniform(-1, 1, vector.size)) + 1e-9 * step for step in BESIDE]
        if sum(self._wrong(v) is not None for v in beside) < 2:
            report.left_out["a derivative differs, and does not beside the point"] += 1
            return
        given = vector is self.given
        if not given:
            vector = shrink_values(vector, lambda v: self._wrong(v) is not None, MAX_TRIES)
        where, found = "a weighted sum of the outputs", self._wrong(vector)
        for name in self._each_output():
            single = self._wrong(vector)
            if single is not None:
                where, found = name, single
                break
        if found is None:
            report.left_out["a derivative differs, and does not when it is looked at again"] += 1
            return
        by = "the inputs, along a direction" if found.coordinate is None else self._elements()[found.coordinate]
        shown = tuple(f"{name} = {wrap(part)}" for name, part in zip(self.names, self._split(vector)))
        small = abs(found.analytical - found.true) <= DEFAULTS[0] + DEFAULTS[1] * abs(found.true)
        report.failure = replace(found, where=f"{where} with respect to {by}", point=shown, given=given, small=small)

    def _wrong(self, vector: Array) -> GradientMismatch | None:
        try:
            return self._compare(vector)[1]
        except PointSkipped:
            return None

    def _each_output(self) -> Iterator[str]:
        """Every element of the outputs in turn, by name: while one is yielded, its weight is 1 and all others are 0."""
        weights = self.weights
        with changed(self, "weights", weights):
            for i, y in enumerate(self.problem.outputs):
                for index in np.ndindex(tuple(y.shape)) if y.numel() <= MAX_SINGLE else ():
                    self.weights = [np.zeros_like(w) for w in weights]
                    self.weights[i][index] = 1
                    yield f"output {self.problem.places[i]}" + _index_text(y, index)

    def _elements(self) -> list[str]:
        return [name + _index_text(x, index) + part for name, x in zip(self.names, self.leaves) for index in np.ndindex(tuple(x.shape))
                for part in ((" (real part)", " (imaginary part)") if x.is_complex() else ("",))]


def _index_text(x: Tensor, index: Sequence[int]) -> str:
    return str([int(k) for k in index]) if x.ndim else ""


def _number_count(node: Any) -> int:
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
            Search(FunctionAtPoint(func, inputs, eps, differentiates=order > 1), report, (atol, rtol), backward, forward, rng).run()
    except (NotSearchable, PointSkipped) as error:
        report.reason = str(error)
    except Exception as error:  # a repeated call may raise anything
        report.reason = f"called again it raised {type(error).__name__}: {error}"
    report.seconds = time.perf_counter() - start
    return report
