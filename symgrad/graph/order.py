"""The order of a graph."""

from __future__ import annotations

import operator
from collections.abc import Container, Sequence
from typing import Any

from symgrad.graph.node import GRADIENT, Node


def reached(roots: Sequence[Node | None], differentiable: bool = False, stop: Container[Node] = ()) -> set[Node]:
    """Every node the roots depend on, without recursion; see `upstream`."""
    seen: set[Any] = {None}
    stack: list[Any] = [*roots]
    pop, add = stack.pop, seen.add
    while stack:
        node = pop()
        while node not in seen and (not differentiable or node.flags & GRADIENT) and not (stop and node in stop):
            add(node)
            parents = node.parents
            if len(parents) != 1:
                stack += parents
                break
            (node,) = parents
    seen.discard(None)
    return seen


def upstream(roots: Sequence[Node | None], differentiable: bool = False, stop: Container[Node] = ()) -> list[Node]:
    """Every node the roots depend on, oldest first. `differentiable` keeps to edges that carry a gradient.

    What nodes in `stop` depend on is left out, and they too.
    """
    return sorted(reached(roots, differentiable, stop), key=_sequence)


_sequence = operator.attrgetter("sequence_nr")
