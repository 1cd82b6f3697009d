"""Nodes with several outputs: each output has its own node, whose pullback wraps the cotangent in a bundle for the common node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symgrad.graph.common import Bundle
from symgrad.graph.node import HOOKED, TRACKED, Node, make_node
from symgrad.graph.op import Op


class OutputValues(tuple):
    """The values of a node with several outputs; None for outputs that are not tensors."""

    dtype, shape, ndim = Bundle.dtype, None, None


def _bundled(xp: Any, g: Any, y: Any, args: tuple, needs: Sequence) -> tuple:
    k, count = args[-2:]
    return (Bundle(g if i == k else None for i in range(count)),)


OUTPUT = Op.of("output", "primitive", lambda xp, values, k, count: values[k], _bundled, lambda xp, tangents, y, args: tangents[0][args[-2]], 1,
            ("values",), (), node_name="Output", public=False, saves=False)


class OutputNode(Node):
    """One output of a node with several. Its public face is the common node and the output number."""

    __slots__ = ()
    op, vjp = OUTPUT, staticmethod(_bundled)
    broadcasts = saves = selects = none_is_undefined = False

    def __init__(self, node: Any, k: int):
        super().__init__((None, k, len(node.value)), (node,), node.value[k], node.flags & ~HOOKED)

    def short_name(self) -> str:
        return self.origin.short_name()

    output_of = property(lambda self: (self.parents[0], self.args[1]))  # derived, for a copy has another parent
    output_index = property(lambda self: self.args[1])

    def release(self) -> None:
        """Do nothing: the node saves no arguments."""


class Refused(RuntimeError):
    """The error for a derivative or a formula that would be wrong or does not exist."""


def _refuse(xp: Any, g: Any, y: Any, args: tuple, needs: Any) -> Any:
    raise Refused(args[-1])


def _value_of(xp: Any, values: Sequence[Any], why: str) -> Any:
    raise Refused(why)  # called by symbolic carriers only: a recorded node has its numbers


REFUSAL = Op.of("refusal", "primitive", _value_of, _refuse, lambda xp, tangents, y, args: _refuse(xp, None, y, args, tangents), None,
             ("values",), (), node_name="DelayedErrorBackward", public=False, saves=False)


STOP = Op.of("stop", "elementwise", lambda xp, input: input, lambda xp, g, y, args, needs: (None,), lambda xp, tangents, y, args: None, 1, ("input",),
          (), (0,), node_name="StopBackward0", public=False, saves=False, doc="The input itself, with the derivative 0: `detach()` in a formula.")


def refusal(value: Any, inputs: Sequence[Node], why: str) -> Node:
    """The node of a value whose derivative raises Refused with the text `why`; `inputs` are its parents."""
    flags = 0
    for p in inputs:
        flags |= p.flags & TRACKED
    return make_node(REFUSAL, (*(p.value for p in inputs), why), tuple(inputs), value, flags)
