"""The pullback of the parts of a batch in several threads: the parts have leaves in common, and nodes that were there before them, but no others."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Container, Sequence
from functools import partial
from heapq import heapify
from typing import Any

from symgrad.carriers.lapack import as_the_caller_reads
from symgrad.engine.cotangents import MARK, Cotangents, Heap, send
from symgrad.graph.modes import thread
from symgrad.graph.node import CALLS, HOOKED, PACKED, PARTED, RELEASED, Node
from symgrad.graph.order import reached
from symgrad.system.weakkeys import WeakKeys

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
