"""Reductions of consecutive segments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.arguments import check_kind, check_option
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced

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
