"""Graphs of computations for TensorBoard: each vertex is a node with its shape, and its formula in terms of its operands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.graph.node import Leaf
from symgrad.types.dtypes import dtype_of
from symgrad.utils.tensorboard.protocol import protocol
from symgrad.utils.tensorboard.tracing import CONSTANT, Vertex

__all__ = ["formula", "graph_definition"]

PRODUCTS = ("mm", "bmm", "mv", "dot")
PRODUCER = 22  # the version of TensorFlow's graph format


def formula(vertex: Vertex) -> str:
    """The computation of an operation in terms of the labels of its operands, or their symbols: a formula if it is elementwise, else a call.

    >>> import symgrad
    >>> from symgrad.utils.tensorboard.tracing import trace
    >>> [formula(v) for v in trace(lambda x, y: (x * y.cosh()).sum(0), (symgrad.zeros(2, 2), symgrad.zeros(2))) if v.op]
    ['cosh(y)', 'cosh*x', 'sum(mul, dim=(0,), keepdim=False)']
    """
    op = vertex.op
    if op is None:
        return f"{vertex.kind}({', '.join(map(_name, vertex.operands))})"
    names = [_name(v) for v in vertex.operands]
    if op.kind == "elementwise":
        try:
            return str(_expression(vertex))
        except Exception:  # a user's rule may take numbers only; then the call is shown
            pass
    if op.name in PRODUCTS:
        return " @ ".join(names)
    if op.name == "addmm" and all(value == 1 for value in vertex.rest.values()):
        return "{} + {} @ {}".format(*names)
    return f"{op.name}({', '.join([*names, *(f'{name}={_text_of(value)}' for name, value in vertex.rest.items())])})"


def _expression(vertex: Vertex) -> Any:
    from symgrad.carriers import symbolic  # imports SymPy, which only formulas need

    arguments = []
    for v in vertex.operands:
        number = _number(v)
        if number is None:
            assumptions = {} if v.value.dtype.kind == "c" else {"real": True}
            arguments.append(symbolic.Expressions.fill([symbolic.sympy.Symbol(_name(v), **assumptions)], ()))
        else:
            arguments.append(symbolic.lift_value(number))
    found = vertex.op.forward(symbolic, *arguments, *vertex.rest.values())  # type: ignore[union-attr]
    return found.item() if hasattr(found, "item") else found


def _number(vertex: Vertex) -> Any:
    """The value of a 0-d constant, None for any other vertex."""
    return vertex.value if vertex.kind == CONSTANT and np.ndim(vertex.value) == 0 else None


def _name(vertex: Vertex) -> str:
    """The symbol of a vertex or its label; the value of a constant number."""
    if isinstance(vertex.node, Leaf) and vertex.node.symbol is not None:
        return vertex.node.symbol
    number = _number(vertex)
    return vertex.label if number is None else _text_of(number)


def _text_of(x: Any) -> str:
    """A short text for a value: the type and shape of an array."""
    if isinstance(x, np.ndarray) and x.size > 1:
        return f"{dtype_of(x.dtype).name}{list(x.shape)}"
    if isinstance(x, (np.ndarray, np.generic)):
        return str(x.item()) if x.size else "[]"
    if isinstance(x, (tuple, list)):
        return re.sub(r"^\((.*)\)$", r"(\1,)" if len(x) == 1 else r"(\1)", f"({', '.join(map(_text_of, x))})")
    if isinstance(x, np.dtype):
        return dtype_of(x).name
    return str(x) if isinstance(x, (int, float, complex, slice, type(None), type(...), str)) else type(x).__name__


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
        notes["value"] = _text_of(vertex.value)
    if vertex.op is not None or vertex.operands and vertex.path.partition("/")[0] != "output":
        notes["expr"] = formula(vertex)
    if isinstance(vertex.node, Leaf) and vertex.node.symbol is not None:
        notes["expr"] = vertex.node.symbol
    if vertex.rest:
        notes["attr"] = ", ".join(f"{name}={_text_of(value)}" for name, value in vertex.rest.items())
    if vertex.node is not None:
        notes["requires_grad"] = str(vertex.node.requires_grad)
        if not isinstance(vertex.node, Leaf) and vertex.node.requires_grad:
            notes["grad_fn"] = vertex.node.name()
    return notes
