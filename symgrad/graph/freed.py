"""What a node holds for values that a pullback has released."""

from __future__ import annotations

from typing import Any

from symgrad.errors import FREED


class _Freed:
    """The value of a node that a pullback has released."""

    __slots__ = ()

    @property
    def shape(self) -> Any:
        raise RuntimeError(FREED)


DETACHED_SINCE = "a saved tensor was detached in place since, by detach_(); use detach()"
freed = _Freed()


class Released:
    """The shape and dtype of a released value."""

    __slots__ = ("shape", "dtype", "ndim", "size")
    nbytes = 0

    def __init__(self, value: Any):
        self.shape, self.dtype, self.ndim, self.size = value.shape, value.dtype, value.ndim, value.size

    def conjugate(self) -> Released:
        """Return self: a pullback of complex values conjugates every argument."""
        return self


_shapes: dict[tuple, Released] = {}


def released(value: Any) -> Released:
    """The shared `Released` of this shape and dtype."""
    key = value.shape, value.dtype
    found = _shapes.get(key)
    if found is None:
        if len(_shapes) > 1000:
            _shapes.clear()
        found = _shapes[key] = Released(value)
    return found
