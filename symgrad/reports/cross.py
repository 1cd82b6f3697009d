"""What a cross-check found: the report, with its verdict, the agreement of every order, and where it first goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symgrad.reports.rendering import Formula, Line, Shown, Table
from symgrad.reports.report import Points, plain, text
from symgrad.reports.verdicts import Verdict

__all__ = ["Agreement", "CrossReport", "Finding", "at", "pair", "size"]

SCHEMA = 1


@dataclass
class Finding:
    """One number at one point: which (`where`, such as d2f/dx dy), the value of the function, and the true one.

    `ulp` is the distance in units in the last place of the truth, `bound` how large it may be, and `condition` by how many relative
    errors of the inputs the true number moves. `kind` is "agrees", "differs", "not finite" or "raises", with the `message` of what was raised.
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

    @property
    def agrees(self) -> bool:
        """Whether the error is within its bound."""
        return self.kind == "agrees"


@dataclass
class Agreement:
    """How well one order agrees: how it was computed, at how many points it was compared and at how many it is wrong, and the worst of them.

    `region` says where it is wrong, in terms of the arguments or of a part of the formula, where that can be said; `hint` what kind of
    mistake it looks like.
    """

    order: int
    method: str
    compared: int = 0
    wrong: int = 0
    worst: Finding | None = None
    first: Finding | None = None
    region: str = ""
    hint: str = ""

    @property
    def agrees(self) -> bool:
        """Whether nothing of this order is wrong."""
        return not self.wrong


@dataclass
class CrossReport(Verdict, Shown):
    """The answer of `symgrad.check` about a function that is compared with a formula; print it, or show it in a notebook.

    `verdict` is "verified", "refuted" or "not checkable", and `reason` says why. `against` says what it was compared with; `agreements`
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

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data that JSON can hold; numbers that are not finite become "nan", "inf" and "-inf"."""
        return {
            "schema": SCHEMA,
            "function": self.function,
            "framework": self.framework,
            "verdict": self.verdict,
            "reason": self.reason,
            "order": self.order,
            "against": self.against,
            "formula": text(self.formula),
            "domains": dict(self.domains),
            "names": list(self.names),
            "agreements": [plain(a) | {"agrees": a.agrees} for a in self.agreements],
            "points": {name: count for name, count in plain(self.points).items() if name != "digits"},
            "counterexample": plain(self.counterexample),
            "notes": list(self.notes),
            "seconds": round(self.seconds, 3),
        }

    def outline(self) -> Iterator[Any]:
        """What the report says, in order, for every form of it."""
        yield Line(f"{self.function} ({self.framework}): {self.verdict}")
        if self.reason:
            yield Line(self.reason + ".")
        if self.counterexample is not None:
            found = self.counterexample
            yield Table("First wrong", ("at", "", f"by {self.framework}", "true", "error in ULP"), [
                (at(found.point), found.where, *_both(found),
                 "" if found.kind == "raises" else size(found.ulp))])
        if self.formula is not None:
            yield Formula("f", self.formula)
        if self.agreements:
            headers = "order", "", "wrong at", "largest error", "bound", "of", "at", f"by {self.framework}", "true"
            yield Table("Agreement with " + self.against, headers, [_row(a) for a in self.agreements])
            for a in self.agreements:
                if a.hint:
                    yield Line(f"order {a.order}: {a.hint}")
            p = self.points
            kinds = ((p.outside, "where the formula has no value, or a part of it one beyond 1e30000"), (p.singular, "without a derivative"),
                     (p.kinks, "on a kink (value only)"))
            left_out = [f"{count} {what}" for count, what in kinds if count]
            yield Line(f"points: {p.random} random, {p.special} special" + (f"; {', '.join(left_out)}" if left_out else "")
                       + "; " + self._where())
        for note in self.notes:
            yield Line(f"note: {note}")

    def _where(self) -> str:
        """The domains, those that are the same together."""
        names: dict[str, list[str]] = {}
        for name, domain in self.domains.items():
            names.setdefault(domain, []).append(name)
        return "; ".join(f"{', '.join(found)} in {domain}" + (", up to 1e8" if "inf" in domain else "") for domain, found in names.items())

    def __repr__(self) -> str:
        return f"<CrossReport {self.function}: {self.verdict}>"


def _row(a: Agreement) -> tuple[str, ...]:
    w = a.worst
    wrong = f"{a.wrong} of {a.compared}"
    if w is None:
        return str(a.order), a.method, wrong, "", "", "", "", "", ""
    raised = w.kind == "raises"
    return (str(a.order), a.method, wrong, "" if raised else size(w.ulp) + " ULP", size(w.bound), w.where, at(w.point), *_both(w))


def size(x: float) -> str:
    """An error with three digits."""
    return "all" if not np.isfinite(x) else f"{x:.0f}" if 100 <= x < 1e5 else f"{x:.3g}"


def number(x: float) -> str:
    """A number with eight digits."""
    return f"{float(x) + 0.0:.8g}"


def pair(value: float, truth: float) -> tuple[str, str]:
    """Two numbers with eight digits, or with as many as it takes to see that they differ.

    >>> pair(1.0, 1.5), pair(1.0, 1.0 + 1e-14)
    (('1', '1.5'), ('1', '1.00000000000001'))
    """
    for digits in range(8, 18):
        a, b = f"{value + 0.0:.{digits}g}", f"{truth + 0.0:.{digits}g}"
        if a != b:
            return a, b
    return number(value), number(truth)


def _both(f: Finding) -> tuple[str, str]:
    if f.kind == "raises":
        return f.message, number(f.truth)
    return (number(f.value), number(f.truth)) if f.agrees else pair(f.value, f.truth)


def at(point: dict[str, Any]) -> str:
    """A point in one line."""
    def text(v: Any) -> str:
        return f"{float(v):.6g}" if np.ndim(v) == 0 else np.array2string(np.asarray(v), precision=6, threshold=6, separator=", ")

    return ", ".join(f"{name} = {text(v)}" for name, v in point.items())
