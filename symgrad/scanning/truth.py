"""The truth at points that are floats: with as many digits as it takes, by the rules themselves or by `sympy.diff` of a formula.

A number counts as true once the floats agree with it (both do not lose the same digits: it was computed with more of them than the
computation spans powers of ten) or once twice the digits give it again. What is below all floats is computed with very many: there terms may have
cancelled that differ. An exact 0, where nothing depends on the argument, is the int 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import mpmath
import numpy as np

from symgrad.sampling.floats import Floats
from symgrad.scanning.subject import Index, indices

__all__ = ["LEVELS", "ByFormula", "Exact", "Truth", "condition"]

LEVELS = (60, 120, 240, 480, 960, 1920)
SMALL = 480  # digits that distinguish a number below all floats from one that was lost
AGREED = 4.0  # ULP
NOTHING = mpmath.mpf("1e-400")  # below every float, and what it could be multiplied by next
HUGE = 100_000  # bits of an argument of exp, beyond which it is taken for infinite
SAME = mpmath.mpf("1e-25")


class Exact(Protocol):
    """What gives derivatives with many digits."""

    def exact(self, points: np.ndarray, digits: int, order: int, beside: Any = None) -> Mapping[Index, Sequence[Any]]:
        """Every derivative up to an order, computed with that many digits; at a tiny random distance from the points where a generator is given."""

    def spread(self, points: np.ndarray, order: int) -> np.ndarray:
        """The powers of ten that each point's computation spans, infinite where that is not known."""


class ByFormula:
    """A SymPy expression of the arguments, and its derivatives by `sympy.diff`."""

    def __init__(self, formula: Any, names: Sequence[str]):
        import sympy

        by_name = {s.name: s for s in formula.free_symbols}
        unknown = sorted(set(by_name) - set(names))
        if unknown and len(names) == 1 and len(by_name) == 1:
            by_name, unknown = {names[0]: by_name[unknown[0]]}, []
        if unknown:
            raise TypeError(f"accuracy: the formula has the variable {unknown[0]}, which is no argument; those are {', '.join(names)}")
        self.formula, self.symbols = formula, [by_name.get(name, sympy.Dummy()) for name in names]
        self.functions: dict[Index, Any] = {}

    def function(self, index: Index) -> Any:
        """One derivative as a function of mpmath's numbers."""
        import sympy

        if index not in self.functions:
            e = sympy.diff(self.formula, *[self.symbols[i] for i in index]) if index else self.formula
            self.functions[index] = sympy.lambdify(self.symbols, e, [{"exp": _exponential}, "mpmath"])
        return self.functions[index]

    def exact(self, points: np.ndarray, digits: int, order: int, beside: Any = None) -> dict[Index, list[Any]]:
        """Every derivative up to an order, computed with that many digits."""
        out: dict[Index, list[Any]] = {}
        with mpmath.workdps(digits):
            columns = [[mpmath.mpf(x) for x in p] for p in points.astype(np.float64).tolist()]
            if beside is not None:
                columns = [[x + (x or 1) * mpmath.mpf(beside.uniform(-1, 1)) * mpmath.mpf(10) ** -20 for x in column] for column in columns]
            for index in indices(len(self.symbols), order):
                out[index] = [_real(self.function(index), point) for point in zip(*columns)]
        return out

    def spread(self, points: np.ndarray, order: int) -> np.ndarray:
        """Unknown, so infinite."""
        return np.full(points.shape[1], np.inf)


def _exponential(x: Any) -> Any:
    """e**x; a large integer is shifted by a half, since mpmath would multiply e with itself."""
    if mpmath.isint(x) and mpmath.mag(x) > 30:
        return mpmath.exp(mpmath.fadd(x, 0.5, exact=True)) / mpmath.exp(0.5)
    return mpmath.exp(x) if not mpmath.mag(x) > HUGE else mpmath.inf if x > 0 else mpmath.mpf(0)


def _real(function: Any, point: Sequence[Any]) -> Any:
    try:
        out = function(*point)
    except (ZeroDivisionError, ValueError, OverflowError):
        return mpmath.nan
    return out if isinstance(out, (mpmath.mpf, int, float)) else mpmath.nan if mpmath.im(out) else mpmath.re(out)


class Truth:
    """The true derivatives of a function at floats; `digits` is the most that was needed, `undecided` how many numbers stayed unknown."""

    def __init__(self, source: Exact, floats: Floats, order: int):
        self.source, self.floats, self.order = source, floats, order
        self.digits, self.undecided = LEVELS[0], 0

    def at(self, points: np.ndarray, values: Mapping[Index, np.ndarray]) -> dict[Index, list[Any]]:
        """Every derivative at the points, NaN where there is none or it could not be decided; `values` are the floats to be measured."""
        n = points.shape[1]
        out: dict[Index, list[Any]] = {index: [mpmath.nan] * n for index in values}
        spread = self.source.spread(points, self.order)
        level = np.minimum(np.searchsorted(LEVELS, np.where(np.isfinite(spread), spread + 40, 200)), LEVELS.index(SMALL))
        before: dict[int, dict[Index, Any]] = {}
        for k, digits in enumerate(LEVELS):
            due = np.flatnonzero(level == k)
            if not due.size:
                continue
            self.digits = max(self.digits, digits)
            found = self.source.exact(points[:, due], digits, self.order)
            close = {index: self.floats.ulps(values[index][due], found[index]) <= AGREED for index in values}
            for j, i in enumerate(due.tolist()):
                unsettled = []
                for index in values:
                    out[index][i] = t = found[index][j]
                    if not self._settled(t, before.get(i, {}).get(index), close[index][j], digits, spread[i]):
                        unsettled.append(index)
                if unsettled and k + 1 < len(LEVELS):
                    level[i] = k + 1
                    before[i] = {index: out[index][i] for index in values}
                elif unsettled:
                    self.undecided += len(unsettled)
                    for index in unsettled:
                        out[index][i] = mpmath.nan
        return out

    def _settled(self, t: Any, before: Any, close: bool, digits: int, spread: float) -> bool:
        """Whether a number is certain: the floats agree with it, or the previous precision gave the same."""
        if isinstance(t, int) or not mpmath.isfinite(t):
            return True
        if abs(t) < NOTHING:
            return digits >= SMALL and (spread + 100 < digits or digits > SMALL and before is not None and abs(before) < NOTHING)
        return bool(close) or before is not None and bool(t == before or abs(t - before) <= SAME * abs(t))


def condition(source: Exact, points: np.ndarray, index: Index, order: int, rng: np.random.Generator) -> list[float]:
    """By how many relative errors of the point a derivative moves: how much of an error no algorithm on floats could have avoided."""
    digits = LEVELS[min(int(np.searchsorted(LEVELS, float(source.spread(points, order).max()) + 60)), len(LEVELS) - 1)]
    exact = source.exact(points, digits, order)[index]
    moved = [source.exact(points, digits, order, rng)[index] for _ in range(3)]
    out = []
    for k, t in enumerate(exact):
        distance = max(abs(m[k] - t) for m in moved)
        out.append(1.0 if not distance > 0 else float("inf") if t == 0 else max(1.0, float(distance / abs(t) * mpmath.mpf(10) ** 20)))
    return out
