"""Strides: the positions of the elements of a view in its base."""

from __future__ import annotations

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
