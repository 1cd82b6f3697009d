"""What a check found: the report, with its verdict, its numbers and formulas, and its counterexample where there is one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symgrad.reports.shown import Shown
from symgrad.reports.verdicts import Verdict

__all__ = ["Counterexample", "Points", "Report"]

SCHEMA = 1


@dataclass
class Points:
    """Where the check looked: how many random and special points were compared, and to how many digits all of them agree.

    `outside` counts the points where the function has no finite value or does not run, `singular` those where it has no
    derivative, `kinks` those where the derivative is a convention; none of these is compared.
    """

    random: int = 0
    special: int = 0
    outside: int = 0
    singular: int = 0
    kinks: int = 0
    digits: float = 50.0

    @property
    def compared(self) -> int:
        """All points that were compared, the given one among the special ones."""
        return self.random + self.special


@dataclass
class Counterexample:
    """A point, made as simple as possible, at which the rules give another derivative than `sympy.diff` does.

    `rule` is what the library's rules give and `truth` what SymPy gives, both rounded from fifty digits; `op` names the op whose rule is
    wrong where that is known, and `difference` is the simplified difference of the formulas where there is one.
    """

    point: dict[str, Any]
    where: str
    rule: float
    truth: float
    op: str | None = None
    difference: Any = None


@dataclass
class Report(Verdict, Shown):
    """The answer of `symgrad.check`; print it, or show it in a notebook.

    `verdict` is one of "proved", "verified", "refuted" and "not checkable", and `reason` says why. `value`, `gradient` (by input),
    `hessian` and `third` are what the library computes, over the input elements `names`; `formula` and `formulas` are their
    expressions where they are short, `assignments` the let-form where they are not. `errors` has for each order the largest error of a
    float in ULP; `points` says where it was compared. `enclosures` hold the true value and derivatives, where the check was rigorous.
    """

    function: str
    verdict: str
    reason: str
    order: int
    inputs: dict[str, Any] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    value: float | None = None
    shape: tuple[int, ...] | None = None
    formula: Any = None
    formulas: dict[tuple[int, ...], Any] = field(default_factory=dict)
    assignments: list[tuple[Any, Any]] = field(default_factory=list)
    conditions: tuple[Any, ...] = ()
    gradient: dict[str, Any] = field(default_factory=dict)
    hessian: np.ndarray | None = None
    third: np.ndarray | None = None
    errors: list[Any] = field(default_factory=list)
    enclosures: list[Any] = field(default_factory=list)
    points: Points = field(default_factory=Points)
    counterexample: Counterexample | None = None
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data that JSON can hold; numbers that are not finite become "nan", "inf" and "-inf"."""
        found = self.counterexample
        return {
            "schema": SCHEMA,
            "function": self.function,
            "verdict": self.verdict,
            "reason": self.reason,
            "order": self.order,
            "inputs": plain(self.inputs),
            "value": plain(self.value),
            "weighted_shape": plain(self.shape),
            "formula": text(self.formula),
            "assignments": [[text(s), text(e)] for s, e in self.assignments],
            "conditions": [text(c) for c in self.conditions],
            "names": list(self.names),
            "gradient": plain(self.gradient),
            "gradient_formulas": self._texts(1),
            "hessian": plain(self.hessian),
            "hessian_formulas": self._texts(2),
            "third": plain(self.third),
            "errors": [{"order": e.order, "where": e.where, "ulp": plain(e.ulp), "condition": plain(e.condition), "bound": plain(e.bound),
                        "within": e.within, "value": plain(e.value), "truth": plain(e.truth)} for e in self.errors],
            "points": {"random": self.points.random, "special": self.points.special, "outside": self.points.outside,
                       "singular": self.points.singular, "kinks": self.points.kinks, "digits": round(self.points.digits, 1)},
            "counterexample": None if found is None else {
                "point": plain(found.point), "where": found.where, "rule": plain(found.rule), "truth": plain(found.truth), "op": found.op,
                "difference": text(found.difference)},
            "notes": list(self.notes),
            "seconds": round(self.seconds, 3),
        } | ({"enclosures": [e.to_dict() for e in self.enclosures]} if self.enclosures else {})

    def _texts(self, order: int) -> dict[str, str | None]:
        return {" ".join(self.names[i] for i in index): text(e) for index, e in self.formulas.items() if len(index) == order}

    def outline(self) -> Any:
        """What the report says, part by part."""
        from symgrad.reports.rendering import outline

        return outline(self)

    def __repr__(self) -> str:
        return f"<Report {self.function}: {self.verdict}>"


def text(e: Any) -> str | None:
    """An expression as text, None for none."""
    return None if e is None else str(e)


def plain(x: Any) -> Any:
    """Numbers, arrays and containers of them as JSON has them.

    >>> plain({"x": np.array([1.0, np.nan])})
    {'x': [1.0, 'nan']}
    """
    if isinstance(x, Mapping):
        return {str(k): plain(v) for k, v in x.items()}
    if isinstance(x, (np.ndarray, np.generic)):
        return plain(x.tolist())
    if isinstance(x, (list, tuple)) and isinstance(x, Sequence):
        return [plain(v) for v in x]
    if isinstance(x, float) and not math.isfinite(x):
        return "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"
    return x
