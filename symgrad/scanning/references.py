"""Reference values at points that are floats, computed by the rules in many digits or by `sympy.diff` of a formula.

`symgrad.algebra.ladder` determines the number of digits. The exact 0 of a derivative that does not depend on the argument is the int 0.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import mpmath
import numpy as np
import sympy

from symgrad.algebra import ladder
from symgrad.algebra.ladder import RIGHT, random_shift, rungs, settle
from symgrad.algebra.values import Real
from symgrad.carriers import precise
from symgrad.reference.elementary import derivative
from symgrad.sampling.floats import Floats
from symgrad.scanning.subject import Index, Subject, derivative_indices

__all__ = ["FIRST", "LAST", "ByFormula", "DerivativeSource", "ReferenceValues", "condition"]

FIRST, LAST = 60, 1920  # digits of the first and the last rung of the ladder
DEFAULT_DIGITS = 240  # of the first rung, if the range of magnitudes of the computation is unknown
AGREEMENT = 4.0  # ULP up to which a float confirms a reference value


class ByFormula:
    """A SymPy expression of the arguments, and its derivatives by `sympy.diff`."""

    def __init__(self, formula: Any, names: Sequence[str]):
        by_name = {s.name: s for s in formula.free_symbols}
        unknown = sorted(set(by_name) - set(names))
        if unknown and len(names) == 1 and len(by_name) == 1:
            by_name, unknown = {names[0]: by_name[unknown[0]]}, []
        if unknown:
            raise TypeError(f"accuracy: the formula has the variable {unknown[0]}, which is not an argument; those are {', '.join(names)}")
        self.symbols = [sympy.Symbol(name, real=True) for name in names]
        self.formula = formula.xreplace({by_name[s.name]: s for s in self.symbols if s.name in by_name})
        self.functions: dict[Index, Real] = {}

    def function(self, index: Index) -> Real:
        """One derivative as a function of many-digit numbers."""
        if index not in self.functions:
            formula = functools.reduce(derivative, [self.symbols[i] for i in index], self.formula)
            self.functions[index] = Real(formula, self.symbols, complex=True)
        return self.functions[index]

    def exact(self, points: np.ndarray, digits: int, order: int, beside: Any = None) -> dict[Index, list[Any]]:
        """Every derivative up to an order, computed with `digits` digits."""
        with precise.working_precision(digits):
            cells = [precise.lift_value(p) for p in points.astype(np.float64)]
            columns = [(cell if beside is None else random_shift(beside)(cell)).tolist() for cell in cells]
            return {index: [self.function(index)(*point) for point in zip(*columns)] for index in derivative_indices(len(self.symbols), order)}

    def spread(self, points: np.ndarray, order: int) -> np.ndarray:
        """The range of magnitudes of the computation is unknown, so infinite."""
        return np.full(points.shape[1], np.inf)


DerivativeSource = ByFormula | Subject  # computes derivatives with many digits


class ReferenceValues:
    """The derivatives of a function at floats. `digits` is the largest number of digits used, `undecided` the number of values without a result."""

    def __init__(self, source: DerivativeSource, floats: Floats, order: int):
        self.source, self.floats, self.order = source, floats, order
        self.digits, self.undecided = FIRST, 0

    def at(self, points: np.ndarray, values: Mapping[Index, np.ndarray]) -> dict[Index, list[Any]]:
        """Every derivative at the points, NaN where there is none or where it is undecided; `values` are the floats to be measured.

        A reference value is also accepted once the float agrees with it, since the two computations do not lose the same digits.
        """
        n = points.shape[1]
        out: dict[Index, list[Any]] = {index: [mpmath.nan] * n for index in values}
        spread = self.source.spread(points, self.order)
        levels = np.array(list(rungs(FIRST, LAST)))
        start = levels[np.searchsorted(levels[:-3], np.where(np.isfinite(spread), spread + 40, DEFAULT_DIGITS))]
        for first in np.unique(start).tolist():
            due = [(i, index) for i in np.flatnonzero(start == first).tolist() for index in values]

            def exact(digits: int, places: Sequence[int], due: Any = due) -> list[Any]:
                self.digits = max(self.digits, digits)
                where = {i: k for k, i in enumerate(dict.fromkeys(due[place][0] for place in places))}
                found = self.source.exact(points[:, list(where)], digits, self.order)
                return [found[index][where[i]] for i, index in (due[place] for place in places)]

            def confirmed(place: int, number: Any, due: Any = due) -> bool:
                i, index = due[place]
                return self.floats.ulp.error(values[index][i], number) <= AGREEMENT

            for (i, index), number in zip(due, settle(exact, len(due), rungs(first, LAST), RIGHT, confirmed)):
                self.undecided += number is None
                out[index][i] = mpmath.nan if number is None else number
        return out


def condition(source: DerivativeSource, points: np.ndarray, index: Index, order: int, rng: np.random.Generator) -> list[float]:
    """The condition number of a derivative at each point, as defined by `symgrad.algebra.ladder`."""
    levels = list(rungs(FIRST, LAST))
    digits = levels[min(int(np.searchsorted(levels, float(source.spread(points, order).max()) + 60)), len(levels) - 1)]
    exact = source.exact(points, digits, order)[index]
    return list(map(ladder.condition, exact, ladder.movement(exact, lambda: source.exact(points, digits, order, rng)[index])))
