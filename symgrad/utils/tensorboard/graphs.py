"""Graphs of computations for TensorBoard: each vertex is a node with its shape, and its formula in terms of its operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import dtype_of
from symgrad.graph.node import Leaf
from symgrad.utils.tensorboard.media import protocol
from symgrad.visual.boxes import formula, text_of
from symgrad.visual.tracing import CONSTANT, Vertex

PRODUCER = 22  # the version of TensorFlow's graph format


def graph_definition(vertices: Sequence[Vertex]) -> Any:
    """TensorBoard's GraphDef of a trace."""
    return protocol.GraphDef(node=list(map(_node, vertices)), versions=protocol.VersionDef(producer=PRODUCER))


def _node(vertex: Vertex) -> Any:
    found = protocol.NodeDef(name=vertex.path, op=vertex.kind, input=[v.path for v in vertex.operands])
    for key, text in _notes(vertex).items():
        found.attr[key].s = text.encode()
    shape = found.attr["_output_shapes"].list.shape.add()
    for n in np.shape(vertex.value):
        shape.dim.add(size=n)
    return found


def _notes(vertex: Vertex) -> dict[str, str]:
    """The attributes of a vertex besides its shape."""
    notes = {}
    if hasattr(vertex.value, "dtype"):
        notes["dtype"] = dtype_of(vertex.value.dtype).name
    if vertex.kind == CONSTANT and np.size(vertex.value) <= 1:
        notes["value"] = text_of(vertex.value)
    if vertex.op is not None or vertex.operands and vertex.path.partition("/")[0] != "output":
        notes["expr"] = formula(vertex)
    if isinstance(vertex.node, Leaf) and vertex.node.symbol is not None:
        notes["expr"] = vertex.node.symbol
    if vertex.rest:
        notes["attr"] = ", ".join(f"{name}={text_of(value)}" for name, value in vertex.rest.items())
    if vertex.node is not None:
        notes["requires_grad"] = str(vertex.node.requires_grad)
        if not isinstance(vertex.node, Leaf) and vertex.node.requires_grad:
            notes["grad_fn"] = vertex.node.name()
    return notes
