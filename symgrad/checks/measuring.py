"""How far a function's numbers are from the true ones at a point, and how far they may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np
from ml_dtypes import finfo

from symgrad.frameworks.adapter import Levels
from symgrad.reference.cross_truth import Truths
from symgrad.reference.differences import MARGIN, VAGUE
from symgrad.reference.rounding import Rounded
from symgrad.reports.cross import Finding
from symgrad.reports.labels import label
from symgrad.reports.numbers import first_line

__all__ = ["Measure", "Tolerances", "worse"]


def worse(a: Finding, b: Finding) -> bool:
    """Whether the first is the worse one: wrong before imprecise before right, then what raises, then the larger error.

    Among those that agree, it is the larger part of their bounds.
    """
    if a.agrees and b.agrees:
        return a.ulp / a.bound > b.ulp / b.bound
    return (a.wrong, not a.agrees, a.kind == "raises", a.ulp) > (b.wrong, not b.agrees, b.kind == "raises", b.ulp)


class Tolerances(NamedTuple):
    """How far a number may be off, in ULP, and by `atol` + `rtol` times its size; `range` has the least and the largest size of an input."""

    ulp: float = 1000.0
    atol: float = 0.0
    rtol: float = 0.0
    range: tuple[float, float] | None = None


class Measure:
    """Findings from what a function gives and what is true.

    A number may be off by `ulp` units in the last place of the truth, times the condition number of the truth there, and by the smallest
    normal number of its type, and by `atol` and `rtol` times the truth. What is farther off is explained where the formula itself, computed
    in floats, loses as much.
    """

    def __init__(self, names: Sequence[str], tolerances: Tolerances, point_of: Callable[[np.ndarray], dict[str, Any]]):
        self.names, self.tolerances, self.point_of = names, tolerances, point_of

    def findings(self, vector: np.ndarray, levels: Levels, truths: Truths) -> dict[int, Finding]:
        """The worst finding of each order that can be compared."""
        kind = finfo(levels.dtype)
        rounded = Rounded(truths, kind)
        out: dict[int, Finding] = {}
        movement: list[Any] | None = None
        with mpmath.workdps(60):
            scale = max((abs(t.value) for t in truths.entries if mpmath.isfinite(t.value)), default=mpmath.mpf(0))
            for k, t in enumerate(truths.entries):
                if t.order and truths.kink or levels.error is not None and t.order > levels.error[0]:
                    continue
                where = label(t.order, t.index, self.names, t.directional)
                if levels.error is not None and t.order == levels.error[0]:
                    error = levels.error[1]
                    found = Finding(t.order, where, self.point_of(vector), np.nan, float(t.value), np.inf, 0.0, kind="raises",
                                    message=f"{type(error).__name__}: {first_line(error)}")
                    out.setdefault(t.order, found)
                    continue
                if t.order not in levels.values:
                    continue
                value = float(levels.values[t.order][t.index])
                rough = levels.bounds.get(t.order, truths.bounds.get(t.order))
                slack = None if rough is None else float(rough[t.index])
                if slack is not None and not slack <= VAGUE * max(abs(t.value), scale * kind.eps):
                    continue
                distance = abs(mpmath.mpf(value) - t.value) if np.isfinite(value) else mpmath.inf
                if movement is None and not distance <= self.tolerances.ulp * _unit(t.value, kind):
                    movement = truths.movement()
                moved = mpmath.mpf(0) if movement is None else movement[k]
                found = self._finding(t, value, distance, moved, scale, kind, slack, where, vector)
                if not found.agrees:
                    found.explained = rounded.explain(t, value)
                if t.order not in out or worse(found, out[t.order]):
                    out[t.order] = found
        return out

    def _finding(self, t: Any, value: float, distance: Any, moved: Any, scale: Any, kind: Any, slack: float | None, where: str,
                 vector: np.ndarray) -> Finding:
        size = abs(t.value)
        unit = _unit(t.value if size else moved or scale, kind)
        allowed = self.tolerances.ulp * max(unit, mpmath.mpf(float(kind.eps)) * moved) + mpmath.mpf(float(kind.smallest_normal))
        allowed += self.tolerances.atol + self.tolerances.rtol * size
        if slack is not None:
            allowed += MARGIN * mpmath.mpf(slack)
        word = "agrees"
        if size > mpmath.mpf(float(kind.max)):
            distance = mpmath.mpf(0) if np.isinf(value) and np.sign(value) == mpmath.sign(t.value) or abs(value) == float(kind.max) else mpmath.inf
        elif size < float(kind.smallest_normal) and abs(value) <= float(kind.smallest_normal):
            distance = mpmath.mpf(0)  # numbers so small may be zeros, too
        if not distance <= allowed:
            word = "differs" if np.isfinite(value) else "not finite"
        condition = 1.0 if not size else max(1.0, float(moved / size))
        return Finding(t.order, where, self.point_of(vector), value, float(t.value), float(distance / unit), float(allowed / unit), condition, word)


def _unit(truth: Any, kind: Any) -> Any:
    """A unit in the last place of a number, in a floating-point type."""
    if not truth:
        return mpmath.mpf(float(kind.smallest_subnormal))
    if not mpmath.isfinite(truth):
        return mpmath.inf
    return max(mpmath.ldexp(mpmath.mpf(float(kind.eps)), int(mpmath.mag(truth)) - 1), mpmath.mpf(float(kind.smallest_subnormal)))
