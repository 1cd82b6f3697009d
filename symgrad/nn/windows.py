"""The positions of the largest elements of windows, which numbers decide."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.layouts.indices import check_ordered

__all__ = ["flat_index", "largest_in_parts", "largest_in_places", "largest_in_windows", "without_elements"]

Sizes = Sequence[int]


def _of_members(function: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """The function of the last axes of an array, or of that of the members of a batch."""
    @functools.wraps(function)
    def positions(value: Any, *given: Any) -> Any:
        value = check_ordered(value)
        return value._with(positions(value.data, *given)) if hasattr(value, "_with") else function(np.asarray(value), *given)

    return positions


@_of_members
def largest_in_windows(x: np.ndarray, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, places: Sizes) -> np.ndarray:
    """The position of the first largest element under a kernel at each of its places, in the flattened last axes; the last NaN is the largest."""
    rank = len(kernel)
    x = x.astype(np.float32) if x.dtype.kind == "V" else x
    size = x.shape[x.ndim - rank:]
    steps = np.array([math.prod(size[i + 1:]) for i in range(rank)])
    starts = [np.arange(n) * s - p for n, s, p in zip(places, stride, padding)]
    first = [np.where(start < 0, start + -(start // d) * d, start) for start, d in zip(starts, dilation)]  # in the input
    first = [np.minimum(each, n - 1) for each, n in zip(first, size)]
    at = np.broadcast_to(_positions(first, steps), (*x.shape[:x.ndim - rank], *places)).copy()
    best = np.full(at.shape, -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min, x.dtype)
    missing = x.dtype.kind == "f" and bool(x.size) and bool(np.isnan(np.min(x)))
    for offsets in itertools.product(*map(range, kernel)):
        inside, read = zip(*[_inside(start, j * d, n, s) for start, j, d, n, s in zip(starts, offsets, dilation, size, stride)])
        window, target = x[(..., *read)], (..., *inside)
        larger = window > best[target]
        if missing:
            larger |= window != window
        np.copyto(best[target], window, where=larger)
        shifted = [start[part] + j * d for start, part, j, d in zip(starts, inside, offsets, dilation)]
        np.copyto(at[target], _positions(shifted, steps), where=larger)
    return at


def without_elements(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, places: Sizes) -> np.ndarray | None:
    """Where windows with gaps have no element of the input at all; None if there are none."""
    out: Any = False
    for i, (n, k, s, p, d, m) in enumerate(zip(size, kernel, stride, padding, dilation, places)):
        at = (np.arange(m) * s - p)[:, None] + np.arange(k) * d
        out = out | ~((at >= 0) & (at < n)).any(1).reshape((-1, *(1,) * (len(size) - 1 - i)))
    return out if np.any(out) else None


def _positions(coordinates: Sequence[np.ndarray], steps: np.ndarray) -> np.ndarray:
    """The positions in the flattened axes of the elements with coordinates along each axis."""
    rank = len(coordinates)
    out: Any = 0
    for i, (each, step) in enumerate(zip(coordinates, steps)):
        out = out + (each * step).reshape((-1, *(1,) * (rank - 1 - i)))
    return np.asarray(out)


def _inside(start: np.ndarray, offset: int, size: int, stride: int) -> tuple[slice, slice]:
    """The places whose element at an offset is in the axis, and those elements."""
    at = start + offset
    (found,) = np.nonzero((at >= 0) & (at < size))
    if not found.size:
        return slice(0, 0), slice(0, 0)
    low, high = int(found[0]), int(found[-1])
    return slice(low, high + 1), slice(int(at[low]), int(at[high]) + 1, stride)


@_of_members
def largest_in_parts(x: np.ndarray, parts: Sequence[Sequence[tuple[int, int]]]) -> np.ndarray:
    """As `largest_in_windows`, for the parts from a start to an end of each axis, of different lengths."""
    rank = len(parts)
    lead, size = x.shape[:x.ndim - rank], x.shape[x.ndim - rank:]
    x = x.astype(np.float32) if x.dtype.kind == "V" else x
    at = np.zeros((*lead, *map(len, parts)), np.int64)
    positions = np.arange(math.prod(size)).reshape(size)
    for place in itertools.product(*[range(len(axis)) for axis in parts]):
        inside: Any = tuple(slice(*axis[i]) for axis, i in zip(parts, place))
        every: Any = (..., *inside)
        window = x[every].reshape((*lead, math.prod(positions[inside].shape)))
        found = np.argmax(window, -1)  # the first NaN, if there is one
        if x.dtype.kind == "f" and x.size:
            missing = np.isnan(window)
            found = np.where(missing.any(-1), window.shape[-1] - 1 - np.argmax(missing[..., ::-1], -1), found)
        one: Any = (..., *place)
        at[one] = positions[inside].reshape(-1)[found]
    return at


@_of_members
def largest_in_places(x: np.ndarray, starts: Sequence[np.ndarray], kernel: Sizes) -> np.ndarray:
    """As `largest_in_windows`, for windows that start elsewhere in each image; `starts` has the coordinates (N, C, places) for each axis."""
    rank = len(kernel)
    size = x.shape[x.ndim - rank:]
    positions: Any = 0
    for i, (start, k) in enumerate(zip(starts, kernel)):
        each = (start[..., None] + np.arange(k)) * math.prod(size[i + 1:])  # (N, C, places, k)
        lead = each.shape[:-2]
        positions = positions + each.reshape((*lead, *[n if j == i else 1 for j in range(rank) for n in (each.shape[-2],)],
                                              *[n if j == i else 1 for j in range(rank) for n in (k,)]))
    positions = positions.reshape((*positions.shape[:positions.ndim - rank], math.prod(kernel)))
    lead, places = positions.shape[:-1 - rank], positions.shape[-1 - rank:]
    flat = x.reshape((*x.shape[:x.ndim - rank], math.prod(size)))
    every = np.broadcast_to(positions.reshape((*lead, math.prod(places))), (*flat.shape[:-1], math.prod(places)))
    found = np.take_along_axis(flat, every, -1).reshape((*flat.shape[:-1], *places))
    largest = np.argmax(found, -1)
    return np.take_along_axis(np.broadcast_to(positions, found.shape), largest[..., None], -1)[..., 0]


def flat_index(index: Any, rank: int, size: int) -> Any:
    """Positions in the last `rank` axes, flattened, of so many elements as positions in the whole flattened array."""
    lead = tuple(index.shape[:index.ndim - rank])
    return index + (np.arange(math.prod(lead)) * size).reshape((*lead, *(1,) * rank))
