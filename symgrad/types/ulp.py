"""The unit in the last place (ULP): the measure of the error of a float."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import mpmath
import numpy as np

__all__ = ["ALL", "Ulp", "ulp_of"]

ALL = 2.0**52  # an error of that many ULP leaves no digit of a float64
MOST = float(np.finfo(np.float64).max)


class Ulp:
    """The floats of a type as the scale on which errors of computed numbers are measured.

    The unit at a number x with 2ᵉ <= |x| < 2ᵉ⁺¹ is the distance between neighbouring floats there, ε 2ᵉ. It is the smallest subnormal number
    where x is below the normal ones; or, without `subnormals`, the smallest normal number, as those below are taken for zero (XLA does it).
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

    def error(self, value: float, truth: Any, size: Any = 0) -> float:
        """The distance of a float from the truth in units at the truth, or at a larger `size`.

        It is infinite for NaN, and 0 where both are beyond all floats.

        >>> measure = Ulp("float64").error
        >>> measure(1.0, 1), measure(1.0, 1 + 2.0**-52), measure(float("inf"), mpmath.mpf("1e400")), measure(float("nan"), 1)
        (0.0, 1.0, 0.0, inf)
        >>> measure(2.0**-52, 0, size=1)
        1.0
        """
        truth = mpmath.mpmathify(truth)
        if abs(truth) > self.largest:
            return 0.0 if abs(value) >= self.largest and (value > 0) == (truth > 0) else np.inf
        if not np.isfinite(value):
            return np.inf
        return min(float(abs(mpmath.mpf(value) - truth) / self.unit(max(abs(truth), size))), MOST)


@cache
def ulp_of(dtype: Any, subnormals: bool = True) -> Ulp:
    """The measure of a dtype, made once."""
    return Ulp(dtype, subnormals)
