"""The errors of a function's numbers at a point, and the bounds on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import mpmath
import numpy as np

from symgrad.algebra.ladder import condition
from symgrad.dtypes.ulp import Ulp, ulp_of
from symgrad.frameworks.levels import Levels, ShadowValues
from symgrad.graph.domains import Domain, Interval
from symgrad.reference.differences import MARGIN, VAGUE
from symgrad.reference.rounding import RoundedEvaluation
from symgrad.reference.sources import ReferenceNumber, ReferenceValues
from symgrad.reports.cross import Finding
from symgrad.reports.numbers import first_line, label, message_of
from symgrad.sampling.domain_reader import domain_text
from symgrad.system.restoring import workdps

__all__ = ["DEFAULT", "Measure", "Tolerances", "is_worse"]

DEFAULT_ULP = 1000.0


def is_worse(a: Finding, b: Finding) -> bool:
    """Whether the first finding is worse. The order is: wrong, imprecise, right; among these exceptions, then larger errors.

    Findings that agree are compared by their errors relative to their bounds.
    """
    if a.agrees and b.agrees:
        return a.ulp / a.bound > b.ulp / b.bound
    return (a.wrong, not a.agrees, a.kind == "raises", a.ulp) > (b.wrong, not b.agrees, b.kind == "raises", b.ulp)


def _is_real(x: Any) -> bool:
    return isinstance(x, Real) and not isinstance(x, bool)


@dataclass(frozen=True)
class Tolerances:
    """The allowed error of a number, in ULP (1000 by default) and as `atol` + `rtol` times its size; `range` has the least and the largest size of
    an input. Raises ValueError for invalid numbers.
    """

    ulp: float | None = None
    atol: float = 0.0
    rtol: float = 0.0
    range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        expected = {"ulp": "a positive number, how many units in the last place an error may have",
                    "atol": "a number that is not negative, the absolute error that is allowed besides",
                    "rtol": "a number that is not negative, the error relative to the truth that is allowed besides"}
        for name, what in expected.items():
            value = getattr(self, name)
            if not (value is None and name == "ulp" or _is_real(value) and (0 <= value if name != "ulp" else 0 < value) and value < np.inf):
                raise ValueError(f"check: {name} is {value!r}; expected {what}")
        ends = self.range
        if ends is not None and not (isinstance(ends, (tuple, list)) and len(ends) == 2 and all(map(_is_real, ends)) and 0 <= ends[0] < ends[1]):
            raise ValueError(f"check: range is {ends!r}; expected (least, largest), the sizes that the numbers of a point may have, "
                             f"such as (1e-100, 1e100)")

    @property
    def is_given(self) -> bool:
        """Whether any tolerance is given."""
        return self != DEFAULT

    @property
    def units(self) -> float:
        """The allowed error in units in the last place."""
        return DEFAULT_ULP if self.ulp is None else self.ulp

    def inside(self, vector: np.ndarray) -> np.ndarray:
        """The point clipped to the range."""
        return vector if self.range is None else np.where(vector == 0, vector, np.copysign(np.clip(np.abs(vector), *self.range), vector))

    def refuse(self, name: str, value: np.ndarray) -> None:
        """Raise ValueError for an input outside the range."""
        outside = value[value != self.inside(value)]
        if outside.size:
            raise ValueError(f"check: the input {name} = {float(outside[0]):g} lies outside range={self.range!r}; give one inside, or a wider range")

    def domain(self, domain: Domain) -> Domain:
        """The part of a domain inside the range. Raises ValueError if it is empty."""
        if self.range is None:
            return domain
        low, high = self.range
        bands = [Interval(-high, -low), Interval(0.0, 0.0), Interval(low, high)] if low else [Interval(-high, high)]
        meets = [(i, max(i.low, b.low), min(i.high, b.high)) for i in domain.intervals for b in bands]
        parts = [Interval(a, b, i.open_low and a == i.low, i.open_high and b == i.high) for i, a, b in meets if a <= b]
        parts = [p for p in parts if p.low < p.high or p.low in p and p.low not in domain.excluded]
        if not parts:
            raise ValueError(f"check: range is {self.range!r}, in which the domain {domain_text(domain)} has no number; give a wider one")
        return Domain(domain.name, tuple(parts), domain.excluded, domain.integer)


DEFAULT = Tolerances()


class Measure:
    """Findings from the values of a function and the reference values.

    The allowed error of a number is the sum of `ulp` units in the last place of the reference value times its condition number, the smallest normal
    number of its type, `atol`, and `rtol` times the reference value. A larger error is explained by lost digits if the shadow values of the program
    from `program(point, order)` are within the bound; or, if there are none, if the formula computed in floats loses as much.
    """

    def __init__(self, names: Sequence[str], tolerances: Tolerances, point_of: Callable[[np.ndarray], dict[str, Any]],
                 program: Callable[[np.ndarray, int], Iterator[ShadowValues | None]]):
        self.names, self.tolerances, self.point_of, self.program = names, tolerances, point_of, program

    def findings(self, vector: np.ndarray, levels: Levels, truths: ReferenceValues) -> dict[int, Finding]:
        """The worst finding of each order that can be compared."""
        kind = ulp_of(levels.dtype)
        rounded = RoundedEvaluation(truths, kind)
        out: dict[int, Finding] = {}
        movement: list[Any] | None = None
        with workdps(mpmath.mp, 60):
            scale = max((abs(t.value) for t in truths.entries if mpmath.isfinite(t.value)), default=mpmath.mpf(0))
            for k, t in enumerate(truths.entries):
                if t.order and truths.kink or levels.error is not None and t.order > levels.error[0]:
                    continue
                where = label(t.order, t.index, self.names, t.directional)
                if levels.error is not None and t.order == levels.error[0]:
                    error = levels.error[1]
                    found = Finding(t.order, where, self.point_of(vector), np.nan, float(t.value), np.inf, 0.0, kind="raises",
                                    message=first_line(message_of(error)))
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
                if movement is None and not distance <= self.tolerances.units * kind.unit(t.value):
                    movement = truths.movement()
                moved = mpmath.mpf(0) if movement is None else movement[k]
                found, allowed = self._finding(t, value, distance, moved, scale, kind, slack, where, vector)
                if not found.agrees:
                    self._explain(found, t, rounded, self.program(vector, t.order), allowed)
                if t.order not in out or is_worse(found, out[t.order]):
                    out[t.order] = found
        return out

    def _explain(self, found: Finding, t: ReferenceNumber, rounded: RoundedEvaluation, program: Iterator[ShadowValues | None], allowed: Any) -> None:
        """Determine whether an error is a loss of digits: by the shadow values of the program, or by the rounded steps of the formula."""
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
        """The finding about a number, and its allowed error."""
        size = abs(t.value)
        unit = kind.unit(t.value if size else moved or scale)
        allowed = self.tolerances.units * max(unit, kind.epsilon * moved) + kind.tiny
        allowed += self.tolerances.atol + self.tolerances.rtol * size
        if slack is not None:
            allowed += MARGIN * mpmath.mpf(slack)
        word = "agrees"
        if size > kind.largest:
            distance = mpmath.mpf(kind.error(value, t.value))
        elif size < kind.tiny and abs(value) <= kind.tiny:
            distance = mpmath.mpf(0)  # numbers below the normal ones may be flushed to zero
        if not distance <= allowed:
            word = "differs" if np.isfinite(value) else "not finite"
        return Finding(t.order, where, self.point_of(vector), value, float(t.value), float(distance / unit), float(allowed / unit),
                       condition(t.value, moved) if size else 1.0, word), allowed
