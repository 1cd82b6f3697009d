"""What a cross-check found: the report, with its verdict, the agreement of every order, and where it first goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from symgrad.reports.base import BaseReport
from symgrad.reports.numbers import at, number, pair, ulp_text
from symgrad.reports.parts import Formula, Line, Part, Table
from symgrad.reports.report import Points

__all__ = ["Agreement", "CrossReport", "Finding"]


@dataclass
class Finding:
    """One number at one point: which (`where`, such as d2f/dx dy), the value of the function, and the true one.

    `ulp` is the distance in units in the last place of the truth, `bound` how large it may be, and `condition` by how many relative
    errors of the inputs the true number moves. `kind` is "agrees", "differs", "not finite" or "raises", with the `message` of what was raised.
    `explained` says that digits are lost, by rounding, overflow or underflow, and nothing is wrong: `by` the "program", which gives the true number
    in many digits, or the "formula", whose steps lose as much in floats. `operation` is the one that loses them, where it is seen.
    """

    order: int
    where: str
    point: dict[str, Any]
    value: float
    truth: float
    ulp: float
    bound: float
    condition: float = 1.0
    kind: str = "agrees"
    message: str = ""
    explained: bool = False
    by: str = ""
    operation: str = ""

    @property
    def wrong(self) -> bool:
        """Whether the error is beyond its bound, and rounding does not explain it."""
        return not self.agrees and not self.explained

    @property
    def agrees(self) -> bool:
        """Whether the error is within its bound."""
        return self.kind == "agrees"

    def cells(self) -> tuple[str, str, str]:
        """The function's number or what it raised, the true one, and the error, as a table shows them."""
        if self.kind == "raises":
            return self.message, number(self.truth), ""
        return *((number(self.value), number(self.truth)) if self.agrees else pair(self.value, self.truth)), ulp_text(self.ulp)


@dataclass
class Agreement:
    """How well one order agrees: how it was computed, at how many points it was compared at how many it is wrong or
    imprecise, and the worst of them.

    `region` says where it is wrong, in terms of the arguments or of a part of the formula, where that can be said; `hint` what kind of
    mistake it looks like.
    """

    DERIVED: ClassVar[tuple[str, ...]] = ("agrees",)

    order: int
    method: str
    compared: int = 0
    wrong: int = 0
    imprecise: int = 0
    worst: Finding | None = None
    first: Finding | None = None
    region: str = ""
    hint: str = ""

    @property
    def agrees(self) -> bool:
        """Whether every number of this order is within its bound."""
        return not self.wrong and not self.imprecise


@dataclass(repr=False)
class CrossReport(BaseReport):
    """The answer of `symgrad.check` about a function that is compared with a formula; print it, or show it in a notebook.

    `verdict` is "verified", "imprecise", "refuted" or "not checkable", and `reason` says why. `against` says what it was compared with; `agreements`
    has one entry per order, from 0, the value. `counterexample` is where the function first goes wrong: at the lowest order, at a simple
    point. `points` says how many were compared: random and special ones; outside the domain of the formula; without a derivative; on kinks,
    where only the value is compared.
    """

    function: str
    framework: str
    verdict: str
    reason: str
    order: int
    against: str = ""
    formula: Any = None
    domains: dict[str, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    agreements: list[Agreement] = field(default_factory=list)
    points: Points = field(default_factory=Points)
    counterexample: Finding | None = None
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def headline(self) -> str:
        return f"{self.function} ({self.framework}): {self.verdict}"

    def __repr__(self) -> str:
        return f"<CrossReport {self.function}: {self.verdict}>"

    def parts(self) -> Iterator[Part]:
        if self.counterexample is not None:
            yield Table("First wrong" if self.counterexample.wrong else "Digits are lost", ("at", "", f"by {self.framework}", "true", "error in ULP"),
                        [(at(self.counterexample.point), self.counterexample.where, *self.counterexample.cells())])
        if self.formula is not None:
            yield Formula("f", self.formula)
        if self.agreements:
            headers = "order", "", "wrong at", "imprecise at", "largest error", "bound", "of", "at", f"by {self.framework}", "true"
            yield Table("Agreement with " + self.against, headers, [_row(a) for a in self.agreements])
            yield from (Line(f"order {a.order}: {a.hint}") for a in self.agreements if a.hint)
            outside = "where the formula has no value, or a part of it one beyond 1e30000"
            yield Line(f"{self.points.described(outside, 'on a kink (value only)')}; {self._where()}")

    def _where(self) -> str:
        """The domains, those that are the same together."""
        names: dict[str, list[str]] = {}
        for name, domain in self.domains.items():
            names.setdefault(domain, []).append(name)
        return "; ".join(f"{', '.join(found)} in {domain}" + (", up to 1e8" if "inf" in domain else "") for domain, found in names.items())


def _row(a: Agreement) -> tuple[str, ...]:
    counts, w = (f"{a.wrong} of {a.compared}", f"{a.imprecise} of {a.compared}"), a.worst
    if w is None:
        return str(a.order), a.method, *counts, "", "", "", "", "", ""
    value, truth, error = w.cells()
    return str(a.order), a.method, *counts, error and error + " ULP", ulp_text(w.bound), w.where, at(w.point), value, truth
