"""Readable tangents and cotangents."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import numpy_dtype
from symgrad.testing.strategies.needed import read_shape, require_hypothesis

__all__ = ["READABLE", "readable", "tangents"]

READABLE = np.array([1.0, -1.0, 2.0, 0.5, -3.0, 1.5, -0.5, 3.0, -2.0, 0.75, -1.25])  # all of them exact in every floating-point type


def readable(shape: tuple[int, ...], key: int = 0, dtype: Any = "float64") -> np.ndarray:
    """Numbers like 1, -1, 2, 0.5 and -3 in an array, in a different order for every key; the first for the key 0 is 1.

    Of a complex type they have such imaginary parts, too.

    >>> readable((2, 3))
    array([[ 1. , -1. ,  2. ],
           [ 0.5, -3. ,  1.5]])
    """
    count = math.prod(shape)
    real = _mixed_choice(count, key)
    dtype = numpy_dtype(dtype)
    if dtype.kind == "c":
        return (real + 1j * _mixed_choice(count, key + 7919)).astype(dtype).reshape(shape)
    return real.astype(dtype).reshape(shape)


def _mixed_choice(count: int, key: int) -> np.ndarray:
    """A choice by multiples of the golden ratio, mixed with a key: neighbours differ, and no rows repeat."""
    place = np.arange(count, dtype=np.uint64)
    if key:
        place = ((place + np.uint64(97 * key)) * np.uint64(11400714819323198485)) >> np.uint64(40)
    return READABLE[(place % np.uint64(READABLE.size)).astype(np.intp)]


def tangents(shape: Any = (), dtype: Any = "float64") -> Any:
    """A strategy for arrays of numbers like 1, -1, 2, 0.5 and -3: none is zero or near it. They shrink to ones.

    `shape` is a shape, a number, or a strategy for shapes; of a complex type the numbers have such imaginary parts, or none.

    Raises TypeError for what is no shape, ValueError for a negative side, ImportError where hypothesis is not installed.

    >>> import hypothesis
    >>> hypothesis.find(tangents((3,)), lambda t: (t < 0).all())
    array([-1., -1., -1.])
    """
    st = require_hypothesis().strategies
    shape = read_shape(shape)
    if not isinstance(shape, tuple):
        return shape.flatmap(lambda found: tangents(found, dtype))
    count, dtype = math.prod(shape), numpy_dtype(dtype)

    def array(codes: bytes) -> np.ndarray:
        place = np.frombuffer(codes, np.uint8)
        out = READABLE[place[:count] % READABLE.size]
        if dtype.kind == "c":
            out = out + 1j * np.array([0.0, *READABLE])[place[count:] % (READABLE.size + 1)]
        return out.astype(dtype).reshape(shape)

    size = count * (2 if dtype.kind == "c" else 1)
    return st.binary(min_size=size, max_size=size).map(array)
