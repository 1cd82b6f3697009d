"""Sources of reference values of a function and its derivatives at a point: a formula or a recorded function by SymPy, or finite differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import mpmath
import numpy as np
import sympy

from symgrad.algebra import ladder
from symgrad.algebra.ladder import MOST, absolute_condition
from symgrad.carriers import precise
from symgrad.carriers.digits import Undecided, Undefined
from symgrad.reference import certify
from symgrad.reference.oracle import Oracle, slots
from symgrad.reference.run import Run
from symgrad.reference.template import NoFormula
from symgrad.sampling.points import as_point, flat

RATIO, STEPS = 3.0, 9
NOISE = 4 * 2.0**-52  # the relative rounding error of the values
MARGIN = 100.0  # a factor for the bounds, which are estimates
VAGUE = 1e-3  # the relative bound above which a difference is not used for a decision


def differences(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, room: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The derivatives of a function of a vector by each coordinate, along a new first axis, and error bounds as of `extrapolated_derivative`.

    No step in a coordinate is longer than `room`; a coordinate without room has an infinite bound.

    >>> found, bound = differences(lambda x: np.sin(x[0]), np.array([1.0]))
    >>> bool(abs(found[0] - np.cos(1.0)) <= bound[0] <= 1e-10)
    True
    """
    found = []
    for i in range(x.size):
        longest = min(0.1 * max(abs(float(x[i])), 0.1), np.inf if room is None else float(room[i]))
        h = max(longest, 0.0) * RATIO ** -np.arange(STEPS)
        points = np.repeat(x[None], 1 + 2 * STEPS, 0)
        points[:, i] += np.concatenate([[0.0], h, -h])
        values = np.array([np.asarray(function(p), np.float64) for p in (points if longest > 0 else points[:1])])
        if longest > 0:
            found.append(extrapolated_derivative(values, points[:, i] - x[i]))
        else:
            found.append((np.full(values[0].shape, np.nan), np.full(values[0].shape, np.inf)))
    return np.array([f for f, _ in found]), np.array([b for _, b in found])


