"""The errors of the library's floats in units in the last place (ULP) of the reference value, and whether rounding explains them.

For this the steps of the formula are evaluated with every number rounded to the precision and the range of a type. If this loses as many digits as a
function did, rounding, overflow or underflow explain the error. Otherwise the function is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import mpmath
import numpy as np

from symgrad.algebra.ladder import DIGITS, absolute_condition, condition, random_shift
from symgrad.carriers import precise
from symgrad.carriers.digits import TooLarge, Undefined
from symgrad.dtypes.ulp import Ulp, ulp_of
from symgrad.reference.exact import ComparedNumber, OracleComparison
from symgrad.reference.oracle import Oracle, OracleValues, slots
from symgrad.reference.run import Run
from symgrad.reference.sources import OracleReferenceValues, ReferenceNumber, ReferenceValues
from symgrad.reports.base import label

BOUNDS = {0: 8.0, 1: 8.0, 2: 64.0, 3: 512.0}
ROUNDING = mpmath.mpf(10) ** (15 - DIGITS)  # a number that is smaller relative to the others may be a rounding error


@dataclass(frozen=True)
class Accuracy:
    """The error of one number: its order, its name, the error in ULP, the float, the reference value `truth`, and the condition number.

    The condition number is large next to a zero, where no algorithm on floats keeps all digits. The error is `within` bounds up to 8, 8, 64
    or 512 ULP (for orders 0 to 3) times the condition number.
    """

    DERIVED: ClassVar[tuple[str, ...]] = "bound", "within"
    HIDDEN: ClassVar[tuple[str, ...]] = ("point",)

    order: int
    where: str
    ulp: float
    value: float
    truth: float
    condition: float
    point: tuple[np.ndarray, ...]

    @property
    def bound(self) -> float:
        return BOUNDS[self.order] * max(self.condition, 1.0)

    @property
    def within(self) -> bool:
        return self.ulp <= self.bound


def worst_errors(run: Run, exact: OracleComparison, entries: Sequence[ComparedNumber], values: dict[int, np.ndarray], names: Sequence[str],
             rng: np.random.Generator) -> list[Accuracy]:
    """For each order the entry with the largest error beyond its bound, or the largest error; `values` are the library's floats.

    A reference value that is 0 up to rounding is measured in units of the largest reference value.
    """
    dtype = run.result.value.dtype
    error_of = ulp_of(dtype.name if dtype.kind == "f" else "float32").error
    rules = [e.rule for e in entries]
    scale = max(map(abs, rules))
    errors = {k: error_of(float(values[e.order][e.index]), e.rule, scale if abs(e.rule) <= scale * ROUNDING else 0)
              for k, e in enumerate(entries) if not e.directional and e.order in values}
    high = max((entries[k].order for k, error in errors.items() if error > BOUNDS[entries[k].order]), default=None)
    moved = [] if high is None else absolute_condition(rules, lambda: exact.rules(DIGITS, random_shift(rng), high))
    out: dict[int, Accuracy] = {}
    for k, error in errors.items():
        e = entries[k]
        found = Accuracy(e.order, label(e.order, e.index, names), error, float(values[e.order][e.index]), float(e.rule),
                         condition(e.rule, moved[k]) if error > BOUNDS[e.order] else 1.0, tuple(leaf.value for leaf in run.leaves))
        best = out.get(e.order)
        if best is None or is_worse(found, best):
            out[e.order] = found
    return [out[order] for order in sorted(out)]


def is_worse(a: Accuracy, b: Accuracy) -> bool:
    """Whether the first error is worse: an error beyond its bound is worse than one within, then the larger one is."""
    return (not a.within, a.ulp) > (not b.within, b.ulp)


FACTOR = 64  # the largest ratio of the error to that of the rounded steps, whose order differs from that of the program
SEEDS = None, 0, 1, 2, 3  # samples of the steps: in the range of the type (None), and with rounding errors of random signs


class _RoundedSteps(OracleValues):
    """The values of the steps at the precision of a type: with rounding errors for a random `seed`, or within the range of the type without one.

    `flushed` is true if a value underflowed to 0 or overflowed (then its reciprocal is 0), `overflowed` if a value overflowed.
    """

    def __init__(self, oracle: Any, digits: int, kind: Ulp, seed: int | None):
        self.kind, self.seed, self.flushed = kind, seed, False
        self.overflowed = False
        self.signs = np.random.default_rng(seed)
        super().__init__(oracle, digits)

    def _value(self, place: int, step: Any) -> Any:
        try:
            value = super()._value(place, step)
        except TooLarge:
            self.overflowed = self.flushed = True
            raise
        if value is None or not value or place < self.oracle.count:
            return value
        if self.seed is not None:
            return value * (1 + float(self.kind.epsilon) * float(self.signs.choice((-1.0, 1.0))))
        if abs(value) > self.kind.largest:
            self.overflowed = self.flushed = True
            raise Undefined("overflow")
        if abs(value) < self.kind.tiny:
            value = mpmath.nint(value / self.kind.least) * self.kind.least
            self.flushed |= not value
        return value

    @property
    def out_of_range(self) -> bool:
        """Whether a factor of a derivative is beyond the range of the type."""
        factors = [abs(v) for step, memo in zip(self.oracle.steps, self.memos) for f, v in memo.items() if v and f is not step.operation]
        return self.seed is None and any(v > self.kind.largest or v < self.kind.tiny for v in factors)

    def flush(self) -> _RoundedSteps:
        """The same steps with 0 for every factor of a derivative that underflows."""
        for memo in self.memos:
            memo.update({f: mpmath.mpf(0) for f, v in memo.items() if abs(v) < self.kind.least})
        return self


class _Error(NamedTuple):
    """The largest error of a number, whether it may be infinite or NaN, and its possible values if other numbers are out of range."""

    largest: Any
    not_finite: bool
    replacements: list[Any]


class RoundedEvaluation:
    """The errors of the numbers at a point in float arithmetic of a type; samples are computed on first use."""

    def __init__(self, references: ReferenceValues, kind: Ulp):
        self.references, self.kind = references, kind
        self.samples: dict[int, list[tuple[dict[Any, Any] | None, bool]]] = {}

    def explain(self, t: Any, value: float) -> bool:
        """Whether rounding of the formula's steps explains the distance of a float from the reference value t; False for finite differences."""
        return isinstance(self.references, OracleReferenceValues) and is_explained([Term(self, mpmath.mpf(1), t)], value)

    def error(self, t: ReferenceNumber) -> _Error:
        """The error of a number when the steps of the formula are rounded. The reference values must be those of a formula."""
        assert isinstance(self.references, OracleReferenceValues)
        if t.order not in self.samples:
            self.samples[t.order] = [s for seed in SEEDS for s in self._sample(self.references, t.order, seed)]
        found, place = self.samples[t.order], (t.order, t.index, t.directional)
        largest = max((abs(numbers.get(place, t.value) - t.value) for numbers, flushed in found if numbers and not flushed), default=mpmath.mpf(0))
        scale = max(abs(e.value) for e in self.references.entries if e.order == t.order)
        lost = any(numbers is None for numbers, _ in found)
        # A number without a correct digit may be a denominator and 0.
        return _Error(largest, lost or bool(largest and 2 * largest >= scale),
                      [mpmath.mpf(0) if numbers is None else numbers.get(place, t.value) for numbers, flushed in found if flushed])

    def _sample(self, references: OracleReferenceValues, order: int, seed: int | None) -> Iterator[tuple[dict[Any, Any] | None, bool]]:
        """The numbers of an order by their slots, or None if undefined, and whether intermediate values underflowed to 0 or overflowed."""
        digits = max(1, mpmath.libmp.prec_to_dps(1 - int(np.log2(float(self.kind.epsilon)))))
        full = min(references.full, order)
        places = slots(references.oracle.count, order, full)
        with precise.working_precision(digits):
            steps = _RoundedSteps(references.oracle, digits, self.kind, seed)
            try:
                yield dict(zip(places, steps.derivatives(order, full, references.direction))), False
                if steps.out_of_range:
                    yield None, True
                    yield dict(zip(places, steps.flush().derivatives(order, full, references.direction))), True
            except Undefined:
                yield None, steps.flushed


