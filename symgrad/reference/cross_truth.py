"""The true values of a formula and its derivatives, by SymPy head by head, with as many digits as certainty takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import mpmath
import numpy as np
import sympy

from symgrad.algebra.ladder import DIGITS, MOST, movement, settle
from symgrad.carriers import precise
from symgrad.carriers.digits import Undecided, Undefined
from symgrad.reference.differences import differences
from symgrad.reference.exact import Exact
from symgrad.reference.oracle import Oracle
from symgrad.reference.run import Run
from symgrad.reference.template import Step, cut

__all__ = ["DifferenceTruth", "ExpressionTruth", "RecordedTruth", "TrueNumber", "Truth", "Truths"]

MOVES = 2  # of the inputs, to find a condition number
Index = tuple[int, ...]


@dataclass(frozen=True)
class TrueNumber:
    """A true number: its order, its indices, its value, and how far it moves when the inputs move by one part in one."""

    order: int
    index: Index
    directional: bool
    value: Any


class Truth(Protocol):
    """The interface of a source of true values at a point."""

    expressions: list[sympy.Expr]

    def truths(self, point: Sequence[np.ndarray], order: int, full: int, direction: np.ndarray) -> Truths:
        """The true numbers at a point."""
        ...


class _Formula:
    expressions: list[sympy.Expr] = []

    def at(self, point: Sequence[np.ndarray]) -> Oracle:
        """The equations of the formula at a point."""
        raise NotImplementedError

    def truths(self, point: Sequence[np.ndarray], order: int, full: int, direction: np.ndarray) -> Truths:
        """The true numbers at a point. Raises Undefined where the formula has no value."""
        return Truths(self.at(point), order, full, direction)


class _Placed(Oracle):
    """Known equations at other values of their leaves: floats, or SymPy numbers."""

    def __init__(self, other: Oracle, values: Sequence[Any]):
        self.steps = [Step(v, ()) for v in values] + other.steps[other.count:]
        self.active, self.count, self.output = other.active, other.count, other.output


class ExpressionTruth(_Formula):
    """A formula as SymPy expressions over the symbols of the inputs; several are weighted by 1, 2, 3, ... and summed, as in `check`."""

    def __init__(self, expressions: Sequence[sympy.Expr], names: Sequence[str]):
        symbols = [sympy.Symbol(name, real=True) for name in names]
        total = expressions[0] if len(expressions) == 1 else sympy.Add(*(k * e for k, e in enumerate(expressions, 1)))
        self.expressions = list(expressions)
        form = cut([*expressions, total], {s: i for i, s in enumerate(symbols)})
        oracle: Any = object.__new__(Oracle)
        oracle.steps, oracle.active, oracle.count = [], [], len(symbols)
        for _ in symbols:
            oracle._add(Step(0.0, ()), True)
        for what, inputs in form.steps:
            oracle._add(Step(what, inputs), any(oracle.active[k] for k in inputs))
        oracle.output = form.outputs[-1]
        self._oracle: Oracle = oracle

    def at(self, point: Sequence[np.ndarray]) -> Oracle:
        """The equations at a point."""
        return _Placed(self._oracle, [float(x) for v in point for x in np.ravel(v)])


class RecordedTruth(_Formula):
    """A symgrad function as the formula: what it records at each point, differentiated by SymPy op by op."""

    def __init__(self, run: Callable[[list[np.ndarray]], Run]):
        self.run = run

    def at(self, point: Sequence[np.ndarray]) -> Oracle:
        """The equations of a run at the point. Raises Undefined where the function does not run."""
        try:
            run = self.run([np.asarray(v, dtype=np.float64) for v in point])
        except (ArithmeticError, ValueError, RuntimeError) as error:
            raise Undefined(str(error)) from None
        return Oracle(run.root, run.nodes)


class _Numbers(Exact):
    """The oracle's side of a comparison."""

    def __init__(self, oracle: Oracle, order: int, full: int, direction: np.ndarray):
        self.oracle, self.order, self.full, self.direction = oracle, order, full, direction
        self.count = direction.size
        self.evaluations, self.known = {}, {}


