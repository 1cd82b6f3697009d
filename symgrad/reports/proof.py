"""What a proof found: the statements about the rules of an op, with their verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from symgrad.reports.rendering import Formula, Line, Parts, Shown, Table
from symgrad.reports.report import plain, text
from symgrad.reports.verdicts import NOT_CHECKABLE, PROVED, REFUTED, VERIFIED, Verdict

__all__ = ["Proof", "Statement"]

STRENGTH = (REFUTED, NOT_CHECKABLE, VERIFIED, PROVED)  # the weakest first
SCHEMA = 1
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

    def to_dict(self) -> dict[str, Any]:
        """The statement as plain data that JSON can hold."""
        return {"order": self.order, "what": self.what, "case": self.case, "region": self.region, "verdict": self.verdict, "points": self.points,
                "difference": text(self.difference), "point": None if self.point is None else {str(k): str(v) for k, v in self.point.items()},
                "claim": text(self.claim), "truth": text(self.truth), "reason": self.reason}


@dataclass
class Proof(Verdict, Shown):
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
        return min((s.verdict for s in self.statements), key=STRENGTH.index, default=NOT_CHECKABLE)

    def __repr__(self) -> str:
        return f"<Proof {self.op}: {self.verdict}>"

    @property
    def refuted(self) -> list[Statement]:
        """The statements that are wrong."""
        return [s for s in self.statements if s.verdict == REFUTED]

    def to_dict(self) -> dict[str, Any]:
        """The proof as plain data that JSON can hold."""
        return {"schema": SCHEMA, "op": self.op, "kind": self.kind, "order": self.order, "verdict": self.verdict, "reason": self.reason,
                "statements": [s.to_dict() for s in self.statements], "notes": list(self.notes), "seconds": plain(round(self.seconds, 3))}

    def outline(self) -> Parts:
        """What the proof says, part by part."""
        yield Line(f"{self.op}: {self.verdict}")
        if self.reason:
            yield Line(self.reason + ".")
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
        for note in self.notes:
            yield Line(f"note: {note}")


def _number(x: Any) -> str:
    import mpmath
    import sympy

    if isinstance(x, sympy.Basic):
        return f"{float(x):.15g}" if isinstance(x, sympy.Float) or isinstance(x, sympy.Rational) and x.q > 1000 else str(x)
    return str(mpmath.nstr(x.real if isinstance(x, mpmath.mpc) and not x.imag else x, 15))