def overflows(oracle: Oracle, kind: Ulp) -> bool:
    """Whether a step of a formula overflows in a type."""
    with precise.working_precision(15):
        return _RoundedSteps(oracle, 15, kind, None).overflowed


class Term(NamedTuple):
    """A reference value times a factor."""

    rounded: RoundedEvaluation
    factor: Any
    number: ReferenceNumber


def is_explained(terms: Sequence[Term], value: float) -> bool:
    """Whether rounding of the formula's steps explains the distance of a float from the exact sum of some terms.

    If intermediate values are out of range, a term may be 0: the reciprocal of an overflowed value is 0, and after underflow many functions have
    the derivative 0.
    """
    errors = [term.rounded.error(term.number) for term in terms]
    products = [term.factor * term.number.value for term in terms]
    if abs(mpmath.fsum(products)) > terms[0].rounded.kind.largest and not np.isnan(value):
        return False  # the number itself overflows, so that an infinity of its sign is right
    if not np.isfinite(value):
        return any(e.not_finite for e in errors)
    allowed = FACTOR * mpmath.fsum(abs(term.factor) * e.largest for term, e in zip(terms, errors))
    if len(terms) > 1:
        allowed += FACTOR * float(terms[0].rounded.kind.epsilon) * mpmath.fsum(map(abs, products))
    sums = [mpmath.fsum(products)]
    for k in range(max(len(e.replacements) for e in errors)):
        sums.append(mpmath.fsum(term.factor * e.replacements[k] if len(e.replacements) > k else p for term, e, p in zip(terms, errors, products)))
    return any(abs(mpmath.mpf(value) - total) <= allowed for total in sums)
