"""The unit in the last place (ULP): the measure of the error of a float."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import mpmath
import numpy as np

ALL_DIGITS = 2.0**52  # an error of that many ULP loses all digits of a float64
LARGEST = float(np.finfo(np.float64).max)


class Ulp:
    """The scale on which errors of computed numbers are measured: the units in the last place of a float type.

    The unit at a number x with 2ᵉ <= |x| < 2ᵉ⁺¹ is the distance between neighbouring floats there, ε 2ᵉ. Below the normal numbers it is the
    smallest subnormal number; without `subnormals` it is the smallest normal number, for systems that flush subnormals to zero, such as XLA.
    """

    def __init__(self, dtype: Any, subnormals: bool = True):
        info = ml_dtypes.finfo(dtype)
        self.epsilon, self.tiny, self.largest, smallest = (
            mpmath.mpf(float(x)) for x in (info.eps, info.smallest_normal, info.max, info.smallest_subnormal))
        self.least = smallest if subnormals else self.tiny

    def unit(self, size: Any) -> Any:
        """The unit at a number of any sign, also beyond all floats.

        >>> float(Ulp("float64").unit(1.5)), float(Ulp("float32").unit(0)), float(Ulp("float16").unit(-1e6)), Ulp("float64").unit(mpmath.inf)
        (2.220446049250313e-16, 1.401298464324817e-45, 512.0, mpf('+inf'))
        """
        size = abs(mpmath.mpmathify(size))
        if not size or not mpmath.isfinite(size):
            return size or self.least
        return max(mpmath.ldexp(self.epsilon, int(mpmath.mag(size)) - 1), self.least)

    def error(self, value: float, reference: Any, size: Any = 0) -> float:
        """The distance of a float from the reference value, in units at the reference value or at a larger `size`.

        It is infinite for NaN, and 0 where both are beyond all floats.

        >>> measure = Ulp("float64").error
        >>> measure(1.0, 1), measure(1.0, 1 + 2.0**-52), measure(float("inf"), mpmath.mpf("1e400")), measure(float("nan"), 1)
        (0.0, 1.0, 0.0, inf)
        >>> measure(2.0**-52, 0, size=1)
        1.0
        """
        reference = mpmath.mpmathify(reference)
        if abs(reference) > self.largest:
            return 0.0 if abs(value) >= self.largest and (value > 0) == (reference > 0) else np.inf
        if not np.isfinite(value):
            return np.inf
        return min(float(abs(mpmath.mpf(value) - reference) / self.unit(max(abs(reference), size))), LARGEST)


@cache
def ulp_of(dtype: Any, subnormals: bool = True) -> Ulp:
    """The scale of a dtype, cached."""
    return Ulp(dtype, subnormals)
