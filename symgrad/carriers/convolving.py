"""Convolutions over any number of axes, of images (N, C, *size) with kernels (O, C / groups, *kernel).

The three words are the value and the two transposes of one trilinear form, so that their derivatives of every order are words again. Each is one
product of matrices with the elements under the kernel as rows. Arrays are multiplied some images at a time, so that these rows stay in the cache.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from symgrad.carriers import CONVOLUTIONS, numeric
from symgrad.carriers.batched import Batched, batch_size, data_of_members, highest_level

CACHED = 1 << 20  # bytes of elements under the kernel that are multiplied at a time
LARGE = 1 << 26  # bytes of those of one image, from which its places are divided
Sizes = Sequence[int]


def of_carrier(xp: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """The words, for values whose carrier `xp(x, y)` returns."""
    def bound(rule: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, y, *parameters: rule(xp(x, y), x, y, *parameters)

    return {name: bound(rule) for name, rule in zip(CONVOLUTIONS, (_convolve, _convolve_input, _convolve_weight))}


def of_arrays() -> dict[str, Callable[..., Any]]:
    """The words of the numeric carrier."""
    rules = ((_convolve, _convolve_arrays), (_convolve_input, _convolve_input_of_arrays), (_convolve_weight, _convolve_weight_of_arrays))
    return {name: _word(numeric, *pair) for name, pair in zip(CONVOLUTIONS, rules)}


def _word(xp: Any, general: Callable[..., Any], of_arrays: Callable[..., Any]) -> Callable[..., Any]:
    """A word on arrays, also of few bits, on batched values, and on recorded ones, where it is recorded as words for windows and products."""
    of_images = general is _convolve_weight  # and not of images with kernels

    def call(x: Any, y: Any, *parameters: Any) -> Any:
        if type(x) is Batched or type(y) is Batched:
            return _of_members(call, x, y, parameters, of_images)
        if type(x) is not np.ndarray or type(y) is not np.ndarray:
            return general(xp, x, y, *parameters)
        if x.dtype.char in "eE":
            return of_arrays(xp, x.astype(np.float32), y.astype(np.float32), *parameters).astype(x.dtype)
        return of_arrays(xp, x, y, *parameters)

    return call


def _of_members(call: Callable[..., Any], x: Any, y: Any, parameters: tuple[Any, ...], of_images: bool) -> Any:
    """The word for all members of a batch at once: with more images, or, where the kernels differ, with more groups."""
    level = highest_level(x, y)
    if not of_images and not (type(y) is Batched and y.level == level):
        data = x.data
        out = call(data.reshape((data.shape[0] * data.shape[1], *data.shape[2:])), y, *parameters)
        return Batched(out.reshape((*data.shape[:2], *out.shape[1:])), level)
    count = batch_size((x, y), level)
    if not count:
        x, y = (Batched(np.zeros_like(v.data, shape=(1, *v.data.shape[1:])), level) if type(v) is Batched and v.level == level else v for v in (x, y))
        return Batched(_of_members(call, x, y, parameters, of_images).data[:0], level)
    x, y = (data_of_members(v, level, count) for v in (x, y))
    *sizes, groups = parameters
    x = _with_channels_of_members(x)
    y = _with_channels_of_members(y) if of_images else y.reshape((count * y.shape[1], *y.shape[2:]))
    out = call(x, y, *sizes, groups * count)
    if of_images:
        return Batched(out.reshape((count, out.shape[0] // count, *out.shape[1:])), level)
    out = out.reshape((out.shape[0], count, out.shape[1] // count, *out.shape[2:]))
    return Batched(out.transpose((1, 0, *range(2, out.ndim))), level)


def _with_channels_of_members(x: Any) -> Any:
    """Batches of images (members, N, C, ...) as images with the channels of all members."""
    count, n, c, *size = x.shape
    return x.transpose((1, 0, *range(2, x.ndim))).reshape((n, count * c, *size))


# Any carrier


def _windows(xp: Any, x: Any, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Any:
    """The elements under the kernel at each of its places: (N, C, *kernel, *places)."""
    rank = len(kernel)
    if any(padding):
        wide = (*x.shape[:2], *[n + 2 * p for n, p in zip(x.shape[2:], padding)])
        x = xp.place(x, (slice(None), slice(None), *[slice(p, p + n) for n, p in zip(x.shape[2:], padding)]), wide)
    for i in range(rank):
        x = xp.unfold(x, 2 + i, dilation[i] * (kernel[i] - 1) + 1, stride[i])
    if max(dilation) > 1:
        x = xp.getitem(x, (*[slice(None)] * (2 + rank), *[slice(None, None, d) for d in dilation]))
    return xp.permute(x, (0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank)))


def _rows(xp: Any, windows: Any, rank: int, groups: int) -> Any:
    """The elements under the kernel as rows of matrices: (N, groups, C kernel, places)."""
    n, c, *sizes = windows.shape
    return xp.reshape(windows, (n, groups, c // groups * prod(sizes[:rank]), prod(sizes[rank:])))


def _grouped(xp: Any, x: Any, groups: int, axis: int) -> Any:
    """The axis split into groups, and all behind it as one."""
    shape = x.shape
    return xp.reshape(x, (*shape[:axis], groups, shape[axis] // groups, prod(shape[axis + 1:])))


def _convolve(xp: Any, x: Any, weight: Any, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    return _product(xp, _windows(xp, x, weight.shape[2:], stride, padding, dilation), weight, groups)


def _product(xp: Any, windows: Any, weight: Any, groups: int) -> Any:
    """The sums of products of kernels with the elements under them."""
    rank = weight.ndim - 2
    out = xp.matmul(_grouped(xp, weight, groups, 0), _rows(xp, windows, rank, groups))
    return xp.reshape(out, (windows.shape[0], weight.shape[0], *windows.shape[2 + rank:]))


def _convolve_weight(xp: Any, x: Any, g: Any, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    return _product_by_kernel(xp, _windows(xp, x, kernel, stride, padding, dilation), g, kernel, groups)


def _product_by_kernel(xp: Any, windows: Any, g: Any, kernel: Sizes, groups: int) -> Any:
    """The transpose of `_product` by the kernels, for the first places."""
    windows = xp.getitem(windows, (*[slice(None)] * (2 + len(kernel)), *[slice(0, n) for n in g.shape[2:]]))
    rows = xp.permute(_rows(xp, windows, len(kernel), groups), (0, 1, 3, 2))
    out = xp.sum(xp.matmul(_grouped(xp, g, groups, 1), rows), (0,), False)
    return xp.reshape(out, (g.shape[1], windows.shape[1] // groups, *kernel))


def _convolve_input(xp: Any, g: Any, weight: Any, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    rank, kernel = len(size), weight.shape[2:]
    rows = xp.matmul(xp.permute(_grouped(xp, weight, groups, 0), (0, 2, 1)), _grouped(xp, g, groups, 1))
    out = xp.reshape(rows, (g.shape[0], groups * weight.shape[1], *kernel, *g.shape[2:]))
    for i in range(rank):  # an axis of the kernel and one of its places become one of the image
        at, places = rank + 1, g.shape[2 + i]
        parts = [xp.getitem(out, (slice(None), slice(None), j)) for j in range(kernel[i])]
        shape = tuple(size[i] + 2 * padding[i] if k == at else n for k, n in enumerate(parts[0].shape))
        step = (slice(None),) * at
        out = functools.reduce(lambda a, b: a + b, [
            xp.place(part, (*step, slice(j * dilation[i], j * dilation[i] + (places - 1) * stride[i] + 1, stride[i])), shape)
            for j, part in enumerate(parts)])
    return xp.getitem(out, (slice(None), slice(None), *[slice(p, p + n) for p, n in zip(padding, size)])) if any(padding) else out


# Arrays, some images at a time


def _portions(windows: Any, kernel: Sizes) -> tuple[int, bool]:
    """The number of images whose elements under the kernel stay in the cache, and whether that is less than all, or more than is to be copied."""
    size = windows[:1].size * windows.itemsize
    count = max(1, CACHED // max(size, 1))
    return count, count < len(windows) and prod(kernel) > 1


def _is_large(windows: Any) -> bool:
    """Whether the elements under the kernel at all places of one image are too many to be held at once."""
    return windows[:1].size * windows.itemsize > LARGE and windows.shape[1 + windows.ndim // 2] > 1


def _convolve_arrays(xp: Any, x: Any, weight: Any, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    kernel = weight.shape[2:]
    windows = _windows(xp, x, kernel, stride, padding, dilation)
    count, several = _portions(windows, kernel)
    if several or _is_large(windows):
        return _product_of_portions(xp, windows, weight, groups, count)
    return _product(xp, windows, weight, groups)


def _product_of_portions(xp: Any, windows: Any, weight: Any, groups: int, count: int) -> Any:
    """The sums of products of kernels with the elements under them, `count` images at a time; the places of large ones are divided."""
    kernel = weight.shape[2:]
    axis = 2 + len(kernel)
    if _is_large(windows):
        half = windows.shape[axis] // 2
        return np.concatenate([_product_of_portions(xp, part, weight, groups, 1) for part in np.split(windows, [half], axis)], 2)
    n, places = len(windows), windows.shape[axis:]
    matrix = _grouped(xp, weight, groups, 0)
    out = np.empty((n, groups, matrix.shape[1], prod(places)), np.result_type(windows, weight))
    held = np.empty((count, *windows.shape[1:]), windows.dtype)
    rows = _rows(xp, held, len(kernel), groups)
    for i in range(0, n, count):
        k = min(count, n - i)
        held[:k] = windows[i:i + k]
        np.matmul(matrix, rows[:k], out=out[i:i + k])
    return out.reshape((n, len(weight), *places))


def _convolve_weight_of_arrays(xp: Any, x: Any, g: Any, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    windows = _windows(xp, x, kernel, stride, padding, dilation)
    count, several = _portions(windows, kernel)
    if not several and not _is_large(windows):
        return _product_by_kernel(xp, windows, g, kernel, groups)
    windows = windows[(Ellipsis, *[slice(0, m) for m in g.shape[2:]])]
    return _product_by_kernel_of_portions(xp, windows, g, kernel, groups, count)


def _product_by_kernel_of_portions(xp: Any, windows: Any, g: Any, kernel: Sizes, groups: int, count: int) -> Any:
    """The transpose of `_product_of_portions` by the kernels."""
    axis = 2 + len(kernel)
    if _is_large(windows):
        half = windows.shape[axis] // 2
        parts = zip(np.split(windows, [half], axis), np.split(g, [half], 2))
        return sum(_product_by_kernel_of_portions(xp, part, each, kernel, groups, 1) for part, each in parts)
    n, c = windows.shape[:2]
    by_place = _grouped(xp, g, groups, 1)
    held = np.empty((count, *windows.shape[1:]), windows.dtype)
    rows = _rows(xp, held, len(kernel), groups).swapaxes(2, 3)
    out = np.zeros((groups, by_place.shape[2], rows.shape[3]), np.result_type(windows, g))
    for i in range(0, n, count):
        k = min(count, n - i)
        held[:k] = windows[i:i + k]
        out += np.add.reduce(np.matmul(by_place[i:i + k], rows[:k]), 0)
    return out.reshape((g.shape[1], c // groups, *kernel))


def _convolve_input_of_arrays(xp: Any, g: Any, weight: Any, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    kernel, places = weight.shape[2:], g.shape[2:]
    if prod(kernel) * weight.shape[1] * groups * prod(places) * g.itemsize > LARGE and places[0] > 1:
        half = places[0] // 2
        first, second = np.split(g, [half], 2)
        later = (padding[0] - half * stride[0], *padding[1:])
        return (_convolve_input_of_arrays(xp, first, weight, size, stride, padding, dilation, groups)
                + _convolve_input_of_arrays(xp, second, weight, size, stride, later, dilation, groups))
    n = len(g)
    matrix, by_place = np.ascontiguousarray(_grouped(xp, weight, groups, 0).swapaxes(1, 2)), _grouped(xp, g, groups, 1)
    c, dtype = groups * weight.shape[1], np.result_type(g, weight)
    count = max(1, min(n, CACHED // max(matrix.size // matrix.shape[2] * by_place.shape[3] * dtype.itemsize, 1))) if matrix.size else 1
    out, held = np.zeros((n, c, *size), dtype), np.empty((count, groups, matrix.shape[1], by_place.shape[3]), dtype)
    windows = held.reshape((count, c, *kernel, *places))
    steps = [[_reached(j * d - p, m, k, s) for j in range(length)] for length, d, p, m, k, s in zip(kernel, dilation, padding, size, places, stride)]
    for i in range(0, n, count):
        k = min(count, n - i)
        np.matmul(matrix, by_place[i:i + k], out=held[:k])
        for at in itertools.product(*map(range, kernel)):
            read, written = zip(*[step[j] for step, j in zip(steps, at)])
            part = out[(slice(i, i + k), slice(None), *written)]
            part += windows[(slice(0, k), slice(None), *at, *read)]
    return out


def _reached(offset: int, size: int, places: int, stride: int) -> tuple[slice, slice]:
    """The places whose element at an offset is inside of an axis of the image, and those elements."""
    first = max(0, -(offset // stride))
    last = min(places - 1, (size - 1 - offset) // stride)
    if last < first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last + 1), slice(first * stride + offset, last * stride + offset + 1, stride)
