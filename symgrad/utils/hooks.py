"""Handles of hooks, with torch's names."""

from collections.abc import Callable
from typing import Any, TypeVar

from symgrad.graph.handles import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook"]

F = TypeVar("F", bound=Callable)


def unserializable_hook(f: F) -> F:
    """Mark a hook as one that is not saved, as torch does. Hooks of tensors are never saved."""
    marked: Any = f
    marked.__torch_unserializable__ = True
    return f
