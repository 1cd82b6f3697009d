"""The rank of floats: each has an integer, neighbouring floats have neighbouring integers, and 0 has 0.

Ranks drawn uniformly give floats that are uniform in their representation: each binade gets as many as every other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.types.ulp import ulp_of

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
        self.ulp = ulp_of(self.dtype.name, subnormals)
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

    def ulps(self, values: np.ndarray, truth: Any) -> np.ndarray:
        """How far floats are from true values, in units in the last place of these (see `symgrad.types.ulp`).

        >>> import mpmath
        >>> Floats("float64").ulps(np.array([1.0, 1.0, np.inf, np.nan]), [1.0, 1 + 2.0**-52, mpmath.mpf("1e400"), 1.0])
        array([ 0.,  1.,  0., inf])
        >>> Floats("float64", subnormals=False).ulps(np.array([0.0]), [1e-310]) <= 1
        array([ True])
        """
        return np.array(list(map(self.ulp.error, np.asarray(values, np.float64).tolist(), truth)))
