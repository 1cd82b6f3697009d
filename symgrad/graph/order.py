"""The order of a graph."""

from __future__ import annotations

import operator
from collections.abc import Container, Sequence
from typing import Any

from symgrad.graph.node import GRADIENT, Node

__all__ = ["upstream"]


def upstream(roots: Sequence[Node | None], differentiable: bool = False, stop: Container[Node] = ()) -> list[Node]:
    """Every node the roots depend on, oldest first; without recursion. `differentiable` keeps to edges that carry a gradient.

    What nodes in `stop` depend on is left out, and they too.
    """
    seen: set[Any] = {None}
    stack: list[Any] = [*roots]
    while stack:
        node = stack.pop()
        if node in seen or differentiable and not node.flags & GRADIENT or stop and node in stop:
            continue
        seen.add(node)
        stack += node.parents
    seen.discard(None)
    return sorted(seen, key=_sequence)


_sequence = operator.attrgetter("sequence_nr")
