"""Proving a derivative: the rules' formula and `sympy.diff` of the formula are proved to be identical, and the numbers agree."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import sympy

from symgrad.algebra.identity import identical
from symgrad.algebra.ladder import DIFFERENT, OPEN, compared, rungs
from symgrad.carriers import precise, symbolic
from symgrad.carriers.digits import Undefined
from symgrad.reference.elementary import derivative, evaluator
from symgrad.reference.recorder import Recorder
from symgrad.reference.run import Run
from symgrad.reports.verdicts import PROVED

__all__ = ["Formulas", "size_of"]

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
        recorder = Recorder(symbolic, lambda x: symbolic.lift_value(x, exact))
        self.derivatives: dict[tuple[int, ...], Any] = {index: box.value.ravel()[i].item() for index, box, i in run.read(recorder, leaves, order)}
        self.truths: dict[tuple[int, ...], Any] = {(): self.derivatives.pop(())}

    def truth(self, index: tuple[int, ...]) -> Any:
        """The derivative by the inputs of these indices, by `sympy.diff` of the formula."""
        if index not in self.truths:
            self.truths[index] = derivative(self.truth(index[:-1]), self.symbols[index[-1]])
        return self.truths[index]

    def unproved(self, points: Sequence[np.ndarray], seconds: float = 3.0) -> tuple[int, ...] | None:
        """The first derivative that is not shown to be right, None if all are: proved to be identical, and equal in numbers at the points."""
        end = time.monotonic() + seconds
        for index, ours in self.derivatives.items():
            left, true = max(end - time.monotonic(), 0.02), self.truth(index)
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
