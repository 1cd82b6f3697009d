"""Memory layouts of new arrays by torch's rules, so that `view` works on the same results as in torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

ndarray = np.ndarray
IMAGE_AXES = {"torch.channels_last": (0, 2, 3, 1), "torch.channels_last_3d": (0, 2, 3, 4, 1)}  # dimensions of image formats, outermost first


def row_major(array: np.ndarray, operands: Sequence[Any] = ()) -> np.ndarray:
    """The array in row-major order; itself if it is contiguous or not a NumPy array."""
    return array if type(array) is not ndarray or array.flags.c_contiguous else array.copy()


def in_image_format(array: np.ndarray, operands: Sequence[Any]) -> np.ndarray:
    """The array in the format of images if all operands of as many dimensions have that format, else in row-major order."""
    images = [x for x in operands if type(x) is ndarray and x.ndim == array.ndim]
    for order in IMAGE_AXES.values() if array.ndim > 3 and images else ():
        if array.ndim == len(order) and all([not x.flags.c_contiguous and x.transpose(order).flags.c_contiguous for x in images]):
            return with_axis_order(array, order)
    return row_major(array)


def is_plain(x: Any) -> bool:
    """Whether a value is an array of numbers alone, of which no carrier computes derivatives."""
    return type(x) is ndarray


def with_torch_layout(array: np.ndarray, operands: Sequence[Any]) -> np.ndarray:
    """A new result in torch's memory order for these operands; the result itself if it has that order already."""
    first = operands[0] if operands else None
    if type(first) is ndarray and first.shape == array.shape and 0 not in first.strides:  # the first operand alone determines the order
        out = np.empty_like(first, array.dtype)
        if out.strides == array.strides:
            return array
        np.copyto(out, array)
        return out
    arrays = [x for x in operands if type(x) is ndarray and x.ndim > 1]
    if all([x.flags.c_contiguous for x in arrays]):
        return row_major(array)
    return with_axis_order(array, order_of_strides(array.shape, [_broadcast_strides(x, array.shape) for x in arrays]))


def with_axis_order(array: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """The array as a dense one with its axes in a given order, outermost first; the array itself if it has that layout already."""
    transposed = array.transpose(order)
    return array if transposed.flags.c_contiguous else transposed.copy().transpose(np.argsort(order))


def empty_like(array: np.ndarray, dtype: Any = None) -> np.ndarray:
    """An uninitialized array with the shape and memory order of another."""
    if 0 not in array.strides:
        return np.empty_like(array, dtype)
    order = order_of_strides(array.shape, [tuple(map(abs, array.strides))])
    return np.empty([array.shape[i] for i in order], array.dtype if dtype is None else dtype).transpose(np.argsort(order))


def order_of_format(shape: Sequence[int], memory_format: Any) -> tuple[int, ...]:
    """The dimensions, outermost first, of a tensor of a shape in a memory format.

    Raises RuntimeError for a format of another number of dimensions.
    """
    order = IMAGE_AXES.get(repr(memory_format), tuple(range(len(shape))))
    if len(order) != len(shape):
        raise RuntimeError(f"memory_format {str(memory_format)[6:]} is for {len(order)} dimensions, not for the shape {list(shape)}")
    return order


def empty_in_format(shape: Sequence[int], dtype: Any, memory_format: Any) -> np.ndarray:
    """An uninitialized array in a memory format. Raises RuntimeError as `order_of_format`."""
    order = order_of_format(shape, memory_format)
    return np.empty([shape[i] for i in order], dtype).transpose(np.argsort(order))


def with_index_layout(out: np.ndarray, array: np.ndarray, index: Any) -> np.ndarray:
    """The result `out` of `array[index]` with index arrays, in torch's memory order: that of the axes without index arrays, then of those arrays."""
    parts = index if type(index) is tuple else (index,)
    if array.flags.c_contiguous and all([type(p) is not ndarray or p.ndim < 2 or p.flags.c_contiguous for p in parts]):
        return row_major(out)
    if any([isinstance(p, (int, np.integer, list)) for p in parts]):
        return row_major(out)
    axes = [k for p in parts for k in ([p] if type(p) is not ndarray else p.nonzero() if p.dtype.kind == "b" else [p])]
    dots = next((i for i, p in enumerate(axes) if p is Ellipsis), len(axes))
    given = sum([p is not None and p is not Ellipsis for p in axes])
    axes[dots:dots + 1] = [slice(None)] * (array.ndim - given)
    basic = array[tuple([slice(None) if type(p) is ndarray else p for p in axes])]
    places = [i for i, p in enumerate(axes) if type(p) is ndarray]
    shape = np.broadcast_shapes(*[axes[i].shape for i in places])
    first = places[0] if places[-1] - places[0] < len(places) else 0  # separated index arrays move their axes to the front
    kept = [s for i, s in enumerate(basic.strides) if i not in places]
    around = (0,) * first, (0,) * (len(kept) - first)
    strides = [(*kept[:first], *(0,) * len(shape), *kept[first:]), *[(*around[0], *_broadcast_strides(axes[i], shape), *around[1]) for i in places]]
    return with_axis_order(out, order_of_strides(out.shape, strides))


def _broadcast_strides(array: np.ndarray, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array that is broadcast to a shape: 0 along broadcast axes."""
    extra = len(shape) - array.ndim
    return (0,) * extra + tuple([0 if n == 1 != shape[i + extra] else s for i, (n, s) in enumerate(zip(array.shape, array.strides))])


def order_of_strides(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> list[int]:
    """The axes of a new result, outermost first, by torch's rule: two axes have the order of the first operand that distinguishes them.

    A stride of 0 does not distinguish axes. The comparison is not transitive, so that the insertion sort is a part of the rule.
    """
    order = list(range(len(shape)))[::-1]  # innermost first

    def compare(inner: int, outer: int) -> int:
        for s in strides:
            if s[inner] and s[outer]:
                if s[inner] != s[outer]:
                    return 1 if s[inner] > s[outer] else -1
                if shape[inner] > shape[outer]:
                    return 1
        return 0

    for i in range(1, len(order)):
        at = i
        for k in range(i - 1, -1, -1):
            sign = compare(order[k], order[at])
            if sign > 0:
                order[k], order[at], at = order[at], order[k], k
            elif sign < 0:
                break
    return order[::-1]
