"""What a check and a cross-check found: verdicts, numbers and formulas, the agreement of every order, and a counterexample where there is one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from symgrad.reports.base import BaseReport, Formula, Line, Part, Table, at, label, number, pair, plain, short, ulp_text

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
    digits: float | None = None

    @property
    def compared(self) -> int:
        """All points that were compared, the given one among the special ones."""
        return self.random + self.special

    def described(self, outside: str, kinks: str) -> str:
        """How many points were compared, and how many were left out for which reason."""
        kinds = (self.outside, outside), (self.singular, "without a derivative"), (self.kinks, kinks)
        left_out = ", ".join(f"{count} {what}" for count, what in kinds if count)
        return f"points: {self.random} random, {self.special} special" + (f"; left out: {left_out}" if left_out else "")


@dataclass
class Counterexample:
    """A point, made as simple as possible, at which the rules give another derivative than `sympy.diff` does.

    `rule` is what the library's rules give and `truth` what SymPy gives, both rounded from fifty digits; `op` names the op whose rule is
    wrong where that is known, and `difference` is the simplified difference of the formulas where there is one. Of a comparison of the floats,
    `rule` is the float and `op` the operation that loses the digits.
    """

    point: dict[str, Any]
    where: str
    rule: float
    truth: float
    op: str | None = None
    difference: Any = None


@dataclass(repr=False)
class Report(BaseReport):
    """The answer of `symgrad.check`; print it, or show it in a notebook.

    `verdict` is one of "proved", "verified", "imprecise", "refuted" and "not checkable", and `reason` says why. `value`, `gradient` (by input),
    `hessian` and `third` are what the library computes, over the input elements `names`; `formula` and `formulas` are their
    expressions where they are short, `assignments` the let-form where they are not. `errors` has for each order the largest error of a
    float in ULP; `points` says where it was compared. `enclosures` hold the true value and derivatives, where the check was rigorous.
    A result that is an array of the `shape` was weighted by 1, 2, 3, ... and summed. `comparison` is the CrossReport of the floats,
    where `ulp`, `atol`, `rtol` or `range` asked for it.
    """

    DERIVED = "gradient_formulas", "hessian_formulas"
    HIDDEN = "shape", "formulas", "enclosures", "comparison"

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
    comparison: Any = None

    def add(self, comparison: Any) -> None:
        """Add the comparison of the floats; where it finds them wrong or imprecise, its verdict is that of the report."""
        self.comparison = comparison
        self.seconds += comparison.seconds
        if comparison.ok:
            self.notes.append(f"the floats: {comparison.reason}")
        else:
            self.notes.append(f"but for its floats it is {self.verdict}: {self.reason}")
            self.verdict, self.reason, found = comparison.verdict, comparison.reason, comparison.counterexample
            if found is not None:
                self.counterexample = Counterexample(found.point, found.where, found.value, found.truth, found.operation or None)
        self.notes += comparison.notes

    def to_dict(self) -> dict[str, Any]:
        further = {name: plain(getattr(self, name)) for name in ("enclosures", "comparison") if getattr(self, name) not in (None, [])}
        return super().to_dict() | {"weighted_shape": plain(self.shape)} | further

    def _formulas(self, order: int) -> dict[str, Any]:
        return {" ".join(self.names[i] for i in index): e for index, e in self.formulas.items() if len(index) == order}

    @property
    def gradient_formulas(self) -> dict[str, Any]:
        """The formulas of the gradient, by the name of the input element."""
        return self._formulas(1)

    @property
    def hessian_formulas(self) -> dict[str, Any]:
        """The formulas of the second derivatives, by the names of both input elements."""
        return self._formulas(2)

    def parts(self) -> Iterator[Part]:
        if self.inputs:
            yield Line("at " + at(self.inputs, len(self.inputs)))
        if self.comparison is not None:
            yield from self.comparison.parts()
        elif self.counterexample is not None:
            found = self.counterexample
            yield Table("Counterexample", ("at", "derivative", "by the rules", "by SymPy"),
                        [(at(found.point, len(found.point)), found.where, f"{found.rule:.15g}", f"{found.truth:.15g}")])
            if found.difference is not None:
                yield Formula("difference", found.difference)
        yield from self._formula()
        if self.value is not None:
            yield from self._derivatives()
        if self.enclosures:
            rows = [(e.where, e.interval, f"{e.value:.17g}", "inside" if e.inside else f"{e.ulp:.3g} ULP away", str(e.bits),
                     "" if e.narrow else "wide") for e in self.enclosures[:ENCLOSED]]
            if len(self.enclosures) > ENCLOSED:
                rows.append((f"... {len(self.enclosures) - ENCLOSED} more; all are in report.enclosures", "", "", "", "", ""))
            yield Table("Enclosures (certain to hold the true number)", ("", "interval", "float", "", "bits", ""), rows)
        if self.errors:
            yield Table("Largest error of the floats (ULP of the true value)", ("order", "error", "bound", "of", "condition", ""), [
                (str(e.order), f"{e.ulp:.3g}", f"{e.bound:.3g}", e.where, f"{e.condition:.3g}", "" if e.within else "accuracy is lost")
                for e in self.errors])
            yield Line(self.points.described("outside the domain", "on a kink"))

    def _formula(self) -> Iterator[Part]:
        if self.shape is not None:
            yield Line(f"f is the sum of the result (shape {list(self.shape)}), weighted by 1, 2, 3, ...")
        if self.formula is not None:
            yield Formula("f", self.formula)
        elif self.assignments:
            lines = self.assignments
            shown = lines if len(lines) <= ROWS else [*lines[:ROWS // 2], *lines[-ROWS // 2:]]
            for i, (symbol, e) in enumerate(shown):
                if len(lines) > ROWS and i == ROWS // 2:
                    yield Line(f"... {len(lines) - ROWS} more; all are in report.assignments ...")
                yield Formula(str(symbol), e)
            yield Line(f"f = {lines[-1][0]}")
        if self.conditions:
            yield Line("valid where " + ", ".join(map(str, self.conditions)))

    def _derivatives(self) -> Iterator[Part]:
        yield Line(f"value {number(self.value)}")
        names = self.names
        flat = np.concatenate([np.ravel(v) for v in self.gradient.values()]) if self.gradient else np.zeros(0)
        rows = []
        for i in range(min(len(flat), ROWS)):
            e = self.formulas.get((i,))
            rows.append((label(1, (i,), names), number(flat[i]), "" if e is None else short(e)))
        if len(flat) > ROWS:
            rows.append((f"... {len(flat) - ROWS} more", "", ""))
        if rows:
            yield Table("Gradient", ("", "value", "formula"), rows)
        if self.hessian is None:
            return
        n = len(names)
        if n > MATRIX:
            yield Line(f"the Hessian is {n} x {n}; it is in report.hessian")
            return
        if n > 1:
            yield Table("Hessian", ("", *names), [(names[i], *(number(self.hessian[i, j]) for j in range(n))) for i in range(n)])
        higher: list[tuple[int, tuple[int, ...]]] = [(2, (i, j)) for i in range(n) for j in range(i, n)]
        if self.third is not None:
            higher += [(3, index) for index in itertools.combinations_with_replacement(range(n), 3)]
        rows = []
        for order, index in higher:
            e = self.formulas.get(index)
            if e is not None or n == 1:
                value = (self.hessian if order == 2 else self.third)[index]  # type: ignore[index]
                rows.append((label(order, index, names), number(value), "" if e is None else short(e)))
        if rows:
            yield Table("Higher derivatives", ("", "value", "formula"), rows)


def as_latex(report: Report) -> str:
    """The formulas of the value and its derivatives as LaTeX, one equation per line."""
    import sympy  # takes a third of a second, and only this output needs it

    symbols = [sympy.Symbol(name) for name in report.names]
    lines = [f"f = {sympy.latex(report.formula)}"] if report.formula is not None else [
        f"{sympy.latex(symbol)} = {sympy.latex(e)}" for symbol, e in report.assignments]
    for index, e in report.formulas.items():
        if tuple(sorted(index)) == index:
            below = " ".join(rf"\partial {sympy.latex(symbols[i])}" for i in index)
            above = r"\partial f" if len(index) == 1 else rf"\partial^{{{len(index)}}} f"
            lines.append(rf"\frac{{{above}}}{{{below}}} = {sympy.latex(e)}")
    return "\n".join([*lines, f"% {report.verdict}: {report.reason}"])


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
