"""The errors of the library's floats in units in the last place (ULP) of the reference value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import mpmath
import numpy as np

from symgrad.algebra.ladder import DIGITS, condition, movement, random_shift
from symgrad.dtypes.ulp import ulp_of
from symgrad.reference.exact import ComparedNumber, Exact
from symgrad.reference.run import Run
from symgrad.reports.parts import label

__all__ = ["Accuracy", "BOUNDS", "worst_errors"]

BOUNDS = {0: 8.0, 1: 8.0, 2: 64.0, 3: 512.0}
ROUNDING = mpmath.mpf(10) ** (15 - DIGITS)  # a number that is smaller relative to the others may be a rounding error


@dataclass(frozen=True)
class Accuracy:
    """The error of one number: its order, its name, the error in ULP, the float, the reference value `truth`, and the condition number.

    The condition number is large next to a zero, where no algorithm on floats keeps all digits. The error is `within` bounds up to 8, 8, 64
    or 512 ULP (for orders 0 to 3) times the condition number.
    """

    DERIVED: ClassVar[tuple[str, ...]] = "bound", "within"
    HIDDEN: ClassVar[tuple[str, ...]] = ("point",)

    order: int
    where: str
    ulp: float
    value: float
    truth: float
    condition: float
    point: tuple[np.ndarray, ...]

    @property
    def bound(self) -> float:
        """The largest error that counts as accurate."""
        return BOUNDS[self.order] * max(self.condition, 1.0)

    @property
    def within(self) -> bool:
        """Whether the error is no larger than the bound."""
        return self.ulp <= self.bound


def worst_errors(run: Run, exact: Exact, entries: Sequence[ComparedNumber], values: dict[int, np.ndarray], names: Sequence[str],
             rng: np.random.Generator) -> list[Accuracy]:
    """For each order the entry with the largest error beyond its bound, or the largest error; `values` are the library's floats.

    A reference value that is 0 up to rounding is measured in units of the largest reference value.
    """
    dtype = run.result.value.dtype
    error_of = ulp_of(dtype.name if dtype.kind == "f" else "float32").error
    rules = [e.rule for e in entries]
    scale = max(map(abs, rules))
    errors = {k: error_of(float(values[e.order][e.index]), e.rule, scale if abs(e.rule) <= scale * ROUNDING else 0)
              for k, e in enumerate(entries) if not e.directional and e.order in values}
    high = max((entries[k].order for k, error in errors.items() if error > BOUNDS[entries[k].order]), default=None)
    moved = [] if high is None else movement(rules, lambda: exact.rules(DIGITS, random_shift(rng), high))
    out: dict[int, Accuracy] = {}
    for k, error in errors.items():
        e = entries[k]
        found = Accuracy(e.order, label(e.order, e.index, names), error, float(values[e.order][e.index]), float(e.rule),
                         condition(e.rule, moved[k]) if error > BOUNDS[e.order] else 1.0, tuple(leaf.value for leaf in run.leaves))
        best = out.get(e.order)
        if best is None or is_worse(found, best):
            out[e.order] = found
    return [out[order] for order in sorted(out)]


def is_worse(a: Accuracy, b: Accuracy) -> bool:
    """Whether the first error is worse: an error beyond its bound is worse than one within, then the larger one is."""
    return (not a.within, a.ulp) > (not b.within, b.ulp)
