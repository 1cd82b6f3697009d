"""Histograms, differentiable by the weights of the points (the derivative by the points is zero), and reductions of consecutive segments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.arguments import check_kind, check_least_rank, check_one_dtype, check_option, check_positive, check_range
from symgrad.engine.method_table import MethodTable
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS, traced
from symgrad.graph import return_types
from symgrad.system.errorstate import quiet, quietly

METHODS = MethodTable()


@METHODS.define
@taking_tensors
def histogram(input: Tensor, bins: int | Tensor = 100, *, range: Sequence[float] | None = None, weight: Tensor | None = None,
              density: bool = False) -> Any:
    """The pair (hist, bin_edges) of the sums of weights (or the numbers) of the elements in each bin, and the ends of the bins.

    `bins` is their number in `range` (by default from the smallest to the largest element), or their ends. A bin holds its lower end, and the last
    one also its upper end. `density` divides by the size of the bin and by the sum of all. Raises RuntimeError for wrong shapes.

    >>> import symgrad
    >>> symgrad.histogram(symgrad.tensor([1.0, 2.0, 1.0]), 4, range=(0.0, 3.0)).hist
    tensor([0., 2., 1., 0.])
    """
    ends = None if range is None else [range]
    hist, edges = _histogram("histogram", input.reshape(-1, 1), [bins], ends, weight, density, tuple(input.shape))
    return return_types.histogram((hist, edges[0]))


@taking_tensors
def histogramdd(input: Tensor, bins: int | Sequence[Any], *, range: Sequence[float] | None = None, weight: Tensor | None = None,
                density: bool = False) -> Any:
    """As `histogram`, of points: the last dimension of the input has their coordinates, and `bins` one entry for each.

    `range` has the two ends of each coordinate one after the other. Raises RuntimeError for another number of bins, or of ends, and wrong shapes.
    """
    check_least_rank("histogramdd", input, 2)
    n = input.shape[-1]
    each = [bins] * n if isinstance(bins, int) else list(bins)
    check_range("histogramdd", "the number of bins", len(each), n, n)
    if range is not None:
        check_range("histogramdd", "the number of ends in range", len(range), 2 * n, 2 * n)
    ends = None if range is None else [range[2 * k:2 * k + 2] for k, _ in enumerate(each)]
    shape = tuple(input.shape[:-1])
    return return_types.histogramdd(_histogram("histogramdd", input.reshape(-1, n), each, ends, weight, density, shape))


def _histogram(name: str, points: Tensor, bins: Sequence[Any], ranges: Sequence[Any] | None, weight: Tensor | None, density: bool,
               shape: tuple[int, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
    check_kind(name, points, "f")
    if weight is not None and tuple(weight.shape) != shape:
        raise RuntimeError(f"{name}: weight must have the shape {list(shape)} of the points, not {list(weight.shape)}")
    if weight is not None:
        check_one_dtype(name, points, weight)
    values = np.asarray(points._value)
    edges = [_edges(name, values[:, k], n, None if ranges is None else ranges[k], k) for k, n in enumerate(bins)]
    inside, position = np.ones(len(values), bool), np.zeros(len(values), np.int64)
    for x, ends in zip(values.T, edges):
        inside &= (x >= ends[0]) & (x <= ends[-1])
        position = position * (len(ends) - 1) + np.minimum(np.searchsorted(ends, x, "right") - 1, len(ends) - 2)
    sizes = tuple(len(ends) - 1 for ends in edges)
    given = traced.ones_like(points[:, 0]) if weight is None else weight.reshape(-1)
    hist = FUNCTIONS["index_add"](wrap(np.zeros(math.prod(sizes), values.dtype)), 0, wrap(position[inside]), given[wrap(inside)]).reshape(sizes)
    if density:
        hist = hist / hist.sum()
        for k, ends in enumerate(edges):
            hist = hist / wrap(quietly(np.diff, ends).reshape((-1,) + (1,) * (len(edges) - 1 - k)))
    return hist, tuple(map(wrap, edges))


@quiet
def _edges(name: str, x: np.ndarray, bins: Any, ends: Sequence[float] | None, k: int) -> np.ndarray:
    """The ends of the bins along one coordinate."""
    if isinstance(bins, Tensor) and not bins.ndim:
        bins = int(bins.item())
    if isinstance(bins, Tensor):
        if bins.ndim != 1 or bins.numel() < 2:
            raise RuntimeError(f"{name}: bins are a vector of two ends or more, but they have the shape {list(bins.shape)} for dimension {k}")
        if bins._value.dtype != x.dtype:
            raise RuntimeError(f"{name}: the dtype {bins.dtype} of the bins of dimension {k} is not that of the input")
        return np.array(bins._value)
    check_positive(name, f"bins of dimension {k}", bins)
    low, high = (float(x.min()), float(x.max())) if ends is None and x.size else (0.0, 1.0) if ends is None else ends
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise RuntimeError(f"{name}: the range from {low} to {high} of dimension {k} is not finite or not ascending")
    return np.linspace(*((low - 0.5, high + 0.5) if low == high else (low, high)), bins + 1, dtype=x.dtype)


EMPTY = {"sum": 0.0, "mean": math.nan, "prod": 1.0, "max": -math.inf, "min": math.inf}
SCATTER = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}


@taking_tensors
def segment_reduce(data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None, offsets: Tensor | None = None,
                   axis: int = 0, unsafe: bool = False, initial: Any = None) -> Tensor:
    """The sum, mean, product, largest ("max") or smallest ("min") element of each of several consecutive segments along `axis`.

    The segments are given by their lengths or by the offsets where they begin and end, for each member of the dimensions before `axis`. `initial`
    is a further element of each segment; without it an empty one gives 0, NaN, 1, -inf or inf. `unsafe` allows segments that leave elements out.

    Raises RuntimeError for another reduction, and for lengths that are negative, have another sum or another shape.

    >>> import symgrad
    >>> symgrad.segment_reduce(symgrad.tensor([1.0, 2.0, 3.0]), "sum", lengths=symgrad.tensor([1, 2]))
    tensor([1., 5.])
    """
    if reduce == "mean" and data.dtype.name in ("float16", "bfloat16"):  # neither the sum nor the count is rounded
        return segment_reduce(data.float(), reduce, lengths=lengths, indices=indices, offsets=offsets, axis=axis, unsafe=unsafe,
                              initial=initial).to(data.dtype)
    check_option("segment_reduce", "reduce", reduce, EMPTY)
    if indices is not None or lengths is None and offsets is None:
        raise RuntimeError("segment_reduce: the segments are given by lengths or by offsets, not by indices")
    check_kind("segment_reduce", data, "f", "data")
    axis = axis % max(data.ndim, 1)
    word, given = ("offsets", offsets._value) if offsets is not None else ("lengths", lengths._value)  # type: ignore[union-attr]
    check_kind("segment_reduce", given, "iu", word)
    counts = given if offsets is None else np.diff(given, axis=-1)
    check_option("segment_reduce", "axis", axis, (counts.ndim - 1,))
    n = data.shape[axis]
    if not unsafe and ((counts < 0).any() or (counts.sum(-1) != n).any()):
        raise RuntimeError(f"segment_reduce: lengths must not be negative, and have the sum {n} of the size of data along {axis}")
    segments = counts.shape[-1]
    ends = np.cumsum(counts, -1) + (0 if offsets is None else offsets._value[..., :1])
    place = (ends[..., None, :] <= np.arange(n)[:, None]).sum(-1)  # the segment of each element; beyond the last one, one more
    trailing = data.shape[axis + 1:]
    at = np.broadcast_to(place.reshape(*place.shape, *(1,) * len(trailing)), (*data.shape[:axis + 1], *trailing))
    shape = (*data.shape[:axis], segments + 1, *trailing)
    start = EMPTY["sum" if reduce == "mean" else reduce] if initial is None else initial
    out = traced.scatter_reduce(wrap(np.full(shape, start, data._value.dtype)), axis, wrap(np.ascontiguousarray(at)), data, SCATTER[reduce])
    out = traced.narrow(out, axis, 0, segments)
    if reduce != "mean":
        return out
    size = wrap(counts.reshape(*counts.shape, *(1,) * len(trailing)))
    means = out / traced.clamp_min(size, 1)
    return means if initial is not None else traced.where(size > 0, means, math.nan)
