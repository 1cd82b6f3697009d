"""Strides: the positions of the elements of a view in its base, and of new arrays by torch's rules, so that `view` works on the same results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def address(array: np.ndarray) -> int:
    """The address of the first element."""
    return array.__array_interface__["data"][0]


def bytes_of(owner: np.ndarray) -> np.ndarray:
    """The memory of an array as a vector of bytes."""
    flat = owner.ravel(order="K")
    if owner.flags.forc or np.may_share_memory(flat, owner):  # without gaps
        return flat.view(np.uint8)
    low, high = np.lib.array_utils.byte_bounds(owner)
    origin = address(owner) - low
    first = owner[tuple(slice(-1, None) if s < 0 else slice(0, 1) for s in owner.strides)] if origin else owner
    return np.lib.stride_tricks.as_strided(first.reshape(-1)[:1].view(np.uint8), (high - low,), (1,))


def overlaps(array: np.ndarray) -> bool:
    """Whether two elements of the array share memory, as after a broadcast."""
    if not array.size or array.flags.c_contiguous:
        return False
    extents = sorted((abs(stride), n) for stride, n in zip(array.strides, array.shape) if n > 1)
    reach = array.itemsize
    for stride, n in extents:
        if not stride:
            return True
        if stride < reach:  # rare: the elements along one dimension lie between those along another
            return np.unique(_offsets(array.shape, array.strides, 0)).size != array.size
        reach = stride * (n - 1) + reach
    return False


def dense(array: np.ndarray) -> bool:
    """Whether the elements fill a block of memory without gaps and without overlap."""
    reach = array.itemsize
    for stride, n in sorted((stride, n) for stride, n in zip(array.strides, array.shape) if n > 1):
        if stride != reach:
            return False
        reach *= n
    return True


def zeros_in_layout(batch: tuple[int, ...], shape: tuple[int, ...], strides: tuple[int, ...], offset: int, room: int, dtype: Any) -> np.ndarray:
    """Zeros of the shape batch + shape; each member of the batch is a view by strides and an offset, in elements, of its own `room` elements."""
    memory = np.zeros((*batch, room), dtype)
    steps = (*memory.strides[:-1], *(s * memory.itemsize for s in strides))
    return np.ndarray((*batch, *shape), dtype, memory, offset * memory.itemsize if memory.size and all(shape) else 0, steps)


def _offsets(shape: tuple[int, ...], strides: tuple[int, ...], start: int) -> np.ndarray:
    """`start` plus the index times the stride of every dimension, for every element of an array."""
    out = np.full(shape, start)
    for i, (n, stride) in enumerate(zip(shape, strides)):
        out += (np.arange(n) * stride).reshape((n,) + (1,) * (len(shape) - i - 1))
    return out


class Geometry:
    """The shape of a view of an array of `size` elements, and the position in the array of each of its elements.

    The positions are given by `strides` and `offset`, in elements, if the array is contiguous; in general by `positions`, an array of flat indices.
    """

    __slots__ = ("shape", "size", "strides", "offset", "_positions")

    def __init__(self, shape: tuple[int, ...], size: int, strides: tuple[int, ...] | None, offset: int = 0, positions: Any = None):
        self.shape, self.size, self.strides, self.offset, self._positions = shape, size, strides, offset, positions

    @classmethod
    def of(cls, view: np.ndarray, base: np.ndarray, start: int | None = None) -> tuple[Geometry, np.ndarray | None]:
        """The position of a view in its base, whose address is `start`, and the values of elements outside the base (None if there are none).

        Their positions continue those of the base's elements.
        """
        item = base.itemsize
        if base.flags.c_contiguous and not any([s % item for s in view.strides]):
            offset, rest = divmod(address(view) - (address(base) if start is None else start), item) if view.size else (0, 0)
            strides = tuple([s // item for s in view.strides])
            low = high = offset
            for s, n in zip(strides, view.shape):
                low, high = (low + s * (n - 1), high) if s < 0 else (low, high + s * (n - 1))
            if not view.size or not rest and low >= 0 and high < base.size:
                return cls(view.shape, base.size, strides, offset), None
        wanted, known = (_offsets(a.shape, a.strides, address(a)).reshape(-1) for a in (view, base))
        known = np.append(known, -1)  # a sentinel below all addresses
        order = known.argsort(kind="stable")
        positions = order[np.searchsorted(known, wanted, side="right", sorter=order) - 1]
        beyond = known[positions] != wanted
        values = view.reshape(-1)[beyond]
        positions[beyond] = np.arange(base.size, base.size + values.size)
        return cls(view.shape, base.size + values.size, None, 0, positions.reshape(view.shape)), values if values.size else None

    @property
    def positions(self) -> np.ndarray:
        """The flat index in the base of every element of the view."""
        if self._positions is None:
            assert self.strides is not None
            self._positions = _offsets(self.shape, self.strides, self.offset)
        return self._positions

    @property
    def overlaps(self) -> bool:
        """Whether an element of the base occurs more than once."""
        return self.positions.size != np.unique(self.positions).size

    def read(self, x: np.ndarray) -> np.ndarray:
        """The elements of an array of numbers as a new array in the view's shape."""
        if self.strides is None:
            return x.reshape(-1)[self.positions]
        return self.view_of(np.ascontiguousarray(x)).copy()

    def view_of(self, x: np.ndarray) -> np.ndarray:
        """The view of a contiguous array."""
        assert self.strides is not None
        item = x.itemsize
        return np.ndarray(self.shape, x.dtype, x, self.offset * item, tuple(s * item for s in self.strides))

    def write(self, x: np.ndarray, piece: Any) -> np.ndarray:
        """A copy of an array with values written to the elements of the view."""
        out = np.array(x, order="C")
        if self.strides is None:
            out.reshape(-1)[self.positions] = piece
        elif out.size:
            self.view_of(out)[...] = piece
        return out

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Geometry):
            return False
        return self.shape == other.shape and self.size == other.size and np.array_equal(self.positions, other.positions)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<view of shape {list(self.shape)} on {self.size} elements>"


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
