"""Which elements of a recorded computation do not depend on what moves, and which of a pullback do not reach its outputs, as an op that selects did
not select them, or an index did not take them.

A tangent or a cotangent alone cannot tell the zero of a selection from a derivative that is zero at a point: those of `relu(x)` at -1 and of `x * x`
at 0 are both 0, but only the first stays 0 under a square root, or by an infinite slope. The masks are computed where one is NaN, and not before.
For a pullback they need the values of what was passed already: a guarded pass holds all nodes but those of elementwise ops, other than products, that
do not select.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from symgrad.carriers import numeric as xp
from symgrad.carriers.batched import raw
from symgrad.carriers.dual import Dual
from symgrad.carriers.guarding import truth, unselected
from symgrad.engine.cotangents import fitted, receivers, release_node
from symgrad.engine.saved import read as read_saved
from symgrad.engine.saved import saved_by
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.freed import freed
from symgrad.graph.node import NAMED, PACKED, RELEASED, Node
from symgrad.graph.op import Op
from symgrad.graph.order import upstream
from symgrad.graph.regions import values_on_regions
from symgrad.ops.rules import steep
from symgrad.system.restoring import restored

Masks = dict[Node, Any]


def unmoved(path: Iterable[Node], moving: Mapping[Node, Any]) -> Masks:
    """For each node that depends on the moving ones, given with their masks, the mask of its elements that stay, None where none does.

    `path` is oldest first.
    """
    masks: Masks = dict(moving)
    for node in path:
        constant = type(node) is DerivativeNode  # but for its first parent
        if node not in masks and any([p in masks for p in (node.parents[:1] if constant else node.parents)]):
            masks[node] = masks[node.parents[0]] if constant else _mask(node, masks)  # type: ignore[index]
    return masks


def unmoved_behind(nodes: Iterable[Node], dropped: Mapping[Node, Any], kept: Container[Node], tangent_of: Callable[[Node], Tensor | None],
                   inputs: type[Node]) -> Masks:
    """The masks of nodes with arguments and parents that were dropped and are given here, or were kept; other nodes move if they have a tangent.

    Only of `inputs` a tangent that is zero says that an element does not move.
    """
    reached, below = dict[Any, Any](), list[Any](nodes)
    while below:
        if (node := below.pop()) is not None and node not in reached:
            reached[node] = found = (node.args, node.parents) if node in kept else dropped.get(node)
            below += found[1] if found else ()
    path = sorted(filter(reached.get, reached), key=operator.attrgetter("sequence_nr"))

    def restore() -> None:
        for node in path:
            if node not in kept:
                node.args = node.parents = ()

    with restored(restore):
        for node in path:
            node.args, node.parents = reached[node]
        ends = {p: t for p, found in reached.items() if not found and (t := tangent_of(p)) is not None}
        return unmoved(path, {p: zeros_of([t]) if type(p) is inputs else None for p, t in ends.items()})


def zeros_of(tangents: Sequence[Any]) -> Any:
    """The mask of the elements that do not move along tangents of any orders, which are all 0 there; None if there are none, or for a tuple."""
    if not tangents or any([isinstance(t, tuple) for t in tangents]):
        return None
    mask = functools.reduce(xp.logical_and, [xp.eq(t._value if isinstance(t, Tensor) else t, 0) for t in tangents])
    return mask if truth(mask).any() else None


def _mask(node: Node, masks: Mapping[Node, Any]) -> Any:
    """The mask of one node, from those of its arguments."""
    op, parents = node.op, node.parents
    known = [masks.get(p) for p in parents]  # type: ignore[arg-type]
    if op.jvp is None or op.kind == "function":
        return None
    if op.kind == "elementwise":
        found = [unmoved_by(node, i, masks) for i, p in enumerate(parents) if p in masks]
        return None if any([m is None for m in found]) else functools.reduce(xp.logical_and, found)
    if op.kind == "primitive" and not op.selects and all([m is None for m in known]):
        return None
    y, args = read_saved(node)
    if isinstance(y, tuple):
        return None
    moves = [generic(a, 0, m) if p in masks else None for p, m, a in zip(parents, known, args)]
    if op.kind != "linear" and not op.selects:
        try:
            y, args = generic_arguments(node, y, args)
        except (ArithmeticError, ValueError, TypeError, RuntimeError):  # other numbers than these are in its domain
            return None
    t = op.jvp(xp, moves, y, args)
    return None if isinstance(t, tuple) else xp.eq(xp.broadcast_to(t, tuple(node.value.shape)), 0)


def generic_arguments(node: Node, y: Any, args: tuple) -> tuple[Any, tuple]:
    """The value and the arguments of a node with generic numbers, as a derivative that is zero at a point is not a selection; constants stay."""
    op, count = node.op, len(node.parents)
    given = tuple([_generic_argument(p, a, i) for i, (p, a) in enumerate(zip(node.parents, args))])
    if op.kind == "primitive":
        y = op.forward(xp, *((given,) if op.arity is None else given), *args[count:])
    return y, given + args[count:]


def _generic_argument(p: Node | None, a: Any, i: int) -> Any:
    if getattr(getattr(a, "dtype", None), "kind", "") not in "fc":
        return a
    return generic(a, i + 1) if p is not None else xp.where(xp.isfinite(a), a, generic(a, i + 1))


def unmoved_by(node: Node, i: int, masks: Mapping[Node, Any]) -> Any:
    """Where argument i of an elementwise op does not move the value, with the masks of nodes that move; None if it does so everywhere."""
    op, mask = node.op, masks.get(node.parents[i])  # type: ignore[arg-type]
    zero = None
    if op.slope or op.selects and callable(op.partials[i]):
        zero = unselected(xp, op, i, *read_saved(node))
    elif not op.partials[i]:
        constants = _values_on_regions(op)
        zero = (xp.eq(xp.zeros_like(node.value), 0) if constants is None else
                functools.reduce(xp.logical_or, [xp.eq(node.value, c) for c in constants]))
    elif op.name == "mul" and node.args and not node.flags & (RELEASED | PACKED):  # the derivatives of an op that selects are factors
        zero = left_out(node, unmoved_zeros(*factor(node, 1 - i, node.args), masks))
    return zero if mask is None else mask if zero is None else xp.logical_or(mask, zero)


@functools.cache
def _values_on_regions(op: Op) -> frozenset[float] | None:
    return values_on_regions(op.forward, len(op.partials)) or None


def factor(node: Node, i: int, args: tuple) -> tuple[Node | None, Any]:
    """The node and the value of factor i of a product."""
    return node.parents[i] if i < len(node.parents) else None, args[i] if i < len(args) else None


def left_out(node: Node, zero: Any) -> Any:
    """Where a factor of a product that does not move is 0, but for 0 · ∞: there the zero is that of a kink, and selects nothing."""
    return zero if zero is None else xp.logical_and(zero, xp.logical_not(xp.isnan(node.value)))


def unmoved_zeros(p: Node | None, x: Any, masks: Mapping[Node, Any]) -> Any:
    """Where a factor, the value of a node, is 0 and does not move; None if it does so nowhere."""
    if not hasattr(getattr(x, "dtype", None), "kind") or p in masks and masks[p] is None:  # type: ignore[index]
        return None
    zero = xp.eq(x, 0)
    return xp.logical_and(masks[p], zero) if p in masks else zero  # type: ignore[index]


def drops(op: Op, moves: Sequence[bool]) -> bool:
    """Whether a derivative by an argument that is 0 means that the argument was not selected, or not taken, and not only that it is 0 at this point.

    That is so if the derivatives by the arguments that move are constants. For elementwise ops the masks say so.
    """
    if op.kind == "elementwise":
        return False
    if op.kind == "linear" or op.selects:
        return True
    if op.arity is None:
        return op.kind == "multilinear" and sum(moves) == 1
    moving, saved = {"result", *itertools.compress(op.argument_names, moves)}, saved_by(op)
    return saved is not None and all([moving.isdisjoint(names) for names in itertools.compress(saved, moves)])


def without(carrier: Any, t: Any, mask: Any, zeros: Any = None) -> Any:
    """A tangent that is 0 in place of NaN where a mask is true; its other elements there are 0, too, and may depend on what another pass moves.

    `zeros` are zeros other than constants.
    """
    if mask is None:
        return t
    zeros = carrier.zeros_like(t) if zeros is None else zeros
    return carrier.where(carrier.logical_and(wrap(mask) if carrier is not xp else mask, carrier.isnan(t)), zeros, t)


def zeros_by_factor(carrier: Any, node: Node, i: int, t: Any, args: Sequence[Any], mask: Any) -> Any:
    """What a factor 0 makes of an infinite tangent `t` of argument i of a product, along which the factor does not move.

    By the factor, which another pass may move, the derivative is infinite; not so where the argument does not move, which `mask` says. None for
    constants.
    """
    if carrier is xp or node.op.name != "mul" or node.parents[1 - i] is None:
        return None
    zero = carrier.eq(args[1 - i], 0)
    if mask is not None:
        zero = carrier.logical_and(zero, wrap(xp.logical_not(mask)))
    return carrier.where(zero, steep(carrier, args[1 - i], zero), carrier.zeros_like(t))


def plus_zeros_by_factors(carrier: Any, node: Node, moving: Sequence[int], found: Any, args: Sequence[Any], masks: Mapping[Node, Any]) -> Any:
    """A tangent, or a coefficient of a series, without the products by factors 0 that do not move, with their derivatives by these factors."""
    for i in moving:
        mask = masks.get(node.parents[i])  # type: ignore[arg-type]
        zeros = None if found is None else zeros_by_factor(carrier, node, i, found, args, mask)
        found = found if zeros is None else found + zeros
    return found


def stilled(carrier: Any, t: Any, mask: Any) -> Any:
    """A tangent that is 0 where a mask is true."""
    return t if t is None or mask is None else carrier.where(wrap(mask) if carrier is not xp else mask, carrier.zeros_like(t), t)


def generic(x: Any, k: int, mask: Any = None) -> Any:
    """Different positive numbers of the shape of `x`, and 0 where the mask is true; no simple relation holds between them."""
    if not hasattr(x, "dtype"):
        return x
    kind = getattr(x.dtype, "kind", "c" if getattr(x.dtype, "is_complex", False) else "f")  # a dtype of many-digit numbers has none
    ones = xp.ones_like(x) if kind in "fc" else xp.ones_like(x) * 1.0  # the tangent of integers is not used
    places = xp.reshape(xp.cumsum(xp.reshape(ones, (-1,)), 0), tuple(x.shape))
    out = xp.sqrt(places + (0.37 * k + 0.41))
    if kind == "c":
        out = out * (1 + 0.7j)  # both parts move
    return out if mask is None else xp.where(mask, xp.zeros_like(out), out)


UNKNOWN = ArithmeticError, ValueError, TypeError, RuntimeError, LookupError, AttributeError  # of a rule that is called with other numbers


class Passed(list[Node]):
    """The nodes that a guarded pass holds until its end, and what else it takes to tell the elements that do not reach its outputs."""

    seeds: Sequence[tuple[Node, Any]] = ()
    wanted: set[Node] | None = None
    ends: Container[Node] = ()
    fits: dict[tuple[Node, Node], tuple[Any, Any]] | None = None  # the values of nodes and parents that were broadcast
    masks: Masks | None = None
    heap: list[tuple[int, Node]]

    def note_fit(self, node: Node, p: Node, y: Any) -> None:
        """Note the value of a node that is about to be released, by which a parent was broadcast."""
        if self.fits is None:
            self.fits = {}
        self.fits[node, p] = y, p.value

    def release(self) -> None:
        """Release the nodes at the end of the pass."""
        for node in self:
            if node.saves and not node.flags & NAMED:
                node.flags, node.args, node.value = node.flags | RELEASED, None, freed
            else:
                release_node(node)
        self.clear()

    def unreached(self, node: Node, i: int | None = None) -> Any:
        """The mask of the elements of a node of which no newer node takes a derivative, or of those of its argument i of which it takes none but
        for these; None if there are none."""
        masks = self.masks
        if masks is None:
            masks, self.heap = {}, []
            self.masks = masks
            for seed, g in self.seeds:
                self._send(seed, _zeros(g))
        while self.heap and -self.heap[0][0] > node.sequence_nr:
            newest = heappop(self.heap)[1]
            parents = () if newest in self.ends else receivers(newest, self.wanted)
            for p, mask in _masks(newest, masks[newest], parents):
                self._send(p, self._fit(newest, p, mask))
        mask = masks.get(node)
        if i is not None and (mask is not None or node.op.name == "mul"):
            parent: Any = node.parents[i]
            mask = dict(_masks(node, mask, [p if k == i else None for k, p in enumerate(node.parents)])).get(parent)
        return mask if mask is not None and truth(mask).any() else None

    def _send(self, p: Node, mask: Any) -> None:
        masks: Masks = self.masks  # type: ignore[assignment]
        if p in masks:
            mask = None if mask is None or masks[p] is None else xp.logical_and(masks[p], mask)
        elif p.parents:
            heappush(self.heap, (-p.sequence_nr, p))
        masks[p] = mask

    def _fit(self, node: Node, p: Node, mask: Any) -> Any:
        """The mask of a parent of a node, where what was broadcast stays if all of its copies do."""
        if mask is None or not node.broadcasts:
            return mask
        y, x = (self.fits or {}).get((node, p)) or (node.value, p.value)
        if x is freed or y is freed:  # their shapes are equal
            return mask
        moving = xp.where(mask, 0.0, 1.0)
        return xp.eq(fitted(xp, moving, y, x), 0)


def _zeros(g: Any) -> Any:
    """The mask of the zeros of a seed."""
    if isinstance(g, Dual):
        zeros = _zeros(g.value)
        return zeros if zeros is None or g.tangent is None else xp.logical_and(zeros, xp.eq(_value(g.tangent), 0))
    value = _value(g)
    kind = getattr(raw(value).dtype, "kind", "O") if getattr(value, "shape", None) is not None else "O"  # a dtype of many-digit numbers has none
    return xp.eq(value, 0) if kind in "biufc" else None


def _value(x: Any) -> Any:
    return x._value if isinstance(x, Tensor) else x


def _masks(node: Node, mask: Any, parents: Sequence[Node | None]) -> list[tuple[Node, Any]]:
    """The parents of a node that get a cotangent from it, with the masks of these cotangents, None for one that may be anything."""
    op = node.op
    unknown = [(p, None) for p in parents if p is not None]
    if not unknown or op.vjp is None or op.kind == "function" or node.flags & PACKED:
        return unknown
    try:
        if op.kind == "elementwise":
            return [(p, _mask_by_partial(node, i, mask)) for i, p in enumerate(parents) if p is not None and op.partials[i] not in (None, 0)]
        return _masks_by_rule(node, mask, parents, unknown)
    except UNKNOWN:
        return unknown


def _mask_by_partial(node: Node, i: int, mask: Any) -> Any:
    """The mask of argument i of an elementwise op, in the shape of the value, to which a slope or a factor may be broadcast."""
    op, args = node.op, node.args
    if not callable(op.partials[i]) or args is None:
        return mask
    if op.selects:
        zero = unselected(xp, op, i, node.value, args)
    elif op.name == "mul":
        try:
            zero = left_out(node, _constant_zeros(*factor(node, 1 - i, args)))
        except UNKNOWN:  # released
            return mask
    else:
        return mask
    return mask if zero is None else xp.logical_or(xp.ne(xp.zeros_like(node.value), 0) if mask is None else mask, zero)


def _constant_zeros(p: Node | None, x: Any) -> Any:
    """The mask of the elements of a factor that are 0 and depend on nothing, as the derivatives of an op that selects."""
    path = upstream([p])
    return unmoved_zeros(p, x, unmoved(path, {node: None for node in path if not node.parents}))


def _masks_by_rule(node: Node, mask: Any, parents: Sequence[Node | None], unknown: list[tuple[Node, Any]]) -> list[tuple[Node, Any]]:
    """The masks of the arguments of an op that is not elementwise, by its rule for generic numbers."""
    op, y, args = node.op, node.value, node.args
    fixed = op.kind == "linear" or op.selects
    constant = op.kind == "multilinear" and None in node.parents
    if args is None or isinstance(y, tuple) or mask is None and not fixed and not constant:
        return unknown
    if not fixed:
        y, args = generic_arguments(node, y, args)
    g = generic(xp.ones_like(mask if mask is not None else y) * 1.0, 0, mask)
    found = node.vjp(xp, g, y, args, parents)
    known = [(p, c) for p, c in zip(parents, found) if p is not None and c is not None]
    return [(p, xp.eq(c, 0) if hasattr(c, "dtype") and c.shape is not None else None) for p, c in known]
