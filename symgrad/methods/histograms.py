"""Histograms, differentiable by the weights of the points: the derivative by the points is zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.arguments import check_kind, check_least_rank, check_one_dtype, check_positive, check_range
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
