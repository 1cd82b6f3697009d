"""What a check found: the report, with its verdict, its numbers and formulas, and its counterexample where there is one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from symgrad.reports.labels import label
from symgrad.reports.rendering import Formula, Line, Parts, Shown, Table, number, short
from symgrad.reports.verdicts import Verdict

__all__ = ["Counterexample", "Points", "Report"]

SCHEMA = 1
ROWS = 12  # rows of a table, or lines of a let-form, that are shown
ENCLOSED = 24  # enclosures that are shown
MATRIX = 6  # inputs up to which the Hessian is shown as a matrix


@dataclass
class Points:
    """The points of a check: how many random and special points were compared, and to how many digits all of them agree.

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
            "points": plain(self.points) | {"digits": round(self.points.digits, 1)},
            "counterexample": None if found is None else plain(found) | {"difference": text(found.difference)},
            "notes": list(self.notes),
            "seconds": round(self.seconds, 3),
        } | ({"enclosures": plain(self.enclosures)} if self.enclosures else {})

    def _texts(self, order: int) -> dict[str, str | None]:
        return {" ".join(self.names[i] for i in index): text(e) for index, e in self.formulas.items() if len(index) == order}

    def outline(self) -> Parts:
        """What the report says, part by part."""
        return _outline(self)

    def __repr__(self) -> str:
        return f"<Report {self.function}: {self.verdict}>"


def text(e: Any) -> str | None:
    """An expression as text, None for none."""
    return None if e is None else str(e)


def plain(x: Any) -> Any:
    """Numbers, arrays, dataclasses and containers of them as JSON has them.

    >>> plain({"x": np.array([1.0, np.nan])})
    {'x': [1.0, 'nan']}
    """
    if is_dataclass(x) and not isinstance(x, type):
        return {f.name: plain(getattr(x, f.name)) for f in fields(x)}
    if isinstance(x, Mapping):
        return {str(k): plain(v) for k, v in x.items()}
    if isinstance(x, (np.ndarray, np.generic)):
        return plain(x.tolist())
    if isinstance(x, (list, tuple)) and isinstance(x, Sequence):
        return [plain(v) for v in x]
    if isinstance(x, float) and not math.isfinite(x):
        return "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"
    return x


def _outline(report: Report) -> Parts:
    """What the report of a check says, in order."""
    yield Line(f"{report.function}: {report.verdict}")
    if report.reason:
        yield Line(report.reason + ".")
    if report.inputs:
        yield Line("at " + ", ".join(f"{name} = {number(np.asarray(v))}" for name, v in report.inputs.items()))
    if report.counterexample is not None:
        yield from _refutation(report)
    yield from _formula(report)
    if report.value is not None:
        yield from _derivatives(report)
    if report.enclosures:
        yield from _enclosures(report)
    if report.errors:
        yield Table("Largest error of the floats (ULP of the true value)", ("order", "error", "bound", "of", "condition", ""), [
            (str(e.order), f"{e.ulp:.3g}", f"{e.bound:.3g}", e.where, f"{e.condition:.3g}", "" if e.within else "accuracy is lost")
            for e in report.errors])
        p = report.points
        left_out = [f"{count} {what}" for count, what in ((p.outside, "outside the domain"), (p.singular, "without a derivative"),
                                                          (p.kinks, "on a kink")) if count]
        yield Line(f"compared at {p.random} random and {p.special} special points" + (f"; left out: {', '.join(left_out)}" if left_out else ""))
    for note in report.notes:
        yield Line(f"note: {note}")


def _refutation(report: Report) -> Parts:
    found = report.counterexample
    assert found is not None
    yield Table("Counterexample", ("at", "derivative", "by the rules", "by SymPy"), [
        (", ".join(f"{name} = {number(np.asarray(v))}" for name, v in found.point.items()), found.where,
         f"{found.rule:.15g}", f"{found.truth:.15g}")])
    if found.difference is not None:
        yield Formula("difference", found.difference)


def _enclosures(report: Report) -> Parts:
    rows = [(e.where, e.interval, f"{e.value:.17g}", "inside" if e.inside else f"{e.ulp:.3g} ULP away", str(e.bits), "" if e.narrow else "wide")
            for e in report.enclosures[:ENCLOSED]]
    if len(report.enclosures) > ENCLOSED:
        rows.append((f"... {len(report.enclosures) - ENCLOSED} more; all are in report.enclosures", "", "", "", "", ""))
    yield Table("Enclosures (certain to hold the true number)", ("", "interval", "float", "", "bits", ""), rows)


def _formula(report: Report) -> Parts:
    if report.shape is not None:
        yield Line(f"f is the sum of the result (shape {list(report.shape)}), weighted by 1, 2, 3, ...")
    if report.formula is not None:
        yield Formula("f", report.formula)
    elif report.assignments:
        lines = report.assignments
        shown = lines if len(lines) <= ROWS else [*lines[:ROWS // 2], *lines[-ROWS // 2:]]
        for i, (symbol, e) in enumerate(shown):
            if len(lines) > ROWS and i == ROWS // 2:
                yield Line(f"... {len(lines) - ROWS} more; all are in report.assignments ...")
            yield Formula(str(symbol), e)
        yield Line(f"f = {lines[-1][0]}")
    if report.conditions:
        yield Line("valid where " + ", ".join(map(str, report.conditions)))


def _derivatives(report: Report) -> Parts:
    yield Line(f"value {number(report.value)}")
    names = report.names
    flat = np.concatenate([np.ravel(v) for v in report.gradient.values()]) if report.gradient else np.zeros(0)
    rows = []
    for i in range(min(len(flat), ROWS)):
        e = report.formulas.get((i,))
        rows.append((label(1, (i,), names), number(flat[i]), "" if e is None else short(e)))
    if len(flat) > ROWS:
        rows.append((f"... {len(flat) - ROWS} more", "", ""))
    if rows:
        yield Table("Gradient", ("", "value", "formula"), rows)
    if report.hessian is None:
        return
    n = len(names)
    if n > MATRIX:
        yield Line(f"the Hessian is {n} x {n}; it is in report.hessian")
        return
    if n > 1:
        yield Table("Hessian", ("", *names), [(names[i], *(number(report.hessian[i, j]) for j in range(n))) for i in range(n)])
    higher: list[tuple[int, tuple[int, ...]]] = [(2, (i, j)) for i in range(n) for j in range(i, n)]
    if report.third is not None:
        higher += [(3, index) for index in itertools.combinations_with_replacement(range(n), 3)]
    rows = []
    for order, index in higher:
        e = report.formulas.get(index)
        if e is not None or n == 1:
            value = (report.hessian if order == 2 else report.third)[index]  # type: ignore[index]
            rows.append((label(order, index, names), number(value), "" if e is None else short(e)))
    if rows:
        yield Table("Higher derivatives", ("", "value", "formula"), rows)