def extrapolated_derivative(values: np.ndarray, places: np.ndarray, size: Any = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """The derivatives at 0, with error bounds, of functions known at 0 and at decreasing steps on both sides.

    Along its first axis `values` has the value at 0, those at the steps h, h/3, h/9, ..., and those at -h, -h/3, ...; `places` has the rounded
    steps, and `size` is the size of the argument. Central differences are extrapolated to the step 0 (Ridders 1982), and the extrapolation
    with the smallest change is used. The bound is that change or the effect of rounding, whichever is larger. It is infinite if the
    quotients do not converge, as at a kink or where the function varies on the scale of the steps, and if a value is not finite.

    >>> h = 0.1 / 3.0**np.arange(9)
    >>> steps = np.concatenate([[0.0], h, -h])
    >>> found, bound = extrapolated_derivative(np.sin(1 + steps), steps)
    >>> bool(abs(found - np.cos(1.0)) <= bound <= 1e-10)
    True
    """
    base, above, below = values[0], values[1:STEPS + 1], values[STEPS + 1:]
    grain = _resolution(values) + _internal_rounding(above + below - 2 * base)
    best, bound = np.full(base.shape, np.nan), np.full(base.shape, np.inf)
    row: list[np.ndarray] = []
    gaps, plain = [], []
    for k in range(STEPS):
        right, left = places[1 + k], places[1 + STEPS + k]
        noise = NOISE * np.maximum(np.maximum(np.abs(above[k]), np.abs(below[k])), np.abs(base)) / right
        new = [(above[k] - below[k]) / (right - left)]
        noise = noise + NOISE * size * np.abs(new[0]) / right  # the argument is rounded
        plain.append(new[0])
        gaps.append(np.abs((above[k] - base) / right - (below[k] - base) / left))
        for j, previous in enumerate(row):
            new.append(new[j] + (new[j] - previous) / (RATIO ** (2 * j + 2) - 1))
            moved = np.maximum(np.abs(new[j + 1] - new[j]), np.abs(new[j + 1] - previous)) + np.maximum(noise, grain / right)
            better = moved < bound
            best, bound = np.where(better, new[j + 1], best), np.where(better, moved, bound)
        row = new
    kink = (gaps[-1] > 0.2 * gaps[1]) & (gaps[-1] > 100 * noise)
    apart = np.abs(plain[-1] - plain[-2]) > 0.3 * np.abs(plain[-2] - plain[-3]) + 4 * noise
    off = np.min([np.abs(best - short) for short in row[:3]], axis=0)  # from the shortest steps, where the slope may be 0
    elsewhere = ~(off <= 0.05 * np.abs(plain[-1]) + 4 * noise)  # as with long steps across many jumps
    return best, np.where(kink | apart | elsewhere | ~np.isfinite(best), np.inf, bound)


def _internal_rounding(second: np.ndarray) -> np.ndarray:
    """An estimate of the rounding errors inside a function: the deviation of its second differences from those of a parabola or a kink.

    Cancellation makes these errors larger than a rounding error of the value.
    """
    with np.errstate(invalid="ignore"):
        apart = [np.max(np.abs(second[-3:] - second[-4:-1] / RATIO**power), axis=0) for power in (1, 2)]
    return np.asarray(np.nan_to_num(np.fmin(*apart), nan=0.0, posinf=0.0))


def _resolution(values: np.ndarray) -> np.ndarray:
    """The resolution of the values if some are equal: the smallest gap between neighbours, as in tanh(x) + 1 near -18.

    If all are equal, the resolution is that of numbers near 1.
    """
    in_order = np.concatenate([values[1:STEPS + 1], values[:1], values[:STEPS:-1]])
    gaps = np.abs(np.diff(in_order, axis=0))
    least = np.min(np.where(gaps > 0, gaps, np.inf), axis=0)
    equal = (gaps == 0).any(axis=0) | (values[1:STEPS + 1] == values[STEPS + 1:]).any(axis=0)
    return np.asarray(np.where(equal, np.where(np.isfinite(least), least, NOISE), 0.0))


def contract(found: np.ndarray, direction: np.ndarray, all_axes: bool) -> np.ndarray:
    """Derivatives by all coordinates, given along the first axis, contracted with a direction; with `all_axes`, along all axes but the last."""
    if not all_axes:
        return found.T @ direction
    out = np.tensordot(direction, found, (0, 0))
    while out.ndim > 1:
        out = out @ direction
    return out


PART = sympy.Rational(1, 10**23)  # inputs are moved by 500 to 1000 times this part of their size


@dataclass(frozen=True)
class ReferenceNumber:
    """A reference value: its order, its indices, whether it is a directional derivative, and the number."""

    order: int
    index: tuple[int, ...]
    directional: bool
    value: Any


class ReferenceValues:
    """The reference values of a function and its derivatives at one point up to an order, with error `bounds` by order if they are not exact.

    `kink` is true where derivatives are a convention, so that only the value is compared; `order` is the highest order that exists.
    """

    kink = False

    def __init__(self, entries: list[ReferenceNumber], bounds: Mapping[int, np.ndarray] | None = None):
        self.entries, self.bounds = entries, bounds or {}
        self.order = max((e.order for e in entries), default=0)

    def absolute_condition(self) -> list[Any]:
        """For each entry its size times its condition number, or 0 if that is unknown.

        Rounding the inputs moves the entry by this number times the relative rounding error.
        """
        return [mpmath.mpf(0)] * len(self.entries)


class Source(Protocol):
    """The interface of a source of reference values; `expressions` are its formulas, if any."""

    expressions: list[sympy.Expr]

    def reference_values(self, point: Sequence[np.ndarray], order: int, full: int, direction: np.ndarray) -> ReferenceValues:
        """The reference values at a point, in the order of `slots`. Raises Undefined where there is no value."""
        ...

    def oracle_at(self, vector: np.ndarray) -> Oracle | None:
        """The formula that holds at a point; None if there is none."""
        ...


class OracleReferenceValues(ReferenceValues):
    """Derivatives by SymPy, each with enough digits to be certain.

    Raises Undefined where the formula has no finite value, and Undecided if more than 3000 digits are needed.
    """

    def __init__(self, oracle: Oracle, order: int, full: int, direction: np.ndarray):
        self.oracle, self.direction = oracle, direction
        while True:
            try:
                values = self._values(order, min(full, order))
                break
            except Undecided:
                raise
            except Undefined:
                if not order:
                    raise
                order -= 1
        self.full = min(full, order)
        super().__init__([ReferenceNumber(*slot, value) for slot, value in zip(slots(oracle.count, order, self.full), values)])

    def _values(self, order: int, full: int) -> list[Any]:
        self.kink, self.digits = False, 0
        found = certify.of_oracle(self.oracle, order, full, self.direction).settled()
        if found is not None:
            values, self.kink, self.digits = found
            return values

        def evaluate(digits: int, places: Sequence[int]) -> list[Any]:
            evaluation = self.oracle.evaluate(digits)
            values = evaluation.derivatives(order, full, self.direction)
            self.kink, self.digits = self.kink or evaluation.edge, digits
            return [values[place] for place in places]

        count = len(slots(self.oracle.count, order, full))
        values = ladder.settled(evaluate, count)
        if any([x is None for x in values]):
            raise Undecided(f"more than {MOST} digits")
        return values

    def absolute_condition(self) -> list[Any]:
        """For each entry its size times its condition number, from its changes when the inputs are moved by small parts of their size."""
        rng = np.random.default_rng(0)
        values = [sympy.Rational(*float(step.operation).as_integer_ratio()) for step in self.oracle.steps[:self.oracle.count]]

        def recompute() -> list[Any]:
            sizes = rng.integers(500, 1001, len(values)) * rng.choice([-1, 1], len(values))
            moved = self.oracle.at([v + int(k) * PART * v for v, k in zip(values, sizes)])
            found = certify.of_oracle(moved, self.order, self.full, self.direction).known(self.digits)
            if found is not None:
                return found
            try:
                return moved.evaluate(self.digits).derivatives(self.order, self.full, self.direction)
            except Undefined:
                return [mpmath.inf] * len(self.entries)

        with precise.working_precision(self.digits):
            return absolute_condition([e.value for e in self.entries], recompute)


class ExpressionSource:
    """A formula as SymPy expressions of the input symbols; several expressions are weighted by 1, 2, 3, ... and summed, as in `check`."""

    def __init__(self, expressions: Sequence[sympy.Expr], names: Sequence[str]):
        self.expressions = list(expressions)
        self.oracle = Oracle.of_expressions(expressions, [sympy.Symbol(name, real=True) for name in names])

    def reference_values(self, point: Sequence[np.ndarray], order: int, full: int, direction: np.ndarray) -> ReferenceValues:
        return OracleReferenceValues(self.oracle.at([float(x) for v in point for x in np.ravel(v)]), order, full, direction)

    def oracle_at(self, vector: np.ndarray) -> Oracle:
        return self.oracle


MOST_KNOWN = 8  # graphs, one for each combination of branches


class RecordedSource:
    """A symgrad function as the formula: the graph recorded at each point, differentiated by SymPy op by op."""

    expressions: list[sympy.Expr] = []

    def __init__(self, run: Callable[[list[np.ndarray]], Run], point: Sequence[np.ndarray]):
        self.run, self.point = run, [np.asarray(v, np.float64) for v in point]
        self.known: list[Oracle] = []  # with their programs

    def reference_values(self, point: Sequence[np.ndarray], order: int, full: int, direction: np.ndarray) -> ReferenceValues:
        """The reference values at a point. Raises Undefined if the function raises an error there."""
        try:
            run = self.run([np.asarray(v, dtype=np.float64) for v in point])
        except (ArithmeticError, ValueError, RuntimeError) as error:
            raise Undefined(str(error)) from None
        return OracleReferenceValues(self._oracle(run), order, full, direction)

    def _oracle(self, run: Run) -> Oracle:
        """The oracle of a graph; it shares the programs of one with the same steps."""
        oracle = Oracle(run.root, run.nodes)
        parts = oracle.output, oracle.active, oracle.steps[oracle.count:]
        same = next((o for o in self.known if (o.output, o.active, o.steps[o.count:]) == parts), None)
        if same is not None:
            oracle.programs = same.programs
        else:
            self.known = [oracle, *self.known[:MOST_KNOWN - 1]]
        return oracle

    def oracle_at(self, vector: np.ndarray) -> Oracle | None:
        try:
            run = self.run(as_point(self.point, vector))
            return Oracle(run.root, run.nodes)
        except (ArithmeticError, ValueError, RuntimeError, NoFormula):
            return None


class DifferenceSource:
    """Finite differences of the derivatives of the order below, for functions without a formula.

    `level(vector, order)` returns the function's derivatives of an order, and `room(vector)` the longest step in each coordinate.
    """

    expressions: list[sympy.Expr] = []

    def __init__(self, level: Callable[[np.ndarray, int], np.ndarray], room: Callable[[np.ndarray], np.ndarray]):
        self.level, self.room = level, room

    def oracle_at(self, vector: np.ndarray) -> None:
        """There is no formula."""

    def reference_values(self, point: Sequence[np.ndarray], order: int, full: int, direction: np.ndarray) -> ReferenceValues:
        """The differences at a point. Raises Undefined if the function has no value there."""
        vector = flat(point)
        entries: list[ReferenceNumber] = []
        bounds: dict[int, np.ndarray] = {}
        for k in range(1, order + 1):
            try:
                found, bound = differences(lambda v, k=k: self.level(v, k - 1), vector, self.room(vector))  # type: ignore[misc]
            except ArithmeticError as error:
                if k == 1:
                    raise Undefined(str(error)) from None
                break
            if k <= full:
                found, bound = np.moveaxis(found, 0, -1), np.moveaxis(bound, 0, -1)
            else:
                found, bound = contract(found, direction, k == full + 1), contract(bound, np.abs(direction), k == full + 1)
            bounds[k] = bound
            entries += [ReferenceNumber(k, index, k > full, mpmath.mpf(float(found[index]))) for index in np.ndindex(found.shape)]
        return ReferenceValues(entries, bounds)
