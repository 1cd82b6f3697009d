"""The derivatives at one point in many digits, by the oracle (SymPy's derivatives) and by the library's rules in the precise carrier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from symgrad.algebra.ladder import AGREED, DIFFERENT, DIGITS, MOST, OPEN, SAME, agreeing, compared, rungs
from symgrad.carriers import precise
from symgrad.carriers.digits import Undecided
from symgrad.reference.oracle import Oracle, slots
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reference.run import Run
from symgrad.reference.template import NoFormula

__all__ = ["ComparedNumber", "Exact", "agreement"]

SHOWN = 50.0  # digits that an agreement is said to have at most

FULL = 8  # up to this many inputs every second derivative is compared at every point


@dataclass(frozen=True)
class ComparedNumber:
    """One number of the comparison: its order, its indices among the inputs (None for the directional ones), and both exact values."""

    order: int
    index: tuple[int, ...]
    directional: bool
    truth: Any
    rule: Any


class Exact:
    """The value and the derivatives up to an order at the point of a run.

    With up to eight inputs (or `full`) second derivatives are taken entry by entry, otherwise along the `direction`; third derivatives are
    entry by entry where `full` says so. Raises NoFormula where an op has no symbolic form, or a rule is not written with xp alone.
    """

    def __init__(self, run: Run, order: int, direction: np.ndarray, full: int | None = None):
        self.run, self.order, self.direction = run, order, direction
        self.count = direction.size
        self.full = full if full is not None else min(order, 2) if self.count <= FULL else 1
        self.oracle = Oracle(run.root, run.nodes)
        self.evaluations: dict[int, Any] = {}
        self.known: dict[int, list[ComparedNumber]] = {}

    def entries(self, digits: int = DIGITS) -> list[ComparedNumber]:
        """All numbers, both ways. Raises Undefined where the derivative does not exist: at a pole, or outside the domain."""
        if digits not in self.known:
            truths = self.evaluation(digits).derivatives(self.order, self.full, self.direction)
            self.known[digits] = [ComparedNumber(*slot, truth, rule) for slot, truth, rule in zip(
                slots(self.count, self.order, self.full), truths, self.rules(digits), strict=True)]
        return self.known[digits]

    def evaluation(self, digits: int) -> Any:
        """The oracle's values to that many digits."""
        if digits not in self.evaluations:
            self.evaluations[digits] = self.oracle.evaluated(digits)
        return self.evaluations[digits]

    @property
    def kink(self) -> bool:
        """Whether a kink lies here, so that the derivative is a convention."""
        return any(e.edge for e in self.evaluations.values())

    def rules(self, digits: int, shift: Callable[[Any], Any] | None = None, order: int | None = None) -> list[Any]:
        """The library's numbers: its rules, read in the precise carrier, at the point or (for conditions, up to an order) at a tiny distance."""
        try:
            with precise.working(digits):
                return self._read(shift, self.order if order is None else order)
        except (TypeError, AttributeError, NotImplementedError) as error:
            raise NoFormula(f"a rule cannot be read with many digits: {error}; write it with the functions of xp alone") from error

    def _read(self, shift: Callable[[Any], Any] | None, highest: int) -> list[Any]:
        recorder = RecordingCarrier(precise, precise.lift_value)
        values = [precise.lift_value(leaf.value) for leaf in self.run.leaves]
        y, leaves = recorder.replayed(self.run.root, self.run.nodes, [v if shift is None else shift(v) for v in values])
        parts = list(recorder.partials(y, leaves, min(max(self.full, 1), highest)))
        out = [box.value.ravel()[i].item() for _, box, i in parts]
        line = list({id(box): box for index, box, _ in parts if len(index) == 1}.values())
        ends = np.cumsum([leaf.value.size for leaf in leaves])[:-1]
        direction = [part.reshape(leaf.shape) for part, leaf in zip(np.split(self.direction, ends), leaves)]
        for k in range(2, highest + 1) if highest > self.full else ():
            line = recorder.gradients(list(zip(line, direction)), leaves)
            out += [x for g in line for x in g.value.ravel().tolist()] if k > self.full else []
        return out


def agreement(exact: Exact) -> tuple[float, ComparedNumber | None]:
    """To how many digits the oracle and the rules agree at a point, and the worst entry if they do not.

    Raises Undefined where there is nothing to compare, and Undecided where more digits would be needed than there are.
    """
    before: list[ComparedNumber] | None = None
    due, fewest = list(range(len(exact.entries()))), SHOWN
    for digits in rungs():
        entries = exact.entries(digits)
        with precise.working(digits):
            verdicts = {k: _compared(exact, entries[k], None if before is None else before[k], digits) for k in due}
            fewest = min([fewest, *(agreeing(entries[k].rule, entries[k].truth) for k, verdict in verdicts.items() if verdict == DIFFERENT),
                          *(d for k in due if verdicts[k] == SAME and (d := agreeing(entries[k].rule, entries[k].truth)) >= AGREED)])
        wrong = [entries[k] for k in due if verdicts[k] == DIFFERENT]
        if wrong:
            return fewest, min(wrong, key=lambda e: e.order)
        due, before = [k for k in due if verdicts[k] == OPEN], entries
        if not due:
            return fewest, None
    raise Undecided(f"more than {MOST} digits")


def _compared(exact: Exact, e: ComparedNumber, earlier: ComparedNumber | None, digits: int) -> str:
    """Whether the rule and the truth are the same; a difference counts if it is larger than the rounding of any term of the computation."""
    def noise() -> Any:
        return exact.evaluation(digits).scale * mpmath.mpf(10) ** (15 - digits)

    return compared(e.rule, e.truth, None if earlier is None else (earlier.rule, earlier.truth), noise)
