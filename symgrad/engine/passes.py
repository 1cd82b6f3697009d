"""The passes over a recorded graph: pullback (reverse), pushforward (forward) and replay (again, in another carrier).

None of them recurses, and none of them knows what it carries: the carrier `xp` and a reading of the nodes say that.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched, fills, levels_of, raw
from symgrad.carriers.dual import Dual
from symgrad.engine.hooks import NOTHING, ZERO
from symgrad.engine.saved import verify
from symgrad.engine.tensor import Tensor
from symgrad.graph.node import FREED, GRADIENT, NAMED, RELEASED, SHADOW, TANGENT, TRACKED, Leaf, Link, Node, board, freed, upstream

__all__ = ["arguments", "call_rule", "pullback", "pullback_along", "pushforward", "replay"]

VALUES = (np.ndarray, np.generic, Batched, Tensor, Dual)
MIXED = NAMED | TANGENT | SHADOW  # a node with one of these may have parents that need no cotangent, or be out of sight itself
float64, FLOAT64 = np.float64, np.dtype(np.float64)
Read = Callable[[Node], tuple[Any, tuple]]


def pullback(xp: Any, seeds: Sequence[tuple[Node, Any]], read: Read | None = None, wanted: frozenset[Node] | None = None,
             keep: frozenset[Node] = frozenset(), release: bool = False, detours: Mapping[Node, Any] | None = None,
             deliver: Callable[[Node, Any], None] | None = None) -> dict[Node, Any]:
    """Carry cotangents from the seeds down to the leaves: the transpose of the derivative, applied to the seeds.

    `read(node)` gives a node's value and arguments in the carrier; without it they are the numbers of the node itself.
    `wanted` limits the work to those nodes; cotangents of leaves and of the nodes in `keep` are returned, None for one that was
    reached with derivative zero; `release` frees every node that was pulled through. Upstream of an op that chooses, such as `where`
    (with `wanted`, in all of a graph that has one), what was not chosen never makes a NaN of a zero cotangent. `detours` are the nodes
    with hooks; `deliver` gets the cotangent of such a leaf as soon as it is complete.
    """
    pending: dict[Node, Any] = {}  # cotangents of nodes not yet reached, and in the end of the leaves
    heap: list[tuple[int, Node]] = []  # the nodes of `pending` that are no leaves, newest first
    owned: set[Node] = set()  # whose cotangent is a sum made here, which nobody else refers to
    stopped: list[Node] = []
    guarded = wanted is not None and any([node.chooses for node in wanted])
    out: dict[Node, Any] = {}
    for node, g in seeds:
        if node in pending:
            pending[node] = pending[node] + g
        else:
            pending[node] = g
            if node.parents:
                heappush(heap, (-node.sequence_nr, node))
    written = board.written
    stops: Any = keep
    last: dict[Node, list[Node]] = {}
    if detours:
        stops = keep.union(detours)
        last = _last_consumers(seeds, wanted, detours)
    following = None
    while heap or following is not None:
        if following is None:
            node = heappop(heap)[1]
            g = pending.pop(node)
        else:
            node = following
        detour = None
        flags, parents = node.flags, node.parents
        if stops and node in stops:
            needed = wanted is None or any(p in wanted for p in parents)
            detour = detours.get(node) if detours else None
            if g is ZERO and (detour is not None or node in keep or node.silent or node.outlet is not None):
                g = xp.zeros_like(node.value)
            if needed and node in keep:
                out[node] = g
            if detour is not None:
                g = detour.arrive(g, needed)
            if not needed and node in keep:
                out[node] = g
            if g is NOTHING or g is ZERO:
                stops, following = EVERYWHERE, None
                if not needed:
                    continue
                if node.silent:
                    g = node.undefined()
                else:
                    found = (None,) * len(parents) if detour is None else detour.leave((None,) * len(parents), None)
                    for p, c in zip(parents, found):
                        if p is not None and p.flags & GRADIENT and (wanted is None or p in wanted) and (c is not None or p not in pending):
                            _add(pending, heap, p, g if c is None else c)
                    continue
        if wanted is not None:
            parents = tuple([p if p in wanted else None for p in parents])
            if not any(parents):
                following = None
                continue
        elif flags & MIXED:
            if not flags & GRADIENT:
                following = None
                continue
            parents = tuple([p if p is not None and p.flags & GRADIENT else None for p in parents])
        if written and node.protects and node.sequence_nr < written and not flags & RELEASED:
            verify(node, parents)
        if read is not None:
            y, args = read(node)
            if isinstance(g, Tensor) and g._value.dtype.kind == "c":
                y, args = _conjugated(xp.conj, y, args)
        else:
            if flags & RELEASED:
                raise RuntimeError(FREED)
            y, args = node.value, node.args  # type: ignore[assignment]
            if type(g) is not float64 and g.dtype is not FLOAT64 and g.dtype.kind == "c":
                y, args = _conjugated(np.conj, y, args)
        broadcasts = node.broadcasts
        if node.chooses:
            guarded = True
        following = None
        for p, c in zip(parents, node.vjp(xp, g, y, args, parents) if detour is None else
                        detour.leave(_settled(xp, node, parents, node.vjp(xp, g, y, args, parents)), g)):
            if p is None:
                continue
            if c is None:
                silent = node.silent or detour is not None  # whose hooks saw zeros, and answered with None
                if not silent and detours is None:
                    stopped.append(p)
                    continue
                stops = EVERYWHERE
                if p is not following and (p not in pending or pending[p] is NOTHING and not silent):
                    _add(pending, heap, p, NOTHING if silent else ZERO)
                continue
            if guarded:
                c = _chosen(xp, c, g)
            if broadcasts and type(c) is not float64 and (c._value if type(c) is Tensor else c).shape != p.value.shape:  # which knows its batches
                c = _fitted(xp, c, y, p.value)
            if p is following:
                ahead = ahead + c  # noqa: F821  bound together with `following`
            elif p in pending:
                if read is None and p in owned:
                    total = pending[p]
                    total += c
                    pending[p] = total
                else:
                    pending[p] = pending[p] + c
                    owned.add(p)
            elif p.parents and following is None:
                following, ahead = p, c
            else:
                pending[p] = c
                if p.parents:
                    heappush(heap, (-p.sequence_nr, p))
        if release:
            if node.saves:
                node.flags = flags | RELEASED
                if not flags & NAMED:
                    node.args, node.value = None, freed
            else:
                node.release()
        if last and node in last:
            for leaf in last[node]:
                if leaf in pending and leaf is not following:
                    _arrive(leaf, _defined(xp, leaf, pending.pop(leaf)), detours, out, deliver)
        if following is not None:
            if heap and heap[0][0] < -following.sequence_nr:
                pending[following] = ahead
                heappush(heap, (-following.sequence_nr, following))
                following = None
            else:
                g = ahead
    for leaf in [p for p in pending if p in detours and p.origin is not None] if detours else ():
        _arrive(leaf, _defined(xp, leaf, pending.pop(leaf)), detours, out, deliver)
    out.update(pending)
    if stops is EVERYWHERE:
        out = {node: None if g is ZERO else g for node, g in out.items() if g is not NOTHING}
    if stopped:
        for node in upstream(stopped, differentiable=True):
            if not node.parents or node in keep:
                out.setdefault(node, None)
    return out


def pullback_along(xp: Any, path: Sequence[Node], between: Container[Node], seeds: Mapping[Node, Any], read: Read | None = None) -> dict[Node, Any]:
    """A pullback through the nodes of a path, oldest first, which is known already: without hooks, and without freeing anything.

    Cotangents of the nodes that `between` has and the path has not, the inputs, are returned.
    """
    pending: dict[Node, Any] = dict(seeds)
    guarded, written = any([node.chooses for node in path]), board.written
    for node in reversed(path):
        if node not in pending:
            continue
        g = pending.pop(node)
        parents: Sequence[Node | None] = [p if p in between else None for p in node.parents]
        if read is not None:
            y, args = read(node)
        else:
            if node.args is None:
                raise RuntimeError(FREED)
            if node.sequence_nr < written and node.protects:
                verify(node, parents)
            y, args = node.value, node.args  # type: ignore[assignment]
        if type(g) is not float64:
            kind = getattr(g.dtype, "kind", None)  # a Tensor's dtype has none
            if kind == "c" or kind is None and g.dtype.is_complex:
                y, args = _conjugated(xp.conj, y, args)
        for p, c in zip(parents, node.vjp(xp, g, y, args, parents)):
            if p is None or c is None:
                continue
            if guarded:
                c = _chosen(xp, c, g)
            if node.broadcasts and type(c) is not float64 and _bare(c).shape != p.value.shape:
                c = _fitted(xp, c, y, p.value)
            pending[p] = pending[p] + c if p in pending else c
    return pending


def _conjugated(conj: Callable[[Any], Any], y: Any, args: tuple) -> tuple[Any, tuple]:
    """What a rule reads for a complex cotangent: the pullback of a holomorphic op is its transposed map with conjugated coefficients."""
    read = conj(y) if isinstance(y, VALUES) else y
    return read, tuple(conj(a) if isinstance(a, VALUES) else a.conjugate() if type(a) is complex else a for a in args)


def _add(pending: dict[Node, Any], heap: list[tuple[int, Node]], node: Node, g: Any) -> None:
    """Let a cotangent arrive at a node."""
    if node in pending:
        pending[node] = pending[node] + g
    else:
        pending[node] = g
        if node.parents:
            heappush(heap, (-node.sequence_nr, node))


class _Everywhere:
    """Every node, once some cotangents are undefined."""

    def __contains__(self, node: object) -> bool:
        return True


EVERYWHERE = _Everywhere()


def _settled(xp: Any, node: Node, parents: Sequence[Node | None], cotangents: Sequence[Any]) -> Sequence[Any]:
    """The cotangents as hooks see them: with the shapes of the arguments, and zeros where the derivative is zero."""
    out = []
    for p, c in zip(parents, cotangents):
        if p is None or c is None and node.silent:
            c = None
        elif c is None:
            c = xp.zeros_like(p.value)
        elif node.broadcasts and _bare(c).shape != p.value.shape:
            c = _fitted(xp, c, node.value, p.value)
        out.append(c)
    return tuple(out)


def _defined(xp: Any, leaf: Node, g: Any) -> Any:
    """The cotangent of a leaf as its hooks see it."""
    return xp.zeros_like(leaf.value) if g is ZERO else g


def _arrive(leaf: Node, g: Any, detours: Any, out: dict[Node, Any], deliver: Callable[[Node, Any], None] | None) -> None:
    """The complete cotangent of a leaf with hooks."""
    detour = detours[leaf]
    g = detour.arrive(g, deliver is not None)
    if deliver is None:
        out[leaf] = g
        return
    if g is not NOTHING:
        deliver(leaf, g)
    detour.leave((), g)


def _last_consumers(seeds: Sequence[tuple[Node, Any]], wanted: frozenset[Node] | None, detours: Mapping[Node, Any]) -> dict[Node, list[Node]]:
    """The oldest node that uses each leaf with hooks: once it is pulled through, the leaf's cotangent is complete."""
    out: dict[Node, list[Node]] = {}
    leaves = {node for node in detours if not node.parents and node.origin is not None}
    for node in upstream([node for node, _ in seeds], differentiable=True) if leaves else ():
        if wanted is None or node in wanted:
            for p in node.parents:
                if p in leaves:
                    leaves.discard(p)
                    out.setdefault(node, []).append(p)
    return out


