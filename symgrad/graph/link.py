"""Nodes that connect a derivative with the inputs it was taken by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.graph.node import GRADIENT, NAMED, TANGENT, Node
from symgrad.graph.op import Op

__all__ = ["Link", "tied"]

_ZERO = np.float64(0.0)


class Link(Node):
    """The node of a derivative with edges to the inputs it was taken by, so that the derivative of a constant derivative is zero, not an error.

    The first parent is the node of the value (None if it was not recorded), the others are the inputs.
    """

    __slots__ = ()

    def __init__(self, value: Any, source: Node | None, inputs: Sequence[Node]):
        super().__init__((), (source, *inputs), value, GRADIENT)
        for p in self.parents:
            self.flags |= 0 if p is None else p.flags & (NAMED | TANGENT)

    op = Op("link", "linear", lambda xp, source, *inputs: source, lambda xp, g, y, args, needs: (g,) + (None,) * (len(needs) - 1),
            lambda xp, tangents, y, args: tangents[0], None, (), (), "ConstantBackward0", public=False, saves=False)
    vjp = staticmethod(op.vjp)  # type: ignore[arg-type]
    broadcasts = saves = selects = False

    @property
    def origin(self) -> Node:
        return self if self.parents[0] is None else self.parents[0].origin

    def release(self) -> None:
        """A link saves nothing but its value."""


Link.__name__ = Link.__qualname__ = "ConstantBackward0"


def tied(inputs: Sequence[Node]) -> Sequence[Node]:
    """The nodes that derivatives by these inputs link to: one common node, so that n derivatives have n edges and not n²."""
    return inputs if len(inputs) < 2 else (Link(_ZERO, None, inputs),)
