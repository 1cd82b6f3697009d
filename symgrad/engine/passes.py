"""The passes over a recorded graph: pullback (reverse), pushforward (forward) and replay (again, in another carrier).

None of them recurses, and none of them knows what it carries: the carrier `xp` and a reading of the nodes say that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched, fills, levels_of
from symgrad.carriers.dual import Dual
from symgrad.carriers.guarding import guarded_product, has_nan
from symgrad.engine.hooks import SYMBOLIC_ZERO, UNDEFINED
from symgrad.engine.saved import verify
from symgrad.engine.tensor import Tensor
from symgrad.graph.node import (
    FREED,
    GRADIENT,
    HOOKED,
    NAMED,
    RELEASED,
    SHADOW,
    TANGENT,
    TRACKED,
    Leaf,
    Link,
    Node,
    all_threads,
    choosing,
    freed,
    upstream,
)

__all__ = ["arguments", "call_rule", "pullback", "pushforward", "replay"]

VALUES = (np.ndarray, np.generic, Batched, Tensor, Dual)
MARKED = 128  # the flag of the mark at which the clean loop stops
UNUSUAL = NAMED | TANGENT | SHADOW | RELEASED | MARKED  # flags of nodes about which the clean loop must ask more
float64, FLOAT64 = np.float64, np.dtype(np.float64)
Read = Callable[[Node], tuple[Any, tuple]]
Cotangents = dict[Node, Any]
Heap = list[tuple[float, Node]]
_mark = Node((), (), None, MARKED)
MARK = -math.inf, _mark  # an entry of a heap that comes before every node


def pullback(xp: Any, seeds: Iterable[tuple[Node, Any]], read: Read | None = None, wanted: Collection[Node] | None = None,
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
    heap: Heap = [MARK] if instrumented or any([_goes_on(node, wanted) for node in keep]) else []
    zeros: list[Node] = []  # the nodes that were reached with derivative zero, where no hook is to see that
    for node, g in seeds:
        _send(pending, heap, node, g)
    guarded = _pull(xp, pending, heap, zeros, read, wanted, ends, release, hooks is not None)
    if heap:
        _pull_instrumented(xp, pending, heap, read, wanted, keep, ends, release, guarded, hooks, deliver)
    for node in upstream(zeros, differentiable=True) if zeros else ():
        if not node.parents or node in keep:
            pending.setdefault(node, None)
    return pending


def _pull(xp: Any, pending: Cotangents, heap: Heap, zeros: list[Node], read: Read | None, wanted: Collection[Node] | None,
          ends: Container[Node], release: bool, hooked: bool) -> bool:
    """The pullback where nobody looks on. `pending` are the cotangents of the nodes it has come to, of which those that go on are in the heap.

    It stops, with the rest in the heap, at a node with hooks, if there can be any (`hooked`), and at an undefined gradient. Returns whether an op
    that chooses was passed.
    """
    following = None  # a parent of the last node that is the newest of all, so that it need not go through the heap
    owned: set[Node] = set()  # whose cotangent is a sum made here, which nobody else refers to
    written, unusual, stop = all_threads.written, UNUSUAL | HOOKED * hooked, MARKED | HOOKED * hooked
    guarded = wanted is not None and any([node.chooses for node in wanted])
    while heap or following is not None:
        if following is None:
            node = heappop(heap)[1]
            g = pending.pop(node, None)
        else:
            node, following = following, None
        flags, parents = node.flags, node.parents
        if wanted is not None or flags & unusual:
            if flags & stop:
                heappush(heap, MARK)
                if node is not _mark:
                    _send(pending, heap, node, g)
                return guarded
            parents = _receivers(node, wanted) if wanted is None else tuple([p if p in wanted else None for p in parents])
            if not any(parents) or ends and node in ends:
                pending[node] = g
                continue
            if flags & RELEASED and read is None:
                raise RuntimeError(FREED)
        if written and node.protects and node.sequence_nr < written and not flags & RELEASED:
            verify(node, parents)
        y, args = (node.value, node.args) if read is None else read(node)
        if type(g) is not float64 and (g._value if type(g) is Tensor else g).dtype is not FLOAT64 and _is_complex(g):
            y, args = _conjugated(xp, y, args)
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
                c = _chosen(xp, c, g)
            if broadcasts and type(c) is not float64 and (c._value if type(c) is Tensor else c).shape != p.value.shape:
                c = _fitted(xp, c, y, p.value)
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
            if node.saves and not flags & NAMED:  # as `_release` does
                node.flags, node.args, node.value = flags | RELEASED, None, freed
            else:
                _release(node)
        if following is not None:
            if heap and heap[0][0] < -following.sequence_nr:
                pending[following] = ahead
                heappush(heap, (-following.sequence_nr, following))
                following = None
            else:
                g = ahead
    return guarded


def _pull_instrumented(xp: Any, pending: Cotangents, heap: Heap, read: Read | None, wanted: Collection[Node] | None, keep: frozenset[Node],
                       ends: Container[Node], release: bool, guarded: bool, hooks: Callable[[Node], Any] | None,
                       deliver: Callable[[Node, Any], None] | None) -> None:
    """The rest of a pullback with hooks, undefined gradients, symbolic zeros and cotangents that are kept on the way.

    Nothing is added in place, for a hook may hold what it was shown.
    """
    out: Cotangents = {}

    def arrive(leaf: Node) -> None:
        """Let the complete cotangent of a leaf pass its hooks."""
        g = pending.pop(leaf)
        own = hooks(leaf)  # type: ignore[misc]
        g = own.arrive(xp.zeros_like(leaf.value) if g is SYMBOLIC_ZERO else g, deliver is not None)
        if deliver is None:
            out[leaf] = g
            return
        if g is not UNDEFINED:
            deliver(leaf, g)
        own.leave((), g)

    last = _last_consumers(pending, wanted) if hooks is not None else {}
    for leaf in last.pop(_mark, ()):
        arrive(leaf)
    while heap:
        node = heappop(heap)[1]
        if node is _mark:
            continue
        g = pending.pop(node)
        parents = () if node in ends else _receivers(node, wanted)
        own = None if hooks is None else hooks(node)
        needed = any(parents)
        if g is SYMBOLIC_ZERO and (own is not None or node in keep or node.silent or node.outlet is not None):
            g = xp.zeros_like(node.value)
        if needed and node in keep:
            out[node] = g
        if own is not None:
            g = own.arrive(g, needed)
        if not needed:
            out[node] = g
            continue
        absent = g is UNDEFINED or g is SYMBOLIC_ZERO
        if absent and node.silent:
            g, absent = node.undefined(), False
        found: Sequence[Any] = (None,) * len(parents)
        if not absent:
            if node.flags & RELEASED and read is None:
                raise RuntimeError(FREED)
            if node.protects and node.sequence_nr < all_threads.written and not node.flags & RELEASED:
                verify(node, parents)
            y, args = (node.value, node.args) if read is None else read(node)
            if _is_complex(g):
                y, args = _conjugated(xp, y, args)
            guarded = guarded or node.chooses
            found = _settled(xp, node, parents, node.vjp(xp, g, y, args, parents), own is not None)
        if own is not None:
            found = own.leave(found, None if absent else g)
        for p, c in zip(parents, found):
            if p is not None:
                if c is None:
                    c = g if absent else UNDEFINED if node.silent or own is not None else SYMBOLIC_ZERO
                _send(pending, heap, p, _chosen(xp, c, g) if guarded and not absent and c is not UNDEFINED else c)
        if release and not absent:
            _release(node)
        for leaf in last.get(node, ()):
            if leaf in pending:
                arrive(leaf)
    for leaf in [p for p in pending if _hooked_leaf(p)] if hooks is not None else ():
        arrive(leaf)
    pending.update(out)
    for node, g in list(pending.items()):
        if g is UNDEFINED:
            del pending[node]
        elif g is SYMBOLIC_ZERO:
            pending[node] = None


def _goes_on(node: Node, wanted: Container[Node | None] | None) -> bool:
    """Whether a cotangent that is kept at a node goes on to its parents."""
    return bool(node.parents) if wanted is None else any([p in wanted for p in node.parents])


def _receivers(node: Node, wanted: Container[Node | None] | None) -> tuple[Node | None, ...]:
    """The parents that get a cotangent from a node, with None in place of the others."""
    if wanted is not None:
        return tuple([p if p in wanted else None for p in node.parents])
    return tuple([p if p is not None and p.flags & GRADIENT else None for p in node.parents]) if node.flags & GRADIENT else ()


def _send(pending: Cotangents, heap: Heap, node: Node, g: Any) -> None:
    """Let a cotangent arrive at a node."""
    if node not in pending:
        pending[node] = g
        if node.parents:
            heappush(heap, (-node.sequence_nr, node))
        elif node.flags & HOOKED:
            heappush(heap, MARK)
    elif g is SYMBOLIC_ZERO:
        if pending[node] is UNDEFINED:
            pending[node] = g
    elif g is not UNDEFINED:
        pending[node] = pending[node] + g


def _undefined(pending: Cotangents, heap: Heap, zeros: list[Node], node: Node, p: Node, hooked: bool) -> None:
    """A node has no cotangent for its parent `p`: the derivative is zero, or the gradient is undefined."""
    if node.silent or hooked and (p.parents or p.flags & HOOKED):
        _send(pending, heap, p, UNDEFINED if node.silent else SYMBOLIC_ZERO)
        heappush(heap, MARK)
    else:
        zeros.append(p)


def _is_complex(g: Any) -> bool:
    dtype = (g._value if isinstance(g, Tensor) else g).dtype
    return dtype.kind == "c" if isinstance(dtype, np.dtype) else getattr(dtype, "is_complex", False)


def _conjugated(xp: Any, y: Any, args: Any) -> tuple[Any, tuple]:
    """What a rule reads for a complex cotangent: the pullback of a holomorphic op is its transposed map with conjugated coefficients."""
    read = xp.conj(y) if isinstance(y, VALUES) else y
    return read, tuple([xp.conj(a) if isinstance(a, VALUES) else a.conjugate() if type(a) is complex else a for a in args])


def _release(node: Node) -> None:
    """Let a node forget what its pullback has used up."""
    if not node.saves:
        node.release()
        return
    node.flags |= RELEASED
    if not node.flags & NAMED:
        node.args, node.value = None, freed


def _settled(xp: Any, node: Node, parents: Sequence[Node | None], cotangents: Sequence[Any], hooked: bool) -> Sequence[Any]:
    """The cotangents with the shapes of the arguments; for hooks, with zeros where the derivative is zero."""
    out = []
    for p, c in zip(parents, cotangents):
        if p is None or c is None and (node.silent or not hooked):
            c = None
        elif c is None:
            c = xp.zeros_like(p.value)
        elif node.broadcasts and _bare(c).shape != p.value.shape:
            c = _fitted(xp, c, node.value, p.value)
        out.append(c)
    return tuple(out)


def _hooked_leaf(node: Node) -> bool:
    return bool(node.flags & HOOKED) and not node.parents and node.origin is not None


def _last_consumers(pending: Cotangents, wanted: Container[Node] | None) -> dict[Node, list[Node]]:
    """The leaves with hooks that each node is the last to give a cotangent to; those that have theirs already are with the mark."""
    seen, out = set[Any](), dict[Node, list[Node]]()
    for node in upstream(list(pending), differentiable=True):  # oldest first
        for p in node.parents if wanted is None or node in wanted else ():
            if p is not None and p not in seen and _hooked_leaf(p):
                seen.add(p)
                out.setdefault(node, []).append(p)
    out[_mark] = [p for p in pending if p not in seen and _hooked_leaf(p)]
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
    """A cotangent `c` that came of `g`, with 0 where `g` is 0 and the derivative infinite or NaN.

    Where `g` is differentiated next, its zeros are so by chance, and only what is NaN is replaced.
    """
    _mark_as_choosing(c)
    if c.shape != g.shape or not (has_nan(xp, c.value) or has_nan(xp, c.tangent) if type(c) is Dual else has_nan(xp, c)):
        return c
    zero = xp.eq(g, 0)
    if type(g) is Dual:
        zero = xp.logical_and(zero, xp.eq(g.tangent, 0))
    elif type(g) is Tensor and g.requires_grad:
        zero = xp.logical_and(zero, xp.isnan(c))
    return xp.where(zero, xp.zeros_like(c), c)


def _mark_as_choosing(x: Any) -> None:
    """Let passes over a value that a guarded pass has recorded be guarded, too: to any order, and in both directions."""
    if type(x) is Dual:
        _mark_as_choosing(x.value)
        _mark_as_choosing(x.tangent)
    elif type(x) is Tensor and x._node is not None:
        node = x._node
        if getattr(getattr(type(node), "op", None), "kind", None) == "elementwise":
            node.__class__ = choosing(type(node))


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
    _mark_as_choosing(t)
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
