"""Hooks that compute a weight before each forward, by the name of the weight."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.nn.parameter import is_lazy

__all__ = ["hook_of", "remove_hook", "weight_without"]


def _hooks(kind: Any, module: Any, name: str) -> list[Any]:
    return [hook for hook in module._forward_pre_hooks.values() if isinstance(hook, kind) and hook.name == name]


def weight_without(kind: Any, module: Any, name: str, table: Any = None) -> Tensor:
    """The weight of a name, in a table if one is given. Raises RuntimeError if it has a hook of that kind, ValueError if it is None or shapeless."""
    if _hooks(kind, module, name):
        raise RuntimeError(f"{kind.__name__}: the parameter {name!r} of {type(module).__name__} has one already")
    weight = getattr(module, name) if table is None else table[name]
    if weight is None or is_lazy(weight):
        raise ValueError(f"{kind.__name__}: the parameter {name!r} of {type(module).__name__} is None or has no shape yet")
    return weight


def hook_of(kind: Any, module: Any, name: str) -> Any:
    """The hook of a weight. Raises ValueError if there is none."""
    for hook in _hooks(kind, module, name):
        return hook
    raise ValueError(f"{kind.__name__}: the parameter {name!r} of {type(module).__name__} has none")


def remove_hook(hook: Any, *tables: dict[int, Any]) -> None:
    """Remove a hook, and what belongs to it, from tables of hooks."""
    for hooks in tables:
        for key, each in list(hooks.items()):
            inner = getattr(each, "hook", each)  # of a WrappedHook
            if inner is hook or getattr(inner, "fn", None) is hook:
                del hooks[key]
