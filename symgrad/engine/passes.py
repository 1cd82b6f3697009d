"""The passes over a recorded graph: pullback (reverse), pushforward (forward) and replay (again, in another carrier).

None of them recurses, and none of them knows what it carries: the carrier `xp` and a reading of the nodes say that.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import fills
from symgrad.carriers.guarding import guarded_product, has_nan
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
    mark_as_choosing,
    receivers,
    release_node,
    send,
)
from symgrad.engine.hooks import SYMBOLIC_ZERO, UNDEFINED
from symgrad.engine.instrumented import pull_instrumented
from symgrad.engine.saved import verify
from symgrad.engine.tensor import Tensor
from symgrad.graph.node import FREED, HOOKED, IN_FORWARD, NAMED, RELEASED, TANGENT, TRACKED, Leaf, Link, Node, all_threads, freed, upstream

__all__ = ["arguments", "call_rule", "pullback", "pushforward", "replay"]

UNUSUAL = NAMED | TANGENT | IN_FORWARD | RELEASED | MARKED  # flags of nodes about which the clean loop must ask more
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
    """The pullback where nobody looks on. `pending` are the cotangents of the nodes it has come to, of which those that go on are in the heap.

    It stops, with the rest in the heap, at a node with hooks, if there can be any (`hooked`), and at an undefined gradient. Returns whether an op
    that chooses was passed.
    """
    following = None  # a parent of the last node that is the newest of all, so that it need not go through the heap
    owned: set[Node] = set()  # whose cotangent is a sum made here, which nobody else refers to
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


def _pushed(xp: Any, node: Node, tangents: Sequence[Any], y: Any, args: tuple) -> Any:
    """The tangent of a node in a guarded pass."""
    op = node.op
    t = op.jvp(xp, tangents, y, args)  # type: ignore[misc]
    if t is not None and op.kind == "elementwise" and has_nan(xp, t):
        t = None
        for partial, each in zip(op.partials, tangents):
            if each is None or partial is None or not callable(partial) and partial == 0:
                continue
            term = guarded_product(xp, each, partial(xp, y, *args)) if callable(partial) else each * partial
            t = term if t is None else t + term
    mark_as_choosing(t)
    return t


def call_rule(xp: Any, node: Node, tensors: Sequence[Any], args: tuple) -> Any:
    """The node's forward rule on tensors of the carrier, with the node's own parameters."""
    rest = args[len(tensors):]
    return node.op.forward(xp, *((tensors,) if node.op.arity is None else tensors), *rest)


def replay(xp: Any, roots: Sequence[Node], leaf: Callable[[Leaf], Any], constant: Callable[[Any], Any],
           memo: dict[Node, Any] | Any = None) -> dict[Node, Any]:
    """Compute the graph again in another carrier, from what `leaf` and `constant` say its ends are there."""
    values: Any = {} if memo is None else memo
    for node in upstream(roots):
        if node in values:
            continue
        if isinstance(node, Leaf):
            values[node] = leaf(node)
        elif type(node) is Link:
            values[node] = constant(node.value) if node.parents[0] is None else values[node.parents[0]]
        else:
            values[node] = call_rule(xp, node, arguments(node, values, constant), node.args or ())
    return values


def arguments(node: Node, values: Mapping[Node, Any], constant: Callable[[Any], Any]) -> tuple:
    """A node's tensor arguments in the carrier the values are in."""
    if node.args is None:
        raise RuntimeError(FREED)
    return tuple(constant(a) if p is None else values[p] for p, a in zip(node.parents, node.args))


def pushforward(xp: Any, roots: Sequence[Node], tangents: Mapping[Node, Any], read: Read | None = None,
                nodes: Sequence[Node] | None = None) -> dict[Node, Any]:
    """Carry tangents of leaves up to the roots: the derivative, applied to the tangents. A node without one has tangent zero.

    `nodes` are those to carry them through, oldest first, where that is known already.
    """
    out: dict[Node, Any] = dict(tangents)
    path = upstream(roots) if nodes is None else nodes
    guarded = any([node.chooses for node in path])
    for node in path:
        if node in out or not node.parents or not node.flags & TRACKED:
            continue
        carried = [None if p is None else out.get(p) for p in node.parents]
        if all(t is None for t in carried):
            continue
        if node.args is None:
            raise RuntimeError(FREED)
        if node.op.jvp is None:
            continue
        y, args = (node.value, node.args) if read is None else read(node)
        if node.along is not None and xp is numeric:
            t = node.along(carried[0])
        else:
            t = _pushed(xp, node, carried, y, args) if guarded else node.op.jvp(xp, carried, y, args)
        if t is not None:
            out[node] = t if isinstance(t, tuple) or fills(t, y) else xp.broadcast_to(t, tuple(y.shape))
    return out
