"""The sparsity pattern at the values of a graph: factors that are exactly 0 and branches that are not taken remove entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched
from symgrad.carriers.guarding import not_finite, unselected
from symgrad.carriers.sets import Dependence, broadcast, union
from symgrad.graph.node import Node

__all__ = ["is_steep", "local_dependence"]


def _nonzero_sets(x: Dependence, factor: Any, steep: bool) -> Dependence:
    """The sets of the elements with a nonzero factor; all sets for a batched factor, and in a graph that is steep."""
    return x if steep or type(factor) is Batched else x.masked(np.asarray(factor) != 0)


def is_steep(node: Node) -> bool:
    """Whether an operation has an infinite derivative at its values, or is a length that is 0, whose second derivative is infinite."""
    op, args = node.op, node.args
    if not node.parents or args is None or type(node.value) is Batched:
        return False
    if op.square and not np.all(node.value):
        return True
    return op.kind == "elementwise" and any([slope is not None and bool(not_finite(numeric, slope)) for _, slope in _slopes(node)])


def _slopes(node: Node) -> list[tuple[int, Any]]:
    """The arguments on which the value of an elementwise op depends, and the derivatives by them; None for the derivative 1.

    At the end of a region that an op selects, as relu at 0, the derivative 0 is a convention, and 1 stands in its place.
    """
    op, found = node.op, []
    ones = np.ones(tuple(node.value.shape))
    with np.errstate(all="ignore"):
        for i, p in enumerate(node.parents):
            if p is not None and (callable(op.partials[i]) or op.partials[i] not in (None, 0)):
                needs = tuple([q if k == i else None for k, q in enumerate(node.parents)])
                slope = op.vjp(numeric, ones, node.value, node.args, needs)[i]  # type: ignore[misc]
                if op.selects and type(slope) is not Batched and not np.all(slope):
                    slope = np.where((slope == 0) & np.logical_not(unselected(numeric, op, i, node.value, node.args or ())), 1.0, slope)
                found.append((i, slope))
    return found


def local_dependence(by_kind: Callable[..., Any], steep: bool, weights: dict[Node, Any] | None = None) -> Callable[..., Any]:
    """The function that computes the dependence of elementwise ops at their values.

    `by_kind` computes it for an op without a rule of index sets, and `weights` are the derivatives of the root by the value of every node.
    An argument contributes where its partial derivative is not 0, and interactions count where the root depends on the value. In a graph that is
    `steep` somewhere everything counts, as 0 · ∞ is not 0.
    """
    def locally(node: Node, found: Sequence[Dependence | None], read: Callable[..., Any] | None) -> Dependence | None:
        op, args, count, shape = node.op, node.args, len(node.parents), tuple(node.value.shape)
        assert args is not None
        filled = [a if d is None else broadcast(d, shape) for d, a in zip(found, args)]
        weight = None if weights is None else weights.get(node)
        if weights is None or weight is not None:
            effective = [_nonzero_sets(d, weight, steep) if type(d) is Dependence and weight is not None else d for d in filled]
            if read is None:
                by_kind(next(d for d in found if d is not None).inputs, op, [d if type(d) is Dependence else None for d in effective], shape)
            else:
                read(*effective, *args[count:])
        moving = [(d, slope) for i, slope in _slopes(node) if type(d := filled[i]) is Dependence]
        return union(*[d if slope is None else _nonzero_sets(d, slope, steep) for d, slope in moving]) if moving else None

    return locally
