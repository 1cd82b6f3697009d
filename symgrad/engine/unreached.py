"""Which elements of a pullback do not reach its outputs, since an op that selects did not select them, or an index did not take them.

A cotangent alone cannot tell the zero of a selection from a derivative that is zero at a point: the cotangents of `u` in `relu(u)` at -1 and in
`u * u` at 0 are both 0, but only the first stays 0 by an infinite slope. The masks are computed where a cotangent is NaN, and not before. They
need the values of what was passed already: a guarded pass holds all nodes but those of elementwise ops, other than products, that do not select.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from heapq import heappop, heappush
from typing import Any

from symgrad.carriers import numeric as xp
from symgrad.carriers.batched import raw
from symgrad.carriers.dual import Dual
from symgrad.carriers.guarding import truth, unselected
from symgrad.engine.cotangents import fitted, receivers, release_node
from symgrad.engine.tensor import Tensor
from symgrad.engine.unmoved import factor, generic, generic_arguments, left_out, unmoved, unmoved_zeros
from symgrad.graph.freed import freed
from symgrad.graph.node import NAMED, PACKED, RELEASED, Node
from symgrad.graph.order import upstream

Masks = dict[Node, Any]
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
