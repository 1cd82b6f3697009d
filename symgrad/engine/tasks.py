"""The pullbacks that run in a thread and may call a user's code, which may run a pullback in turn."""

from __future__ import annotations

import contextvars
import sys
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.graph.modes import in_mode, thread
from symgrad.graph.node import Node
from symgrad.graph.order import upstream


class _isolated(in_mode):
    """Changed modes at whose end all modes are restored, also those that a user's code changed."""

    __slots__ = ()

    def _leave(self, kind: type[BaseException] | None = None) -> None:
        super()._leave(BaseException)


class GraphTask:
    """A running pullback: its seeds, the nodes it is limited to, and the functions to be called after it."""

    __slots__ = ("seeds", "wanted", "callbacks", "__weakref__")

    def __init__(self, seeds: Sequence[tuple[Node, Any]]):
        self.seeds = seeds
        self.wanted: set[Node] | None = None
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


def queue_callback(callback: Callable[[], Any]) -> None:
    """Call a function once after the running backward: the innermost one of this thread.

    Raises RuntimeError outside of every backward that calls a user's code.
    """
    if thread.modes.task is None:
        raise RuntimeError("queue_callback: no backward is running")
    thread.modes.task.callbacks.append(callback)
