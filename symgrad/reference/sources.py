"""Sources of reference values of a function and its derivatives at a point: a formula or a recorded function by SymPy, or finite differences."""

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
from symgrad.reference.differences import contract, differences
from symgrad.reference.oracle import Oracle, slots
from symgrad.reference.run import Run
from symgrad.sampling.points import flat

__all__ = ["DifferenceSource", "ExpressionSource", "RecordedSource", "Source", "ReferenceNumber", "ReferenceValues"]

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

    def movement(self) -> list[Any]:
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

        def evaluate(digits: int, places: Sequence[int]) -> list[Any]:
            evaluation = self.oracle.evaluate(digits)
            values = evaluation.derivatives(order, full, self.direction)
            self.kink, self.digits = self.kink or evaluation.edge, digits
            return [values[place] for place in places]

        count = len(slots(self.oracle.count, order, full))
        values = settle(evaluate, count)
        if any([x is None for x in values]):
            raise Undecided(f"more than {MOST} digits")
        return values

    def movement(self) -> list[Any]:
        """For each entry its size times its condition number, from its changes when the inputs are moved by small parts of their size."""
        rng = np.random.default_rng(0)
        values = [sympy.Rational(*float(step.operation).as_integer_ratio()) for step in self.oracle.steps[:self.oracle.count]]

        def recompute() -> list[Any]:
            sizes = rng.integers(500, 1001, len(values)) * rng.choice([-1, 1], len(values))
            moved = self.oracle.at([v + int(k) * PART * v for v, k in zip(values, sizes)])
            try:
                return moved.evaluate(self.digits).derivatives(self.order, self.full, self.direction)
            except Undefined:
                return [mpmath.inf] * len(self.entries)

        with precise.working_precision(self.digits):
            return movement([e.value for e in self.entries], recompute)


class ExpressionSource:
    """A formula as SymPy expressions of the input symbols; several expressions are weighted by 1, 2, 3, ... and summed, as in `check`."""

    def __init__(self, expressions: Sequence[sympy.Expr], names: Sequence[str]):
        self.expressions = list(expressions)
        self.oracle = Oracle.of_expressions(expressions, [sympy.Symbol(name, real=True) for name in names])

    def reference_values(self, point: Sequence[np.ndarray], order: int, full: int, direction: np.ndarray) -> ReferenceValues:
        """The reference values at a point."""
        return OracleReferenceValues(self.oracle.at([float(x) for v in point for x in np.ravel(v)]), order, full, direction)


class RecordedSource:
    """A symgrad function as the formula: the graph recorded at each point, differentiated by SymPy op by op."""

    expressions: list[sympy.Expr] = []

    def __init__(self, run: Callable[[list[np.ndarray]], Run]):
        self.run = run

    def reference_values(self, point: Sequence[np.ndarray], order: int, full: int, direction: np.ndarray) -> ReferenceValues:
        """The reference values at a point. Raises Undefined if the function raises an error there."""
        try:
            run = self.run([np.asarray(v, dtype=np.float64) for v in point])
        except (ArithmeticError, ValueError, RuntimeError) as error:
            raise Undefined(str(error)) from None
        return OracleReferenceValues(Oracle(run.root, run.nodes), order, full, direction)


class DifferenceSource:
    """Finite differences of the derivatives of the order below, for functions without a formula.

    `level(vector, order)` returns the function's derivatives of an order, and `room(vector)` the longest step in each coordinate.
    """

    expressions: list[sympy.Expr] = []

    def __init__(self, level: Callable[[np.ndarray, int], np.ndarray], room: Callable[[np.ndarray], np.ndarray]):
        self.level, self.room = level, room

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
