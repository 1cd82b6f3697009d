"""Where the elements of one array stand among those of another whose memory it shares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["Geometry", "address", "dense", "overlaps"]


def address(array: np.ndarray) -> int:
    """Where the first element stands in memory."""
    return array.__array_interface__["data"][0]


def overlaps(array: np.ndarray) -> bool:
    """Whether two elements of the array may stand at one place, as after a broadcast."""
    if not array.size:
        return False
    extents = sorted((abs(stride), n) for stride, n in zip(array.strides, array.shape) if n > 1)
    reach = array.itemsize
    for stride, n in extents:
        if stride < reach:
            return True
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


def _addresses(array: np.ndarray) -> np.ndarray:
    out = np.full(array.shape, address(array))
    for i, (n, stride) in enumerate(zip(array.shape, array.strides)):
        out += (np.arange(n) * stride).reshape((n,) + (1,) * (array.ndim - i - 1))
    return out


class Geometry:
    """A view of an array of `size` elements: the shape, and which element stands where.

    Where the array is contiguous, `strides` and `offset` say that in elements; in general `positions` does, an array of flat indices.
    """

    __slots__ = ("shape", "size", "strides", "offset", "_positions")

    def __init__(self, shape: tuple[int, ...], size: int, strides: tuple[int, ...] | None, offset: int = 0, positions: Any = None):
        self.shape, self.size, self.strides, self.offset, self._positions = shape, size, strides, offset, positions

    @classmethod
    def of(cls, view: np.ndarray, base: np.ndarray, start: int | None = None) -> Geometry:
        """The place of a view in its base, whose address may be given, for asking is slow.

        Raises ValueError where an element of the view is none of the base's.
        """
        item = base.itemsize
        offset = address(view) - (address(base) if start is None else start) if base.size and view.size else 0
        if base.flags.c_contiguous and not offset % item and not any(s % item for s in view.strides):
            return cls(view.shape, base.size, tuple(s // item for s in view.strides), offset // item)._inside()
        low = sum(min(s * (n - 1), 0) for s, n in zip(base.strides, base.shape))
        high = sum(max(s * (n - 1), 0) for s, n in zip(base.strides, base.shape))
        units = np.full((high - low) // item + 1, -1)
        place = np.ndarray(base.shape, units.dtype, units, -low // item * 8, tuple(s // item * 8 for s in base.strides))
        place[...] = np.arange(base.size).reshape(base.shape)
        raw = cls(view.shape, units.size, tuple(s // item for s in view.strides), (offset - low) // item)._inside()
        positions = units[raw.positions]
        if positions.size and positions.min() < 0:
            raise ValueError("the view reads memory that is no element of its base")
        return cls(view.shape, base.size, None, 0, positions)

    @classmethod
    def reaching(cls, view: np.ndarray, base: np.ndarray, start: int | None = None) -> tuple[Geometry, np.ndarray | None]:
        """The place of a view that may reach beyond its base: in the base alone (and None), or in the base and the values beyond, in this order."""
        try:
            return cls.of(view, base, start), None
        except ValueError:
            places = _addresses(view)
            known = {int(a): i for i, a in enumerate(_addresses(base).ravel())}
            beyond = view.ravel()[[int(a) not in known for a in places.ravel()]]
            count = iter(range(base.size, base.size + beyond.size))
            positions = np.array([known[int(a)] if int(a) in known else next(count) for a in places.ravel()]).reshape(view.shape)
            return cls(view.shape, base.size + beyond.size, None, 0, positions), beyond

    def _inside(self) -> Geometry:
        assert self.strides is not None
        if math.prod(self.shape):
            low = self.offset + sum(min(s * (n - 1), 0) for s, n in zip(self.strides, self.shape))
            high = self.offset + sum(max(s * (n - 1), 0) for s, n in zip(self.strides, self.shape))
            if low < 0 or high >= self.size:
                raise ValueError("the view reads memory that is no element of its base")
        return self

    @property
    def positions(self) -> np.ndarray:
        """The flat index in the base of every element of the view."""
        if self._positions is None:
            assert self.strides is not None
            out = np.full(self.shape, self.offset)
            for i, (n, stride) in enumerate(zip(self.shape, self.strides)):
                out += (np.arange(n) * stride).reshape((n,) + (1,) * (len(self.shape) - i - 1))
            self._positions = out
        return self._positions

    @property
    def overlaps(self) -> bool:
        """Whether an element of the base is shown more than once."""
        return self.positions.size != np.unique(self.positions).size

    def read(self, x: np.ndarray) -> np.ndarray:
        """The elements of an array of numbers as a new array in the view's shape."""
        if self.strides is None:
            return x.reshape(-1)[self.positions]
        return self.within(np.ascontiguousarray(x)).copy()

    def within(self, x: np.ndarray) -> np.ndarray:
        """The view of a contiguous array."""
        assert self.strides is not None
        item = x.itemsize
        return np.ndarray(self.shape, x.dtype, x, self.offset * item, tuple(s * item for s in self.strides))

    def write(self, x: np.ndarray, piece: Any) -> np.ndarray:
        """A copy of an array of numbers with a piece written where the view stands."""
        out = np.array(x, order="C")
        if self.strides is None:
            out.reshape(-1)[self.positions] = piece
        elif out.size:
            self.within(out)[...] = piece
        return out

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Geometry):
            return False
        return self.shape == other.shape and self.size == other.size and np.array_equal(self.positions, other.positions)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<view of shape {list(self.shape)} on {self.size} elements>"
