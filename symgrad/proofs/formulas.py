"""The formulas in a report: what is short enough to show, and whether it can be proved."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.algebra.deciding import FAILURES, shortest
from symgrad.algebra.limits import OutOfTime, limited
from symgrad.formulas import expressions  # noqa: F401  gives Tensors their formulas
from symgrad.proofs.proof import Formulas, size_of
from symgrad.reference.exact import Entry
from symgrad.reference.oracle import Oracle
from symgrad.reference.run import Run
from symgrad.reports.labels import label
from symgrad.reports.report import Report

__all__ = ["difference", "flat_size", "proof", "show"]

SHORT = 120  # operations up to which a formula is written out
KEPT = 2000  # nodes up to which the formula of a derivative is kept at all
SHOWN = {1: 12, 2: 6, 3: 2}  # inputs up to which the derivatives of an order are shown as formulas
LARGEST = 20_000  # operations of a flat formula, times the derivatives to take of it, up to which a proof is tried


def flat_size(oracle: Oracle) -> float:
    """How many operations the formula has when it is written out without names for what it repeats."""
    sizes: list[float] = []
    for step in oracle.steps:
        sizes.append(1.0 + sum([sizes[k] for k in step.inputs]) if step.inputs else 0.0)
    return sizes[oracle.output]


def show(report: Report, base: Run, order: int) -> list[Any]:
    """Add the formulas of a named run to the report: written out where that is short, as assignments where it is not.

    Returned are the formulas of the rules, none where they are long.
    """
    size = flat_size(Oracle(base.root, base.nodes))
    report.conditions = base.result.conditions
    if size > SHORT:
        report.assignments = base.result.assignments()
        return []
    report.formula = base.result.expr
    n = len(report.names)
    shown = max((k for k in range(1, order + 1) if n <= SHOWN[k]), default=0)
    rules: list[Any] = []
    for highest in dict.fromkeys((shown, 1)) if shown else ():
        end = time.monotonic() + 4.0
        try:
            with limited(4.0):
                derivatives = Formulas(base, report.names, highest, exact=False).derivatives
        except (OutOfTime, *FAILURES):  # a rule that has no formula, or a long one
            continue
        rules = list(dict.fromkeys(derivatives.values()))
        for index, ours in derivatives.items():
            known = report.formulas.get(tuple(sorted(index)))
            if known is not None or size_of(ours) <= KEPT:
                report.formulas[index] = known if known is not None else _tidy(ours, end - time.monotonic())
        break
    return rules


def _tidy(e: Any, seconds: float) -> Any:
    """The shortest form of an expression that is found in a short time; a long one itself."""
    return e if size_of(e) > 3 * SHORT or seconds <= 0 else shortest(e, min(2.0, seconds))


def proof(base: Run, names: Sequence[str], order: int, points: Sequence[np.ndarray], seconds: float) -> str | None:
    """Try to prove every derivative up to an order: None for success, else the reason why not."""
    size = flat_size(Oracle(base.root, base.nodes))
    if size * len(names) ** order > LARGEST:
        return f"written out, the formula has {size:,.0f} operations and {len(names)} variables, too many for a proof"
    try:
        with limited(seconds):
            failure = Formulas(base, names, order).unproved(points[:6], seconds)
    except OutOfTime:
        return f"SymPy needed longer than {seconds:g} seconds to reduce the difference of the formulas to 0"
    except FAILURES as error:
        return f"SymPy could not compare the formulas ({type(error).__name__}: {error})"
    return None if failure is None else f"SymPy did not reduce the two formulas of {label(len(failure), failure, names)} to the same one"


def difference(run: Run, names: Sequence[str], entry: Entry) -> Any:
    """The simplified difference of a derivative's two formulas, where it is short."""
    try:
        if entry.directional or not entry.order or flat_size(Oracle(run.root, run.nodes)) > SHORT:
            return None
        with limited(3.0):
            found = Formulas(run, names, entry.order, exact=False)
            out = _tidy(found.derivatives[entry.index] - found.truth(entry.index), 2.0)
            return None if out == 0 else out  # the rules give no number here, though their formula is right
    except (OutOfTime, KeyError, *FAILURES):
        return None
