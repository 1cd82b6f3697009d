"""The pullback, without recursion and for any carrier `xp`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

from symgrad.carriers import numeric
from symgrad.engine.cotangents import (
    MARK,
    MARKED,
    Cotangents,
    Heap,
    Read,
    conjugated,
    fitted,
    guarded_vjp,
    is_complex,
    mark,
    receivers,
    release_node,
    send,
    shape_of,
)
from symgrad.engine.flat import FLOAT64, float64, ndarray, sum_of_tensors, write_rules
from symgrad.engine.hooks import SYMBOLIC_ZERO, UNDEFINED
from symgrad.engine.instrumented import pull_instrumented
from symgrad.engine.saved import traced_args, verify
from symgrad.engine.tensor import Tensor
from symgrad.graph.freed import FREED, freed
from symgrad.graph.modes import special
from symgrad.graph.node import GRADIENT, HOOKED, IN_FORWARD, NAMED, RELEASED, SELECTED, SMALL, TANGENT, Node, all_threads
from symgrad.graph.order import upstream

__all__ = ["pullback"]

UNUSUAL = NAMED | TANGENT | IN_FORWARD | RELEASED | MARKED  # nodes with these flags need more than the clean loop's fast path
_selects = operator.attrgetter("selects")


def pullback(xp: Any, seeds: Iterable[tuple[Node, Any]], read: Read | None = None, wanted: set[Node] | None = None,
             keep: frozenset[Node] = frozenset(), ends: Container[Node] = (), release: bool = False,
             hooks: Callable[[Node], Any] | None = None, instrumented: bool = False,
             deliver: Callable[[Node, Any], None] | None = None) -> Cotangents:
    """Pull cotangents back from the seeds to the leaves; returns those of leaves, of `ends` and of `keep`, None for a derivative of zero.

    `read(node)` returns a node's value and arguments in the carrier, by default its numbers. Only nodes in `wanted` get cotangents, and `ends` are
    treated as leaves. `release` frees the saved values. If an op selects, such as `where`, 0 · ∞ is 0, so that elements that were not
    selected give no NaN. `hooks(node)` returns the hooks of a HOOKED node, with `instrumented` of any node.
    `deliver(leaf, g)` is called with the cotangent of a hooked leaf as soon as it is complete.
    """
    pending: Cotangents = {}
    heap: Heap = [MARK] if instrumented or keep and any([_continues(node, wanted) for node in keep]) else []
    zeros: list[Node] = []  # nodes reached with derivative zero
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
    """The clean loop: `pending` holds the cotangents of reached nodes, the heap those of them that have parents, newest first.

    It stops at a hooked node (if `hooked`) and at an undefined gradient, and leaves the rest in the heap. Returns whether it passed a selecting op.
    """
    owned: set[Node] = set()  # nodes whose cotangent is a sum made here, which may be added to in place
    written, unusual, stop = all_threads.written, UNUSUAL | HOOKED * hooked, MARKED | HOOKED * hooked
    guarded = any([node.flags & SELECTED for node in pending] if wanted is None else map(_selects, wanted))
    numbers, tensors = xp is numeric and read is None and not guarded, read is traced_args and not guarded and not special
    plain = GRADIENT if (numbers or tensors) and wanted is None and not written else -1  # the flags of nodes that need none of the tests below
    parents: Sequence[Node | None]
    node = None
    while True:
        if node is None:  # else it is the newest pending node, a parent of the last one: it bypasses the heap
            if not heap:
                return guarded
            node = heappop(heap)[1]
            g = pending.pop(node, None)
        flags, parents = node.flags, node.parents
        if flags != plain:
            if flags & unusual or wanted is not None and (ends or not wanted.issuperset(parents)):
                if flags & stop:
                    heappush(heap, MARK)
                    if node is not mark:
                        send(pending, heap, node, g)
                    return guarded
                parents = receivers(node, wanted)
                if not any(parents) or node in ends:
                    pending[node], node = g, None
                    continue
                if flags & RELEASED and read is None:
                    raise RuntimeError(FREED)
            if written and node.reads_saved and node.sequence_nr < written and not flags & RELEASED:
                verify(node, parents)
        if (numbers or tensors) and (type(g) is float64 or (g._value if type(g) is Tensor else g).dtype is FLOAT64 or not is_complex(g)):
            y = node.value
            single, rule, saves = (node.by_numbers if numbers else node.by_tensors) or write_rules(type(node), numbers)
            found = rule(node, g) if single else rule(node, g, parents)
        else:
            single, saves = False, node.saves
            y, args = (node.value, node.args) if read is None else read(node)
            if is_complex(g):
                y, args = conjugated(xp, y, args)
            guarded = guarded or node.selects  # the graphs of other carriers have no flag of it
            found = guarded_vjp(xp, node, g, y, args, parents) if guarded else node.vjp(xp, g, y, args, parents)
        if release:
            if saves and not flags & NAMED:  # as `release_node` does
                node.flags, node.args, node.value = flags | RELEASED, None, freed
            elif saves is not False or type(y) is not float64 and y.nbytes > SMALL:
                release_node(node)
        if single:
            (p,) = parents
            if found is None or p in pending or not p.parents:  # type: ignore[union-attr]
                found = (found,)
            elif heap and heap[0][0] < -p.sequence_nr:  # type: ignore[union-attr]
                pending[p], node = found, None  # type: ignore[index]
                heappush(heap, (-p.sequence_nr, p))  # type: ignore[union-attr,arg-type,misc]
                continue
            else:
                node, g = p, found
                continue
        broadcasts, following = node.broadcasts, None
        for p, c in zip(parents, found):
            if p is None:
                continue
            if c is None:
                if p is not following:
                    _undefined(pending, heap, zeros, node, p, hooked)
                continue
            if broadcasts and type(c) is not float64 and (c.shape if type(c) is ndarray else shape_of(c, y)) != p.value.shape:
                c = fitted(xp, c, y, p.value)
            if p is following:
                ahead = sum_of_tensors(ahead, c) if tensors else ahead + c  # noqa: F821  bound together with `following`
            elif p in pending:
                if p in owned and read is None:
                    pending[p] += c
                else:
                    pending[p] = sum_of_tensors(pending[p], c) if tensors else pending[p] + c
                    owned.add(p)
            elif following is None and p.parents:
                following, ahead = p, c
            else:
                pending[p] = c
                if p.parents:
                    heappush(heap, (-p.sequence_nr, p))
                elif p.flags & stop:
                    heappush(heap, MARK)
        node = following
        if following is not None:
            if heap and heap[0][0] < -following.sequence_nr:
                pending[following], node = ahead, None
                heappush(heap, (-following.sequence_nr, following))
            else:
                g = ahead


def _continues(node: Node, wanted: Container[Node | None] | None) -> bool:
    """Whether a node in `keep` passes its cotangent on to parents."""
    return bool(node.parents) if wanted is None else any([p in wanted for p in node.parents])


def _undefined(pending: Cotangents, heap: Heap, zeros: list[Node], node: Node, p: Node, hooked: bool) -> None:
    """Handle a cotangent of None for parent `p`: a symbolic zero or an undefined gradient."""
    if node.none_is_undefined or hooked and (p.parents or p.flags & HOOKED):
        send(pending, heap, p, UNDEFINED if node.none_is_undefined else SYMBOLIC_ZERO)
        heappush(heap, MARK)
    else:
        zeros.append(p)
