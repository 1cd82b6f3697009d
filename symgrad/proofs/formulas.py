"""The formulas of a report, and the proof of the derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from symgrad.algebra.identity import identical
from symgrad.algebra.simplification import FAILURES, shortest_difference, shortest_form
from symgrad.carriers import symbolic
from symgrad.carriers.sizes import tree_size
from symgrad.formulas import expressions  # noqa: F401  gives Tensors their formulas
from symgrad.reference.elementary import derivative
from symgrad.reference.exact import ComparedNumber
from symgrad.reference.oracle import Oracle
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reference.run import Run
from symgrad.reference.template import NoFormula
from symgrad.reports.base import PROVED, label
from symgrad.reports.report import Report

POINTS = 8  # the points at which `identical` compares two formulas, in addition to those of the check


class Formulas:
    """The value and its derivatives as formulas of the input symbols: by the rules (`derivatives`, by indices) and by `sympy.diff` (`reference`).

    With `exact`, every constant is a rational number of exactly its value.
    """

    def __init__(self, run: Run, names: Sequence[str], order: int, exact: bool = True):
        self.symbols = [sympy.Symbol(name, real=True) for name in names]
        leaves, at = [], 0
        for leaf in run.leaves:
            size = leaf.numel()
            leaves.append((symbolic.ExactExpressions if exact else symbolic.Expressions).fill(self.symbols[at:at + size], tuple(leaf.shape)))
            at += size
        recorder = RecordingCarrier(symbolic, lambda x: symbolic.lift_value(x, exact))
        self.derivatives: dict[tuple[int, ...], Any] = {index: box.value.ravel()[i].item() for index, box, i in run.read(recorder, leaves, order)}
        self.references: dict[tuple[int, ...], Any] = {(): self.derivatives.pop(())}

    def reference(self, index: tuple[int, ...]) -> Any:
        if index not in self.references:
            self.references[index] = derivative(self.reference(index[:-1]), self.symbols[index[-1]])
        return self.references[index]

    def unproved(self, effort: float = 1.0) -> tuple[int, ...] | None:
        """The first derivative whose formulas are not proved to be identical, also in numbers; None if there is none."""
        for index, by_rules in self.derivatives.items():
            reference = self.reference(index)
            if by_rules != reference and identical(by_rules, reference, points=POINTS, effort=effort).verdict != PROVED:
                return index
        return None


def size_of(e: Any) -> int:
    """The number of nodes of an expression as a tree, in time linear in the number of distinct nodes."""
    return tree_size(e, {})


SHORT = 120  # the most operations of a formula that is shown as one expression
EFFORT = 600  # the most operations of the formulas that are simplified for one report
KEPT = 2000  # the most nodes of the formula of a derivative in a report
SHOWN = {1: 12, 2: 6, 3: 2}  # the most inputs for which the derivatives of an order are shown as formulas
LARGEST = 20_000  # the most operations of a flat formula, times the number of its derivatives, for which a proof is tried


def flat_size(oracle: Oracle) -> float:
    """The number of operations of the flat formula, without common subexpressions."""
    sizes: list[float] = []
    for step in oracle.steps:
        sizes.append(1.0 + sum([sizes[k] for k in step.inputs]) if step.inputs else 0.0)
    return sizes[oracle.output]


def add_formulas(report: Report, base: Run, order: int) -> list[Any]:
    """Add the formulas of a named run to the report: a short one as an expression, a long one as assignments.

    Returns the formulas of the derivatives by the rules, empty if they are long.
    """
    report.conditions = base.result.conditions
    try:
        size = flat_size(Oracle(base.root, base.nodes))
    except NoFormula:
        return []
    if size > SHORT:
        report.assignments = base.result.assignments()
        return []
    report.formula = base.result.expr
    n = len(report.names)
    shown = max((k for k in range(1, order + 1) if n <= SHOWN[k]), default=0)
    rules: list[Any] = []
    for highest in dict.fromkeys((shown, 1)) if shown else ():
        left = EFFORT
        try:
            derivatives = Formulas(base, report.names, highest, exact=False).derivatives
        except FAILURES:  # a rule without a formula
            continue
        rules = list(dict.fromkeys(derivatives.values()))
        for index, formula in derivatives.items():
            known = report.formulas.get(tuple(sorted(index)))
            if known is None and size_of(formula) <= KEPT:
                left -= sympy.count_ops(formula)
                known = formula if left < 0 or size_of(formula) > 3 * SHORT else shortest_form(formula)
            if known is not None:
                report.formulas[index] = known
        break
    return rules


def reason_unproved(base: Run, names: Sequence[str], order: int, effort: float = 1.0) -> str | None:
    """The reason why the derivatives up to an order are not proved, None if they are."""
    try:
        size = flat_size(Oracle(base.root, base.nodes))
    except NoFormula as error:
        return str(error)
    if size * len(names) ** order > LARGEST:
        return f"written out, the formula has {size:,.0f} operations and {len(names)} variables, too many for a proof"
    try:
        failure = Formulas(base, names, order).unproved(effort)
    except FAILURES as error:
        return f"SymPy could not compare the formulas ({type(error).__name__}: {error})"
    return None if failure is None else f"SymPy did not reduce the two formulas of {label(len(failure), failure, names)} to the same one"


def difference(run: Run, names: Sequence[str], entry: ComparedNumber) -> Any:
    """The simplified difference of a derivative's two formulas if it is short, else None."""
    try:
        if entry.directional or not entry.order or flat_size(Oracle(run.root, run.nodes)) > SHORT:
            return None
        found = Formulas(run, names, entry.order, exact=False)
        return shortest_difference(found.derivatives[entry.index], found.reference(entry.index))  # None where the rules give no number here
    except (KeyError, NoFormula, *FAILURES):
        return None
