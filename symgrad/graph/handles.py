"""Handles that remove hooks."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

Hook = Callable[..., Any]
_ids = itertools.count()


class RemovableHandle:
    """Removes a hook by `remove()` or at the end of a `with` block. It does not keep the hook alive.

    `hooks_dict` is the dictionary of hooks in which the hook is entered under the `id` of the handle; `extra_dict` is another one, or a list of
    them, from which that id is removed, too.
    """

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None):
        self.id = next(id for id in _ids if id not in hooks_dict)  # hooks that were unpickled have ids of another process
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        extra = [] if extra_dict is None else extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self.extra_dict_ref = tuple(map(weakref.ref, extra))

    def remove(self) -> None:
        """Remove the hook; further calls do nothing."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks, self.id, extra = state
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra if d is not None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()


def add_hook(hooks: Any, hook: Hook, prepend: bool = False, options: Sequence[tuple[Any, bool]] = ()) -> RemovableHandle:
    """Enter a hook in a dictionary of hooks, first if `prepend`; `options` are dictionaries in which its id is marked if the flag is set."""
    handle = RemovableHandle(hooks, extra_dict=[marked for marked, _ in options])
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    for marked, flag in options:
        if flag:
            marked[handle.id] = True
    return handle
