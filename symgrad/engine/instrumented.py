"""The instrumented loop of the pullback: hooks, undefined gradients, symbolic zeros, anomaly mode, and cotangents kept at nodes."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from heapq import heappop
from typing import Any

from symgrad.engine.cotangents import (
    Cotangents,
    Heap,
    Read,
    any_recorded,
    bare,
    conjugated,
    fitted,
    guarded_vjp,
    in_dtype,
    is_complex,
    mark,
    receivers,
    release_node,
    send,
)
from symgrad.engine.hooks import SYMBOLIC_ZERO, UNDEFINED
from symgrad.engine.saved import read as read_saved
from symgrad.engine.saved import verify
from symgrad.engine.tasks import note_node
from symgrad.graph.freed import FREED
from symgrad.graph.node import HOOKED, PACKED, RELEASED, Node, all_threads
from symgrad.graph.order import upstream

__all__ = ["pull_instrumented"]


def pull_instrumented(xp: Any, pending: Cotangents, heap: Heap, read: Read | None, wanted: Container[Node] | None, keep: frozenset[Node],
                       ends: Container[Node], release: bool, guarded: bool, hooks: Callable[[Node], Any] | None,
                       deliver: Callable[[Node, list[Any]], None] | None) -> None:
    """Finish a pullback that has hooks, undefined gradients, symbolic zeros or cotangents to keep.

    It never adds in place, because a hook may have stored the cotangent.
    """
    out: Cotangents = {}

    def finish_leaf(leaf: Node) -> None:
        """Run the hooks of a leaf whose cotangent is complete."""
        note_node(leaf)
        g = pending.pop(leaf)
        own = hooks(leaf)  # type: ignore[misc]
        g = own.at_outputs(xp.zeros_like(leaf.value) if g is SYMBOLIC_ZERO else _typed(g, leaf))
        if deliver is None or wanted is not None and leaf not in wanted:
            out[leaf] = g
            return
        given, g = [own.incoming(g)], None  # in a list, so that `deliver` can hold the only reference
        if given[0] is not UNDEFINED:
            deliver(leaf, given)
        own.outgoing((), given[0])

    last = _last_consumers(pending, wanted) if hooks is not None else {}
    for leaf in last.pop(mark, ()):
        finish_leaf(leaf)
    while heap:
        node = heappop(heap)[1]
        if node is mark:
            continue
        note_node(node)
        g = pending.pop(node)
        parents = () if node in ends else receivers(node, wanted)
        own = None if hooks is None else hooks(node)
        needed = any(parents)
        if g is SYMBOLIC_ZERO and (own is not None or node in keep or node.none_is_undefined or node.output_index is not None):
            g = xp.zeros_like(node.value)
        runs_hooks = needed or deliver is not None and node in keep  # an input of `backward` counts as run
        if needed and node in keep:
            out[node] = g
        if own is not None:
            g = node.undefined() if g is UNDEFINED and node.none_is_undefined else g  # one for each output
            g = own.at_outputs(_typed(g, node))
            if runs_hooks:
                if node in keep and deliver is not None:
                    out[node] = g
                g = own.incoming(g)
        if not needed:
            if own is not None and runs_hooks:
                own.outgoing((None,) * len(node.parents), g)
            else:
                out[node] = g
            continue
        absent = g is UNDEFINED or g is SYMBOLIC_ZERO
        if absent and node.none_is_undefined:
            g, absent = node.undefined(), False
        skipped = g is UNDEFINED and node.skips_undefined
        if skipped and (wrote := parents[1]) is not None:
            parents = (parents[0], *receivers(wrote, wanted))
        found: Sequence[Any] = (None,) * len(parents)
        if node.flags & RELEASED and read is None and not skipped:
            if any_recorded(node, parents):
                raise RuntimeError(FREED)
            absent = True
        if node.reads_saved and not skipped and node.sequence_nr < all_threads.written and not node.flags & RELEASED:
            verify(node, receivers(node, None))
        if not absent:
            y, args = (node.value, node.args) if read is None and not node.flags & PACKED else (read or read_saved)(node)
            if is_complex(g):
                y, args = conjugated(xp, node, y, args)
            guarded = guarded or node.selects
            found = guarded_vjp(xp, node, g, y, args, parents) if guarded else node.vjp(xp, g, y, args, parents)
            found = _settled(xp, node, parents, found, own is not None)
        if own is not None:
            found = own.outgoing(found, None if absent else g)
        elif hooks is not None and node.flags & HOOKED:  # an unpack hook has registered a posthook
            found = hooks(node).outgoing(found, UNDEFINED)
        for p, c in zip(parents, found):
            if p is not None:
                if c is None:
                    c = g if absent else UNDEFINED if node.none_is_undefined or own is not None else SYMBOLIC_ZERO
                send(pending, heap, p, c)
        if release:
            release_node(node)
        for leaf in last.get(node, ()):
            if leaf in pending:
                finish_leaf(leaf)
    for leaf in [p for p in pending if _hooked_leaf(p)] if hooks is not None else ():
        finish_leaf(leaf)
    pending.update(out)
    for node, g in list(pending.items()):
        if g is UNDEFINED:
            del pending[node]
        elif g is SYMBOLIC_ZERO:
            pending[node] = None


def _settled(xp: Any, node: Node, parents: Sequence[Node | None], cotangents: Sequence[Any], hooked: bool) -> Sequence[Any]:
    """The cotangents summed to the shapes of the arguments; with hooks, symbolic zeros become arrays."""
    out = []
    for p, c in zip(parents, cotangents):
        if p is None or hooked and p.origin is None or c is None and (node.none_is_undefined or not hooked):
            c = c if node.none_is_undefined else None  # a view that no operation recorded receives nothing, and a Function computes it all the same
        elif c is None:
            c = xp.zeros_like(p.value)
        elif (node.broadcasts or node.flags & PACKED) and bare(c).shape != p.value.shape:  # a hook may unpack another shape
            c = fitted(xp, c, node.value, p.value)
        out.append(c)
    return tuple(out)


def _typed(g: Any, node: Node) -> Any:
    """A cotangent as hooks see it, in the dtype of the node's value."""
    return in_dtype(g, node.value) if hasattr(g, "dtype") and hasattr(node.value, "dtype") else g


def _hooked_leaf(node: Node) -> bool:
    return bool(node.flags & HOOKED) and not node.parents and node.origin is not None


def _last_consumers(pending: Cotangents, wanted: Container[Node] | None) -> dict[Node, list[Node]]:
    """For each node the hooked leaves whose last consumer it is; `mark` stands for leaves that are seeds."""
    seen, out = set[Any](), dict[Node, list[Node]]()
    for node in upstream(list(pending), differentiable=True):  # oldest first
        for p in node.parents if wanted is None or node in wanted else ():
            if p is not None and p not in seen and _hooked_leaf(p):
                seen.add(p)
                out.setdefault(node, []).append(p)
    out[mark] = [p for p in pending if p not in seen and _hooked_leaf(p)]
    return out
