"""The branch that floats take where they saturate: tanh is 1 from 19.1 on, exp(-800) is 0, cos(1e-9) is 1.

There a condition of a rule may hold in floats and nowhere else, on whole intervals. The rule is evaluated with many digits and the truth values
of floats; what that branch computes is compared with the derivative.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from symgrad.algebra.limits import poll
from symgrad.carriers.digits import Undefined
from symgrad.proofs.case import Key
from symgrad.proofs.numbers import FIRST, NumericComparison, NumericResult, number
from symgrad.proofs.regions import ERRORS, zero_switches
from symgrad.reference.float_branches import FloatBranches

SIZES = (1e-300, 1e-160, 1e-80, 1e-20, 1e-12, 1e-8, 1e-5, 1e-3, 3.7, 6.3, 9.1, 20.7, 27.3, 39.1, 87.9, 127.1, 360.3, 711.7, 800.9, 1e5, 1e9, 1e17,
         1e160, 1e300)
BASE = 0.5, 1.5, -0.75, 2.5
TOLERANCE = mpmath.mpf(2) ** -20  # a branch may be an approximation to more digits than floats have left, and is not a wrong one
SMALLEST, LARGEST = mpmath.mpf("1e-300"), mpmath.mpf("1e300")


def compare_saturated(numbers: NumericComparison, known: set[Key]) -> dict[Key, NumericResult]:
    """The statements that are wrong in a branch that floats alone take, with a float as the point."""
    out: dict[Key, NumericResult] = {}
    if numbers.case.complex or numbers.matrices or not numbers.inner:
        return out
    for x in _points(numbers):
        poll()
        inner = list(map(Fraction, x))
        recorder = FloatBranches()
        try:
            with np.errstate(all="ignore"):
                claims = numbers.claims(numbers.order, [*inner, *numbers.moves], FIRST, recorder)
        except (Undefined, *ERRORS):
            continue
        if not recorder.decided:
            return out  # the rule has no conditions
        if not recorder.departed or zero_switches(numbers.switches, numbers.at(inner)) or not numbers.is_real(inner):
            continue
        keys = tuple(key for key in numbers.references if key not in known and key not in out)
        references = numbers.reference_values(keys, [*inner, *numbers.moves], 2 * FIRST)
        for key in keys:
            wrong = next(((number(c), r) for c, (r, error) in zip(claims[key], references[key]) if differ(number(c), r, error)), None)
            if wrong:
                out[key] = NumericResult(0, numbers.arguments(inner), *wrong, saturated=True)
    return out


def differ(claim: Any, reference: Any, error: int) -> bool:
    """Whether a number of the branch of floats is not the reference, which is known up to 2**error; where both are tiny they do not differ."""
    if reference is None or abs(reference) > LARGEST or mpmath.ldexp(1, error) > max(TOLERANCE * abs(reference) / 4, SMALLEST):
        return False
    if not mpmath.isfinite(claim):
        return True
    size = max(abs(claim), abs(reference))
    return bool(size > SMALLEST and abs(claim - reference) > TOLERANCE * size)


def _points(numbers: NumericComparison) -> Iterator[list[float]]:
    """Floats of every size in one coordinate, or in all."""
    n = len(numbers.inner)
    base = [BASE[k % len(BASE)] for k in range(n)]
    for size in SIZES:
        for sign in (1, -1):
            rows = [[sign * size * b / BASE[0] if n > 1 else sign * size for b in base]]
            rows += [[*base[:k], sign * size, *base[k + 1:]] for k in range(n if n <= 3 else 1) if n > 1]
            yield from (row for row in rows if numbers.contains([Fraction(x) for x in row]))
