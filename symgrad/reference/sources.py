"""Sources of the true value and derivatives of a function at a point: a formula or a recorded function by SymPy, or finite differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import mpmath
import numpy as np
import sympy

from symgrad.algebra.ladder import MOST, movement, settle
from symgrad.carriers import precise
from symgrad.carriers.digits import Undecided, Undefined
from symgrad.reference.differences import contracted, differences
from symgrad.reference.oracle import Oracle, slots
from symgrad.reference.run import Run
from symgrad.sampling.points import flat

__all__ = ["DifferenceSource", "ExpressionSource", "RecordedSource", "Source", "TrueNumber", "Truths"]

PART = sympy.Rational(1, 10**23)  # of an input, a thousand of which it moves by


@dataclass(frozen=True)
class TrueNumber:
    """A true number: its order, its indices, whether it is a derivative along a direction, and its value."""

    order: int
    index: tuple[int, ...]
    directional: bool
    value: Any


class Truths:
    """The true value and derivatives at one point up to an order, with `bounds` of their errors by order where they are not exact.

    `kink` says that a derivative here is a convention, so that only the value counts; `order` is the highest order that exists.
    """

    kink = False

    def __init__(self, entries: list[TrueNumber], bounds: Mapping[int, np.ndarray] | None = None):
        self.entries, self.bounds = entries, bounds or {}
        self.order = max((e.order for e in entries), default=0)

    def movement(self, seed: int = 0) -> list[Any]:
        """For each entry, by how much it moves when every input moves by up to its own size; 0 where that is not known.

        That is the entry's size times its condition number: rounding the inputs moves the entry by this times a relative rounding error.
        """
        return [mpmath.mpf(0)] * len(self.entries)


class Source(Protocol):
    """The interface of a source of true values; `expressions` are its formulas where it has some."""

    expressions: list[sympy.Expr]

    def truths(self, point: Sequence[np.ndarray], order: int, full: int, direction: np.ndarray) -> Truths:
        """The true numbers at a point, in the order of `slots`. Raises Undefined where there is no value."""
        ...


class OracleTruths(Truths):
    """SymPy's derivatives, each with as many digits as certainty takes.

    Raises Undefined where the formula has no finite value, and Undecided where more than 3000 digits are needed.
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
        super().__init__([TrueNumber(*slot, value) for slot, value in zip(slots(oracle.count, order, self.full), values)])

    def _values(self, order: int, full: int) -> list[Any]:
        self.kink, self.digits = False, 0

        def evaluate(digits: int, places: Sequence[int]) -> list[Any]:
            evaluation = self.oracle.evaluated(digits)
            values = evaluation.derivatives(order, full, self.direction)
            self.kink, self.digits = self.kink or evaluation.edge, digits
            return [values[place] for place in places]

        count = len(slots(self.oracle.count, order, full))
        values = settle(evaluate, count)
        if None in values:
            raise Undecided(f"more than {MOST} digits")
        return values

    def movement(self, seed: int = 0) -> list[Any]:
        """For each entry, by how much it moves when every input moves by up to its own size."""
        rng = np.random.default_rng(seed)
        values = [sympy.Rational(*float(step.what).as_integer_ratio()) for step in self.oracle.steps[:self.oracle.count]]

        def again() -> list[Any]:
            sizes = rng.integers(500, 1001, len(values)) * rng.choice([-1, 1], len(values))
            moved = self.oracle.at([v + int(k) * PART * v for v, k in zip(values, sizes)])
            try:
                return moved.evaluated(self.digits).derivatives(self.order, self.full, self.direction)
            except Undefined:
                return [mpmath.inf] * len(self.entries)

        with precise.working(self.digits):
            return movement([e.value for e in self.entries], again)


class ExpressionSource:
    """A formula as SymPy expressions over the symbols of the inputs; several are weighted by 1, 2, 3, ... and summed, as in `check`."""

    def __init__(self, expressions: Sequence[sympy.Expr], names: Sequence[str]):
        self.expressions = list(expressions)
        self.oracle = Oracle.of_expressions(expressions, [sympy.Symbol(name, real=True) for name in names])

    def truths(self, point: Sequence[np.ndarray], order: int, full: int, direction: np.ndarray) -> Truths:
        """The true numbers at a point."""
        return OracleTruths(self.oracle.at([float(x) for v in point for x in np.ravel(v)]), order, full, direction)


class RecordedSource:
    """A symgrad function as the formula: what it records at each point, differentiated by SymPy op by op."""

    expressions: list[sympy.Expr] = []

    def __init__(self, run: Callable[[list[np.ndarray]], Run]):
        self.run = run

    def truths(self, point: Sequence[np.ndarray], order: int, full: int, direction: np.ndarray) -> Truths:
        """The true numbers at a point. Raises Undefined where the function does not run."""
        try:
            run = self.run([np.asarray(v, dtype=np.float64) for v in point])
        except (ArithmeticError, ValueError, RuntimeError) as error:
            raise Undefined(str(error)) from None
        return OracleTruths(Oracle(run.root, run.nodes), order, full, direction)


class DifferenceSource:
    """Each derivative of a function beside finite differences of the order below: for functions without a formula.

    `level(vector, order)` gives a function's derivatives of an order, `room` how far the coordinates can move.
    """

    expressions: list[sympy.Expr] = []

    def __init__(self, level: Callable[[np.ndarray, int], np.ndarray], room: Callable[[np.ndarray], np.ndarray]):
        self.level, self.room = level, room

    def truths(self, point: Sequence[np.ndarray], order: int, full: int, direction: np.ndarray) -> Truths:
        """The differences at a point. Raises Undefined where the function has no value."""
        vector = flat(point)
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
            else:
                found, bound = contracted(found, direction, k == full + 1), contracted(bound, np.abs(direction), k == full + 1)
            bounds[k] = bound
            entries += [TrueNumber(k, index, k > full, mpmath.mpf(float(found[index]))) for index in np.ndindex(found.shape)]
        return Truths(entries, bounds)
