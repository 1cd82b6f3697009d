"""Formulas of vertices, and vertices in groups: the modules that they are in, and runs of neighbours where there are too many.

A group is a run of the order in which the operations ran. So groups that are drawn as one box each have no cycle, and a module that was called
twice is two groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import dtype_of
from symgrad.graph.node import Leaf
from symgrad.visual.tracing import CONSTANT, IO, Vertex

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


RUN = 24  # the number of neighbours that are folded
MOST = 2000  # boxes of a picture


class Fold:
    """A group of vertices and of other groups, in order; `scope` is the path of a module without its own name, `count` the number of vertices."""

    __slots__ = ("title", "members", "scope", "count")

    def __init__(self, title: str, members: Sequence[Vertex | Fold], scope: str = ""):
        self.title, self.members, self.scope = title, members, scope
        self.count: int = sum([m.count if isinstance(m, Fold) else 1 for m in members])

    def vertices(self) -> Iterator[Vertex]:
        """All vertices of the group, in order."""
        stack: list[Vertex | Fold] = [self]
        while stack:
            member = stack.pop()
            if isinstance(member, Fold):
                stack += reversed(member.members)
            else:
                yield member


def ordered(vertices: Iterable[Vertex]) -> list[Vertex]:
    """The vertices in the order in which they ran: inputs first, and each other source before the operation that uses it first.

    Numbers, which stand in formulas, are left out.
    """
    vertices = list(vertices)
    found: dict[Vertex, None] = {}
    used = dict.fromkeys([v for vertex in vertices for v in vertex.operands])
    found |= dict.fromkeys([v for v in vertices if v.kind == IO and not v.operands and v in used])
    for vertex in vertices:
        if vertex.operands or vertex.op is not None:
            found |= dict.fromkeys([*(v for v in vertex.operands if number_of(v) is None), vertex])
    return list(found) or vertices


def _scope(vertex: Vertex) -> list[str]:
    scope = vertex.path.rpartition("/")[0]
    return scope.split("/") if scope and vertex.kind != IO else []


def grouped(vertices: Sequence[Vertex], title: str, depth: int = 0) -> Fold:
    """The tree of the groups of some vertices, which are in order, without the outermost `depth` scopes."""
    return Fold(title, _runs(_members([(_scope(v), v) for v in vertices], depth)))


def _members(found: Sequence[tuple[list[str], Vertex]], depth: int) -> list[Vertex | Fold]:
    members: list[Vertex | Fold] = []
    for name, run in groupby(found, lambda pair: pair[0][depth] if len(pair[0]) > depth else None):
        if name is None:
            members += [vertex for _, vertex in run]
        else:
            own = list(run)
            inner = _members(own, depth + 1)
            members += inner if len(inner) == 1 else [Fold(name, _runs(inner), "/".join(own[0][0][:depth]))]
    return members


def _runs(members: list[Vertex | Fold]) -> list[Vertex | Fold]:
    """The members themselves, or runs of them, and runs of runs, so that there are not too many."""
    while len(members) > 2 * RUN:
        runs = [members[i:i + RUN] for i in range(0, len(members), RUN)]
        members = [run[0] if len(run) == 1 else Fold("", run) for run in runs]
    return members


def opened(root: Fold, limit: int, depth: int | None) -> list[Vertex | Fold]:
    """What is drawn of a group: its groups are opened level by level while at most `limit` are drawn, or up to a depth.

    Raises ValueError for a depth at which more than two thousand are drawn.
    """
    drawn: list[Vertex | Fold] = list(root.members)
    level = 1
    while any([isinstance(m, Fold) for m in drawn]) and (depth is None or level < depth):
        following = [inner for m in drawn for inner in (m.members if isinstance(m, Fold) else (m,))]
        if depth is not None and len(following) > MOST:
            raise ValueError(f"graph: at depth {depth} more than {MOST} boxes are drawn; give a smaller depth, or fold= and no depth")
        if depth is None and len(following) > limit:
            break
        drawn = following
        level += 1
    return drawn
