"""`DerivativeNode`: the node of a derivative that can be differentiated again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from symgrad.graph.node import GRADIENT, TRACKED, Node
from symgrad.graph.op import Op

_ZERO = np.float64(0.0)


class DerivativeNode(Node):
    """The identity of a derivative, with edges to the inputs of its differentiation: the derivative of a constant derivative is zero, not an error.

    The first parent is the node of the value (None if it was not recorded), the others are the inputs, whose cotangents are undefined.
    """

    __slots__ = ()

    def __init__(self, value: Any, source: Node | None, inputs: Sequence[Node]):
        super().__init__((), (source, *inputs), value, GRADIENT)
        for p in self.parents:
            self.flags |= 0 if p is None else p.flags & TRACKED

    op = Op.of("derivative", "linear", lambda xp, source, *inputs: source, lambda xp, g, y, args, needs: (g,) + (None,) * (len(needs) - 1),
            lambda xp, tangents, y, args: tangents[0], None, (), (), node_name="ConstantBackward0", public=False, saves=False)
    vjp = staticmethod(op.vjp)  # type: ignore[arg-type]
    broadcasts = saves = selects = False

    @property
    def origin(self) -> Node:
        return self if self.parents[0] is None else self.parents[0].origin

    @property
    def output_nr(self) -> int:
        return 0 if self.parents[0] is None else self.parents[0].output_nr

    def release(self) -> None:
        """Do nothing, as no values are saved."""


DerivativeNode.__name__ = DerivativeNode.__qualname__ = "ConstantBackward0"


def joined_inputs(inputs: Sequence[Node]) -> Sequence[Node]:
    """The parents of derivatives by several inputs: one node that joins the inputs, so that n derivatives have n edges and not n²."""
    return inputs if len(inputs) < 2 else (DerivativeNode(_ZERO, None, inputs),)


def sources(nodes: Iterable[Node | None]) -> set[Node]:
    """The nodes that some nodes were computed from, without the inputs of differentiations."""
    seen, stack = set[Node](), list(nodes)
    while stack:
        node = stack.pop()
        if node is None or node in seen or not node.flags & GRADIENT:
            continue
        seen.add(node)
        stack.extend(node.parents[:1] if type(node) is DerivativeNode else node.parents)
    return seen
