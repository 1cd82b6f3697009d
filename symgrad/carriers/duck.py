"""Duck arrays: values with NumPy's interface that are not NumPy arrays, so that rules and ops compute with them unchanged."""

from __future__ import annotations

import math
from typing import Any

from symgrad.graph.modes import thread


class Unrecordable(RuntimeError):
    """A computation that cannot be recorded as a program. The recording is void even if the recorded function catches the error."""

    def __init__(self, reason: str):
        super().__init__(reason)
        if thread.modes.program is not None:
            thread.modes.program.refused = reason


def unbatchable(message: str) -> RuntimeError:
    """The error for a computation that is not possible for all members of a batch at once. It is a RuntimeError itself, as in torch."""
    error: Any = RuntimeError(message)
    error.unbatchable = True
    return error


def is_unbatchable(error: RuntimeError) -> bool:
    """Whether the error was made by `unbatchable`."""
    return hasattr(error, "unbatchable")


class _Flags:
    """The memory flags, like `ndarray.flags`, of a value without memory of its own."""

    c_contiguous = f_contiguous = True
    writeable = False


class DuckArray:
    """The base of values that have the shape and the dtype of an array, and no memory that could be written."""

    __slots__ = ()
    base = None
    flags = _Flags()
    shape: Any
    dtype: Any
    ndim: int
    __hash__ = None

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    @property
    def T(self) -> Any:
        """The axes in reverse."""
        return self.transpose(tuple(reversed(range(self.ndim))))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise NotImplementedError

    def reshape(self, *shape: Any) -> Any:
        """The elements in another shape."""
        raise NotImplementedError

    def transpose(self, *axes: Any) -> Any:
        """The axes in another order."""
        raise NotImplementedError

    def ravel(self, order: str = "C") -> Any:
        """The elements as a vector."""
        return self.reshape((self.size,))

    flatten = ravel

    def squeeze(self, axis: Any = None) -> Any:
        """The value without axes of size 1."""
        dims = [i for i, n in enumerate(self.shape) if n == 1] if axis is None else [axis % self.ndim]
        return self.reshape(tuple(n for i, n in enumerate(self.shape) if i not in dims))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))
