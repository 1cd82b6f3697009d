"""Parameters and gradients as one vector of real numbers, for optimizers that look at all of them together."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from symgrad.engine.storage.versions import stamp
from symgrad.engine.tensor import Tensor
from symgrad.system.errorstate import quietly

__all__ = ["flat", "gradients", "numbers", "write"]


def numbers(p: Tensor) -> int:
    """The number of real numbers in a parameter."""
    return p.numel() * (2 if p.is_complex() else 1)


def _real(x: Any, complex_numbers: bool) -> np.ndarray:
    x = np.ascontiguousarray(x).reshape(-1)
    return x.astype(np.result_type(x, np.complex64), copy=False).view(x.real.dtype) if complex_numbers else x


def flat(params: Sequence[Tensor]) -> np.ndarray:
    """A copy of the numbers of parameters, one after the other; a complex number is its two parts."""
    return np.concatenate([_real(p._value, p.is_complex()) for p in params])


def gradients(params: Sequence[Tensor], grads: Iterable[Tensor | None] | None = None) -> np.ndarray:
    """The gradients of parameters in the same order, those in `.grad` unless others are given; 0 where there is none."""
    found = [p.grad for p in params] if grads is None else grads
    return np.concatenate([np.zeros(numbers(p), np.real(p._value).dtype) if g is None else _real(g._value, p.is_complex())
                           for p, g in zip(params, found)])


def write(params: Sequence[Tensor], vector: np.ndarray, operation: str) -> None:
    """Write a vector of `flat` into its parameters, in place."""
    ends = list(itertools.accumulate(map(numbers, params)))
    for p, piece in zip(params, np.split(vector, ends[:-1])):
        array = p._array()
        stamp(array, operation)
        piece = piece.astype(array.real.dtype, copy=False).view(array.dtype) if p.is_complex() else piece
        quietly(np.copyto, array, piece.reshape(array.shape), "unsafe")
