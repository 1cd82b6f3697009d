"""The formulas in a report: what is short enough to show, and whether it can be proved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import sympy

from symgrad.algebra.deciding import FAILURES, shortest
from symgrad.algebra.identity import identical
from symgrad.algebra.ladder import DIFFERENT, OPEN, compared, rungs
from symgrad.algebra.limits import OutOfTime, clock, limited
from symgrad.carriers import precise, symbolic
from symgrad.carriers.digits import Undefined
from symgrad.formulas import expressions  # noqa: F401  gives Tensors their formulas
from symgrad.reference.elementary import derivative, evaluator
from symgrad.reference.exact import ComparedNumber
from symgrad.reference.oracle import Oracle
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reference.run import Run
from symgrad.reports.numbers import label
from symgrad.reports.report import Report
from symgrad.reports.verdicts import PROVED

__all__ = ["difference", "flat_size", "proof", "show", "size_of"]

POINTS = 8  # points at which `identical` compares two formulas, in addition to those of the check


class Formulas:
    """The value and its derivatives as formulas of the input symbols: by the rules (`derivatives`, by indices) and by `sympy.diff` (`truth`).

    With `exact`, every constant is a rational of exactly its value.
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
        self.truths: dict[tuple[int, ...], Any] = {(): self.derivatives.pop(())}

    def truth(self, index: tuple[int, ...]) -> Any:
        """The derivative by the inputs of these indices, by `sympy.diff` of the formula."""
        if index not in self.truths:
            self.truths[index] = derivative(self.truth(index[:-1]), self.symbols[index[-1]])
        return self.truths[index]

    def unproved(self, points: Sequence[np.ndarray], seconds: float = 3.0) -> tuple[int, ...] | None:
        """The first derivative that is not shown to be right, None if all are: proved to be identical, and equal in numbers at the points."""
        end = clock() + seconds
        for index, ours in self.derivatives.items():
            left, true = max(end - clock(), 0.02), self.truth(index)
            if ours != true and identical(ours, true, seconds=left, points=POINTS).verdict != PROVED:
                return index
        return self._disagreement(points)

    def _disagreement(self, points: Sequence[np.ndarray]) -> tuple[int, ...] | None:
        """The first derivative that differs in numbers. SymPy can return a silent 0, so that a literal one alone proves nothing."""
        functions = {index: [evaluator(self.symbols, e) for e in (ours, self.truth(index))] for index, ours in self.derivatives.items()}
        unseen = set(functions)
        for point in points:
            for index, pair in functions.items():
                try:
                    if _numbers_differ(pair, [mpmath.mpf(float(x)) for x in point]):
                        return index
                except Undefined:
                    continue
                unseen.discard(index)
        return min(unseen) if unseen else None


def _numbers_differ(pair: Sequence[Callable[..., Any]], xs: Sequence[Any]) -> bool:
    """Whether two functions do not certainly agree at a point, but for what rounding leaves of numbers near 1. Raises Undefined without values."""
    before = None
    for digits in rungs(80, 320):
        with precise.working(digits):
            a, b = (function(*xs) for function in pair)
            if abs(a - b) <= mpmath.mpf(10) ** (20 - digits):
                return False
            verdict = compared(a, b, before, lambda: 0)
        if verdict != OPEN:
            return verdict == DIFFERENT
        before = a, b
    return True


def size_of(e: Any) -> int:
    """How many nodes an expression has when it is written out; in time linear in the number of distinct nodes."""
    sizes: dict[Any, int] = {}
    stack = [e]
    while stack:
        top = stack[-1]
        missing = [] if top in sizes else [part for part in top.args if part not in sizes]
        stack.extend(missing)
        if not missing:
            sizes[top] = 1 + sum([sizes[part] for part in top.args])
            stack.pop()
    return sizes[e]


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
        end = clock() + 4.0
        try:
            with limited(4.0):
                derivatives = Formulas(base, report.names, highest, exact=False).derivatives
        except (OutOfTime, *FAILURES):  # a rule that has no formula, or a long one
            continue
        rules = list(dict.fromkeys(derivatives.values()))
        for index, ours in derivatives.items():
            known = report.formulas.get(tuple(sorted(index)))
            if known is not None or size_of(ours) <= KEPT:
                report.formulas[index] = known if known is not None else _tidy(ours, end - clock())
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


def difference(run: Run, names: Sequence[str], entry: ComparedNumber) -> Any:
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