class Truths:
    """The true value and derivatives at one point, up to the highest order that exists there.

    `entries` holds them; `kink` says that a derivative here is a convention, so that only the value counts; `order` is the highest
    order that exists. Raises Undefined where the formula has no finite value, and Undecided where more than 3000 digits are needed.
    """

    bounds: Mapping[int, np.ndarray] = {}  # error bounds, of what is not exact

    def __init__(self, oracle: Oracle, order: int, full: int, direction: np.ndarray):
        self.oracle, self.direction, self.full = oracle, direction, full
        self.order = order
        while True:
            numbers = _Numbers(oracle, self.order, min(full, self.order), direction)
            try:
                self.entries = self._certain(numbers)
                break
            except Undecided:
                raise
            except Undefined:
                if not self.order:
                    raise
                self.order -= 1
        self.kink = numbers.kink

    def _certain(self, numbers: _Numbers) -> list[TrueNumber]:
        """Every number as soon as it is certain. Raises Undecided for one that never is."""
        rows = numbers.truths(DIGITS)

        def computed(digits: int, places: Sequence[int]) -> list[Any]:
            self.digits = digits
            found = rows if digits == DIGITS else numbers.truths(digits)
            return [found[k][3] for k in places]

        values = settle(computed, len(rows))
        if None in values:
            raise Undecided(f"more than {MOST} digits")
        return [TrueNumber(*row[:3], value) for row, value in zip(rows, values)]

    def movement(self, seed: int = 0) -> list[Any]:
        """For each entry, by how much it moves when every input moves by up to its own size.

        That is the entry's size times its condition number: rounding the inputs moves the entry by this times a relative rounding error.
        """
        rng = np.random.default_rng(seed)
        values = [step.what for step in self.oracle.steps[:self.oracle.count]]

        def again() -> list[Any]:
            sizes = rng.integers(500, 1001, len(values)) * rng.choice([-1, 1], len(values))
            placed = [_rational(v) * (1 + sympy.Rational(int(k), 1000 * 10**20)) for v, k in zip(values, sizes)]
            numbers = _Numbers(_Placed(self.oracle, placed), self.order, min(self.full, self.order), self.direction)
            return [row[3] for row in numbers.truths(self.digits)]

        try:
            with precise.working(self.digits):
                return movement([e.value for e in self.entries], again, MOVES)
        except Undefined:
            return [mpmath.inf] * len(self.entries)


def _rational(x: Any) -> sympy.Rational:
    return sympy.Rational(*float(x).as_integer_ratio())


class _Differences(Truths):
    """Finite differences of a function's own value and derivatives, with bounds, in the place of the truth."""

    def __init__(self, entries: list[TrueNumber], bounds: Mapping[int, np.ndarray]):
        self.entries, self.bounds, self.kink = entries, bounds, False
        self.order = max((e.order for e in entries), default=0)

    def movement(self, seed: int = 0) -> list[Any]:
        """Nothing is known of it."""
        return [mpmath.mpf(0)] * len(self.entries)


class DifferenceTruth:
    """Each derivative of a function beside finite differences of the order below: for functions without a formula.

    `level(vector, order)` gives a function's derivatives of an order, `room` how far the coordinates can move.
    """

    expressions: list[sympy.Expr] = []

    def __init__(self, level: Callable[[np.ndarray, int], np.ndarray], room: Callable[[np.ndarray], np.ndarray]):
        self.level, self.room = level, room

    def truths(self, point: Sequence[np.ndarray], order: int, full: int, direction: np.ndarray) -> Truths:
        """The differences at a point. Raises Undefined where the function has no value."""
        vector = np.concatenate([np.ravel(v).astype(np.float64) for v in point])
        entries: list[TrueNumber] = []
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
            elif k == full + 1:
                found, bound = _contracted(found, direction), _contracted(bound, np.abs(direction))
            else:
                found, bound = found.T @ direction, bound.T @ np.abs(direction)
            bounds[k] = bound
            entries += [TrueNumber(k, index, k > full, mpmath.mpf(float(found[index]))) for index in np.ndindex(found.shape)]
        return _Differences(entries, bounds)


def _contracted(found: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """The derivatives of all entries along the direction, with all but one of their own arguments the direction, too."""
    out = np.tensordot(direction, found, (0, 0))
    while out.ndim > 1:
        out = out @ direction
    return out
