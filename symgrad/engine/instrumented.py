"""The instrumented loop of the pullback: hooks, undefined gradients, symbolic zeros, anomaly mode, and cotangents kept at nodes."""

from __future__ import annotations

import functools
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
    mark,
    receivers,
    release_node,
    send,
)
from symgrad.engine.hooks import SYMBOLIC_ZERO, UNDEFINED
from symgrad.engine.operands import is_complex
from symgrad.engine.saved import read as read_saved
from symgrad.engine.saved import verify
from symgrad.engine.unmoved import Passed
from symgrad.errors import FREED
from symgrad.graph.common import Bundle, CommonNode
from symgrad.graph.node import HOOKED, PACKED, RELEASED, Node, all_threads
from symgrad.graph.order import upstream
from symgrad.system.errorstate import quietly


def pull_instrumented(xp: Any, pending: Cotangents, heap: Heap, read: Read | None, wanted: Container[Node] | None, keep: frozenset[Node],
                       ends: Container[Node], release: bool, guarded: int, hooks: Callable[[Node], Any] | None,
                       deliver: Callable[[Node, list[Any]], None] | None, held: Passed) -> None:
    """Finish a pullback that has hooks, undefined gradients, symbolic zeros or cotangents to keep.

    It never adds in place, because a hook may have stored the cotangent.
    """
    out: Cotangents = {}
    hooks_at: Callable[[Node], Any] = hooks or (lambda node: None)

    def finish_leaf(leaf: Node) -> None:
        """Run the hooks of a leaf whose cotangent is complete."""
        g = pending.pop(leaf)
        own = hooks_at(leaf)
        g = own.at_outputs(xp.zeros_like(leaf.value) if g is SYMBOLIC_ZERO else _typed(g, leaf))
        if deliver is None or wanted is not None and leaf not in wanted:
            out[leaf] = g
            return
        given, g = [own.incoming(g)], None  # in a list, so that `deliver` can hold the only reference
        if given[0] is not UNDEFINED:
            deliver(leaf, given)
        own.outgoing((), given[0])

    def reach(node: Node, own: Any) -> tuple[Any, Sequence[Node | None], bool]:
        """The cotangent of a node after its tensor hooks, the parents that need one from it, and whether the hooks of the node run."""
        g = pending.pop(node)
        parents = () if node in ends else receivers(node, wanted)
        needed = any(parents)
        if g is SYMBOLIC_ZERO and (own is not None or node in keep or node.none_is_undefined or node.output_index is not None):
            g = xp.zeros_like(node.value)
        given = deliver is not None and node in keep  # an input of `backward` counts as run
        if needed and node in keep:
            out[node] = g
        if own is not None:
            g = node.undefined() if g is UNDEFINED and node.none_is_undefined else g  # one for each output
            g = own.at_outputs(_typed(g, node))
        if not needed or own is not None and given:
            out[node] = g
        return g, parents, needed or given

    def pull(node: Node, g: Any, parents: Sequence[Node | None], hooked: bool) -> Sequence[Any] | None:
        """The cotangents of a node's arguments, by its rule; None if that of the node is undefined."""
        nonlocal guarded
        if g is not UNDEFINED or not node.skips_undefined:
            if node.flags & RELEASED and read is None:
                if any_recorded(node, parents):
                    raise RuntimeError(FREED)
                return None
            if node.reads_saved and node.sequence_nr < all_threads.written and not node.flags & RELEASED:
                verify(node, receivers(node, None))
        if g is UNDEFINED or g is SYMBOLIC_ZERO:
            return None
        y, args = (node.value, node.args) if read is None and not node.flags & PACKED else (read or read_saved)(node)
        if is_complex(g):
            y, args = quietly(conjugated, xp, node, y, args)
        guarded = guarded or int(node.selects)
        call = functools.partial(guarded_vjp, xp, node) if guarded else functools.partial(node.vjp, xp)
        rest = (g, y, args, parents, held.unreached) if guarded else (g, y, args, parents)
        found = call(*rest) if node.outside else quietly(call, *rest)
        return quietly(_settled, xp, node, parents, found, hooked, held if guarded else None)

    def send_back(node: Node, g: Any, parents: Sequence[Node | None], found: Sequence[Any] | None, own: Any) -> None:
        """Run the posthooks, and send the cotangents to the arguments."""
        absent = found is None
        found = found or (None,) * len(parents)
        if own is not None:
            found = _after_hooks(node, own, found, None if absent else g)
        elif hooks is not None and node.flags & HOOKED:  # an unpack hook has registered a posthook
            found = _after_hooks(node, hooks_at(node), found, Bundle(()))
        for p, c in zip(parents, found):
            if p is not None:
                if c is None:
                    c = g if absent else UNDEFINED if node.none_is_undefined or own is not None else SYMBOLIC_ZERO
                send(pending, heap, p, c)

    def release_one(node: Node) -> None:
        """Release a node, at the end of the pass if it tells which elements do not reach its outputs."""
        if guarded and node.saves is not False and node.saves is not True:
            held.append(node)
        else:
            release_node(node)

    def visit(node: Node) -> None:
        """Visit a node that stands for itself."""
        own = hooks_at(node)
        g, parents, runs_hooks = reach(node, own)
        if own is not None and runs_hooks:
            g = own.incoming(g)
        if any(parents):
            if (g is UNDEFINED or g is SYMBOLIC_ZERO) and node.none_is_undefined:
                g = node.undefined()
            if g is UNDEFINED and node.skips_undefined and (wrote := parents[1]) is not None:
                parents = (parents[0], *receivers(wrote, wanted))
            send_back(node, g, parents, pull(node, g, parents, own is not None), own)
            if release:
                release_one(node)
        elif own is not None and runs_hooks:
            own.outgoing((None,) * len(node.parents), g)

    def visit_call(call: CommonNode, outputs: Sequence[Node]) -> None:
        """Visit together the nodes of the outputs of one call, those that have a cotangent."""
        own, parts, absent = hooks_at(call), [None] * len(call.outputs), UNDEFINED
        needed = runs_hooks = False
        for node in call.live():
            if node in outputs:
                part, parents, runs = reach(node, hooks_at(node))
                needed, runs_hooks = needed or any(parents), runs_hooks or runs
                if part is SYMBOLIC_ZERO:
                    absent = part
                elif part is not UNDEFINED:
                    parts[node.output_nr] = part
            elif (unreached := hooks_at(node)) is not None:
                unreached.at_outputs(UNDEFINED)
        g = Bundle(parts)
        if own is not None and runs_hooks:
            g = own.incoming(g)
        if not needed:
            if own is not None and runs_hooks:
                own.outgoing((None,) * len(call.parents), g)
            return
        pulled: list[tuple[Node, Sequence[Any]]] = []
        for node in outputs:
            parents, part = () if node in ends else receivers(node, wanted), g.parts[node.output_nr]
            if any(parents) and (cotangents := pull(node, UNDEFINED if part is None else part, parents, own is not None)) is not None:
                pulled.append((node, cotangents))
        below = {p for node in outputs for p in node.parents}
        parents = tuple([p if p in below else None for p in receivers(call, wanted)])
        send_back(call, g if pulled else absent, parents, quietly(call.added, pulled) if pulled else None, own)
        for node in outputs if release else ():
            release_one(node)

    last = _last_consumers(pending, wanted) if hooks is not None else {}
    for leaf in last.pop(mark, ()):
        finish_leaf(leaf)
    while heap:
        node = heappop(heap)[1]
        if node is mark or node not in pending:  # visited already, with another output of its call
            continue
        call = _call_of(node) if hooks is not None and node.flags & (HOOKED | PACKED) else None
        if call is None:
            together = [node]
            visit(node)
        else:
            together = [each for each in call.live() if each in pending]
            visit_call(call, together)
        for node in together:
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


