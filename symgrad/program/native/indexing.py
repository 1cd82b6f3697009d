"""Indices whose arrays are values of the program."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.program.native.nodes import INT64, Ref, Unsupported

__all__ = ["has_recorded", "recorded_positions"]


def has_recorded(index: Any) -> bool:
    """Whether an index has parts that are values of the program."""
    return type(index) is Ref or type(index) in (tuple, list) and any(map(has_recorded, index))


def recorded_positions(words: Any, index: Any, shape: tuple[int, ...], places: np.ndarray) -> Ref:
    """The positions that an index selects from `places`, an array of the positions of all elements of `shape`, which are linear in each index.

    The selection by zeros in place of the recorded parts gives the start. To it each recorded part adds its elements times the step of its axis.
    """
    parts = _expanded(index if type(index) in (tuple, list) else (index,), len(shape))
    axes = np.cumsum([0, *[_consumed(part) for part in parts]]).tolist()
    zeros = [np.zeros(part.shape, np.intp) if type(part) is Ref else part for part in parts]
    out: Any = None
    if places.size:
        out = words.graph.constant(np.asarray(places[tuple(zeros)], np.int64))
    for i, (part, axis) in enumerate(zip(parts, axes)):
        if type(part) is not Ref:
            continue
        if part.dtype.kind != "i":
            raise Unsupported("a mask that depends on the inputs")
        if out is None:
            raise Unsupported("an index into no elements")
        # which element of the part each element of the selection reads: an array that counts along the axis, selected with counting numbers
        count = math.prod(part.shape)
        counting = np.arange(count).reshape((count, *(1,) * (len(shape) - axis - 1)))
        counting = np.broadcast_to(counting, (*shape[:axis], count, *shape[axis + 1:]))
        readers = counting[tuple([np.arange(count).reshape(part.shape) if j == i else z for j, z in enumerate(zeros)])]
        step = int(np.take(places, 1, axis).flat[0] - places.flat[0]) if shape[axis] > 1 else 0
        checked = words.graph.add("wrapped", (words._contiguous(words.astype(part, INT64)),), (shape[axis],), part.shape, INT64)
        read = checked if readers.shape == part.shape else words._take(checked, readers)
        before, words.dtype = words.dtype, INT64
        out = words.to("add", out, words.to("mul", read, step))
        words.dtype = before
    return out


def _expanded(parts: Any, ndim: int) -> list[Any]:
    """The parts of an index, with slices for an ellipsis."""
    parts = [np.asarray(part) if isinstance(part, list) else part for part in parts]
    rest = ndim - sum(_consumed(part) for part in parts)
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    return [*parts[:at], *[slice(None)] * rest, *parts[at + 1:]]


def _consumed(part: Any) -> int:
    """The number of axes that a part of an index selects from."""
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, np.ndarray) and part.dtype == bool else 1
