"""Nodes of calls with several outputs: the one node that torch has for a call, and that of a Function.

Here each output has a node of its own, so that no value is a tuple. `CommonNode` is what `grad_fn` of all of them returns. It is no part of the
graph; where hooks may run, a pullback gathers the cotangents of the outputs at it. The pullback of an `OutputNode` wraps the cotangent in a bundle
for the node of the Function, which is part of the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from symgrad.graph.classes import become, renamed
from symgrad.graph.freed import released
from symgrad.graph.node import GRADIENT, HOOKED, PACKED, TRACKED, Node, make_node
from symgrad.graph.op import Op


class Bundle:
    """The cotangents of the outputs of one node; None for an undefined one."""

    __slots__ = ("parts",)
    dtype, shape = np.dtype(np.float64), None  # the engine reads these of a cotangent; a bundle is neither reduced nor conjugated

    def __init__(self, parts: Iterable[Any]):
        self.parts = tuple(parts)

    def __add__(self, other: Bundle) -> Bundle:
        return Bundle(a if b is None else b if a is None else a + b for a, b in zip(self.parts, other.parts))


class CommonNode(Node):
    """The node of a call: `outputs` refers to the nodes of its outputs weakly, and `value` has their shapes and dtypes."""

    __slots__ = ("outputs",)
    outputs: tuple[ref[Node], ...]

    def __init__(self, nodes: Sequence[Node]):
        parents, flags, kept, values = nodes[0].parents, 0, None, []
        alike = True
        for k, node in enumerate(nodes):
            value = node.value
            if kept is None or value.shape != kept.shape or value.dtype is not kept.dtype:
                kept = released(value)
            values.append(kept)
            flags |= node.flags
            alike = alike and node.parents == parents
            node.output_of = self, k
        if not alike:
            parents = tuple(dict.fromkeys(p for node in nodes for p in node.parents if p is not None))
        super().__init__(None, parents, tuple(values), flags)
        self.outputs = tuple([ref(node) for node in nodes])
        if hasattr(nodes[0], "record"):
            self.record = nodes[0].record
        for node in nodes if flags & PACKED else ():  # an unpack hook of one may register hooks of all
            node.flags |= PACKED

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_saved_", "_raw_saved_")):
            for node in self.live():
                if hasattr(node, name):
                    return getattr(node, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def output_node(self, k: int) -> Node:
        """The node of output number k.

        Raises RuntimeError if there is none, or no reference to that output is left.
        """
        if not 0 <= k < len(self.outputs):
            raise RuntimeError(f"{self.name()} has no output number {k}: it has {len(self.outputs)}")
        node = self.outputs[k]()
        if node is None:
            raise RuntimeError(f"output {k} of {self.name()} has no gradient: no tensor and no graph refers to it any more; keep a reference to it")
        return node

    def live(self) -> list[Node]:
        """The nodes of the outputs that still have a tensor or belong to a graph."""
        return [node for reference in self.outputs if (node := reference()) is not None]

    def added(self, given: Iterable[tuple[Node, Sequence[Any]]]) -> list[Any]:
        """The cotangents of the parents: the sums of those that the nodes of outputs give their own parents, None without any."""
        sums: list[Any] = [None] * len(self.parents)
        for node, cotangents in given:
            for i, (p, c) in enumerate(zip(node.parents, cotangents)):
                if c is not None:
                    k = i if node.parents == self.parents else self.parents.index(p)
                    sums[k] = c if sums[k] is None else sums[k] + c
        return sums

    def release(self) -> None:
        """Do nothing: the nodes of the outputs have the saved values."""


def join(name: str, nodes: Iterable[Node | None]) -> None:
    """Give the nodes of the outputs of one call, those that carry a gradient, a common node with torch's name of the call."""
    found = [node for node in nodes if node is not None and node.flags & GRADIENT and node.parents]
    if found and not hasattr(found[0], "output_of"):
        renamed(CommonNode, name)(found)


def name_call(node: Node, name: str) -> None:
    """Give the common node of a call, found from the node of an output, another name."""
    if isinstance(common := node.origin, CommonNode):
        become(common, renamed(CommonNode, name))


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
