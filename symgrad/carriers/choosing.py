"""The choice between two arrays, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["where"]

NUMBERS = frozenset((float, int))
RARE = 0.05  # of the elements: up to which copying them one by one is faster
MANY = 4096  # elements from which a mispredicted branch counts more than a pass over memory


def where(condition: Any, a: Any, b: Any) -> Any:
    """`np.where`, with Python numbers converted to bfloat16 if the other value has that dtype; NumPy does this only for its own dtypes."""
    if type(b) in NUMBERS and type(a) not in NUMBERS and a.dtype.kind == "V":
        b = np.asarray(b, a.dtype)
    elif type(a) in NUMBERS and type(b) not in NUMBERS and b.dtype.kind == "V":
        a = np.asarray(a, b.dtype)
    if type(condition) is np.ndarray and condition.size >= MANY and condition.dtype.kind == "b" and condition.flags.c_contiguous:
        first, second = _bits(condition, a), _bits(condition, b)
        if first is not None and second is not None and (type(first) is np.ndarray or type(second) is np.ndarray):
            return _selected(condition, first, second)
    return np.where(condition, a, b)


def _bits(condition: np.ndarray, x: Any) -> Any:
    """The bits of a float64 array of the shape of the condition, or of a number, which may be broadcast; None for another operand."""
    if type(x) is np.ndarray:
        if x.dtype != np.float64 or x.shape != condition.shape:
            return None
        if not any(x.strides):
            return x[(0,) * x.ndim].view(np.int64)
        return x.view(np.int64) if x.flags.c_contiguous else None
    return np.float64(x).view(np.int64) if type(x) in NUMBERS or type(x) is np.float64 else None


def _selected(condition: np.ndarray, a: Any, b: Any) -> np.ndarray:
    """The choice by bits, without branches, which a processor predicts wrongly half of the time; by places where one of both is rarely chosen."""
    out = np.empty(condition.shape)
    mask = out.view(np.int64)
    count = np.count_nonzero(condition)
    for number, rare, usual in ((count, a, b), (condition.size - count, b, a)):
        if number < RARE * condition.size:
            mask[...] = usual
            if number:
                at = np.flatnonzero(condition if rare is a else ~condition)
                mask.reshape(-1)[at] = rare.reshape(-1)[at] if rare.ndim else rare
            return out
    np.negative(condition.view(np.int8), out=mask)
    np.bitwise_and(mask, np.bitwise_xor(a, b), out=mask)
    np.bitwise_xor(mask, b, out=mask)
    return out
