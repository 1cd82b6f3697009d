"""The pullback: the pass that goes back through a recorded graph.

It does not recurse, and it does not depend on what it carries: the carrier `xp` and a reading of the nodes decide that.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from symgrad.engine.cotangents import (
    MARK,
    MARKED,
    Cotangents,
    Heap,
    Read,
    bare,
    chosen,
    conjugated,
    fitted,
    is_complex,
    mark,
    receivers,
    release_node,
    send,
)
from symgrad.engine.hooks import SYMBOLIC_ZERO, UNDEFINED
from symgrad.engine.instrumented import pull_instrumented
from symgrad.engine.saved import verify
from symgrad.engine.tensor import Tensor
from symgrad.graph.freed import FREED, freed
from symgrad.graph.node import HOOKED, IN_FORWARD, NAMED, RELEASED, TANGENT, Node, all_threads
from symgrad.graph.order import upstream

__all__ = ["pullback"]

UNUSUAL = NAMED | TANGENT | IN_FORWARD | RELEASED | MARKED  # flags of nodes that the clean loop must examine
float64, ndarray, FLOAT64 = np.float64, np.ndarray, np.dtype(np.float64)
_chooses = operator.attrgetter("chooses")


def pullback(xp: Any, seeds: Iterable[tuple[Node, Any]], read: Read | None = None, wanted: set[Node] | None = None,
             keep: frozenset[Node] = frozenset(), ends: Container[Node] = (), release: bool = False,
             hooks: Callable[[Node], Any] | None = None, instrumented: bool = False,
             deliver: Callable[[Node, Any], None] | None = None) -> Cotangents:
    """Carry cotangents from the seeds down to the leaves: the transpose of the derivative, applied to the seeds.

    `read(node)` gives a node's value and arguments in the carrier; without it they are the numbers of the node itself. `wanted` limits the
    work to those nodes. The cotangents of leaves, of `ends`, which are taken for leaves, and of the nodes in `keep` are returned, None for one
    that was reached with derivative zero. `release` frees every node that was pulled through. Upstream of an op that chooses, such as `where`
    (with `wanted`, in all of a graph that has one), what was not chosen never makes a NaN of a zero cotangent. `hooks(node)` gives the hooks of
    a node; it is asked where a node is HOOKED, and with `instrumented` everywhere. `deliver` gets the cotangent of a leaf with hooks as soon as
    it is complete.
    """
    pending: Cotangents = {}
    heap: Heap = [MARK] if instrumented or keep and any([_goes_on(node, wanted) for node in keep]) else []
    zeros: list[Node] = []  # the nodes that were reached with derivative zero, where no hook is to see that
    for node, g in seeds:
        send(pending, heap, node, g)
    guarded = _pull(xp, pending, heap, zeros, read, wanted, ends, release, hooks is not None)
    if heap:
        pull_instrumented(xp, pending, heap, read, wanted, keep, ends, release, guarded, hooks, deliver)
    for node in upstream(zeros, differentiable=True) if zeros else ():
        if not node.parents or node in keep:
            pending.setdefault(node, None)
    return pending


def _pull(xp: Any, pending: Cotangents, heap: Heap, zeros: list[Node], read: Read | None, wanted: set[Node] | None,
          ends: Container[Node], release: bool, hooked: bool) -> bool:
    """The pullback without hooks. `pending` are the cotangents of the nodes it has come to, of which those that go on are in the heap.

    It stops, with the rest in the heap, at a node with hooks, if there can be any (`hooked`), and at an undefined gradient. Returns whether an op
    that chooses was passed.
    """
    following = None  # a parent of the last node that is the newest of all, so that it need not go through the heap
    owned: set[Node] = set()  # nodes whose cotangent is a sum made here, to which nothing else refers
    written, unusual, stop = all_threads.written, UNUSUAL | HOOKED * hooked, MARKED | HOOKED * hooked
    guarded = wanted is not None and any(map(_chooses, wanted))
    parents: Sequence[Node | None]
    while heap or following is not None:
        if following is None:
            node = heappop(heap)[1]
            g = pending.pop(node, None)
        else:
            node, following = following, None
        flags, parents = node.flags, node.parents
        if flags & unusual:
            if flags & stop:
                heappush(heap, MARK)
                if node is not mark:
                    send(pending, heap, node, g)
                return guarded
            parents = receivers(node, wanted)
            if not any(parents) or node in ends:
                pending[node] = g
                continue
            if flags & RELEASED and read is None:
                raise RuntimeError(FREED)
        elif wanted is not None and (ends or not wanted.issuperset(parents)):
            parents = [p if p in wanted else None for p in parents]
            if not any(parents) or node in ends:
                pending[node] = g
                continue
        if written and node.protects and node.sequence_nr < written and not flags & RELEASED:
            verify(node, parents)
        y, args = (node.value, node.args) if read is None else read(node)
        if type(g) is not float64 and (g._value if type(g) is Tensor else g).dtype is not FLOAT64 and is_complex(g):
            y, args = conjugated(xp, y, args)
        if node.chooses:
            guarded = True
        broadcasts = node.broadcasts
        for p, c in zip(parents, node.vjp(xp, g, y, args, parents)):
            if p is None:
                continue
            if c is None:
                if p is not following:
                    _undefined(pending, heap, zeros, node, p, hooked)
                continue
            if guarded:
                c = chosen(xp, c, g)
            if broadcasts and type(c) is not float64 and (c if type(c) is ndarray else bare(c)).shape != p.value.shape:
                c = fitted(xp, c, y, p.value)
            if p is following:
                ahead = ahead + c  # noqa: F821  bound together with `following`
            elif p in pending:
                if p in owned and read is None:
                    pending[p] += c
                else:
                    pending[p] = pending[p] + c
                    owned.add(p)
            elif following is None and p.parents:
                following, ahead = p, c
            else:
                pending[p] = c
                if p.parents:
                    heappush(heap, (-p.sequence_nr, p))
                elif p.flags & stop:
                    heappush(heap, MARK)
        if release:
            if node.saves and not flags & NAMED:  # as `release_node` does
                node.flags, node.args, node.value = flags | RELEASED, None, freed
            else:
                release_node(node)
        if following is not None:
            if heap and heap[0][0] < -following.sequence_nr:
                pending[following] = ahead
                heappush(heap, (-following.sequence_nr, following))
                following = None
            else:
                g = ahead
    return guarded


def _goes_on(node: Node, wanted: Container[Node | None] | None) -> bool:
    """Whether a cotangent that is kept at a node goes on to its parents."""
    return bool(node.parents) if wanted is None else any([p in wanted for p in node.parents])


def _undefined(pending: Cotangents, heap: Heap, zeros: list[Node], node: Node, p: Node, hooked: bool) -> None:
    """A node has no cotangent for its parent `p`: the derivative is zero, or the gradient is undefined."""
    if node.silent or hooked and (p.parents or p.flags & HOOKED):
        send(pending, heap, p, UNDEFINED if node.silent else SYMBOLIC_ZERO)
        heappush(heap, MARK)
    else:
        zeros.append(p)


