"""The derivatives at one point in many digits, by the oracle (SymPy's derivatives) and by the library's rules in the precise carrier."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from symgrad.algebra.ladder import AGREED, DIFFERENT, DIGITS, MOST, OPEN, SAME, agreeing, compared, rungs
from symgrad.carriers import precise
from symgrad.carriers.digits import Undecided
from symgrad.reference.oracle import Oracle
from symgrad.reference.recorder import Box, Recorder
from symgrad.reference.run import Run
from symgrad.reference.template import NoFormula

__all__ = ["Entry", "Exact", "agreement"]

SHOWN = 50.0  # digits that an agreement is said to have at most

FULL = 8  # up to this many inputs every second derivative is compared at every point


@dataclass(frozen=True)
class Entry:
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
        self.known: dict[int, list[Entry]] = {}

    def entries(self, digits: int = DIGITS) -> list[Entry]:
        """All numbers, both ways. Raises Undefined where the derivative does not exist: at a pole, or outside the domain."""
        if digits not in self.known:
            truths = self.truths(digits)
            self.known[digits] = [Entry(order, index, directional, truth, rule)
                                  for (order, index, directional, truth), rule in zip(truths, self.rules(digits), strict=True)]
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

    def truths(self, digits: int) -> list[tuple[int, tuple[int, ...], bool, Any]]:
        """The oracle's numbers, in the order of `rules`.

        Third derivatives follow from those along eᵢ, eⱼ and eᵢ + eⱼ.
        """
        evaluation, n, full = self.evaluation(digits), range(self.count), self.full
        out: list[Any] = [(0, (), False, evaluation.value)]
        if not self.order:
            return out
        with precise.working(digits):
            units = np.eye(self.count)
            rows = [evaluation.along(unit, full) for unit in units] if full > 1 else []
            line = rows[0] if rows and self.order == full else evaluation.along(self.direction, self.order)
            out += [(1, (i,), False, line[i][0]) for i in n]
            out += [(2, (i, j), False, rows[i][j][1]) for i in n for j in n if full > 1]
            for i, j in itertools.product(n, repeat=2) if full > 2 else ():
                both = None if i == j else evaluation.along(units[i] + units[j], 3)
                out += [(3, (i, j, k), False, rows[i][k][2] if both is None else (both[k][2] - rows[i][k][2] - rows[j][k][2]) / 2) for k in n]
        for order in range(full + 1, self.order + 1):
            out += [(order, (i,), True, line[i][order - 1]) for i in n]
        return out

    def rules(self, digits: int, shift: Callable[[Any], Any] | None = None, order: int | None = None) -> list[Any]:
        """The library's numbers: its rules, read in the precise carrier, at the point or (for conditions, up to an order) at a tiny distance."""
        try:
            with precise.working(digits):
                return self._read(shift, self.order if order is None else order)
        except (TypeError, AttributeError, NotImplementedError) as error:
            raise NoFormula(f"a rule cannot be read with many digits: {error}; write it with the functions of xp alone") from error

    def _read(self, shift: Callable[[Any], Any] | None, highest: int) -> list[Any]:
        recorder = Recorder(precise, precise.lift_value)
        values = [precise.lift_value(leaf.value) for leaf in self.run.leaves]
        y, leaves = recorder.replayed(self.run.root, self.run.nodes, [v if shift is None else shift(v) for v in values])
        out = [y.value.item()]
        levels = [[recorder.gradients([(y, 1)], leaves)]] if highest else []
        for _ in range(2, min(self.full, highest) + 1):
            levels.append([recorder.gradients([(g, _one(g, i))], leaves) for gs in levels[-1] for g in gs for i in range(g.value.size)])
        out += [x for level in levels for gs in level for x in _numbers(gs)]
        if highest > self.full:
            line = levels[0][0]
            for k in range(2, highest + 1):
                line = recorder.gradients([(g, part) for g, part in zip(line, self._parts(line))], leaves)
                out += _numbers(line) if k > self.full else []
        return out

    def _parts(self, leaves: Sequence[Box]) -> Iterator[Any]:
        at = 0
        for leaf in leaves:
            size = leaf.value.size
            yield self.direction[at:at + size].reshape(leaf.shape)
            at += size


def _unit(n: int, i: int) -> np.ndarray:
    out = np.zeros(n)
    out[i] = 1
    return out


def _one(g: Box, i: int) -> np.ndarray:
    return _unit(g.value.size, i).reshape(g.shape)


def _numbers(boxes: Sequence[Box]) -> list[Any]:
    return [x for box in boxes for x in box.value.ravel().tolist()]


def agreement(exact: Exact) -> tuple[float, Entry | None]:
    """To how many digits the oracle and the rules agree at a point, and the worst entry if they do not.

    Raises Undefined where there is nothing to compare, and Undecided where more digits would be needed than there are.
    """
    before: list[Entry] | None = None
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


def _compared(exact: Exact, e: Entry, earlier: Entry | None, digits: int) -> str:
    """Whether the rule and the truth are the same; a difference counts if it is larger than the rounding of any term of the computation."""
    def noise() -> Any:
        return exact.evaluation(digits).scale * mpmath.mpf(10) ** (15 - digits)

    return compared(e.rule, e.truth, None if earlier is None else (earlier.rule, earlier.truth), noise)
