"""Handles that remove hooks."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

__all__ = ["Hook", "RemovableHandle"]

Hook = Callable[..., Any]
_ids = itertools.count()


class RemovableHandle:
    """Removes a hook by `remove()` or at the end of a `with` block. It does not keep the hook alive."""

    def __init__(self, hooks: OrderedDict[int, Any], hook: Hook, first: bool = False):
        self.id = next(_ids)
        self._hooks = weakref.ref(hooks)
        hooks[self.id] = hook
        if first:
            hooks.move_to_end(self.id, last=False)

    def remove(self) -> None:
        """Remove the hook; further calls do nothing."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()
