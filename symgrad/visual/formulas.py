"""The formula of a vertex in terms of its operands."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import dtype_of
from symgrad.graph.node import Leaf
from symgrad.visual.tracing import CONSTANT, Vertex

__all__ = ["expression", "formula", "name_of", "number_of", "text_of"]

PRODUCTS = ("mm", "bmm", "mv", "dot")


def formula(vertex: Vertex) -> str:
    """The computation of an operation in terms of the labels of its operands, or their symbols: a formula if it is elementwise, else a call.

    >>> import symgrad
    >>> from symgrad.visual.tracing import trace
    >>> [formula(v) for v in trace(lambda x, y: (x * y.cosh()).sum(0), (symgrad.zeros(2, 2), symgrad.zeros(2))) if v.op]
    ['cosh(y)', 'cosh*x', 'sum(mul, dim=(0,), keepdim=False)']
    """
    op = vertex.op
    if op is None:
        return f"{vertex.kind}({', '.join(map(name_of, vertex.operands))})"
    names = [name_of(v) for v in vertex.operands]
    if op.kind == "elementwise":
        try:
            return str(expression(vertex))
        except Exception:  # a user's rule may take numbers only; then the call is shown
            pass
    if op.name in PRODUCTS:
        return " @ ".join(names)
    if op.name == "addmm" and all(value == 1 for value in vertex.rest.values()):
        return "{} + {} @ {}".format(*names)
    return f"{op.name}({', '.join([*names, *(f'{name}={text_of(value)}' for name, value in vertex.rest.items())])})"


def expression(vertex: Vertex) -> Any:
    """The SymPy expression of an elementwise operation in symbols for its operands; raises what its rule raises for symbols."""
    from symgrad.carriers import symbolic  # imports SymPy, which only formulas need

    arguments = []
    for v in vertex.operands:
        number = number_of(v)
        if number is None:
            assumptions = {} if v.value.dtype.kind == "c" else {"real": True}
            arguments.append(symbolic.Expressions.fill([symbolic.sympy.Symbol(name_of(v), **assumptions)], ()))
        else:
            arguments.append(symbolic.lift_value(number))
    found = vertex.op.forward(symbolic, *arguments, *vertex.rest.values())  # type: ignore[union-attr]
    return found.item() if hasattr(found, "item") else found


def number_of(vertex: Vertex) -> Any:
    """The value of a 0-d constant, None for any other vertex."""
    return vertex.value if vertex.kind == CONSTANT and np.ndim(vertex.value) == 0 else None


def name_of(vertex: Vertex) -> str:
    """The symbol of a vertex or its label; the value of a constant number."""
    if isinstance(vertex.node, Leaf) and vertex.node.symbol is not None:
        return vertex.node.symbol
    number = number_of(vertex)
    return vertex.label if number is None else text_of(number)


def text_of(x: Any) -> str:
    """A short text for a value: the type and shape of an array."""
    if isinstance(x, np.ndarray) and x.size > 1:
        return f"{dtype_of(x.dtype).name}{list(x.shape)}"
    if isinstance(x, (np.ndarray, np.generic)):
        return str(x.item()) if x.size else "[]"
    if isinstance(x, (tuple, list)):
        return re.sub(r"^\((.*)\)$", r"(\1,)" if len(x) == 1 else r"(\1)", f"({', '.join(map(text_of, x))})")
    if isinstance(x, np.dtype):
        return dtype_of(x).name
    return str(x) if isinstance(x, (int, float, complex, slice, type(None), type(...), str)) else type(x).__name__
