"""How far a function's numbers are from the true ones at a point, and how far they may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np

from symgrad.algebra.ladder import condition
from symgrad.frameworks.levels import Exact, Levels
from symgrad.reference.differences import MARGIN, VAGUE
from symgrad.reference.rounding import RoundedEvaluation
from symgrad.reference.sources import ReferenceNumber, ReferenceValues
from symgrad.reports.cross import Finding
from symgrad.reports.numbers import first_line, label
from symgrad.types.ulp import Ulp, ulp_of

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
    normal number of its type, and by `atol` and `rtol` times the truth. What is farther off is explained where the function's own program is not in
    many digits, as `program(point, order)` runs it with more and more of them; or, where it cannot be run so, where the formula itself, computed in
    floats, loses as much.
    """

    def __init__(self, names: Sequence[str], tolerances: Tolerances, point_of: Callable[[np.ndarray], dict[str, Any]],
                 program: Callable[[np.ndarray, int], Iterator[Exact | None]]):
        self.names, self.tolerances, self.point_of, self.program = names, tolerances, point_of, program

    def findings(self, vector: np.ndarray, levels: Levels, truths: ReferenceValues) -> dict[int, Finding]:
        """The worst finding of each order that can be compared."""
        kind = ulp_of(levels.dtype)
        rounded = RoundedEvaluation(truths, kind)
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
                if slack is not None and not slack <= VAGUE * max(abs(t.value), scale * kind.epsilon):
                    continue
                distance = abs(mpmath.mpf(value) - t.value) if np.isfinite(value) else mpmath.inf
                if movement is None and not distance <= self.tolerances.ulp * kind.unit(t.value):
                    movement = truths.movement()
                moved = mpmath.mpf(0) if movement is None else movement[k]
                found, allowed = self._finding(t, value, distance, moved, scale, kind, slack, where, vector)
                if not found.agrees:
                    self._explain(found, t, rounded, self.program(vector, t.order), allowed)
                if t.order not in out or worse(found, out[t.order]):
                    out[t.order] = found
        return out

    def _explain(self, found: Finding, t: ReferenceNumber, rounded: RoundedEvaluation, program: Iterator[Exact | None], allowed: Any) -> None:
        """Say whether digits are lost: the program is right in many digits, or else the formula's rounded steps lose as much."""
        followed = False
        for exact in program:
            if exact is None:
                break
            number = exact.values[t.order][t.index]
            followed |= number != found.value
            truth = exact.differences[t.index] if exact.differences is not None else t.value
            if not abs(number - truth) <= allowed and not (exact.shadow.beyond and found.kind == "not finite"):
                continue
            if abs(number - found.value) <= allowed:  # the difference quotients lost the digits
                found.kind, found.truth = "agrees", float(truth)
            else:
                found.explained, found.by, found.operation = True, "program", exact.shadow.culprit
            return
        if not followed and rounded.explain(t, found.value):
            found.explained, found.by = True, "formula"

    def _finding(self, t: Any, value: float, distance: Any, moved: Any, scale: Any, kind: Ulp, slack: float | None, where: str,
                 vector: np.ndarray) -> tuple[Finding, Any]:
        """What is found about a number, and how far it may be off."""
        size = abs(t.value)
        unit = kind.unit(t.value if size else moved or scale)
        allowed = self.tolerances.ulp * max(unit, kind.epsilon * moved) + kind.tiny
        allowed += self.tolerances.atol + self.tolerances.rtol * size
        if slack is not None:
            allowed += MARGIN * mpmath.mpf(slack)
        word = "agrees"
        if size > kind.largest:
            distance = mpmath.mpf(kind.error(value, t.value))
        elif size < kind.tiny and abs(value) <= kind.tiny:
            distance = mpmath.mpf(0)  # numbers so small may be zeros, too
        if not distance <= allowed:
            word = "differs" if np.isfinite(value) else "not finite"
        return Finding(t.order, where, self.point_of(vector), value, float(t.value), float(distance / unit), float(allowed / unit),
                       condition(t.value, moved) if size else 1.0, word), allowed
