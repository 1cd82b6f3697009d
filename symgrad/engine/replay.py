"""Forward passes over a recorded graph: the pushforward of tangents, and replay of the values in another carrier."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from symgrad.carriers import numeric
from symgrad.carriers.batched import has_shape_of
from symgrad.carriers.guarding import guarded, has_nan
from symgrad.engine.cotangents import Read, in_dtype, mark_as_guarded
from symgrad.engine.saved import read as read_saved
from symgrad.engine.saved import read_traced, unpacking
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.engine.unmoved import Masks, drops, unmoved, unmoved_by, without, zeros_by_factor, zeros_of
from symgrad.errors import FREED
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import PACKED, SELECTED, TRACKED, Leaf, Node
from symgrad.graph.order import upstream
from symgrad.system.errorstate import computed_outside, quietly

FindMasks = Callable[[Mapping[Node, Any]], Masks]


def call_rule(xp: Any, node: Node, tensors: Sequence[Any], args: tuple) -> Any:
    """The node's forward rule on tensors of the carrier, with the node's own parameters."""
    rest = args[len(tensors):]
    return node.op.forward(xp, *((tensors,) if node.op.arity is None else tensors), *rest)


def replay(xp: Any, roots: Sequence[Node], leaf: Callable[[Leaf], Any], constant: Callable[[Any], Any],
           memo: dict[Node, Any] | Any = None) -> dict[Node, Any]:
    """Evaluate the graph in another carrier, where `leaf` and `constant` convert its leaves and constants."""
    values: Any = {} if memo is None else memo
    computed_outside(_replayed(values, xp, roots, leaf, constant))
    return values


def _replayed(values: Any, xp: Any, roots: Sequence[Node], leaf: Callable[[Leaf], Any],
              constant: Callable[[Any], Any]) -> Generator[Callable[[], Any], Any, None]:
    for node in upstream(roots):
        if node in values:
            continue
        if isinstance(node, Leaf):
            values[node] = leaf(node)
        elif type(node) is DerivativeNode:
            values[node] = constant(node.value) if node.parents[0] is None else values[node.parents[0]]
        else:
            call = functools.partial(call_rule, xp, node, arguments(node, values, constant), node.args or ())
            values[node] = (yield call) if node.outside else call()


def arguments(node: Node, values: Mapping[Node, Any], constant: Callable[[Any], Any]) -> tuple:
    """A node's tensor arguments in the carrier the values are in."""
    if node.args is None:
        raise RuntimeError(FREED)
    return tuple(constant(a) if p is None else values[p] for p, a in zip(node.parents, node.args))


def pushforward(xp: Any, roots: Sequence[Node], tangents: Mapping[Node, Any], read: Read | None = None,
                nodes: Sequence[Node] | None = None, selects: bool = False, masks: FindMasks | None = None) -> dict[Node, Any]:
    """Push tangents forward from leaves to the roots; a node without a tangent has a symbolic zero.

    `nodes` are the nodes on the way, oldest first, if they are known; `selects` says that an op behind them selects, and `masks(tangents)` then
    returns the elements that stay at the nodes with tangents; by default none do.
    """
    path = upstream(roots) if nodes is None else nodes
    selects = selects or any([node.selects for node in path])
    with unpacking():
        computed_outside(_pushed(out := dict(tangents), xp, path, read, selects))
        if (selects or roots) and any([has_nan(xp, t) for node in roots or path if (t := out.get(node)) is not None and not isinstance(t, tuple)]):
            moving = masks(tangents) if masks is not None else {node: zeros_of([t]) for node, t in tangents.items() if t is not None}
            computed_outside(_pushed(out := dict(tangents), xp, path, read, selects, quietly(unmoved, path, moving)))
    return out


def _pushed(out: dict[Node, Any], xp: Any, path: Sequence[Node], read: Read | None, selects: bool,
            stays: Mapping[Node, Any] | None = None) -> Generator[Callable[[], Any], Any, None]:
    """Add to the tangents `out` those of all nodes on the way; guarded, if the elements that stay are given. Yields the calls of a user's code."""
    for node in path:
        if node in out or not node.parents or not node.flags & TRACKED:
            continue
        carried = [None if p is None else out.get(p) for p in node.parents]
        if not any([t is not None for t in carried]):
            continue
        if node.args is None:
            raise RuntimeError(FREED)
        if node.op.jvp is None:
            continue
        if node.flags & PACKED:
            y, args = yield functools.partial(read or read_saved, node)
        else:
            y, args = (node.value, node.args) if read is None else read(node)
        jvp: Any = node.op.jvp
        if node.residual_jvp is not None and xp is numeric and stays is None:
            t = node.residual_jvp(carried[0])
        else:
            t = (yield functools.partial(jvp, xp, carried, y, args)) if node.outside else jvp(xp, carried, y, args)
            if stays is not None and t is not None and not isinstance(t, tuple) and node.op.kind != "function":
                call = functools.partial(_guarded_tangent, xp, node, carried, y, args, t, stays, selects)
                t = (yield call) if node.outside else call()
            if selects:
                mark_as_guarded(t)
        if t is not None:
            out[node] = t if isinstance(t, tuple) or has_shape_of(t, y) else xp.broadcast_to(t, tuple(y.shape))


def _guarded_tangent(xp: Any, node: Node, carried: Sequence[Any], y: Any, args: tuple, t: Any, stays: Mapping[Node, Any], selects: bool) -> Any:
    """The tangent `t` of a node, without the products of elements that stay."""
    jvp: Any = node.op.jvp
    if selects and drops(node.op, [x is not None for x in carried]):
        (t,) = guarded(xp, lambda given: [jvp(xp, given, y, args)], carried, [t])
    if not has_nan(xp, t):
        return t
    if node.op.kind == "elementwise":
        terms = []
        for i, moved in enumerate(carried):
            if moved is not None and (term := jvp(xp, [moved if k == i else None for k in range(len(carried))], y, args)) is not None:
                mask = stays.get(node.parents[i])  # type: ignore[arg-type]
                terms.append(without(xp, term, unmoved_by(node, i, stays), zeros_by_factor(xp, node, i, term, args, mask)))
        return functools.reduce(operator.add, terms)
    return without(xp, t, stays.get(node))


def push(outputs: Sequence[Tensor], tangents: Mapping[Node, Tensor | None], create_graph: bool = False,
         nodes: Sequence[Node] | None = None, masks: FindMasks | None = None) -> list[Tensor | None]:
    """The derivatives of `outputs` in the direction of the tangents: Σ ∂y/∂xᵢ · tᵢ, one for each output, of its shape and dtype.

    The result is None for an output that depends on none of the nodes. With `create_graph` it can be differentiated again. It may share memory
    with a tangent. `nodes` are the nodes that the outputs depend on, oldest first, if they are known, and `masks` is that of `pushforward`.
    """
    starts = tangents if create_graph else {node: None if t is None else t._value for node, t in tangents.items()}
    roots = [y._node for y in outputs if y._node is not None]
    selects = any([node.flags & SELECTED for node in roots])
    xp, reading = (traced, read_traced) if create_graph else (numeric, read_saved)
    out = pushforward(xp, roots, starts, reading, nodes, selects, masks)
    found = [None if (t := out.get(y._node)) is None else in_dtype(t, y._value) for y in outputs]  # type: ignore[arg-type]
    return found if create_graph else [None if t is None else wrap(t) for t in found]
