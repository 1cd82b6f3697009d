"""Reductions of NumPy values, computed without overflow and cancellation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import exp, isfinite, log1p, sqrt

from symgrad.carriers.batched import raw
from symgrad.carriers.contracting import added
from symgrad.carriers.duck import DuckArray
from symgrad.carriers.elementwise import MANY, where
from symgrad.carriers.recorded import word
from symgrad.carriers.structure import zeros_like
from symgrad.layouts.indices import check_ordered

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


PART = 1 << 17  # numbers of a part


class _Form(NamedTuple):
    shape: tuple[int, int, int, int]
    weights: tuple[int, ...]
    summed: tuple[int, ...]  # the axes of the mean beside the last


def _form(x: Any, operands: Sequence[Any], dim: tuple[int, ...]) -> _Form | None:
    """None for means over other axes, and for other weights."""
    shapes = {w.shape for w in operands if type(w) is np.ndarray}
    n, last = x.ndim, math.prod(x.shape[2:])
    if not x.size:
        return None
    if dim == tuple(range(n - len(dim), n)) and shapes <= {x.shape[n - len(dim):]}:
        count = math.prod(x.shape[n - len(dim):])
        return _Form((x.size // count, 1, 1, count), (count,), (2,))
    if n > 2 and dim in (tuple(range(2, n)), (0, *range(2, n))) and shapes <= {(x.shape[1], *(1,) * (n - 2))}:
        return _Form((x.shape[0], x.shape[1], 1, last), (x.shape[1], 1, 1), (0, 2) if dim[0] == 0 else (2,))
    return _Form(x.shape, (*x.shape[1:3], 1), (2,)) if n == 4 and dim == (2, 3) and shapes <= {(*x.shape[1:3], 1)} else None


def _groups(x: Any, summed: tuple[int, ...]) -> list[list[slice]]:
    """Slices of the first axis, those in one list that have a common mean."""
    step = max(PART * len(x) // x.size, 1)
    slices = [slice(i, i + step) for i in range(0, len(x), step)]
    return [slices] if 0 in summed else [[s] for s in slices]


def _sums(x: Any) -> Any:
    """Along the last axis, by BLAS."""
    return (x.reshape(-1, x.shape[-1]) @ np.ones(x.shape[-1], x.dtype)).reshape(*x.shape[:-1], 1)


def _products(a: Any, b: Any) -> Any:
    return np.vecdot(a, b)[..., None]


def standardized(x: Any, weight: Any, bias: Any, dim: tuple[int, ...], eps: float) -> Any:
    """The value, and of what its pullback needs the form, and for each mean itself, its rounding error and 1 / √(var + eps)."""
    form = _form(x, (weight, bias), dim)
    if form is None:
        return None
    given, (_, weights, summed) = x, form
    x = x.reshape(form.shape)
    out, kept = np.empty_like(x), []
    w, b = (z if type(z) is float else z.reshape(weights) for z in (weight, bias))
    groups = _groups(x, summed)
    work = np.empty_like(x[groups[0][0]])
    count = math.prod([x.shape[i] for i in (*summed, 3)])
    with np.errstate(all="ignore"):
        for group in groups:
            mean = sum([np.add.reduce(_sums(x[s]), summed, keepdims=True) for s in group]) / x.dtype.type(count)
            error: Any = 0.0
            square = total = 0.0
            for s in group:
                distances = np.subtract(x[s], mean, out=work[:len(x[s])])
                total += np.add.reduce(_sums(distances), summed, keepdims=True)
                square += np.add.reduce(_products(distances, distances), summed, keepdims=True)
            if (np.abs(total) > np.finfo(x.dtype).eps / 4 * np.sqrt(square * count)).any():
                error, square = total / x.dtype.type(count), 0.0
                for s in group:
                    distances = _distances(x[s], mean, error, work)
                    square += np.add.reduce(_products(distances, distances), summed, keepdims=True)
            scale = 1 / np.sqrt(square / x.dtype.type(count) + x.dtype.type(eps))
            if not (scale > 0).all():
                return None
            kept.append((mean, error, scale))
            for s in group:
                distances = work[:len(x[s])] if len(group) == 1 else _distances(x[s], mean, error, work)
                if weights[-1] == 1:
                    distances *= scale * w
                else:
                    distances *= scale
                    if type(w) is not float:
                        distances *= w
                if type(b) is float:
                    out[s] = distances
                else:
                    np.add(distances, b, out=out[s])
    return out.reshape(given.shape), (form, kept)


def _distances(x: Any, mean: Any, error: Any, work: Any) -> Any:
    out = np.subtract(x, mean, out=work[:len(x)])
    if type(error) is not float:
        out -= error
    return out


def standardized_pull(g: Any, y: Any, kept: Any, x: Any, weight: Any, bias: Any, dim: tuple[int, ...], eps: float) -> Any:
    """For d = x - mean and the factors s: s (g w - mean(g w)) - d s³ mean(g w d), Σ g d s and Σ g."""
    (shape, weights, summed), means = kept
    given, x, g = x, x.reshape(shape), np.ascontiguousarray(g).reshape(shape)  # products with a broadcast array would not be those of BLAS
    along, out, groups = weights[-1] > 1 and not type(weight) is type(bias) is float, np.empty_like(x), _groups(x, summed)
    w = weight.reshape(weights) if type(weight) is not float else np.ones(weights, x.dtype) if along else x.dtype.type(1.0)
    work, other = np.empty_like(x[groups[0][0]]), np.empty_like(x[groups[0][0]])
    by_weight, by_bias = (np.zeros(weights if along else (shape[1], shape[2], 1), x.dtype) for _ in range(2))
    count = x.dtype.type(math.prod([x.shape[i] for i in (*summed, 3)]))
    with np.errstate(all="ignore"):
        for group, (mean, error, scale) in zip(groups, means):
            first = second = 0.0
            for s in group:
                part, distances = g[s], _distances(x[s], mean, error, work)
                if along:
                    products = np.multiply(part, distances, out=other[:len(part)])
                    by_bias += np.ones(len(part), x.dtype) @ part.reshape(-1, len(w))
                    by_weight += scale.reshape(-1) @ products.reshape(-1, len(w))
                    first, second = ((z.reshape(-1, len(w)) @ w).reshape(-1, 1, 1, 1) for z in (part, products))
                else:
                    sums, products = _sums(part), _products(part, distances)
                    by_bias += np.add.reduce(sums, 0)
                    by_weight += np.add.reduce(products * scale, 0)
                    first, second = (z + np.add.reduce(w * more, summed, keepdims=True) for z, more in ((first, sums), (second, products)))
            first, second = scale * (first / count), scale * (scale * (scale * (second / count)))
            for s in group:
                distances = work[:len(x[s])] if len(group) == 1 else _distances(x[s], mean, error, work)
                straight = np.multiply(g[s], w if along else w * scale, out=other[:len(x[s])])
                if along:
                    straight *= scale
                distances *= second
                distances += first
                np.subtract(straight, distances, out=out[s])
    return (out.reshape(given.shape), None if type(weight) is float else by_weight.reshape(weight.shape),
            None if type(bias) is float else by_bias.reshape(bias.shape))