def _call_of(node: Node) -> CommonNode | None:
    """The node of the call of which a node is one of several outputs; None for any other node."""
    call, _ = getattr(node, "output_of", (None, 0))
    return call if isinstance(call, CommonNode) else None


def _after_hooks(node: Node, own: Any, found: Sequence[Any], g: Any) -> Sequence[Any]:
    """The cotangents of the arguments after the posthooks, which see those of torch's edges."""
    edges = node.edges()
    if edges is None or len(found) < len(node.parents):
        return own.outgoing(found, g)
    out = list(found)
    for i, c in zip(edges, own.outgoing([found[i] for i in edges], g)):
        out[i] = c
    return out


def _settled(xp: Any, node: Node, parents: Sequence[Node | None], cotangents: Sequence[Any], hooked: bool,
             held: Passed | None) -> Sequence[Any]:
    """The cotangents summed to the shapes of the arguments; with hooks, symbolic zeros become arrays."""
    out = []
    for p, c in zip(parents, cotangents):
        if p is None or hooked and p.origin is None or c is None and (node.none_is_undefined or not hooked):
            c = c if node.none_is_undefined else None  # a view that no operation recorded receives nothing, and a Function computes it all the same
        elif c is None:
            c = xp.zeros_like(p.value)
        elif (node.broadcasts or node.flags & PACKED) and bare(c).shape != p.value.shape:  # a hook may unpack another shape
            c = fitted(xp, c, node.value, p.value)
            if held is not None:
                held.note_fit(node, p, node.value)
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
