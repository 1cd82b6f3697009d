"""What floats make of a formula: its steps computed with every number rounded to the digits and to the range of a type.

Where that loses as many digits as a function did, rounding, overflow or underflow explain the error. Where it does not, the function is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np

from symgrad.carriers import precise
from symgrad.carriers.digits import TooLarge, Undefined
from symgrad.reference.oracle import Oracle, OracleValues, slots
from symgrad.reference.sources import OracleTruths, TrueNumber, Truths
from symgrad.types.ulp import Ulp

__all__ = ["Rounded", "Term", "explained", "overflows"]

FACTOR = 64  # by how much the error may be larger than that of the rounded steps, whose order is not the program's own
SEEDS = None, 0, 1, 2, 3  # of the samples of the steps: in the range of the type, and with every result changed by a rounding error of random sign


class _Steps(OracleValues):
    """The values of the steps in the digits of a type: with a random `seed` changed by rounding errors, without one in the range of the type.

    `flushed` says that one became 0, or overflowed, so that its reciprocal did; `overflowed` that one did.
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
        factors = [abs(v) for step, memo in zip(self.oracle.steps, self.memos) for head, v in memo.items() if v and head is not step.what]
        return self.seed is None and any(v > self.kind.largest or v < self.kind.tiny for v in factors)

    def flush(self) -> _Steps:
        """The same steps with 0 for every factor of a derivative that underflows."""
        for memo in self.memos:
            memo.update({head: mpmath.mpf(0) for head, v in memo.items() if abs(v) < self.kind.least})
        return self


class _Error(NamedTuple):
    """The largest error of a number, whether it may be anything but finite, and what it may be instead because other numbers are out of range."""

    largest: Any
    not_finite: bool
    instead: list[Any]


class Rounded:
    """The numbers at a point as floats of a type would have them; computed when first asked for."""

    def __init__(self, truths: Truths, kind: Ulp):
        self.truths, self.kind = truths, kind
        self.samples: dict[tuple[int, int | None], list[tuple[dict[Any, Any] | None, bool]]] = {}

    def explain(self, t: Any, value: float) -> bool:
        """Whether a float's distance from the true number t is what the rounding of the formula's steps makes."""
        return isinstance(self.truths, OracleTruths) and explained([Term(self, mpmath.mpf(1), t)], value)  # finite differences have no formula

    def error(self, t: TrueNumber, count: int) -> _Error:
        """The error of a number when the steps of the formula are rounded, by some samples. The truths must be those of a formula."""
        assert isinstance(self.truths, OracleTruths)
        for seed in SEEDS[:count]:
            if (t.order, seed) not in self.samples:
                self.samples[t.order, seed] = list(self._sampled(self.truths, t.order, seed))
        found, place = [s for seed in SEEDS[:count] for s in self.samples[t.order, seed]], (t.order, t.index, t.directional)
        largest = max((abs(numbers.get(place, t.value) - t.value) for numbers, flushed in found if numbers and not flushed), default=mpmath.mpf(0))
        scale = max(abs(e.value) for e in self.truths.entries if e.order == t.order)
        lost = any(numbers is None for numbers, _ in found)
        # Where no digit is left, a denominator may be 0.
        return _Error(largest, lost or bool(largest and 2 * largest >= scale),
                      [mpmath.mpf(0) if numbers is None else numbers.get(place, t.value) for numbers, flushed in found if flushed])

    def _sampled(self, truths: OracleTruths, order: int, seed: int | None) -> Iterator[tuple[dict[Any, Any] | None, bool]]:
        """The numbers of an order by their places, or None where there are none, and whether other numbers became 0 or overflowed."""
        digits = max(1, mpmath.libmp.prec_to_dps(1 - int(np.log2(float(self.kind.epsilon)))))
        full = min(truths.full, order)
        places = slots(truths.oracle.count, order, full)
        with precise.working(digits):
            steps = _Steps(truths.oracle, digits, self.kind, seed)
            try:
                yield dict(zip(places, steps.derivatives(order, full, truths.direction))), False
                if steps.out_of_range:
                    yield None, True
                    yield dict(zip(places, steps.flush().derivatives(order, full, truths.direction))), True
            except Undefined:
                yield None, steps.flushed


def overflows(oracle: Oracle, kind: Ulp) -> bool:
    """Whether a step of a formula is beyond the range of a type."""
    with precise.working(15):
        return _Steps(oracle, 15, kind, None).overflowed


class Term(NamedTuple):
    """A true number times a factor."""

    rounded: Rounded
    factor: Any
    number: TrueNumber


def explained(terms: Sequence[Term], value: float) -> bool:
    """Whether a float's distance from the true sum of some terms is what the rounding of the formula's steps makes.

    Where other numbers are out of range a term may be 0: the reciprocal of an overflow is, and at 0 after underflow many functions take 0 for
    the derivative.
    """
    return any(_explained(terms, [term.rounded.error(term.number, count) for term in terms], value) for count in range(1, len(SEEDS) + 1))


def _explained(terms: Sequence[Term], errors: Sequence[_Error], value: float) -> bool:
    products = [term.factor * term.number.value for term in terms]
    if abs(mpmath.fsum(products)) > terms[0].rounded.kind.largest and not np.isnan(value):
        return False  # the number itself overflows, to an infinity of its sign
    if not np.isfinite(value):
        return any(e.not_finite for e in errors)
    allowed = FACTOR * mpmath.fsum(abs(term.factor) * e.largest for term, e in zip(terms, errors))
    if len(terms) > 1:
        allowed += FACTOR * float(terms[0].rounded.kind.epsilon) * mpmath.fsum(map(abs, products))
    sums = [mpmath.fsum(products)]
    for k in range(max(len(e.instead) for e in errors)):
        sums.append(mpmath.fsum(term.factor * e.instead[k] if len(e.instead) > k else p for term, e, p in zip(terms, errors, products)))
    return any(abs(mpmath.mpf(value) - total) <= allowed for total in sums)
