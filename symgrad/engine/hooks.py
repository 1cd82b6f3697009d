"""Hooks on tensors and nodes, and accumulation into `.grad`.

Hooks are kept in a slot of their node that is unset until the first is registered; the flag HOOKED tells the pullback. The garbage collector
sees the slot, so that a hook may refer to its own tensor or node.
"""

from __future__ import annotations

import copy
import operator
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.engine.method_table import MethodTable
from symgrad.engine.storage.versions import stamp
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.common import CommonNode
from symgrad.graph.handles import Hook, RemovableHandle, add_hook
from symgrad.graph.node import GRADIENT, HOOKED, Leaf, Node, all_threads
from symgrad.system.errorstate import quietly
from symgrad.system.locks import after_fork, reentrant_lock
from symgrad.system.weakkeys import WeakKeys

METHODS = MethodTable()


class _Placeholder:
    """A cotangent without an array; adding another cotangent gives a copy of the other."""

    __slots__ = ()
    __array_ufunc__ = None  # so that NumPy arrays defer to `__radd__`

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Tensor):
            return wrap(self + other._value, other._node)
        return other.copy() if isinstance(other, np.ndarray) else other

    __radd__ = __add__


UNDEFINED = _Placeholder()  # an undefined gradient: a custom Function, or a hook on a node, returned None
SYMBOLIC_ZERO = _Placeholder()  # the derivative is zero


class Hooks:
    """The hooks of one node: tensor hooks, prehooks and posthooks, and the tensor that retains its gradient."""

    __slots__ = ("tensor", "pre", "post", "accumulated", "retained", "metadata", "output_nodes")

    def __init__(self) -> None:
        self.tensor: OrderedDict[int, Hook]
        self.pre: OrderedDict[int, Hook]
        self.post: OrderedDict[int, Hook]
        self.accumulated: OrderedDict[int, Hook]
        self.tensor, self.pre, self.post, self.accumulated = OrderedDict(), OrderedDict(), OrderedDict(), OrderedDict()
        self.retained: weakref.ref | None = None
        self.metadata: dict[Any, Any] = {}
        self.output_nodes: dict[int, weakref.ref] = {}  # by output number, the nodes of outputs with hooks

    def at_outputs(self, g: Any) -> Any:
        """The cotangent after the tensor hooks: a NumPy value, a Tensor with create_graph, or UNDEFINED."""
        shown = [_shown(c) for c in _parts(g)]
        if self.tensor or self.retained is not None:
            value = shown[0]
            for hook in list(self.tensor.values()):
                value = _replaced(value, hook(value), hook)
            tensor = None if self.retained is None else self.retained()
            if tensor is not None and value is not None:
                accumulate(tensor, value.clone())
            shown[0] = value
        for k, output_index in sorted(self.output_nodes.items()):
            if shown[k] is None and (node := output_index()) is not None:  # no cotangent reached that output, so its hooks have not run
                for hook in list(node.hooks.tensor.values()):
                    shown[k] = _replaced(shown[k], hook(shown[k]), hook)
        return _joined(g, shown)

    def incoming(self, g: Any) -> Any:
        """The cotangent after the prehooks of the node."""
        shown = [_shown(c) for c in _parts(g)]
        for hook in list(self.pre.values()):
            shown = _all_replaced(shown, hook(tuple(shown)), hook)
        return _joined(g, shown)

    def outgoing(self, cotangents: Sequence[Any], g: Any) -> Sequence[Any]:
        """The cotangents of the arguments after the posthooks."""
        if not self.post:
            return cotangents
        plain = not any(isinstance(c, Tensor) for c in (*_parts(g), *cotangents))
        given, shown = tuple(map(_shown, _parts(g))), list(map(_shown, cotangents))
        for hook in list(self.post.values()):
            shown = _all_replaced(shown, hook(tuple(shown), given), hook)
        return tuple(c._value if plain and c is not None else c for c in shown)


def _parts(g: Any) -> tuple[Any, ...]:
    """The cotangents of all outputs of a node, None where undefined."""
    return getattr(g, "parts", (None if g is UNDEFINED else g,))


def _joined(g: Any, shown: Sequence[Tensor | None]) -> Any:
    """The cotangent of a node from those of its outputs, of the kind of the cotangent `g`."""
    plain = not any(isinstance(c, Tensor) for c in _parts(g))
    values = [c._value if plain and c is not None else c for c in shown]
    return type(g)(values) if hasattr(g, "parts") else UNDEFINED if values[0] is None else values[0]


