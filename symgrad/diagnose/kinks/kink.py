"""The report of `kinks`: the ops at a kink or a tie, their one-sided derivatives, and whether the returned gradient is a generalized gradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from symgrad.reports.base import BaseReport, Line, Part, Table, at, number

INSIDE, OUTSIDE, UNDECIDED = "inside", "outside", "undecided"
MAX_SHOWN = 12  # kinks in the printed report
WORDS = {None: "condition", 0: "jump", 1: "kink", 2: "second derivative jumps", 3: "third derivative jumps"}


@dataclass(frozen=True)
class Side:
    """The one-sided derivatives of an op by one of its elements, at the lowest order at which the two sides differ (0 for the values).

    `returned` is the first derivative by the op's rule.
    """

    element: str
    order: int
    left: float
    right: float
    returned: float | None = None

    @property
    def between(self) -> bool | None:
        """Whether the returned derivative is between the one-sided ones; None if these are not first derivatives."""
        if self.order != 1 or self.returned is None or np.isnan(self.left) or np.isnan(self.right):
            return None
        slack = 1e-9 * (1 + min(abs(self.left), abs(self.right)))
        return bool(min(self.left, self.right) - slack <= self.returned <= max(self.left, self.right) + slack)


@dataclass(frozen=True)
class Kink:
    """An op that was evaluated at a kink, a tie or a jump, or near one.

    `values` are its arguments' elements that take part, `distance` is how far the nearest switch is from zero in floats, and `exact` in
    many digits, where that is known: a kink with a distance of 0 that is not exact was made by rounding. `smoothness` is the order of the
    first derivative that jumps (0: the value itself; 1: a kink; 2: the second derivative), None for a comparison that decides a branch.
    """

    DERIVED: ClassVar[tuple[str, ...]] = "kind", "between"

    op: str
    node: str
    line: str | None
    element: tuple[int, ...]
    values: dict[str, float]
    distance: float
    exact: float | None
    smoothness: int | None
    convention: str
    sides: tuple[Side, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of the kink in words."""
        numbers = [x for side in self.sides for x in (side.left, side.right)]
        if any(np.isnan(numbers)):
            return "edge of the domain"
        if any(np.isinf(numbers)):
            return "infinite slope" if self.smoothness == 1 else f"derivative {self.smoothness} is infinite"
        return WORDS[self.smoothness]

    @property
    def rounded(self) -> bool:
        """Whether the float is at the kink only because of rounding."""
        return self.exact is not None and self.distance == 0 and self.exact != 0

    @property
    def between(self) -> bool:
        """Whether every derivative that the op returns lies between its one-sided derivatives."""
        return all(side.between is not False for side in self.sides)


@dataclass(repr=False)
class KinkReport(BaseReport):
    """The answer of `symgrad.kinks`; print it, or show it in a notebook.

    `verdict` is "inside" where the returned gradient is in the Clarke subdifferential of the whole function at the point, "outside" where
    it is not, "undecided" with the `reason` where that is not known. `gradients` are the limiting gradients that were found near the
    point, over the input elements `names`, and `complete` says whether these are all of them. Where there is one only, the function is
    differentiable, and that is the gradient.
    """

    DERIVED = ("differentiable",)

    function: str
    verdict: str
    reason: str
    distance: float
    names: list[str] = field(default_factory=list)
    value: float | None = None
    returned: np.ndarray = field(default_factory=lambda: np.zeros(0))
    gradients: list[np.ndarray] = field(default_factory=list)
    complete: bool = False
    kinks: list[Kink] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def inside(self) -> bool | None:
        """Whether the returned gradient is in the subdifferential; None if undecided."""
        return {INSIDE: True, OUTSIDE: False}.get(self.verdict)

    @property
    def differentiable(self) -> bool | None:
        """Whether all limiting gradients are equal; None if unknown."""
        return False if len(self.gradients) > 1 else True if self.gradients and self.complete else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The smallest and the largest limiting derivative, of a function of one number."""
        if len(self.names) != 1 or not self.gradients:
            return None
        return min(float(g[0]) for g in self.gradients), max(float(g[0]) for g in self.gradients)

    def parts(self) -> Iterator[Part]:
        """The parts of the printed report, in order."""
        if self.kinks:
            rows = []
            for k in self.kinks[:MAX_SHOWN]:
                where = f"[{', '.join(map(str, k.element))}]" if k.element else ""
                rows.append((k.op + where, at(k.values, 4), k.kind + (" (by rounding)" if k.rounded else ""), _sides_text(k), k.convention,
                             k.line or ""))
            yield Table(f"Kinks and ties within {self.distance:g}", ("op", "at", "what", "left | right | returned", "convention", "line"), rows)
            if len(self.kinks) > MAX_SHOWN:
                yield Line(f"... {len(self.kinks) - MAX_SHOWN} more; all are in report.kinks")
        if len(self.gradients) > 1 or self.verdict == OUTSIDE:
            few = list(zip(self.names, range(len(self.names))))[:6]
            lines = [("returned", *(number(self.returned[i]) for _, i in few))]
            lines += [(f"limit {k + 1}", *(number(g[i]) for _, i in few)) for k, g in enumerate(self.gradients[:MAX_SHOWN])]
            yield Table("Gradients", ("", *(f"df/d{name}" for name, _ in few)), lines)
            if len(self.gradients) > MAX_SHOWN or len(self.names) > len(few):
                yield Line(f"{len(self.gradients)} limiting gradients of {len(self.names)} numbers; all are in report.gradients")


def _sides_text(k: Kink) -> str:
    shown = [f"{number(s.left)} | {number(s.right)} | {'' if s.returned is None else number(s.returned)}".rstrip(" |") +
             ("" if s.between is not False else " outside") for s in k.sides[:2]]
    return "; ".join(dict.fromkeys(shown)) + ("; ..." if len(k.sides) > 2 and len(set(map(str, k.sides))) > 2 else "")
