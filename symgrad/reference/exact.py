"""The derivatives at one point in many digits, by the oracle (SymPy's derivatives) and by the library's rules in the precise carrier.

Of a computation without a formula they are central differences of its forward rules in many digits, without derivative rules. These have steps of
10^(-d/2 - 10) for d digits, relative to the smallest number or 1, and values of three times as many digits, and of those by which the sizes of the
numbers differ; so all but the last of the d digits are right. Where the differences to the right and to the left are not the same, the point is at a
kink.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from symgrad.algebra.ladder import AGREED, DIFFERENT, DIGITS, MOST, OPEN, agreeing_digits, compare_numbers, rungs
from symgrad.carriers import precise
from symgrad.carriers.batched import Batched
from symgrad.carriers.digits import Undecided, Undefined
from symgrad.carriers.spectra import NoExpression
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf
from symgrad.graph.order import upstream
from symgrad.reference.oracle import Oracle, slots
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reference.run import Run
from symgrad.reference.template import NoFormula, template
from symgrad.system.restoring import workdps


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


SHOWN = 50.0  # the most digits of agreement that are reported

FULL = 8  # the most inputs for which every second derivative is compared at every point


@dataclass(frozen=True)
class ComparedNumber:
    """One number of the comparison: its order, its indices among the inputs, whether it is directional, and the values by SymPy and by the rules."""

    order: int
    index: tuple[int, ...]
    directional: bool
    reference: Any
    rule: Any


class Exact:
    """The value and the derivatives up to an order at the point of a run.

    Derivatives up to the order `full` are taken entry by entry, higher ones along the `direction`; `full` defaults to 2 for up to eight
    inputs, otherwise to 1. Raises NoFormula if an op has no symbolic form, or a rule calls functions outside of xp. With `replay`, functions of
    matrices without a formula are compared with differences of their values in many digits; a point where their rules raise has no derivative.
    """

    def __init__(self, run: Run, order: int, direction: np.ndarray, full: int | None = None, replay: bool = False):
        self.run, self.order, self.direction = run, order, direction
        self.count = direction.size
        self.full = full if full is not None else min(order, 2) if self.count <= FULL else 1
        self.oracle: Oracle | ReplayedOracle
        try:
            self.oracle = Oracle(run.root, run.nodes)
        except NoFormula:
            if not replay:
                raise
            self.oracle = ReplayedOracle(run)
        self.evaluations: dict[int, Any] = {}
        self.known: dict[int, list[ComparedNumber]] = {}

    def entries(self, digits: int = DIGITS) -> list[ComparedNumber]:
        """All numbers by both ways. Raises Undefined where a derivative does not exist: at a pole, or outside the domain."""
        if digits not in self.known:
            references, rules = self.evaluation(digits).derivatives(self.order, self.full, self.direction), self.rules(digits)
            if rules[0] != rules[0]:  # of 1**inf, which SymPy writes as 1 before the exponent has a value
                raise Undefined("the value")
            self.known[digits] = [ComparedNumber(*slot, reference, rule) for slot, reference, rule in zip(
                slots(self.count, self.order, self.full), references, rules, strict=True)]
        return self.known[digits]

    def evaluation(self, digits: int) -> Any:
        """The oracle's values to that many digits."""
        if digits not in self.evaluations:
            self.evaluations[digits] = self.oracle.evaluate(digits)
        return self.evaluations[digits]

    @property
    def kink(self) -> bool:
        """Whether the point is at a kink, where the derivative is a convention."""
        return any(e.edge for e in self.evaluations.values())

    def rules(self, digits: int, shift: Callable[[Any], Any] | None = None, order: int | None = None) -> list[Any]:
        """The numbers by the library's rules in the precise carrier, up to an order, at the point or at one moved by `shift`."""
        try:
            with precise.working_precision(digits):
                return self._read(shift, self.order if order is None else order)
        except (TypeError, AttributeError, NotImplementedError) as error:
            raise NoFormula(f"a rule cannot be evaluated with many digits: {error}; write it with the functions of xp alone") from error
        except (RuntimeError, ArithmeticError) as error:
            if isinstance(error, Undefined) or not self.replayed:
                raise
            raise Undefined(str(error)) from None

    @property
    def replayed(self) -> bool:
        """Whether the references are differences of values."""
        return isinstance(self.oracle, ReplayedOracle)

    def _read(self, shift: Callable[[Any], Any] | None, highest: int) -> list[Any]:
        recorder = RecordingCarrier(precise, precise.lift_value)
        values = [precise.lift_value(leaf.value) for leaf in self.run.leaves]
        y, leaves = recorder.replayed(self.run.root, self.run.nodes, [v if shift is None else shift(v) for v in values])
        parts = list(recorder.partials(y, leaves, min(max(self.full, 1), highest)))
        out = [box.value.ravel()[i].item() for _, box, i in parts]
        if highest <= max(self.full, 1):
            return out
        ends = np.cumsum([leaf.value.size for leaf in leaves])
        first = [box for index, box, _ in parts if len(index) == 1]  # one for each element; leaves whose cotangents are equal share a box
        line = [first[end - 1] if leaf.value.size else leaf for leaf, end in zip(leaves, ends)]
        direction = [part.reshape(leaf.shape) for part, leaf in zip(np.split(self.direction, ends[:-1]), leaves)]
        for k in range(2, highest + 1):
            line = recorder.gradients(list(zip(line, direction)), leaves)
            out += [x for g in line for x in g.value.ravel().tolist()] if k > self.full else []
        return out


def agreement(exact: Exact) -> tuple[float, ComparedNumber | None]:
    """The number of digits to which the oracle and the rules agree at a point, and the entry of lowest order if they do not.

    Raises Undefined where there is nothing to compare, and Undecided if the digits of the last rung do not suffice.
    """
    before: list[ComparedNumber] | None = None
    due, fewest = list(range(len(exact.entries()))), SHOWN
    for digits in rungs():
        entries = exact.entries(digits)
        with precise.working_precision(digits):
            verdicts = {k: _compare(exact, entries[k], None if before is None else before[k], digits) for k in due}
            agreeing = {k: agreeing_digits(entries[k].rule, entries[k].reference) for k in due if verdicts[k] != OPEN}
            fewest = min([fewest, *(d for k, d in agreeing.items() if verdicts[k] == DIFFERENT or d >= AGREED)])
        wrong = [entries[k] for k in due if verdicts[k] == DIFFERENT]
        if wrong:
            return fewest, min(wrong, key=lambda e: e.order)
        due, before = [k for k in due if verdicts[k] == OPEN], entries
        if not due:
            return fewest, None
    raise Undecided(f"more than {MOST} digits")


def _compare(exact: Exact, e: ComparedNumber, earlier: ComparedNumber | None, digits: int) -> str:
    """Whether the rule and the reference agree; a difference counts if it is larger than the rounding of any term of the computation."""
    def noise() -> Any:
        return exact.evaluation(digits).scale * mpmath.mpf(10) ** (15 - digits)

    return compare_numbers(e.rule, e.reference, None if earlier is None else (earlier.rule, earlier.reference), noise)
