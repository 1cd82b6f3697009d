"""Derivatives tied to the inputs that they were taken by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.graph.node import GRADIENT, NAMED, TANGENT, Node
from symgrad.graph.op import Op

__all__ = ["Link", "tied"]

_ZERO = np.float64(0.0)


class Link(Node):
    """A derivative, tied to what it was taken by: so the derivative of a constant derivative is zero, not an error.

    Its first parent is where the value came from (None if nothing was recorded), the others are the inputs.
    """

    __slots__ = ()

    def __init__(self, value: Any, source: Node | None, inputs: Sequence[Node]):
        super().__init__((), (source, *inputs), value, GRADIENT)
        for p in self.parents:
            self.flags |= 0 if p is None else p.flags & (NAMED | TANGENT)

    op = Op("link", "linear", lambda xp, source, *inputs: source, lambda xp, g, y, args, needs: (g,) + (None,) * (len(needs) - 1),
            lambda xp, tangents, y, args: tangents[0], None, (), (), "ConstantBackward0", public=False, saves=False)
    vjp = staticmethod(op.vjp)  # type: ignore[arg-type]
    broadcasts = saves = chooses = False

    @property
    def origin(self) -> Node:
        return self if self.parents[0] is None else self.parents[0].origin

    def release(self) -> None:
        """Nothing is held here but the value."""


Link.__name__ = Link.__qualname__ = "ConstantBackward0"


def tied(inputs: Sequence[Node]) -> Sequence[Node]:
    """What the derivatives by these inputs are linked to: one node for all of them, so that n derivatives have n edges and not n²."""
    return inputs if len(inputs) < 2 else (Link(_ZERO, None, inputs),)
