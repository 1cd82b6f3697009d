"""The sparsity pattern at the values of a graph: factors that are exactly 0 and branches that are not taken remove entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched
from symgrad.carriers.guarding import not_finite
from symgrad.carriers.sets import Dependence, broadcast, union
from symgrad.graph.node import Node

__all__ = ["local_dependence"]


def _nonzero_sets(x: Dependence, factor: Any, others: Any) -> Dependence:
    """The sets of the elements with a nonzero factor and of others; all sets for a batched factor."""
    return x if type(factor) is Batched else x.masked((np.asarray(factor) != 0) | others)


def local_dependence(by_kind: Callable[..., Any], weights: dict[Node, Any] | None = None) -> Callable[..., Any]:
    """The function that computes the dependence of elementwise ops at their values.

    `by_kind` computes it for an op without a rule of index sets, and `weights` are the derivatives of the root by the value of every node.
    An argument contributes where its partial derivative is not 0, and interactions count where the root depends on the value. What has an infinite
    derivative counts, too, by any factors, as 0 · ∞ is not 0; so does a length that is 0, whose second derivative is infinite.
    """
    steep = False  # whether an older node had an infinite derivative

    def locally(node: Node, found: Sequence[Dependence | None], read: Callable[..., Any] | None) -> Dependence | None:
        nonlocal steep
        op, args, count, shape = node.op, node.args, len(node.parents), tuple(node.value.shape)
        assert args is not None
        filled = [a if d is None else broadcast(d, shape) for d, a in zip(found, args)]
        weight = None if weights is None else weights.get(node)
        ignored = weights is not None and weight is None
        ones, moving = np.ones(shape), list[tuple[Dependence, Any]]()
        with np.errstate(all="ignore"):
            for i, d in enumerate(filled):
                if type(d) is Dependence and (callable(op.partials[i]) or op.partials[i] not in (None, 0)):
                    needs = tuple([p if k == i else None for k, p in enumerate(node.parents)])
                    moving.append((d, op.vjp(numeric, ones, node.value, args, needs)[i]))  # type: ignore[misc]
        steep = steep or any([not_finite(numeric, slope) for _, slope in moving if slope is not None])
        kinked = True if steep else np.asarray(node.value) == 0 if op.square and type(node.value) is not Batched else False
        if not ignored:
            effective = [_nonzero_sets(d, weight, kinked) if type(d) is Dependence and weight is not None else d for d in filled]
            if read is None:
                by_kind(next(d for d in found if d is not None).inputs, op, [d if type(d) is Dependence else None for d in effective], shape)
            else:
                read(*effective, *args[count:])
        return union(*[d if slope is None else _nonzero_sets(d, slope, kinked) for d, slope in moving]) if moving else None

    return locally
