"""The derivatives at one point in many digits, by the oracle (SymPy's derivatives) and by the library's rules in the precise carrier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from symgrad.algebra.ladder import AGREED, DIFFERENT, DIGITS, MOST, OPEN, agreeing_digits, compare_numbers, rungs
from symgrad.carriers import precise
from symgrad.carriers.digits import Undecided, Undefined
from symgrad.reference.oracle import Oracle, slots
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reference.replayed import ReplayedOracle
from symgrad.reference.run import Run
from symgrad.reference.template import NoFormula

__all__ = ["ComparedNumber", "Exact", "agreement"]

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
