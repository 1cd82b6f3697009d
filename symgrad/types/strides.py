"""Strides: where the elements of one array stand among those of another whose memory it shares, and how a new array is laid out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["Geometry", "address", "dense", "empty_like", "indexed", "laid_out", "overlaps", "rows", "written_out"]


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


def rows(array: np.ndarray, operands: Sequence[Any] = ()) -> np.ndarray:
    """The array row by row: itself, where it is contiguous, or no array of NumPy's."""
    return array if type(array) is not np.ndarray or array.flags.c_contiguous else array.copy()


def laid_out(array: np.ndarray, operands: Sequence[Any]) -> np.ndarray:
    """A new result in the memory order that torch gives one of these operands: itself, where it lies so."""
    given = [x for x in operands if type(x) is np.ndarray and x.ndim > 1]
    if all([x.flags.c_contiguous for x in given]):
        return rows(array)
    return written_out(array, _order(array.shape, [_broadcast_strides(x, array.shape) for x in given]))


def written_out(array: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """The array with its axes in an order, outermost first, and without gaps: itself, where it lies so."""
    turned = array.transpose(order)
    return array if turned.flags.c_contiguous else turned.copy().transpose(np.argsort(order))


def empty_like(array: np.ndarray, dtype: Any = None) -> np.ndarray:
    """A new array of the shape and in the memory order of another, its elements not set."""
    if 0 not in array.strides:
        return np.empty_like(array, dtype)
    order = _order(array.shape, [tuple(map(abs, array.strides))])
    return np.empty([array.shape[i] for i in order], array.dtype if dtype is None else dtype).transpose(np.argsort(order))


def indexed(out: np.ndarray, array: np.ndarray, index: Any) -> np.ndarray:
    """What `array[index]` gives where the index has arrays, in torch's memory order: by the axes that no array names, then by the index arrays."""
    parts = index if type(index) is tuple else (index,)
    arrays = [p for p in parts if type(p) is np.ndarray]
    if array.flags.c_contiguous and all([p.flags.c_contiguous for p in arrays]) or any([isinstance(p, (int, np.integer, list)) for p in parts]):
        return rows(out)
    axes = [k for p in parts for k in ([p] if type(p) is not np.ndarray else p.nonzero() if p.dtype.kind == "b" else [p])]
    dots = next((i for i, p in enumerate(axes) if p is Ellipsis), len(axes))
    given = sum([p is not None and p is not Ellipsis for p in axes])
    axes[dots:dots + 1] = [slice(None)] * (array.ndim - given)
    basic = array[tuple([slice(None) if type(p) is np.ndarray else p for p in axes])]
    places = [i for i, p in enumerate(axes) if type(p) is np.ndarray]
    shape = np.broadcast_shapes(*[axes[i].shape for i in places])
    first = places[0] if places[-1] - places[0] < len(places) else 0  # separated arrays put their axes in front
    kept = [s for i, s in enumerate(basic.strides) if i not in places]
    around = (0,) * first, (0,) * (len(kept) - first)
    strides = [(*kept[:first], *(0,) * len(shape), *kept[first:]), *[(*around[0], *_broadcast_strides(axes[i], shape), *around[1]) for i in places]]
    return written_out(out, _order(out.shape, strides))


def _broadcast_strides(array: np.ndarray, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array that is broadcast to a shape: 0 along the axes that it is stretched along."""
    extra = len(shape) - array.ndim
    return (0,) * extra + tuple([0 if n == 1 != shape[i + extra] else s for i, (n, s) in enumerate(zip(array.shape, array.strides))])


def _order(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> list[int]:
    """The axes of a new result, outermost first, by torch's rule: two axes stand as in the first operand that tells them apart.

    A stride of 0 tells nothing. The comparison is not transitive, so that the insertion sort is a part of the rule.
    """
    order = list(range(len(shape)))[::-1]  # innermost first

    def compared(inner: int, outer: int) -> int:
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
            found = compared(order[k], order[at])
            if found > 0:
                order[k], order[at], at = order[at], order[k], k
            elif found < 0:
                break
    return order[::-1]


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
