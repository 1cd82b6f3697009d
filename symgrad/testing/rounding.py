"""The distinction of lost digits from wrong results: an error is lost digits if the formula's own rounded steps have it as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.algebra.limits import OutOfTime, limited
from symgrad.carriers.digits import Undefined
from symgrad.dtypes.ulp import Ulp
from symgrad.reference.oracle import Oracle
from symgrad.reference.rounding import RoundedEvaluation, Term, is_explained, overflows
from symgrad.reference.sources import OracleReferenceValues
from symgrad.reference.tensors import is_active
from symgrad.system.restoring import workdps
from symgrad.testing.claimed import ClaimedOp
from symgrad.testing.references import equations

__all__ = ["Rounding"]

SECONDS = 2.0  # for one number
Arrays = Sequence[np.ndarray]
Tangents = Sequence[np.ndarray | None]
Index = tuple[int, ...]


class Rounding:
    """The formula of an op with every step rounded to the precision and the range of a type."""

    def __init__(self, attack: ClaimedOp):
        self.attack = attack
        self.forms: dict[Any, Callable[[Arrays], Oracle]] = {}
        self.known: dict[Any, RoundedEvaluation] = {}

    def explains(self, value: float, true: Any, kind: Ulp, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None,
                 *tangents: Tangents) -> bool:
        """Whether rounding makes `value` of the number `true`, an element of the gradient by argument `wrt`, of the tangent, or of the value.

        False where the formula cannot be evaluated step by step, and where its derivative by SymPy is not `true`.
        """
        try:
            with limited(SECONDS), workdps(mpmath.mp, 60):
                terms = list((self._by_elements if self.attack.elementwise else self._of_arrays)(kind, xs, at, wrt, cotangent, *tangents))
                total = mpmath.fsum(term.factor * term.number.value for term in terms)
                size = mpmath.fsum(abs(term.factor * term.number.value) for term in terms)
                is_same = abs(total - true) <= size * float(kind.epsilon) / 64
                return bool(terms) and bool(is_same) and is_explained(terms, value)
        except OverflowError:
            return bool(np.isnan(value) or abs(true) <= kind.largest and (value == 0 or np.isinf(value)))
        except (Exception, OutOfTime):  # a formula that has no steps, or no value at the point
            return False

    def _by_elements(self, kind: Ulp, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Iterator[Term]:
        """The partial derivatives that a number of an elementwise op is the sum of."""
        active = [i for i, x in enumerate(xs) if is_active(x)]
        for k, point, factor in self.attack.truth.parts(xs, at, wrt, cotangent, *tangents):  # type: ignore[attr-defined]
            rounded = self._rounded(kind, [np.asarray(p, x.dtype) for p, x in zip(point, xs)], (), sum(k), sum(k), np.ones(len(active)))
            index = tuple(place for place, i in enumerate(active) for _ in range(k[i]))
            yield Term(rounded, factor, next(e for e in rounded.references.entries if e.index == index))

    def _of_arrays(self, kind: Ulp, xs: Arrays, at: Index, wrt: int | None, cotangent: np.ndarray | None, *tangents: Tangents) -> Iterator[Term]:
        """The derivatives along directions that a number of an op on arrays is the sum of."""
        order = len(tangents) + (wrt is not None)
        starts = np.cumsum([0, *(x.size if is_active(x) else 0 for x in xs)])
        directions = [np.concatenate([np.zeros(x.size) if t is None else np.ravel(t) for x, t in zip(xs, ts) if is_active(x)]) for ts in tangents]
        if wrt is None:
            rounded = self._rounded(kind, xs, at, order, 1, np.ones(starts[-1]))
            for e in rounded.references.entries:
                if e.order == order:
                    yield Term(rounded, mpmath.mpf(directions[0][e.index[0]] if order else 1), e)
            return
        place = int(starts[wrt]) + (int(np.ravel_multi_index(at, xs[wrt].shape)) if at else 0)
        parts = [(1, directions[0] if directions else np.ones(starts[-1]))]
        if order == 3:  # D³f[e, s, t] by those along s + t and s - t
            parts = [(1, (directions[0] + directions[1]) / 2), (-1, (directions[0] - directions[1]) / 2)]
        for sign, direction in parts:
            if np.any(direction):
                rounded = self._rounded(kind, xs, cotangent, order, 1, direction)
                yield Term(rounded, mpmath.mpf(sign), next(e for e in rounded.references.entries if e.order == order and e.index == (place,)))

    def _rounded(self, kind: Ulp, xs: Arrays, part: Any, order: int, full: int, direction: np.ndarray) -> RoundedEvaluation:
        """The formula at a point, weighted with a cotangent, or its element at an index."""
        form = tuple((x.shape, b"" if is_active(x) else x.tobytes()) for x in xs), part.tobytes() if isinstance(part, np.ndarray) else part
        key = form, kind, order, direction.tobytes(), tuple(x.tobytes() for x in xs)
        if key not in self.known:
            if form not in self.forms:
                self.forms[form] = equations(self.attack, xs, part)
            oracle = self.forms[form](xs)
            try:
                truths = OracleReferenceValues(oracle, order, full, direction)
            except Undefined:
                truths = None
            if truths is None or truths.order < order:
                raise (OverflowError if overflows(oracle, kind) else Undefined)("a step of the formula has no number")
            self.known[key] = RoundedEvaluation(truths, kind)
        return self.known[key]
