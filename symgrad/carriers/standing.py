"""What stands in for a value in a rule, and has its shape and dtype."""

from __future__ import annotations

from typing import Any

__all__ = ["Standing"]


class Standing:
    """An object with a `value`, of whose shape and dtype it is; it does arithmetic with NumPy's arrays itself."""

    __slots__ = ()
    __array_ufunc__ = None  # so that a NumPy array leaves arithmetic to it
    __hash__ = None  # type: ignore[assignment]
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
