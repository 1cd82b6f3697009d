"""Pullbacks and threads: those that may call a user's code, which may run a pullback in turn, and that of the parts of a batch in several threads.

The parts have leaves in common, and nodes that were there before them, but no others.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import types
from collections.abc import Callable, Container, Sequence
from functools import partial
from heapq import heapify
from typing import Any

from symgrad.carriers.lapack import as_the_caller_reads
from symgrad.engine.cotangents import MARK, Cotangents, Heap, send
from symgrad.graph.modes import in_mode, thread
from symgrad.graph.node import CALLS, HOOKED, PACKED, PARTED, RELEASED, Node
from symgrad.graph.order import reached, upstream
from symgrad.system.weakkeys import WeakKeys


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


LEAST = 1 << 16  # bytes of values; the pullback of fewer takes less time than a thread
ALONE = HOOKED | PACKED | CALLS | RELEASED  # the flags of nodes that may call a user's code, or raise


class _Before(Container[Node]):
    """The nodes that were there at some time."""

    def __init__(self, sequence_nr: int):
        self.sequence_nr = sequence_nr

    def __contains__(self, node: Any) -> bool:
        return node.sequence_nr <= self.sequence_nr


_parts: WeakKeys[Node, tuple[_Before, int]] = WeakKeys()  # of the nodes of outputs


def mark_parts(start: int, outputs: Sequence[Sequence[Node]]) -> None:
    """Note the nodes of the outputs of each part, recorded after the node or number `start`."""
    before = _Before(start)
    for number, nodes in enumerate(outputs):
        for node in nodes:
            if node.parents and node not in before:
                _parts[node] = before, number
                node.flags |= PARTED


def with_modes_of_caller(compute: Callable[[], Any]) -> Callable[[], Any]:
    """The function with the modes and the context of this thread, to be called once in another one."""
    modes, context, compute = thread.modes, contextvars.copy_context(), as_the_caller_reads(compute)

    def call() -> Any:
        thread.modes = modes
        return context.run(compute)

    return call


def pull_parts(pull: Callable[..., int], pending: Cotangents, heap: Heap, zeros: list[Node], wanted: set[Node] | None, keep: frozenset[Node],
               guarded: int) -> int | None:
    """Replace the cotangents of the outputs of parts by those of what the parts share, added in the order of the parts.

    The newest pending node is such an output. `pull(pending, heap, zeros, wanted, ends, guarded)` is the clean loop, for one part. Returns
    whether an op that selects was passed, None where nothing was done: the parts share nodes, have hooks, or are small.
    """
    before = _parts[heap[0][1]][0]
    outputs: dict[int, list[Node]] = {}
    for node in pending:
        if node.flags & PARTED and (found := _parts.get(node)) is not None and found[0] is before:
            outputs.setdefault(found[1], []).append(node)
    parts = [reached(outputs[number], True, before) for number in sorted(outputs)]
    inside = set[Node]().union(*parts)
    if len(parts) < 2 or len(inside) < sum(map(len, parts)) or not keep.isdisjoint(inside):
        return None
    if any([node.parents and node not in before and node not in inside for node in pending]):
        return None  # a node that depends on a part comes later
    if any([node.flags & ALONE for node in inside]) or sum([getattr(node.value, "nbytes", 0) for node in inside]) < LEAST:
        return None
    shared = {p for node in inside for p in node.parents if p is not None and p not in inside}
    ends = {node for node in shared if node.parents}

    starts = {node: pending.pop(node) for node in inside.intersection(pending)}
    heap[:] = [entry for entry in heap if entry[1] not in starts]
    heapify(heap)

    def work(part: set[Node]) -> tuple[Cotangents, Heap, list[Node], int]:
        own: tuple[Cotangents, Heap, list[Node]] = {}, [], []
        for node in part.intersection(starts):
            send(*own[:2], node, starts[node])
        limits = wanted if not ends else part | shared if wanted is None else wanted & (part | shared)
        return *own, pull(*own, limits, ends, guarded)

    from concurrent.futures import ThreadPoolExecutor  # whose import takes long

    with ThreadPoolExecutor(len(parts) - 1) as pool:
        others = [pool.submit(with_modes_of_caller(partial(work, part))) for part in parts[1:]]
        results = [work(parts[0]), *(other.result() for other in others)]
    for cotangents, rest, without, selects in results:
        for node, g in cotangents.items():
            send(pending, heap, node, g)
        heap += [MARK for entry in rest if entry is MARK]  # `send` has scheduled the others
        zeros += without
        guarded = max(guarded, selects)
    heapify(heap)
    return guarded
