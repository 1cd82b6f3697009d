"""Reductions of NumPy values, computed without overflow and cancellation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import exp, isfinite, log1p, sqrt

from symgrad.carriers.adding import added
from symgrad.carriers.batched import raw
from symgrad.carriers.choosing import MANY, where
from symgrad.carriers.duck import DuckArray
from symgrad.carriers.recorded import word
from symgrad.carriers.structure import zeros_like
from symgrad.layouts.indices import check_ordered

__all__ = ["all", "amax", "amin", "any", "argmax", "argmin", "centred", "exponentials", "log_softmax", "logsumexp", "norm", "reference", "softmax"]


LEAST = np.finfo(float).tiny ** 0.5  # the square of a smaller number has not all digits


def amax(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.maximum.reduce(check_ordered(x), axis=dim, keepdims=keepdim)


def amin(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.minimum.reduce(check_ordered(x), axis=dim, keepdims=keepdim)


def _peak(x: Any, dim: Any) -> Any:
    """The largest value along `dim`, or 0 where it is infinite: the shift that is subtracted from exponents."""
    peak = np.maximum.reduce(x.real if x.dtype.kind == "c" else x, axis=dim, keepdims=True, initial=-np.inf)
    if not isinstance(x, DuckArray) and peak.dtype is x.dtype and _are_finite(peak):
        return peak
    return where(isfinite(peak), peak, 0.0).astype(x.dtype)


@word
def logsumexp(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """log Σ exp(x), shifted by the largest element; log1p of the sum of the other terms preserves small terms."""
    if x.dtype.kind == "c":
        peak = _peak(x.real, dim)
        return np.log(added(exp(x - peak), dim, keepdim)) + np.max(peak, axis=dim, keepdims=keepdim)
    peak = _peak(x, dim)
    others = _others(exponentials(x, x - peak, peak), x == peak, dim, keepdim)
    return log1p(others) + peak.reshape(others.shape)


def exponentials(x: Any, difference: Any, peak: Any) -> Any:
    """exp(x - peak) for a rounded difference, whose rounding error multiplies the result by exp(error) where the difference is large.

    A peak that vanishes beside the difference is that of log-probabilities, from which it was subtracted before: the rounded difference is right.
    """
    out = exp(difference)
    if type(out) is np.ndarray and out.size >= MANY:
        far = np.nonzero(difference < -8)
        if len(far[0]) < out.size // 8:  # as a rule; the others have no error that counts
            at = tuple([0 if n == 1 else i for n, i in zip(peak.shape, far)])
            out[far] = _exponentials(out[far], x[far], difference[far], peak[at])
            return out
    return _exponentials(out, x, difference, peak)


def _exponentials(out: Any, x: Any, difference: Any, peak: Any) -> Any:
    """`exponentials`, from those of the rounded difference."""
    plain = raw(difference)
    if plain.size and plain.flat[plain.argmin()] < -8:
        with np.errstate(invalid="ignore"):  # infinite numbers, whose error is not used
            back = x - difference
            error = (x - (difference + back)) + (back - peak)
            out = out + where(isfinite(error) & (np.abs(peak) > 1e-12), out * error, 0)
    return out


def _others(exponentials: Any, largest: Any, dim: Any, keepdim: bool) -> Any:
    """The sum of exponentials without one of the largest elements, whose exponential is 1."""
    others = added(where(largest, 0, exponentials), dim, keepdim)
    if others.size == 1 and not isinstance(largest, DuckArray) and np.count_nonzero(largest) == 1:
        return others
    return others + (np.add.reduce(largest, axis=dim, keepdims=keepdim, dtype=exponentials.dtype) - 1)


def _are_finite(x: Any) -> bool:
    """Whether all numbers of an array are finite."""
    if x.size == 1 and x.dtype.kind == "f":
        return math.isfinite(x.item())
    return np.count_nonzero(isfinite(x)) == x.size


def _below_peak(x: Any, dim: Any) -> tuple[Any, Any]:
    """The distance of every element from the largest along `dim`, and that element. Elements equal to it have the distance 0, infinite ones too."""
    peak = np.maximum.reduce(x, axis=dim, keepdims=True, initial=-np.inf)
    if peak.dtype is not x.dtype:
        peak = peak.astype(x.dtype)
    if not isinstance(x, DuckArray) and _are_finite(peak):
        return x - peak, peak
    return where(isfinite(peak) | (x != peak), x - peak, 0), peak


@word
def softmax(x: Any, dim: Any) -> Any:
    out = exponentials(x, *_below_peak(x, dim))
    total = added(out, dim, True)
    if type(out) is np.ndarray:
        out /= total
        return out
    return out / total


@word
def log_softmax(x: Any, dim: Any) -> Any:
    below, peak = _below_peak(x, dim)
    if x.dtype.kind == "c":
        return below - logsumexp(below, dim, True)
    return below - log1p(_others(exponentials(x, below, peak), below == 0, dim, True))


def reference(g: Any, y: Any, dim: Any) -> Any:
    """The element of `g` at the position where `y` is largest along `dim`; 0 in a formula.

    A rule whose result does not change when a number is added to `g` subtracts this element first, to avoid cancellation.
    """
    if not y.ndim:
        return zeros_like(g)
    if y.size and len(dim) == y.ndim and type(g) is type(y) is np.ndarray:
        at = y.argmax()
        return g.reshape(-1)[at:at + 1].reshape((1,) * y.ndim).copy()  # a slice, since an element may be a number without dimensions
    order = (*[i for i in range(y.ndim) if i not in dim], *dim)
    kept = tuple([1 if i in dim else n for i, n in enumerate(y.shape)])
    if not y.size:
        return zeros_like(g, kept)
    rows = [a.transpose(order).reshape(math.prod(kept), -1) for a in (g, y)]
    if type(g) is type(y) is np.ndarray:
        return rows[0][np.arange(len(rows[0])), rows[1].argmax(1)].reshape(kept)
    return np.take_along_axis(rows[0], np.argmax(rows[1], -1)[:, None], -1).reshape(kept)


@word
def centred(x: Any, dim: Any) -> Any:
    """The distance of every element from the mean along `dim`, corrected by the rounding error of the mean: equal numbers give 0."""
    count = math.prod([x.shape[i] for i in dim]) or math.nan
    if type(x) is np.ndarray and len(dim) == x.ndim:
        x = x - added(x) / count
        x -= added(x) / count
        return x
    x = x - added(x, dim, True) / count
    x -= added(x, dim, True) / count
    return x


ROW = 1024  # numbers whose squares are added by BLAS; sums of rows are added in pairs


def sum_of_squares(x: Any, dim: Any, keepdim: bool) -> Any:
    """Σx² of real numbers; over all of many numbers without an array of the squares."""
    if type(x) is not np.ndarray or x.size < MANY or len(dim) < x.ndim or keepdim or x.dtype.char not in "fd" or not x.flags.c_contiguous:
        return added(x * x, dim, keepdim)
    flat = x.reshape(-1)
    end = len(flat) // ROW * ROW
    rows, rest = flat[:end].reshape(-1, ROW), flat[end:]
    return np.add.reduce(np.vecdot(rows, rows)) + np.vdot(rest, rest)


@word
def norm(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """√Σ|x|², rescaled where the squares overflow or underflow."""
    a = x if x.dtype.kind == "f" else np.abs(x)
    out = sqrt(sum_of_squares(a, dim, keepdim))
    if type(out) is np.float64:
        if LEAST < out < math.inf:
            return out
    else:
        lengths, tiny = raw(out), np.finfo(a.dtype).tiny ** 0.5
        if ((lengths > tiny) & (lengths < np.inf)).all():
            return out
    if not a.size:
        return out
    a = np.abs(a)
    scale = np.maximum.reduce(a, axis=dim, keepdims=True)
    scale = where((scale > 0) & isfinite(scale), scale, 1)
    ratio = a / scale
    total = sqrt(added(ratio * ratio, dim, keepdim))
    return total * scale.reshape(total.shape)


def all(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.all(x, axis=dim, keepdims=keepdim)


def any(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.any(x, axis=dim, keepdims=keepdim)


def argmax(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.argmax(check_ordered(x), axis=dim, keepdims=keepdim)


def argmin(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.argmin(check_ordered(x), axis=dim, keepdims=keepdim)