def _shown(c: Any) -> Tensor | None:
    """A cotangent as it is passed to hooks."""
    return c if c is None or isinstance(c, Tensor) else wrap(c)


def _name(hook: Hook) -> str:
    return f"hook '{getattr(hook, '__name__', '<unknown>')}'"


def _all_replaced(values: list[Tensor | None], found: Any, hook: Hook) -> list[Tensor | None]:
    """The cotangents after a hook on a node returned `found`."""
    if found is None:
        return values
    if not isinstance(found, tuple):
        raise TypeError(f"{_name(hook)}: a hook must return a tuple or None, not {type(found).__name__}")
    if len(found) != len(values):
        raise RuntimeError(f"{_name(hook)}: the hook must return {len(values)} values, not {len(found)}")
    return [None if new is None else _replaced(old, new, hook) for old, new in zip(values, found)]


def _replaced(value: Tensor | None, found: Any, hook: Hook) -> Tensor | None:
    """The cotangent after a hook returned `found`."""
    if found is None:
        return value
    if not isinstance(found, Tensor):
        raise TypeError(f"{_name(hook)}: a hook must return a Tensor or None, not {type(found).__name__}")
    if value is None:
        raise RuntimeError(f"{_name(hook)}: a hook that is called with None, since no gradient reached it, must return None")
    if found._value.dtype != value._value.dtype or found._value.shape != value._value.shape:
        raise RuntimeError(f"{_name(hook)}: a hook must keep the shape {list(value.shape)} and the dtype {value.dtype} of the gradient, but it "
                           f"returned {list(found.shape)} and {found.dtype}")
    return found


_attaching = reentrant_lock()  # reentrant, for signal handlers that register hooks


def hooks_of(node: Node) -> Hooks | None:
    """The hooks of a node, None if it has none."""
    return getattr(node, "hooks", None) if node.flags & HOOKED else None


def attach(node: Node) -> Hooks:
    """The hooks of a node, created if there are none."""
    with _attaching: return _attached(node)  # noqa: E701  on one line: no interrupt comes between its end and the release of the lock


def _attached(node: Node) -> Hooks:
    found = hooks_of(node)
    if found is None:
        found = node.hooks = Hooks()
        node.flags |= HOOKED
        all_threads.hooked = True
        if (place := getattr(node, "output_of", None)) is not None:
            attach(place[0]).output_nodes[place[1]] = weakref.ref(node)
        for output in node.live() if isinstance(node, CommonNode) else ():
            attach(output)
    return found


def unhooked(node: Node) -> Node:
    """A copy of a node without its hooks."""
    duplicate = copy.copy(node)
    duplicate.flags, duplicate.hooks = duplicate.flags & ~HOOKED, None
    return duplicate


def move_hooks(old: Node, new: Node) -> None:
    """Move the hooks of a node to the one that replaces it."""
    hooks = hooks_of(old)
    if hooks is not None:
        new.hooks, old.hooks = hooks, None
        new.flags |= HOOKED


def share_hooks(old: Node, new: Node) -> None:
    """Give the hooks of a node to another one, too."""
    if (hooks := hooks_of(old)) is not None:
        new.hooks = hooks
        new.flags |= HOOKED


def renew_leaf(t: Tensor, leaf: Any) -> None:
    """Give a leaf that got another shape or memory a node of its own: what was computed before belongs to the former one, which keeps its value."""
    t._make_leaf(bool(leaf.flags & GRADIENT), leaf.symbol)
    share_hooks(leaf, t._node_slot)  # type: ignore[arg-type]


def _of_node(kind: str, doc: str) -> Callable[[Node, Hook], RemovableHandle]:
    def register(self: Node, fn: Hook) -> RemovableHandle:
        return add_hook(getattr(attach(self), kind), fn)

    register.__doc__ = doc
    return register


