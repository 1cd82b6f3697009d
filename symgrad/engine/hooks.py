"""Hooks: what users want to see, replace or keep of the cotangents that pass a node.

A node without hooks knows nothing of them: they stand in one table beside the graph, which a pullback asks only if it is not empty.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.engine.tables import MethodTable
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.node import Leaf, Node, upstream

__all__ = ["DETOURS", "NOTHING", "ZERO", "Detour", "Pullback", "RemovableHandle", "detour_of", "running"]

METHODS = MethodTable()

Hook = Callable[..., Any]


class _Nothing:
    """A cotangent that stands for another: what is added to it takes its place."""

    __slots__ = ()
    __array_ufunc__ = None  # so that arrays leave the addition to this class

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Tensor):
            return wrap(self + other._value, other._node)
        return other.copy() if isinstance(other, np.ndarray) else other

    __radd__ = __add__


NOTHING = _Nothing()  # where a custom Function, or a hook on a node, returned None
ZERO = _Nothing()  # where the derivative is zero


class Detour:
    """What happens at one node: hooks on its output, hooks on the node itself, and the tensor that keeps its gradient."""

    __slots__ = ("tensor_hooks", "prehooks", "posthooks", "accumulated", "retained", "metadata", "outlets", "__weakref__")

    def __init__(self) -> None:
        self.tensor_hooks: dict[int, Hook] = {}
        self.prehooks: dict[int, Hook] = {}
        self.posthooks: dict[int, Hook] = {}
        self.accumulated: dict[int, Hook] = {}
        self.retained: weakref.ref | None = None
        self.metadata: dict[Any, Any] = {}
        self.outlets: dict[int, weakref.ref] = {}  # the nodes of the outputs that have detours of their own

    def arrive(self, g: Any, needed: bool = True) -> Any:
        """The cotangent after the hooks on the way in: a NumPy value, a Tensor where a graph of it is made, or NOTHING.

        The node's own prehooks are called only if its pullback is `needed`.
        """
        shown = [_shown(c) for c in _parts(g)]
        plain = not any(isinstance(c, Tensor) for c in _parts(g))
        if self.tensor_hooks or self.retained is not None:
            value = shown[0]
            for hook in list(self.tensor_hooks.values()):
                value = _replaced(value, hook(value), hook)
            tensor = None if self.retained is None else self.retained()
            if tensor is not None and value is not None:
                old = getattr(tensor, "_grad", None)
                tensor._grad = old + value if old is not None else value if not plain else wrap(value._value.copy())
            shown[0] = value
        for k, outlet in sorted(self.outlets.items()):
            if shown[k] is None and (place := outlet()) is not None:  # nothing arrived there, so its hooks were not called
                for hook in list(DETOURS[place].tensor_hooks.values()):
                    shown[k] = _replaced(shown[k], hook(shown[k]), hook)
        for hook in list(self.prehooks.values()) if needed else ():
            shown = _all_replaced(shown, hook(tuple(shown)), hook)
        values = [c._value if plain and c is not None else c for c in shown]
        return type(g)(values) if hasattr(g, "parts") else NOTHING if values[0] is None else values[0]

    def leave(self, cotangents: Sequence[Any], g: Any) -> Sequence[Any]:
        """The cotangents of the arguments after the node's own hooks."""
        if not self.posthooks:
            return cotangents
        plain = not any(isinstance(c, Tensor) for c in (*_parts(g), *cotangents))
        given, shown = tuple(map(_shown, _parts(g))), list(map(_shown, cotangents))
        for hook in list(self.posthooks.values()):
            shown = _all_replaced(shown, hook(tuple(shown), given), hook)
        return tuple(c._value if plain and c is not None else c for c in shown)


def _parts(g: Any) -> tuple[Any, ...]:
    """The cotangents of all outputs of a node, None where there is none."""
    return getattr(g, "parts", (None if g is NOTHING else g,))


def _shown(c: Any) -> Tensor | None:
    """A cotangent as hooks see it."""
    return c if c is None or isinstance(c, Tensor) else wrap(c)


def _name(hook: Hook) -> str:
    return f"hook '{getattr(hook, '__name__', '<unknown>')}'"


def _all_replaced(values: list[Tensor | None], found: Any, hook: Hook) -> list[Tensor | None]:
    """The cotangents that a hook on a node leaves."""
    if found is None:
        return values
    if not isinstance(found, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(found).__name__}'")
    if len(found) != len(values):
        raise RuntimeError(f"{_name(hook)} has returned an incorrect number of values (got {len(found)}, but expected {len(values)})")
    return [None if new is None else _replaced(old, new, hook) for old, new in zip(values, found)]


def _replaced(value: Tensor | None, found: Any, hook: Hook) -> Tensor | None:
    """The cotangent that a hook leaves."""
    if found is None:
        return value
    if not isinstance(found, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(found).__name__}'")
    if value is None:
        return found
    if found._value.dtype != value._value.dtype:
        raise RuntimeError(f"{_name(hook)} has changed the type of value (was {value.type()} got {found.type()})")  # type: ignore[attr-defined]
    if found._value.shape != value._value.shape:
        raise RuntimeError(f"{_name(hook)} has changed the size of value: from {list(value.shape)} to {list(found.shape)}")
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
DETOURS: weakref.WeakKeyDictionary[Node, Detour] = weakref.WeakKeyDictionary()
_keys = itertools.count()


def detour_of(node: Node) -> Detour:
    """The detour at a node, made if there is none."""
    found = DETOURS.get(node)
    if found is None:
        found = DETOURS[node] = Detour()
        if node.outlet is not None:
            detour_of(node.parents[0]).outlets[node.outlet] = weakref.ref(node)  # type: ignore[arg-type]
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


def _retains_grad(self: Tensor) -> bool:
    return hasattr(self, "_retained")


METHODS["register_hook"] = register_hook
METHODS["register_post_accumulate_grad_hook"] = register_post_accumulate_grad_hook
METHODS["retain_grad"] = retain_grad
METHODS["retains_grad"] = property(_retains_grad, doc="Whether `.grad` is kept though this is no leaf.")
