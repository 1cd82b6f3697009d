"""The recorded graph of tensors, and of their gradients, as vertices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symgrad.autograd import enable_grad
from symgrad.autograd.bundles import OutputNode
from symgrad.autograd.context import FunctionNode
from symgrad.engine.passes import pullback
from symgrad.engine.saved import read_traced
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.creation import ones_like
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.modes import in_mode
from symgrad.graph.node import Leaf, Node
from symgrad.graph.order import upstream
from symgrad.visual.tracing import CONSTANT, GraphRecorder, Vertex

__all__ = ["GRADIENTS", "differentiate", "read"]

GRADIENTS = "gradient"  # the scope of the vertices of gradients


def read(tensors: Sequence[Tensor], names: Mapping[Node, str]) -> GraphRecorder:
    """The vertices of what was recorded for some tensors, oldest first; `names` are those of leaves without a symbol.

    A custom Function with several outputs is one vertex without a value, and each output is one more.
    """
    recorder = GraphRecorder("")
    for node in upstream([t._node for t in tensors]):
        parents = node.parents[:1] if type(node) is DerivativeNode else node.parents
        operands = [None if p is None else recorder.nodes[p] for p in parents]
        if isinstance(node, Leaf):
            recorder.add_source("Leaf", node.value, node, str(names.get(node) or node.symbol or ""))
        elif type(node) is DerivativeNode:
            recorder.nodes[node] = recorder.add_source(CONSTANT, node.value, node) if operands[0] is None else operands[0]
        elif isinstance(node, (FunctionNode, OutputNode)):
            name = f"output {node.output_nr}" if isinstance(node, OutputNode) else type(node).__name__.removesuffix("Backward")
            value = None if isinstance(node, FunctionNode) and node.outputs else node.value
            recorder.register(recorder.add(name, value, node, name=name, operands=tuple(v for v in operands if v is not None)), value, node)
        else:
            _add_operation(recorder, node, operands)
    return recorder


def _add_operation(recorder: GraphRecorder, node: Node, operands: Sequence[Vertex | None]) -> None:
    """The vertex of an operation; a constant operand becomes one, unless a backward has freed it."""
    args, count = node.args or (), len(operands)
    found = tuple(_constant(recorder, a) if v is None else v for v, a in zip(operands, args)) if args else tuple(v for v in operands if v is not None)
    rest = dict(zip([p.name for p in node.op.parameters], args[count:]))
    vertex = recorder.add(node.op.name, node.value, node, operands=found, op=node.op, rest=rest)
    recorder.register(vertex, node.value, node)


def _constant(recorder: GraphRecorder, value: Any) -> Vertex:
    known = recorder.values.get(id(value))
    return recorder.add_source(CONSTANT, value, None) if known is None else known[1]


def differentiate(recorder: GraphRecorder, outputs: Sequence[Tensor]) -> dict[Vertex, Vertex]:
    """Record the gradients of the sum of some tensors; gives the vertex of the gradient by each vertex that has one.

    Hooks are not called. Raises RuntimeError for a graph that was freed.
    """
    seeds: list[tuple[Any, Tensor]] = [(t._node, ones_like(t.detach())) for t in outputs]
    nodes = [n for n in upstream([t._node for t in outputs], True) if not isinstance(n, (DerivativeNode, FunctionNode))]
    with enable_grad(), in_mode(recorder=recorder):
        recorder.scopes.append(GRADIENTS)
        for _, seed in seeds:
            recorder.add_source(CONSTANT, seed._value, None, "seed")
        found = pullback(traced, seeds, read_traced, keep=frozenset(nodes))
        given = {n: g for n in nodes if n in recorder.nodes and (g := found.get(n)) is not None}
        gradients = {recorder.nodes[n]: recorder.vertex_of(g._value, g._node) for n, g in given.items()}
        recorder.scopes.pop()
    return gradients
