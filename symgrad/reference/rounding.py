"""What floats make of a formula: its steps computed with every number rounded to the digits and to the range of a type.

Where that loses as many digits as a function did, rounding, overflow or underflow explain the error. Where it does not, the function is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mpmath
import numpy as np

from symgrad.carriers import precise
from symgrad.carriers.digits import Undefined
from symgrad.reference.oracle import Evaluation, slots
from symgrad.reference.sources import OracleTruths, Truths
from symgrad.types.ulp import Ulp

__all__ = ["Rounded"]

FACTOR = 64  # by how much the error may be larger than that of the rounded steps, whose order is not the program's own
SAMPLES = 4  # of the steps with every result changed by a rounding error of random sign


class _Steps(Evaluation):
    """The values of the steps in the digits of a type: with a random `seed` changed by rounding errors, without one in the range of the type.

    `flushed` says that one became 0.
    """

    def __init__(self, oracle: Any, digits: int, kind: Ulp, seed: int | None):
        self.kind, self.seed, self.flushed = kind, seed, False
        self.signs = np.random.default_rng(seed)
        super().__init__(oracle, digits)

    def _value(self, place: int, step: Any) -> Any:
        value = super()._value(place, step)
        if value is None or not value or place < self.oracle.count:
            return value
        if self.seed is not None:
            return value * (1 + float(self.kind.epsilon) * float(self.signs.choice((-1.0, 1.0))))
        if abs(value) > self.kind.largest:
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


class Rounded:
    """The numbers at a point as floats of a type would have them; computed when first asked for."""

    def __init__(self, truths: Truths, kind: Ulp):
        self.truths, self.kind = truths, kind
        self.samples: dict[int, list[tuple[dict[Any, Any] | None, bool]]] = {}

    def explain(self, t: Any, value: float) -> bool:
        """Whether a float's distance from the true number t is what the rounding of the formula's steps makes."""
        if not isinstance(self.truths, OracleTruths):
            return False  # finite differences: there is no formula
        if t.order not in self.samples:
            self.samples[t.order] = list(self._sampled(self.truths, t.order))
        largest = mpmath.mpf(0)
        for numbers, flushed in self.samples[t.order]:
            if numbers is None:
                if not np.isfinite(value) or flushed and value == 0:  # at 0 after underflow, where many functions take 0 for the derivative
                    return True
            else:
                largest = max(largest, abs(numbers.get((t.order, t.index, t.directional), t.value) - t.value))
        if np.isfinite(value):
            return bool(abs(mpmath.mpf(value) - t.value) <= FACTOR * largest)
        scale = max(abs(e.value) for e in self.truths.entries if e.order == t.order)
        return bool(largest and 2 * largest >= scale)  # no digit is left, so that a denominator may be 0

    def _sampled(self, truths: OracleTruths, order: int) -> Iterator[tuple[dict[Any, Any] | None, bool]]:
        """The numbers of an order by their places, or None where there are none, and whether numbers became 0."""
        digits = max(1, mpmath.libmp.prec_to_dps(1 - int(np.log2(float(self.kind.epsilon)))))
        full = min(truths.full, order)
        places = slots(truths.oracle.count, order, full)
        for seed in (None, *range(SAMPLES)):
            with precise.working(digits):
                steps = _Steps(truths.oracle, digits, self.kind, seed)
                try:
                    numbers = steps.derivatives(order, full, truths.direction)
                except Undefined:
                    yield None, steps.flushed
                    continue
            if steps.out_of_range:
                yield None, True
            yield dict(zip(places, numbers)), False
