"""Derivatives of a recorded computation without a formula, by central differences of its forward rules in many digits, without derivative rules.

The differences have steps of 10^(-d/2 - 10) for d digits, relative to the smallest number or 1, and values of three times as many digits, and of
those by which the sizes of the numbers differ; so all but the last of the d digits are right. Where the differences to the right and to the left are
not the same, the point is at a kink.
"""

from __future__ import annotations

import itertools
from typing import Any

import mpmath
import numpy as np

from symgrad.carriers import precise
from symgrad.carriers.batched import Batched
from symgrad.carriers.digits import Undefined
from symgrad.carriers.spectra import NoExpression
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf
from symgrad.graph.order import upstream
from symgrad.reference.oracle import slots
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reference.run import Run
from symgrad.reference.template import NoFormula, template
from symgrad.system.restoring import workdps

__all__ = ["ReplayedOracle"]


class ReplayedOracle:
    """A computation some of whose ops are functions of matrices that have values in many digits, but no formula.

    Raises NoFormula for any other op without a symbolic form.
    """

    def __init__(self, run: Run):
        self.run = run
        if any(leaf.value.dtype.kind != "f" for leaf in run.leaves):
            raise NoFormula("an input is complex and an op has no symbolic form; give the real and the imaginary parts as inputs")
        for node in upstream([run.root]):
            if isinstance(node, Leaf) or type(node) is DerivativeNode or node.value.dtype.kind in "biu":
                continue
            if type(node.value) is Batched:
                raise NoFormula("a part of the computation was batched by vmap; write the batch as an axis")
            try:
                template(node)
            except NoFormula as error:
                if not isinstance(error.__cause__, NoExpression):
                    raise

    def evaluate(self, digits: int) -> ReplayedValues:
        """The values around the point with that many digits."""
        return ReplayedValues(self.run, digits)


class ReplayedValues:
    """The value and its differences; `edge` is true at a kink."""

    def __init__(self, run: Run, digits: int):
        self.run, self.digits, self.edge = run, digits, any(map(_is_special, upstream([run.root])))
        sizes = [abs(x) for leaf in run.leaves for x in np.ravel(leaf.value).tolist() if x] + [1.0]
        small, large = (int(abs(mpmath.log10(pick(sizes)))) + 1 for pick in (min, max))
        self.working = 3 * (digits + small + large) + 60
        self.step = mpmath.mpf(10) ** (-digits // 2 - 10 - small)
        self.known: dict[tuple[float, ...], Any] = {}
        self.largest = mpmath.mpf(1)

    @property
    def scale(self) -> Any:
        """The largest number of the comparison, at least 1."""
        return self.largest

    def derivatives(self, order: int, full: int, direction: np.ndarray) -> list[Any]:
        """The value and the derivatives in the order of `slots`. Raises Undefined where a value does not exist."""
        units = [tuple(row) for row in np.eye(direction.size).tolist()]
        along = tuple(direction.tolist())
        out = []
        with precise.working_precision(self.working), workdps(mpmath.mp, self.working):
            for k, index, directional in slots(direction.size, order, full):
                out.append(self._difference([units[i] for i in index] + [along] * (k - 1 if directional else 0)))
            for line in [*units, along] if order else ():
                right, left = ((self._at([(sign, line)]) - self._at([])) / (sign * self.step) for sign in (1, -1))
                self.edge |= bool(abs(right - left) > mpmath.sqrt(self.step) * (1 + abs(right) + abs(left)))
        self.largest = max([self.largest, *map(abs, out)])
        return out

    def _difference(self, lines: list[tuple[float, ...]]) -> Any:
        """The derivative along each of the lines, by central differences."""
        total = mpmath.mpf(0)
        for signs in itertools.product((1, -1), repeat=len(lines)):
            total += int(np.prod(signs, dtype=int)) * self._at(list(zip(signs, lines)))
        return total / (2 * self.step) ** len(lines)

    def _at(self, moves: list[tuple[int, tuple[float, ...]]]) -> Any:
        """The value at the point moved by a step, or its opposite, along each of the lines."""
        n = sum(leaf.value.size for leaf in self.run.leaves)
        shift = tuple(sum(sign * line[i] for sign, line in moves) for i in range(n))
        if shift not in self.known:
            self.known[shift] = self._value(shift)
        return self.known[shift]

    def _value(self, shift: tuple[float, ...]) -> Any:
        numbers = iter(shift)
        values = []
        for leaf in self.run.leaves:
            cells = [precise.context.mpf(x) + precise.context.mpf(next(numbers)) * self.step for x in np.ravel(leaf.value).tolist()]
            values.append(precise.Digits.fill(cells, tuple(leaf.value.shape)))
        try:
            y, _ = RecordingCarrier(precise, precise.lift_value).replayed(self.run.root, self.run.nodes, values)
        except (RuntimeError, ArithmeticError) as error:
            raise Undefined(str(error)) from None
        out = mpmath.mp.convert(y.value.item())
        if not mpmath.isfinite(out):
            raise Undefined("the value")
        return out


def _is_special(node: Any) -> bool:
    """Whether an argument of a function of numbers is at a special point, where its derivative may be a convention, as that of abs at 0."""
    op = getattr(node, "op", None)
    if op is None or op.kind != "elementwise" or not op.docs.special:
        return False
    xs = [a if p is None else p.value for a, p in zip(node.args or (), node.parents)]
    return any(len(point) == len(xs) and np.any(np.logical_and.reduce([np.equal(x, c) for x, c in zip(xs, point)])) for point in op.docs.special)
