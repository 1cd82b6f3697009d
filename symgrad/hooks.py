"""Hooks: what users want to see, replace or keep of the cotangents that pass a node.

A node without hooks knows nothing of them: they stand in one table beside the graph, which a pullback asks only if it is not empty.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.graph import Leaf, Node, upstream
from symgrad.tensor import Tensor, wrap

__all__ = ["DETOURS", "Detour", "Pullback", "RemovableHandle", "detour_of", "running"]

Hook = Callable[..., Any]


class Detour:
    """What happens at one node: hooks on its output, hooks on the node itself, and the tensor that keeps its gradient."""

    __slots__ = ("tensor_hooks", "prehooks", "posthooks", "accumulated", "retained", "metadata", "__weakref__")

    def __init__(self) -> None:
        self.tensor_hooks: dict[int, Hook] = {}
        self.prehooks: dict[int, Hook] = {}
        self.posthooks: dict[int, Hook] = {}
        self.accumulated: dict[int, Hook] = {}
        self.retained: weakref.ref | None = None
        self.metadata: dict[Any, Any] = {}

    def arrive(self, g: Any) -> Any:
        """The cotangent after the hooks on the way in; `g` is a NumPy value, or a Tensor where a graph of it is made."""
        plain = not isinstance(g, Tensor)
        value = wrap(g) if plain else g
        for hook in list(self.tensor_hooks.values()):
            value = _replaced(value, hook(value), hook)
        for hook in list(self.prehooks.values()):
            found = hook((value,))
            if found is not None:
                value = _replaced(value, found[0] if isinstance(found, (tuple, list)) else found, hook)
        tensor = None if self.retained is None else self.retained()
        if tensor is not None:
            old = getattr(tensor, "_grad", None)
            tensor._grad = old + value if old is not None else value if not plain else wrap(value._value.copy())
        return value._value if plain else value

    def leave(self, cotangents: Sequence[Any], g: Any) -> Sequence[Any]:
        """The cotangents of the arguments after the node's own hooks."""
        if not self.posthooks:
            return cotangents
        plain = not isinstance(g, Tensor)

        def shown(c: Any) -> Any:
            return wrap(c) if plain and c is not None else c

        for hook in list(self.posthooks.values()):
            found = hook(tuple(map(shown, cotangents)), (shown(g),))
            if found is not None:
                found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
                if len(found) != len(cotangents):
                    raise RuntimeError(f"{_name(hook)} has returned an incorrect number of values: expected {len(cotangents)}, but got {len(found)}")
                cotangents = tuple(t._value if plain and isinstance(t, Tensor) else t for t in found)
        return cotangents


def _name(hook: Hook) -> str:
    return f"hook '{getattr(hook, '__name__', type(hook).__name__)}'"


def _replaced(value: Tensor, found: Any, hook: Hook) -> Tensor:
    if found is None:
        return value
    if not isinstance(found, Tensor):
        raise TypeError(f"{_name(hook)} returned an incorrect type: expected a Tensor or None, but got {type(found).__name__}")
    if found.shape != value.shape:
        raise RuntimeError(f"{_name(hook)} has changed the size of value: from {list(value.shape)} to {list(found.shape)}")
    if found._value.dtype != value._value.dtype:
        raise RuntimeError(f"{_name(hook)} has changed the type of value: from {value.dtype} to {found.dtype}")
    return found


class Pullback:
    """A pullback that runs: where it started, and which nodes it is limited to."""

    __slots__ = ("seeds", "wanted", "__weakref__")

    def __init__(self, seeds: Sequence[tuple[Node, Any]], wanted: frozenset[Node] | None):
        self.seeds, self.wanted = seeds, wanted

    def reached(self) -> set[Node]:
        """The nodes at which a cotangent arrives."""
        nodes = set(upstream([node for node, _ in self.seeds], differentiable=True))
        return nodes if self.wanted is None else nodes & self.wanted


class _Running(threading.local):
    """The pullback of this thread that hooks are called in; None where there are none."""

    pullback: Pullback | None = None


