"""Reductions of NumPy values, computed without overflow and cancellation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import exp, isfinite, log1p, sqrt, where

from symgrad.carriers.batched import raw
from symgrad.carriers.recorded import word
from symgrad.carriers.structure import zeros_like
from symgrad.types.indices import check_ordered

__all__ = ["all", "amax", "amin", "any", "argmax", "argmin", "centred", "log_softmax", "logsumexp", "norm", "reference", "softmax"]


def amax(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.maximum.reduce(check_ordered(x), axis=dim, keepdims=keepdim)


def amin(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.minimum.reduce(check_ordered(x), axis=dim, keepdims=keepdim)


def _peak(x: Any, dim: Any) -> Any:
    """The largest value along `dim`, or 0 where it is infinite: the shift that is subtracted from exponents."""
    peak = np.maximum.reduce(x, axis=dim, keepdims=True, initial=-np.inf)
    return where(isfinite(peak), peak, 0.0).astype(x.dtype)


@word
def logsumexp(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """log Σ exp(x), shifted by the largest element; log1p of the sum of the other terms preserves small terms."""
    peak = _peak(x, dim)
    largest = x == peak
    others = np.add.reduce(where(largest, 0, exp(x - peak)), axis=dim, keepdims=keepdim)
    others = others + (np.add.reduce(largest, axis=dim, keepdims=keepdim, dtype=x.dtype) - 1)
    return log1p(others) + peak.reshape(others.shape)


@word
def softmax(x: Any, dim: Any) -> Any:
    out = exp(x - _peak(x, dim))
    return out / np.add.reduce(out, axis=dim, keepdims=True)


@word
def log_softmax(x: Any, dim: Any) -> Any:
    x = x - _peak(x, dim)
    return x - logsumexp(x, dim, True)


def reference(g: Any, y: Any, dim: Any) -> Any:
    """The element of `g` at the position where `y` is largest along `dim`; 0 in a formula.

    A rule whose result does not change when a number is added to `g` subtracts this element first, to avoid cancellation.
    """
    if not y.size or not y.ndim:
        return zeros_like(g)
    order = (*(i for i in range(y.ndim) if i not in dim), *dim)
    kept = tuple(1 if i in dim else n for i, n in enumerate(y.shape))
    rows = [np.transpose(a, order).reshape(math.prod(kept), -1) for a in (g, y)]
    return np.take_along_axis(rows[0], np.argmax(rows[1], -1)[:, None], -1).reshape(kept)


@word
def centred(x: Any, dim: Any) -> Any:
    """The distance of every element from the mean along `dim`, corrected by the rounding error of the mean: equal numbers give 0."""
    count = math.prod(x.shape[i] for i in dim) or math.nan
    x = x - np.add.reduce(x, axis=dim, keepdims=True) / count
    return x - np.add.reduce(x, axis=dim, keepdims=True) / count


@word
def norm(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """√Σ|x|², rescaled where the squares overflow or underflow."""
    a = np.abs(x)
    out = sqrt(np.add.reduce(a * a, axis=dim, keepdims=keepdim))
    tiny = np.finfo(a.dtype).tiny ** 0.5
    lengths = raw(out)
    if np.all((lengths > tiny) & (lengths < np.inf)) or not a.size:
        return out
    scale = np.maximum.reduce(a, axis=dim, keepdims=True)
    scale = where((scale > 0) & isfinite(scale), scale, 1)
    ratio = a / scale
    total = sqrt(np.add.reduce(ratio * ratio, axis=dim, keepdims=keepdim))
    return total * scale.reshape(total.shape)


def all(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.all(x, axis=dim, keepdims=keepdim)


def any(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.any(x, axis=dim, keepdims=keepdim)


def argmax(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.argmax(check_ordered(x), axis=dim, keepdims=keepdim)


def argmin(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.argmin(check_ordered(x), axis=dim, keepdims=keepdim)
