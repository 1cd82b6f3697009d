"""A node as a function: the gradients of its operands from those of its outputs, as in torch."""

from __future__ import annotations

from typing import Any

from symgrad.engine.cotangents import conjugated, fitted, receivers
from symgrad.engine.method_table import MethodTable
from symgrad.engine.operands import is_complex
from symgrad.engine.saved import read_traced
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.graph.common import CommonNode
from symgrad.graph.node import Leaf, Node


def _call(self: Node, *gradients: Tensor) -> Any:
    """The gradients of the node's operands: a tensor for one operand, else a tuple with None for those that need none.

    Raises TypeError for another number of gradients, and for a leaf, whose gradient `backward` accumulates.
    """
    if isinstance(self, CommonNode):
        if len(gradients) != len(self.outputs):
            raise TypeError(f"{self.name()}: {len(self.outputs)} gradients are needed, not {len(gradients)}")
        found = self.added([(node, _pulled(node, g)) for node, g in [(self.output_node(k), g) for k, g in enumerate(gradients) if g is not None]])
        return found[0] if len(found) == 1 else tuple(found)
    if isinstance(self, Leaf) or self.op.kind == "function":
        raise TypeError(f"{self.name()} is not a function of gradients; call backward or autograd.grad")
    if len(gradients) != 1:
        raise TypeError(f"{self.name()}: one gradient is needed, not {len(gradients)}")
    out = _pulled(self, gradients[0])
    return out[0] if len(out) == 1 else out


def _pulled(self: Node, g: Tensor) -> tuple[Any, ...]:
    """The gradients of the operands of a node with one output."""
    parents = receivers(self, None)
    shape = tuple(self.value.shape) if self.value is not None else None
    if not isinstance(g, Tensor):
        raise TypeError(f"{self.name()}: the gradient must be a Tensor, not {type(g).__name__}")
    y, args = read_traced(self)
    if tuple(g.shape) != shape:
        raise RuntimeError(f"{self.name()}: the gradient has the shape {list(g.shape)}, and the output {list(y.shape)}")
    if is_complex(g):
        y, args = conjugated(traced, self, y, args)
    found = self.vjp(traced, g, y, args, parents)
    return tuple(c if c is None or p is None or c.shape == p.value.shape else fitted(traced, c, self.value, p.value) for c, p in zip(found, parents))


NODE_METHODS = MethodTable(__call__=_call)
