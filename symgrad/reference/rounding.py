"""What floats make of a formula: its steps computed with every number rounded to the digits and to the range of a type.

Where that loses as many digits as a function did, rounding, overflow or underflow explain the error. Where it does not, the function is wrong.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from symgrad.carriers.digits import Undefined
from symgrad.reference.cross_truth import Truths, _Numbers, _Placed
from symgrad.reference.oracle import Evaluation

__all__ = ["Rounded"]

FACTOR = 64  # by how much the error may be larger than that of the rounded steps, whose order is not the program's own
SAMPLES = 4  # of the steps with every result changed by a rounding error of random sign


class _Steps(Evaluation):
    """The values of the steps in the digits of a type: with a random `seed` changed by rounding errors, without one in the range of the type.

    `flushed` says that one became 0.
    """

    def __init__(self, oracle: Any, digits: int, kind: Any, seed: int | None):
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


class _Floats(_Placed):
    """Known equations whose steps are rounded."""

    def __init__(self, other: Any, kind: Any, seed: int | None):
        super().__init__(other, [step.what for step in other.steps[:other.count]])
        self.kind, self.seed = kind, seed

    def evaluated(self, digits: int) -> Evaluation:
        """The values of all equations to the digits of the type."""
        with mpmath.workdps(digits):
            found = _Steps(self, digits, self.kind, self.seed)
        self.found = found
        return found

    @property
    def out_of_range(self) -> bool:
        """Whether a factor of a derivative is beyond the range of the type."""
        memos = zip(self.steps, self.found.memos)
        factors = [abs(v) for step, memo in memos for head, v in memo.items() if v and head is not step.what]
        return self.seed is None and any(v > self.kind.largest or v < self.kind.tiny for v in factors)


class Rounded:
    """The numbers at a point as floats of a type would have them; computed when first asked for."""

    def __init__(self, truths: Truths, kind: Any):
        self.truths, self.kind = truths, kind
        self.samples: dict[int, list[tuple[dict[Any, Any] | None, bool]]] = {}

    def explain(self, t: Any, value: float) -> bool:
        """Whether a float's distance from the true number t is what the rounding of the formula's steps makes."""
        if not hasattr(self.truths, "oracle"):
            return False  # finite differences: there is no formula
        if t.order not in self.samples:
            self.samples[t.order] = list(self._sampled(t.order))
        key = t.order, t.index, t.directional
        largest = mpmath.mpf(0)
        for numbers, flushed in self.samples[t.order]:
            if numbers is None:
                if not np.isfinite(value) or flushed and value == 0:  # at 0 after underflow, where many functions take 0 for the derivative
                    return True
            elif key in numbers:
                largest = max(largest, abs(numbers[key] - t.value))
        if np.isfinite(value):
            return bool(abs(mpmath.mpf(value) - t.value) <= FACTOR * largest)
        scale = max(abs(e.value) for e in self.truths.entries if e.order == t.order)
        return bool(largest and 2 * largest >= scale)  # no digit is left, so that a denominator may be 0

    def _sampled(self, order: int) -> Any:
        digits = max(1, mpmath.libmp.prec_to_dps(1 - int(np.log2(float(self.kind.epsilon)))))
        for seed in (None, *range(SAMPLES)):
            steps = _Floats(self.truths.oracle, self.kind, seed)
            try:
                rows = _Numbers(steps, order, min(self.truths.full, order), self.truths.direction).truths(digits)
            except Undefined:
                yield None, steps.found.flushed
            else:
                if steps.out_of_range:
                    yield None, True
                yield {(k, index, directional): number for k, index, directional, number in rows}, False
