"""Objects that wrap a value and have its shape and dtype."""

from __future__ import annotations

from typing import Any

__all__ = ["ValueProxy"]


class ValueProxy:
    """An object that wraps a `value` and has its shape and dtype; arithmetic with NumPy arrays uses the object's operators."""

    __slots__ = ()
    __array_ufunc__ = None
    __hash__ = None
    value: Any

    @property
    def shape(self) -> Any:
        """The shape."""
        return self.value.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.value.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.value.size

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self.value.dtype
