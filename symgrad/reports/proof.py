"""What a proof found: the statements about the rules of an op, with their verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from symgrad.reports.base import PROVED, REFUTED, BaseReport, Formula, Line, Part, Table, pair, weakest, with_digits

SHOWN = 8  # coordinates of a point that are shown
DIGITS = 15
LISTED = 3  # conventions that the first line lists


@dataclass
class Statement:
    """One statement about an op: that a rule gives the derivative of an order, in a region.

    `what` says which rule and by which argument, `case` with which shapes and parameters, `points` at how many of the `planned` points fifty digits
    agreed; at the others one of the two has no number, or is a convention. A refuted one has a `point` with what the rule gives there (`claim`) and
    the `truth`; the first three of a region have a simple one, and the simplified `difference` of the two formulas where that is short. `reason`
    says why one is not proved.
    """

    order: int
    what: str
    case: str
    region: str
    verdict: str
    points: int = 0
    difference: Any = None
    point: Mapping[str, Any] | None = None
    claim: Any = None
    truth: Any = None
    reason: str = ""
    planned: int = 0


@dataclass(repr=False)
class Proof(BaseReport):
    """The answer of `symgrad.prove`: the verdict of an op, which is the weakest of its statements; print it, or show it in a notebook.

    `conventions` are the points and borders at which the function has no derivative, so that the rules' values there are a convention.
    """

    op: str
    kind: str
    order: int
    statements: list[Statement] = field(default_factory=list)
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    conventions: list[str] = field(default_factory=list)

    @property
    def headline(self) -> str:
        """The verdict, and where the rules' values are a convention."""
        shown = "; ".join([*self.conventions[:LISTED], *[f"and {len(self.conventions) - LISTED} more"] * (len(self.conventions) > LISTED)])
        return super().headline + (f", by convention where {shown}" if shown and self.ok else "")

    @property
    def verdict(self) -> str:
        """One of "proved", "verified", "refuted" and "not checkable"."""
        return weakest(s.verdict for s in self.statements)

    @property
    def refuted(self) -> list[Statement]:
        return [s for s in self.statements if s.verdict == REFUTED]

    def parts(self) -> Iterator[Part]:
        for s in self.refuted[:3]:
            values = [f"{name} = {with_digits(value, DIGITS)}" for name, value in (s.point or {}).items()]
            at = ", ".join([*values[:SHOWN], *(["..."] if len(values) > SHOWN else [])])
            yield Line(f"{s.what} (order {s.order}){' of ' + s.case if s.case else ''}: {s.reason}")
            if s.claim is not None:
                claim, truth = pair(s.claim, s.truth, DIGITS)
                yield Line(f"at {at}: the rule gives {claim}, sympy.diff gives {truth}")
            if s.difference is not None:
                yield Formula("difference", s.difference)
        if self.statements:
            yield Table("Statements", ("order", "rule", "of", "region", "verdict", "points", ""), [
                (str(s.order), s.what, s.case, s.region, s.verdict, _points(s), s.reason if s.verdict not in (PROVED, REFUTED) else "")
                for s in self.statements])


def _points(s: Statement) -> str:
    return str(s.points) if s.points >= s.planned else f"{s.points} of {s.planned}"
