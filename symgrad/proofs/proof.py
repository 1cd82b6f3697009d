"""Proving a derivative: the rules' formula minus `sympy.diff` of the formula is reduced to a literal 0, and the numbers agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import sympy

from symgrad.algebra.ladder import DIFFERENT, OPEN, compared, rungs
from symgrad.algebra.limits import OutOfTime, limited
from symgrad.carriers import precise, symbolic
from symgrad.carriers.digits import Undefined
from symgrad.reference.elementary import derivative, evaluator
from symgrad.reference.recorder import Recorder
from symgrad.reference.run import Run

__all__ = ["Formulas", "OutOfTime", "is_zero", "limited", "size_of"]

EXPAND = 800  # nodes of a difference that is multiplied out or simplified


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
        y, boxes = recorder.replayed(run.root, run.nodes, leaves)
        self.derivatives: dict[tuple[int, ...], Any] = {index: box.value.ravel()[i].item() for index, box, i in recorder.partials(y, boxes, order)}
        self.truths: dict[tuple[int, ...], Any] = {(): self.derivatives.pop(())}

    def truth(self, index: tuple[int, ...]) -> Any:
        """The derivative by the inputs of these indices, by `sympy.diff` of the formula."""
        if index not in self.truths:
            self.truths[index] = derivative(self.truth(index[:-1]), self.symbols[index[-1]])
        return self.truths[index]

    def unproved(self, points: Sequence[np.ndarray]) -> tuple[int, ...] | None:
        """The first derivative that is not shown to be right, None if all are: literally zero, and equal in numbers at the points."""
        for index, ours in self.derivatives.items():
            if not is_zero(ours - self.truth(index)):
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


def is_zero(difference: Any) -> bool:
    """Whether an expression is identically zero by SymPy's decision procedures; False also where they do not decide.

    >>> x = sympy.Symbol("x", real=True)
    >>> is_zero(1 / sympy.cosh(x) ** 2 - 1 + sympy.tanh(x) ** 2), is_zero(x - sympy.sin(x))
    (True, False)
    """
    if difference == 0:
        return True
    if size_of(difference) > EXPAND or not _zero_somewhere(difference):
        return False
    for method in (sympy.expand, _numerator, sympy.cancel, sympy.simplify):
        try:
            if method(difference) == 0:
                return True
        except (NotImplementedError, sympy.PolynomialError, RecursionError, TypeError, ValueError, ZeroDivisionError, AttributeError):
            continue
    return False


def _numerator(e: Any) -> Any:
    """The numerator over one denominator, multiplied out, with all exponentials as powers of as few as possible.

    Hyperbolic and trigonometric functions become exponentials first, so that what is left is a polynomial.
    """
    e = e.rewrite(sympy.exp) if e.has(sympy.functions.elementary.hyperbolic.HyperbolicFunction, sympy.sin, sympy.cos, sympy.tan) else e
    parts = {power: [term.as_coeff_Mul() for term in sympy.Add.make_args(sympy.expand(power.args[0]))] for power in e.atoms(sympy.exp)}
    common: dict[Any, int] = {}
    for terms in parts.values():
        for q, rest in terms:
            if isinstance(q, sympy.Rational):
                common[rest] = sympy.ilcm(common.get(rest, 1), q.q)
    bases = {rest: sympy.Dummy(positive=True) if rest.is_extended_real else sympy.Dummy() for rest in common}
    powers = {power: sympy.Mul(*(bases[rest] ** (q * common[rest]) if rest in bases and isinstance(q, sympy.Rational) else sympy.exp(q * rest)
                                 for q, rest in terms)) for power, terms in parts.items()}
    return sympy.expand(sympy.together(e.xreplace(powers)).as_numer_denom()[0])


def _zero_somewhere(difference: Any) -> bool:
    """Whether the expression vanishes at a test point; one that does not need not be simplified."""
    symbols = sorted(difference.free_symbols, key=str)
    with precise.working(80):
        try:
            return bool(abs(evaluator(symbols, difference)(*(mpmath.mpf(7 + 3 * i) / (11 + i) for i in range(len(symbols))))) < 1e-12)
        except Undefined:
            return True