running = _Running()
class Pullback:
    """A pullback that runs: where it started, and which nodes it is limited to."""

    __slots__ = ("seeds", "wanted", "__weakref__")

    def __init__(self, seeds: Sequence[tuple[Node, Any]], wanted: frozenset[Node] | None):
        self.seeds, self.wanted = seeds, wanted

    def reached(self) -> set[Node]:
        """The nodes at which a cotangent arrives."""
        nodes = set(upstream([node for node, _ in self.seeds], differentiable=True))
        return nodes if self.wanted is None else nodes & self.wanted


class _Running(threading.local):
    """The pullback of this thread that hooks are called in; None where there are none."""

    pullback: Pullback | None = None


running = _Running()
DETOURS: weakref.WeakKeyDictionary[Node, Detour] = weakref.WeakKeyDictionary()
_keys = itertools.count()


def detour_of(node: Node) -> Detour:
    """The detour at a node, made if there is none."""
    found = DETOURS.get(node)
    if found is None:
        found = DETOURS[node] = Detour()
    return found


class RemovableHandle:
    """Takes a hook away again with `remove()`, or at the end of a `with` block."""

    def __init__(self, hooks: dict[int, Hook], hook: Hook, first: bool = False):
        self.id = next(_keys)
        self._hooks = hooks
        hooks[self.id] = hook
        if first:
            rest = [(key, other) for key, other in hooks.items() if key != self.id]
            hooks.clear()
            hooks.update({self.id: hook, **dict(rest)})

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()


def _of_node(kind: str, doc: str) -> Callable[[Node, Hook], RemovableHandle]:
    def register(self: Node, fn: Hook) -> RemovableHandle:
        return RemovableHandle(getattr(detour_of(self), kind), fn)

    register.__doc__ = doc
    return register


Node.register_hook = _of_node("posthooks", "Call fn(grad_inputs, grad_outputs) after the node's pullback; what it returns replaces grad_inputs.")  # type: ignore[attr-defined]
Node.register_prehook = _of_node("prehooks", "Call fn(grad_outputs) before the node's pullback; what it returns replaces grad_outputs.")  # type: ignore[attr-defined]
Node.metadata = property(lambda self: detour_of(self).metadata, doc="A dictionary for whatever a user wants to note at the node.")  # type: ignore[attr-defined]


def register_hook(self: Tensor, hook: Hook) -> RemovableHandle:
    """Call hook(grad) each time the gradient of this tensor is computed; what it returns, if anything, replaces the gradient.

    Raises RuntimeError for a tensor that does not require a gradient.

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: 10 * grad)
    >>> (x * x).backward()
    >>> x.grad
    tensor(60.)
    >>> handle.remove()
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    assert self._node is not None
    return RemovableHandle(detour_of(self._node).tensor_hooks, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Hook) -> RemovableHandle:
    """Call hook(tensor) after a gradient was added to the `.grad` of this leaf.

    Raises RuntimeError for a tensor that is no leaf, or does not require a gradient.
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if not isinstance(self._node, Leaf):
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return RemovableHandle(detour_of(self._node).accumulated, hook)


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of this computed tensor in its `.grad`, as a leaf does.

    Raises RuntimeError for a tensor that does not require a gradient.

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> y.retain_grad()
    >>> (2 * y).backward()
    >>> y.grad
    tensor(2.)
    """
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if not self._leaf_so_far() and not self.retains_grad:  # type: ignore[attr-defined]
        assert self._node is not None
        detour_of(self._node).retained = weakref.ref(self)
        self._retained = True


def move_retained(tensor: Tensor, old: Node | None, new: Node | None) -> None:
    """A tensor that keeps its gradient got another node by an in-place operation: it keeps the gradient of the new value."""
    detour = None if old is None else DETOURS.get(old)
    if detour is not None and new is not None and detour.retained is not None and detour.retained() is tensor:
        detour_of(new).retained, detour.retained = detour.retained, None


Tensor.register_hook = register_hook  # type: ignore[attr-defined]
Tensor.register_post_accumulate_grad_hook = register_post_accumulate_grad_hook  # type: ignore[attr-defined]
Tensor.retain_grad = retain_grad  # type: ignore[attr-defined]
Tensor.retains_grad = property(lambda self: hasattr(self, "_retained"), doc="Whether `.grad` is kept though this is no leaf.")  # type: ignore[attr-defined]
