"""How far the library's floats are from the truth, in units in the last place (ULP) of the true value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import mpmath
import numpy as np

from symgrad.reference.exact import DIGITS, Entry, Exact, shifted
from symgrad.reference.run import Run
from symgrad.reports.labels import label

__all__ = ["ALL", "Accuracy", "BOUNDS", "measured", "ulps"]

BOUNDS = {0: 8.0, 1: 8.0, 2: 64.0, 3: 512.0}
ALL = 2.0**52  # an error of that many ULP leaves no digit


@dataclass(frozen=True)
class Accuracy:
    """The error of one number: its order, where it stands, the error in ULP, the float, the truth, and the condition of the point.

    The condition says by how many relative errors of the inputs the number moves: it is large next to a zero, where no algorithm on
    floats keeps every digit. The error is `within` bounds up to 8, 8, 64 or 512 ULP (for orders 0 to 3) times the condition.
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


def ulps(value: float, truth: Any, dtype: Any = np.float64, scale: Any = 0) -> float:
    """The distance of a float from the truth in units of the truth's last place; infinite for NaN, 0 for an overflow of both.

    A truth that is 0 has no last place: there `scale` is taken, the largest number it was computed beside.

    >>> ulps(1.0, mpmath.mpf(1)), ulps(1.0 + 2**-52, mpmath.mpf(1)), ulps(2**-52, mpmath.mpf(0), scale=mpmath.mpf(1))
    (0.0, 1.0, 1.0)
    """
    kind = np.dtype(dtype).type
    with mpmath.workdps(DIGITS):
        truth = mpmath.mpf(truth)
        largest = mpmath.mpf(float(np.finfo(kind).max))
        if abs(truth) > largest:
            return 0.0 if value == np.inf * float(mpmath.sign(truth)) or abs(value) == float(largest) else float("inf")
        if not np.isfinite(value):
            return float("inf")
        size = scale if abs(truth) <= scale * mpmath.mpf(10) ** (15 - DIGITS) else abs(truth)
        unit = mpmath.mpf(float(np.spacing(kind(min(size, largest)))))
        return float(abs(mpmath.mpf(float(value)) - truth) / unit)


def measured(run: Run, exact: Exact, entries: Sequence[Entry], values: dict[int, np.ndarray], names: Sequence[str],
             rng: np.random.Generator) -> list[Accuracy]:
    """For each order the entry with the largest error beyond its bound, or the largest error; `values` are the library's floats."""
    dtype = run.result.value.dtype
    with mpmath.workdps(DIGITS):
        scale = max(abs(mpmath.mpf(e.rule)) for e in entries)
    rows: list[Any] = []
    for k, e in enumerate(entries):
        if e.directional or e.order not in values:
            continue
        value = float(values[e.order][e.index])
        error = ulps(value, e.rule, dtype if np.dtype(dtype).kind == "f" else np.float32, scale)
        rows.append((error, k, e, value))
    high = max((e.order for error, _, e, _ in rows if error > BOUNDS[e.order]), default=None)
    moved = [] if high is None else [exact.rules(DIGITS, shifted(rng), high) for _ in range(3)]
    out: dict[int, Accuracy] = {}
    for error, k, e, value in rows:
        condition = 1.0
        if error > BOUNDS[e.order]:
            with mpmath.workdps(DIGITS):
                distance = max(abs(mpmath.mpf(m[k]) - mpmath.mpf(e.rule)) for m in moved) * mpmath.mpf(10) ** 20
                condition = 1.0 if distance == 0 else float("inf") if e.rule == 0 else max(1.0, float(distance / abs(mpmath.mpf(e.rule))))
        found = Accuracy(e.order, label(e.order, e.index, names), error, value, float(e.rule), condition,
                         tuple(leaf.value for leaf in run.leaves))
        best = out.get(e.order)
        if best is None or worse(found, best):
            out[e.order] = found
    return [out[order] for order in sorted(out)]


def worse(a: Accuracy, b: Accuracy) -> bool:
    """Whether the first is the worse: one beyond its bound before one within, then the larger error."""
    return (not a.within, a.ulp) > (not b.within, b.ulp)