NODE_METHODS = MethodTable(
    register_hook=_of_node("post", "Call fn(grad_inputs, grad_outputs) after the node's pullback; what it returns replaces grad_inputs."),
    register_prehook=_of_node("pre", "Call fn(grad_outputs) before the node's pullback; what it returns replaces grad_outputs."),
    metadata=property(lambda self: attach(self).metadata, doc="A dictionary for whatever a user wants to note at the node."),
)


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
        raise RuntimeError("register_hook: the tensor does not require grad, and gets no gradient")
    assert self._node is not None
    return add_hook(attach(self._node).tensor, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Hook) -> RemovableHandle:
    """Call hook(tensor) after a gradient was added to the `.grad` of this leaf.

    Raises RuntimeError for a non-leaf, and for a tensor that does not require a gradient.
    """
    if not self.requires_grad:
        raise RuntimeError("register_post_accumulate_grad_hook: the tensor does not require grad, and gets no gradient")
    if not isinstance(self._node, Leaf):
        raise RuntimeError("register_post_accumulate_grad_hook: the tensor is no leaf, and accumulates no gradient")
    return add_hook(attach(self._node).accumulated, hook)


def retain_grad(self: Tensor) -> None:
    """Store the gradient of this non-leaf in its `.grad`, too.

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
        raise RuntimeError("retain_grad: the tensor does not require grad")
    if not self._is_leaf_unrefreshed() and not self.retains_grad:
        assert self._node is not None
        attach(self._node).retained = weakref.ref(self)
        self._retained = True


def move_retained(tensor: Tensor, old: Node | None, new: Node | None) -> None:
    """Move `retain_grad` of a tensor to its new node after an in-place operation."""
    hooks = None if old is None else hooks_of(old)
    if hooks is not None and new is not None and hooks.retained is not None and hooks.retained() is tensor:
        attach(new).retained, hooks.retained = hooks.retained, None


def _retains_grad(self: Tensor) -> bool:
    return hasattr(self, "_retained")


_without_graph: WeakKeys[Tensor, Any] = WeakKeys()  # what a program stored as the hooks of tensors that do not require grad


def _backward_hooks(self: Tensor) -> Any:
    """The dictionary of the tensor hooks by id; None if there is none. Hooks of a tensor that does not require a gradient never run."""
    if (node := self._node) is None or not node.requires_grad:
        return _without_graph.get(self)
    hooks = hooks_of(node)
    return None if hooks is None else hooks.tensor


def _set_backward_hooks(self: Tensor, hooks: Any) -> None:
    if (node := self._node) is None or not node.requires_grad:
        _without_graph[self] = hooks
    else:
        attach(node).tensor = OrderedDict() if hooks is None else hooks


def _delete_backward_hooks(self: Tensor) -> None:
    raise RuntimeError("_backward_hooks is not deleted")


METHODS["_backward_hooks"] = property(_backward_hooks, _set_backward_hooks, _delete_backward_hooks)
METHODS["register_hook"] = register_hook
METHODS["register_post_accumulate_grad_hook"] = register_post_accumulate_grad_hook
METHODS["retain_grad"] = retain_grad
METHODS["retains_grad"] = property(_retains_grad, doc="Whether the gradient of this non-leaf is stored in `.grad`.")


# Accumulation

_accumulating = reentrant_lock()
_waiting = deque[tuple[Tensor, Any]]()
_adding = False


def accumulate(t: Tensor, g: Any) -> None:
    """Add a cotangent to the `.grad` of a tensor: a NumPy value in place, a Tensor out of place.

    The first cotangent becomes `.grad`, so nothing else may refer to its memory. Threads take turns. A signal handler or finalizer that runs a
    backward during an accumulation of its own thread queues the cotangent, so that no sum is lost and no thread waits for itself.
    """
    with _accumulating: _add_in_turn(t, g)  # noqa: E701  on one line: as in `attach`


@after_fork
def _forget_accumulations() -> None:
    """Forget what threads were adding that are not in a forked process."""
    global _adding
    _adding = False
    _waiting.clear()


def _add_in_turn(t: Tensor, g: Any) -> None:
    global _adding
    if _adding:
        _waiting.append((t, g))
        return
    try:
        try:
            _adding = True
            _add(t, g)
            while _waiting:
                _add(*_waiting.popleft())
        finally:
            _adding = False
    finally:  # again, in case an interrupt came first
        _adding = False


def _add(t: Tensor, g: Any) -> None:
    old = getattr(t, "_grad", None)
    if old is None:
        t._grad = g if isinstance(g, Tensor) else wrap(g)
    elif isinstance(g, Tensor):
        t._grad = old + g
    else:
        array = old._array()
        try:
            quietly(operator.iadd, array, g)
        except ValueError:
            raise RuntimeError(f"grad has the shape {list(array.shape)}, and the gradient that is added to it {list(g.shape)}") from None
        stamp(array, "backward")
