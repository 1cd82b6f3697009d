"""Lengths and directions of points of the plane."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.carriers.choosing import MANY, where

__all__ = ["direction", "hypot"]

FLOAT64 = np.dtype(np.float64)
LEAST = np.finfo(float).tiny / np.finfo(float).eps  # a smaller sum of squares has not all digits


def hypot(a: Any, b: Any, out: Any = None) -> Any:
    """√(a² + b²). Many numbers are squared, and NumPy's function, which is slow, is left the few whose squares overflow or lose digits."""
    if type(a) is not np.ndarray or type(b) is not np.ndarray or a.size < MANY or a.shape != b.shape or not a.dtype == b.dtype == FLOAT64:
        return np.hypot(a, b) if out is None else np.hypot(a, b, out)
    with np.errstate(all="ignore"):
        square = a * a
        square += b * b
        regular = LEAST < square.min() and square.max() < np.inf
        rare = None if regular else np.flatnonzero(~((square > LEAST) & (square < np.inf)))
        found = None if rare is None else np.hypot(a.reshape(-1)[rare], b.reshape(-1)[rare])
        out = np.sqrt(square, out=square if out is None else out)
        if rare is not None:
            out.put(rare, found)
    return out


def direction(a: Any, b: Any) -> Any:
    """a / √(a² + b²), and 0 at (0, 0)."""
    length = hypot(a, b)
    if type(length) is np.ndarray and length.size >= MANY and length.min() > 0 and length.dtype == a.dtype and length.shape == a.shape:
        return np.divide(a, length, out=length)
    return a / where(length == 0, 1, length)
