"""The pullbacks that run in a thread and may call a user's code, which may run a pullback in turn."""

from __future__ import annotations

import contextvars
import itertools
import sys
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.graph.modes import in_mode, thread
from symgrad.graph.node import Leaf, Node
from symgrad.graph.order import upstream

_numbers = itertools.count().__next__


class _isolated(in_mode):
    """Changed modes at whose end all modes are restored, also those that a user's code changed."""

    __slots__ = ()

    def _leave(self, kind: type[BaseException] | None = None) -> None:
        super()._leave(BaseException)


class GraphTask:
    """A running pullback: its seeds, the nodes it is limited to, whether it adds to `.grad`, and the functions to be called after it."""

    __slots__ = ("seeds", "wanted", "keep_graph", "accumulates", "number", "node", "callbacks", "__weakref__")

    def __init__(self, seeds: Sequence[tuple[Node, Any]], wanted: set[Node] | None, keep_graph: bool, accumulates: bool):
        self.seeds, self.wanted, self.keep_graph, self.accumulates, self.number = seeds, wanted, keep_graph, accumulates, _numbers()
        self.node: Node | None = None  # the newest node whose rule, or one of whose hooks, called a user's code
        self.callbacks: list[Callable[[], Any]] = []

    def reached(self) -> list[Node]:
        """The nodes that get a cotangent, oldest first."""
        nodes = upstream([node for node, _ in self.seeds], differentiable=True)
        return nodes if self.wanted is None else [node for node in nodes if node in self.wanted]

    def run(self, compute: Callable[[], Any], apart: bool = False, **modes: Any) -> Any:
        """The result of the pullback, computed with these modes; in a thread of its own if the stack of this one is half full."""
        if not apart and thread.modes.task is not None and _half_full():
            return _in_new_thread(lambda: self.run(compute, True, **modes))
        with _isolated(task=self, **modes):
            return compute()

    def call_back(self) -> None:
        """Call the queued functions, and those that they queue, in the modes of the caller."""
        with _isolated(task=self):
            for callback in self.callbacks:  # a list that may grow meanwhile
                callback()


def _half_full() -> bool:
    """Whether the calls of this thread take half of the depth that Python allows."""
    frame: types.FrameType | None = sys._getframe()
    depth = 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth > sys.getrecursionlimit() // 2


def _in_new_thread(compute: Callable[[], Any]) -> Any:
    """The result of a call in a thread with the modes and the context of this one, which waits."""
    modes, context, found, errors = thread.modes, contextvars.copy_context(), [], []

    def work() -> None:
        try:
            thread.modes = modes
            found.append(context.run(compute))
        except BaseException as error:
            errors.append(error)

    worker = threading.Thread(target=work, name="symgrad-backward", daemon=True)
    worker.start()
    worker.join()
    if errors:
        raise errors.pop()
    return found.pop()


def note_node(node: Node) -> None:
    """Note the node whose rule calls a user's code at the running pullback."""
    if (task := thread.modes.task) is not None:
        task.node = node


def queue_callback(callback: Callable[[], Any]) -> None:
    """Call a function once after the running backward: the innermost one of this thread.

    Raises RuntimeError outside of every backward that calls a user's code.
    """
    if thread.modes.task is None:
        raise RuntimeError("queue_callback: no backward is running")
    thread.modes.task.callbacks.append(callback)


# The functions of torch that tell what the running pullback does


def _task(function: str) -> GraphTask:
    if thread.modes.task is None:
        raise RuntimeError(f"{function}: no backward is running")
    return thread.modes.task


def current_graph_task_id() -> int:
    """The number of the running pullback, -1 outside of every one."""
    return -1 if thread.modes.task is None else thread.modes.task.number


def current_autograd_node() -> Any:
    """The node whose rule calls the running code, None outside of every pullback."""
    task = thread.modes.task
    return None if task is None or task.node is None else task.node.public_node


def current_graph_task_execution_order() -> list[Any]:
    """The nodes that the running pullback visits, in its order: newest first, and a leaf after the last node that passes a cotangent to it.

    Raises RuntimeError outside of every pullback, and where `set_multithreading_enabled` does not forbid that it depends on threads.
    """
    if thread.modes.task is not None and thread.modes.multithreading:
        raise RuntimeError("_current_graph_task_execution_order: the order is known with set_multithreading_enabled(False) alone")
    nodes = _task("_current_graph_task_execution_order").reached()
    last: dict[Node, list[Node]] = {}
    seen = set[Node | None]()
    for node in nodes:  # oldest first, so that the first one seen is the last one visited
        last[node] = [p for p in dict.fromkeys(node.parents) if isinstance(p, Leaf) and p not in seen and p.requires_grad]
        seen.update(node.parents)
    roots = [node for node in nodes if isinstance(node, Leaf) and node not in seen]
    chosen = set(nodes)
    order = [*roots, *(x for node in reversed(nodes) if not isinstance(node, Leaf) for x in (node, *last[node]) if x in chosen)]
    return list(dict.fromkeys([node.public_node for node in order if node.output_index is None]))  # the outputs of a call have one node


def will_engine_execute_node(node: Any) -> bool:
    """Whether the running pullback visits a node.

    Raises RuntimeError outside of every pullback, for what is not a node, and for a leaf in `grad`, which does not add to its `.grad`.
    """
    place = getattr(node, "_node", node) if hasattr(node, "next_functions") else None  # the node of a `ctx`
    if place is None:
        raise RuntimeError(f"_will_engine_execute_node: node must be a grad_fn, not {type(node).__name__}")
    task = _task("_will_engine_execute_node")
    if isinstance(place, Leaf) and not task.accumulates:
        raise RuntimeError("_will_engine_execute_node: in autograd.grad() no gradient reaches a leaf")
    return any(each is place or each.origin is place for each in task.reached())
