"""The rank of floats: each has an integer, neighbouring floats have neighbouring integers, and 0 has 0.

Ranks drawn uniformly give floats that are uniform in their representation: each binade gets as many as every other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Floats"]

INTEGERS: dict[int, Any] = {2: np.int16, 4: np.int32, 8: np.int64}


class Floats:
    """The floats of one NumPy type; without `subnormals` those below the smallest normal one are taken for zero, as XLA does it.

    >>> floats = Floats("float64")
    >>> [int(floats.rank(x)) for x in (0.0, -0.0, 5e-324, -5e-324)], float(floats.at(floats.rank(1.0) - 1))
    ([0, 0, 1, -1], 0.9999999999999999)
    """

    def __init__(self, dtype: Any, subnormals: bool = True):
        self.subnormals = subnormals
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float16, np.float32, np.float64):
            raise TypeError(f"accuracy: the dtype must be float16, float32 or float64, not {self.dtype}")
        self.kind = self.dtype.type
        self.info = np.finfo(self.dtype)
        self.integers = INTEGERS[self.dtype.itemsize]
        self.mask = 2 ** (8 * self.dtype.itemsize - 1) - 1

    def rank(self, x: Any) -> np.ndarray:
        """The ranks of floats, in their order; both zeros have 0."""
        bits = np.asarray(x, self.dtype).view(self.integers).astype(np.int64)
        return np.where(bits < 0, -(bits & self.mask), bits)

    def at(self, rank: Any) -> np.ndarray:
        """The floats of ranks; beyond the largest float it is that one."""
        top = int(self.rank(self.info.max))
        rank = np.clip(np.asarray(rank, np.int64), -top, top)
        out = np.abs(rank).astype(self.integers).view(self.dtype)
        return np.where(rank < 0, -out, out).astype(self.dtype)

    def between(self, low: float, high: float, count: int, rng: np.random.Generator) -> np.ndarray:
        """Floats of an interval, ends included: one from each of `count` pieces that hold as many floats as each other, and the ends."""
        first, last = int(self.rank(low)), int(self.rank(high))
        if last - first < count:
            return self.at(np.arange(first, last + 1))
        places = (np.arange(count - 2) + rng.random(count - 2)) / max(count - 2, 1)
        return self.at(np.concatenate([[first], first + np.floor(places * (last - first)).astype(np.int64), [last]]))

    def beside(self, x: float, reach: int, count: int, rng: np.random.Generator) -> np.ndarray:
        """Floats within `reach` steps of one, at distances drawn uniformly in their logarithm, from the nearest neighbours on."""
        steps = np.floor(np.exp(rng.random(count) * np.log(max(abs(reach), 1) + 0.5))).astype(np.int64)
        steps[:1] = 1
        return self.at(int(self.rank(x)) + np.sign(reach) * np.minimum(steps, abs(reach)))

    def _spacing(self, nearest: np.ndarray) -> np.ndarray:
        """The unit in the last place at some numbers."""
        with np.errstate(all="ignore"):
            unit = np.spacing(np.minimum(np.abs(nearest), float(self.info.max)).astype(self.dtype)).astype(np.float64)
        return unit if self.subnormals else np.where(np.abs(nearest) < float(self.info.tiny), float(self.info.tiny), unit)

    def close(self, values: np.ndarray, truth: Any, ulps: float) -> np.ndarray:
        """Which floats are within so many ULP of numbers of many digits, rounded to floats."""
        nearest = np.array([float(t) for t in truth])
        with np.errstate(all="ignore"):
            return np.abs(values - nearest) <= ulps * self._spacing(nearest)

    def ulps(self, values: np.ndarray, truth: Any) -> np.ndarray:
        """How far floats are from true values, in units of the last place of these: infinite for NaN, 0 for an overflow of both.

        A true value below all floats has the smallest of them for its unit; where subnormal numbers are taken for zero, one below all others
        has the smallest normal number.

        >>> import mpmath
        >>> Floats("float64").ulps(np.array([1.0, 1.0, np.inf, np.nan]), [1.0, 1 + 2.0**-52, mpmath.mpf("1e400"), 1.0])
        array([ 0.,  1.,  0., inf])
        >>> Floats("float64", subnormals=False).ulps(np.array([0.0]), [1e-310]) <= 1
        array([ True])
        """
        units = self._spacing(np.array([float(t) for t in truth]))
        largest = float(self.info.max)
        out = np.empty(len(values))
        for k, (value, t, unit) in enumerate(zip(np.asarray(values, np.float64).tolist(), truth, units.tolist())):
            if abs(t) > largest:
                over = value == (largest if t > 0 else -largest) or value == (np.inf if t > 0 else -np.inf)
                out[k] = 0.0 if over else np.inf
            elif not np.isfinite(value):
                out[k] = np.inf
            else:
                out[k] = min(float(abs(value - t) / unit), np.finfo(np.float64).max)
        return out
