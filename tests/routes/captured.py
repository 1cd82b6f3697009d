"""What a function captures in a test: how it reads that, and how it changes; and a number in which all of it shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import symgrad

TYPES = {bool: 0.9, int: 0.55, float: 0.3, complex: 0.2, str: 0.1, type(None): 0.7}


class Captured(NamedTuple):
    """A captured value: `read(x)` is a number, an array or a tensor that depends on it; `changes` are functions of a new number."""

    read: Callable[[Any], Any]
    changes: dict[str, Callable[[Any], Any]]


class Effect(NamedTuple):
    """A function that changes what it captures: `read(x)` does so; `state` and `restore` are for the comparison with an eager call."""

    read: Callable[[Any], Any]
    state: Callable[[], Any]
    restore: Callable[[Any], None]


def weigh(v: Any) -> Any:
    """A number in which each bit of a value shows: its type, the signs of its zeros, and its dtype."""
    if isinstance(v, symgrad.Tensor):
        v = v.double().nan_to_num(0.25)
        return (0.37 * v + symgrad.atan2(v, symgrad.tensor(-1.0))).sum()
    if isinstance(v, (np.ndarray, np.generic)):
        kind = {"f": 0.3, "i": 0.5, "b": 0.8}.get(v.dtype.kind, 0.1) + 0.01 * v.dtype.itemsize + 0.001 * v.ndim
        v = np.nan_to_num(np.asarray(v, float), nan=0.25)
        return kind + float((0.37 * v + np.arctan2(v, -1.0)).sum()) + 0.003 * v.size
    number = float(abs(v) if isinstance(v, complex) else len(v) if isinstance(v, str) else 0 if v is None else v)
    number = 0.25 if number != number else number
    return TYPES.get(type(v), 0.6) + float(0.37 * number + np.arctan2(number, -1.0))


# Functions that catch failures


def inverse_or_other(w, x):
    """A number by an inverse, or by something else where the matrix is singular."""
    try:
        return symgrad.linalg.inv(symgrad.outer(w[:2], w[:2].flip(0)) - symgrad.tensor([[2.0, 0.0], [0.0, 2.0]])).sum()
    except RuntimeError:
        return (x[:2] ** 3).sum() + w.sum()


def is_positive_definite(w, x):
    """A number that depends on whether a factorization fails, whose result is not used."""
    try:
        symgrad.linalg.cholesky(symgrad.diag(w[:2]))
    except RuntimeError:
        return 0.3
    return 1.7
