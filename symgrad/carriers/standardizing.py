"""The standardization of many numbers part by part, so that what is computed of a part stays in the cache of the processor.

Numbers stand as (N, P, Q, L), with means over the last two axes, or over all but the second. Weights stand along the last axis, or are constant
on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["standardized", "standardized_pull"]

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
