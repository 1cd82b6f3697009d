"""What a node holds for values that a pullback has released."""

from __future__ import annotations

from typing import Any

__all__ = ["FREED", "Released", "freed", "released"]


class _Freed:
    """The value of a node that a pullback has released."""

    __slots__ = ()

    @property
    def shape(self) -> Any:
        raise RuntimeError(FREED)


FREED = ("Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
         "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
         "backward through the graph a second time or if you need to access saved tensors after calling backward.")
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