def _fitted(xp: Any, c: Any, y: Any, x: Any) -> Any:
    """The cotangent of an argument `x` that was stretched to the shape of `y`, or shared by the members of a batch: summed over these."""
    for level, count in _shared(y, x):
        c = xp.sum(xp.unbatch(c, 0, level, count), (0,), False)
    return c if tuple.__eq__(c.shape, x.shape) else xp.sum_to_size(c, tuple(x.shape))


def _bare(x: Any) -> Any:
    """The value behind Tensors and dual values, which knows its batches."""
    x = x.value if type(x) is Dual else x
    return x._value if isinstance(x, Tensor) else x


def _shared(y: Any, x: Any) -> list[tuple[int, int]]:
    """The levels, with their sizes, at which `y` is batched and `x` is not."""
    y, own, found = _bare(y), levels_of(x), []
    while type(y) is Batched:
        if y.level not in own:
            found.append((y.level, y.count))
        y = y.data
    return found


def _chosen(xp: Any, c: Any, g: Any) -> Any:
    """A cotangent `c` that came of `g`, with 0 where `g` is 0 and the derivative infinite or NaN: what was not chosen leaves no trace.

    Where `g` is differentiated next, its zeros are so by chance, and only what is NaN is replaced.
    """
    if c.shape != g.shape or not (_has_nan(xp, c.value) or _has_nan(xp, c.tangent) if type(c) is Dual else _has_nan(xp, c)):
        return c
    zero = xp.eq(g, 0)
    if type(g) is Dual:
        zero = xp.logical_and(zero, xp.eq(g.tangent, 0))
    elif type(g) is Tensor and g.requires_grad:
        zero = xp.logical_and(zero, xp.isnan(c))
    return xp.where(zero, xp.zeros_like(c), c)


def _has_nan(xp: Any, x: Any) -> bool:
    value = raw(getattr(x, "_value", getattr(x, "value", x)))
    return xp.any(xp.isnan(x)).item() if value.dtype.kind == "O" else np.isnan(value).any()


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
    for node in upstream(roots) if nodes is None else nodes:
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
        t = node.along(carried[0]) if node.along is not None and xp is numeric else node.op.jvp(xp, carried, y, args)
        if t is not None:
            out[node] = t if isinstance(t, tuple) or fills(t, y) else xp.broadcast_to(t, tuple(y.shape))
    return out
