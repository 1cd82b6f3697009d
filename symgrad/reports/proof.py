"""What a proof found: the statements about the rules of an op, with their verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from symgrad.reports.base import PROVED, REFUTED, BaseReport, Formula, Line, Part, Table, weakest

SHOWN = 8  # coordinates of a point that are shown


@dataclass
class Statement:
    """One statement about an op: that a rule gives the derivative of an order, in a region.

    `what` says which rule and by which argument, `case` with which shapes and parameters, `points` at how many points fifty digits agreed. A
    refuted one has a `point` with what the rule gives there (`claim`) and the `truth`; the first three of a region have a simple one, and the
    simplified `difference` of the two formulas where that is short. `reason` says why one is not proved.
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


@dataclass(repr=False)
class Proof(BaseReport):
    """The answer of `symgrad.prove`: the verdict of an op, which is the weakest of its statements; print it, or show it in a notebook."""

    op: str
    kind: str
    order: int
    statements: list[Statement] = field(default_factory=list)
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """One of "proved", "verified", "refuted" and "not checkable"."""
        return weakest(s.verdict for s in self.statements)

    @property
    def refuted(self) -> list[Statement]:
        return [s for s in self.statements if s.verdict == REFUTED]

    def parts(self) -> Iterator[Part]:
        for s in self.refuted[:3]:
            values = [f"{name} = {_number(value)}" for name, value in (s.point or {}).items()]
            at = ", ".join([*values[:SHOWN], *(["..."] if len(values) > SHOWN else [])])
            yield Line(f"{s.what} (order {s.order}){' of ' + s.case if s.case else ''}: {s.reason}")
            if s.claim is not None:
                yield Line(f"at {at}: the rule gives {_number(s.claim)}, sympy.diff gives {_number(s.truth)}")
            if s.difference is not None:
                yield Formula("difference", s.difference)
        if self.statements:
            yield Table("Statements", ("order", "rule", "of", "region", "verdict", "points", ""), [
                (str(s.order), s.what, s.case, s.region, s.verdict, str(s.points), s.reason if s.verdict not in (PROVED, REFUTED) else "")
                for s in self.statements])


def _number(x: Any) -> str:
    import mpmath
    import sympy

    if isinstance(x, sympy.Basic):
        return f"{float(x):.15g}" if isinstance(x, sympy.Float) or isinstance(x, sympy.Rational) and x.q > 1000 else str(x)
    return str(mpmath.nstr(x.real if isinstance(x, mpmath.mpc) and not x.imag else x, 15))
