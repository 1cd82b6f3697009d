"""Torch's interface to the recorded graph: nodes, hooks for saved tensors, hooks for several gradients, and gradient edges."""

from __future__ import annotations

import abc
import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from symgrad.autograd.saving import allow_mutation_on_saved_tensors, disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from symgrad.engine.hooks import attach
from symgrad.engine.storage.versions import stamp
from symgrad.engine.tensor import Tensor
from symgrad.graph import node as graph
from symgrad.graph.freed import freed
from symgrad.graph.handles import RemovableHandle, add_hook
from symgrad.graph.modes import thread
from symgrad.graph.node import BARRED, GRADIENT

__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge", "increment_version",
           "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]


class Node(abc.ABC):  # noqa: B024  the classes of nodes are registered below
    """The type of `grad_fn` and of the nodes in `next_functions`: a recorded operation, or the `ctx` of a custom Function.

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> isinstance((x * x).grad_fn, symgrad.autograd.graph.Node)
    True
    """


Node.register(graph.Node)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Increment the version counter of a tensor, or of several, after a write that symgrad cannot count: one by NumPy, for example."""
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        stamp(each._array(), "increment_version")


# Several gradients at once


class _Handle(RemovableHandle):
    """The handle that removes all hooks of one `register_multi_grad_hook`."""

    def __init__(self, handles: Sequence[RemovableHandle]):
        self._handles = tuple(handles)

    def remove(self) -> None:
        """Remove the hooks; a second call has no effect."""
        for handle in self._handles:
            handle.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor | GradientEdge], fn: Callable[[Any], Any], *, mode: str = "all") -> RemovableHandle:
    """Call `fn(grads)` once in every backward, after the gradients of all `tensors` were computed, with None for those not reached.

    With mode "any", `fn(grad)` is called with the first gradient only. The result of fn is ignored.

    Raises ValueError for another mode, AssertionError for a tensor that does not require a gradient.

    >>> import symgrad
    >>> a, b = (symgrad.tensor(x, requires_grad=True) for x in (2.0, 3.0))
    >>> handle = symgrad.autograd.graph.register_multi_grad_hook((a, b), print)
    >>> (a * b).backward()
    [tensor(3.), tensor(2.)]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: mode must be 'all' or 'any', not {mode!r}")
    nodes: list[Any] = [t.place if isinstance(t, GradientEdge) else t._node for t in tensors]
    if any(node is None or not node.flags & GRADIENT or node.public_node is None for node in nodes):
        raise AssertionError("register_multi_grad_hook: a tensor has no graph")
    gathered = _Gathered([weakref.ref(node) for node in nodes], fn, mode == "any")  # a hook must not hold its own node
    return _Handle([add_hook(attach(node).tensor, functools.partial(gathered.arrive, i)) for i, node in enumerate(nodes)])


class _Gathered:
    """The gradients collected so far in each running backward."""

    def __init__(self, nodes: Sequence[weakref.ref], fn: Callable[[Any], Any], first: bool):
        self.nodes, self.fn, self.first, self.lock = nodes, fn, first, threading.RLock()
        self.runs: weakref.WeakKeyDictionary[Any, tuple[set[int], list[Tensor | None]]] = weakref.WeakKeyDictionary()

    def arrive(self, i: int, grad: Tensor) -> None:
        """Store a gradient; call the function at the first one, or at the last expected one."""
        run: Any = thread.modes.task
        with self.lock:
            first = run not in self.runs
            if first:
                calls = {node.origin for node in run.reached()}  # the hooks of all outputs of a call run
                held = [node() for node in self.nodes]
                self.runs[run] = {k for k, node in enumerate(held) if node is not None and node.origin in calls}, [None] * len(self.nodes)
            missing, grads = self.runs[run]
            missing.discard(i)
            grads[i] = grad
        if self.first:
            if first:
                self.fn(grad)
        elif not missing:
            self.fn(grads)


# Gradient edges


class GradientEdge(NamedTuple):
    """An output of a node in the graph. `backward` and `grad` accept it in place of the tensor.

    `ownership_token` is the node of the output itself, for a node with several outputs.
    """

    node: Any
    output_nr: int
    ownership_token: Any = None

    @property
    def place(self) -> Any:
        """The node that the pullback uses: that of the output."""
        if self.ownership_token is not None:
            return self.ownership_token
        return getattr(self.node, "_node", self.node).output_node(self.output_nr)  # of a `ctx` its node


def current(t: Tensor) -> Any:
    """The node of a tensor; that of a stale view is regenerated, under no_grad, too.

    A node that was freed gets its value back, whose shape a gradient by it needs.
    """
    node = t._node_slot
    node = node if node is None or node.flags is not BARRED else node.current(True)
    if node is not None and node.value is freed and node.output_index is None:
        node.value = t._value
    return node


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The gradient edge of a tensor: its node and output number.

    Raises RuntimeError for a tensor that does not require a gradient, AssertionError for a view made under no_grad, which receives none.

    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> edge = symgrad.autograd.graph.get_gradient_edge(x * x)
    >>> edge.node.name(), edge.output_nr
    ('MulBackward0', 0)
    """
    if not tensor.requires_grad:
        raise RuntimeError("get_gradient_edge: the tensor does not require grad")
    place: Any = current(tensor)
    node = tensor.grad_fn or place
    if place is None or place.public_node is None:
        raise AssertionError("get_gradient_edge: the tensor is a view that no operation recorded")
    return GradientEdge(node, place.output_nr, None if node is place else place)
