"""What a picture shows of vertices and of groups, as plain text: their boxes, their formulas, and which vertices are a group.

Groups are the modules that vertices are in, and runs of neighbours where there are too many. A group is a run of the order in which the operations
ran. So groups that are drawn as one box each have no cycle, and a module that was called twice is two groups.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import dtype_of
from symgrad.engine.tensor import wrap
from symgrad.formulas.expressions import expr
from symgrad.graph.freed import Released, freed
from symgrad.graph.node import NAMED, Leaf
from symgrad.visual.tracing import CONSTANT, IO, MEMBERS, Vertex

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


LARGEST_FORMULA = 60  # operations of a formula in terms of the leaves, with repetitions
LARGEST_ARRAY = 4  # elements, each of which has a formula of its own
FEW = 6  # elements that are shown
LINE = 44  # characters of a line in a box


def one_line(text: str) -> str:
    """A text without line breaks and without characters that are not shown, such as those that change the direction of writing."""
    return "".join([c if c.isprintable() else " " if c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text])


def short(text: str, length: int = LINE) -> str:
    """The beginning of a text that is too long.

    >>> short("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= length else text[:length - 1] + "…"


@dataclass
class NodeBox:
    """A box of a picture: a leaf, a constant, an operation, an output, or a group of them ("fold").

    `expression` is in terms of the operands, `formula` in terms of the symbols of leaves; `operands` are numbers of boxes. Text that does not
    apply is empty.
    """

    kind: str
    name: str
    op: str = ""
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    value: str = ""
    expression: str = ""
    formula: str = ""
    gradient: str = ""
    gradient_of: str = ""
    scope: str = ""
    node: str = ""
    folded: int = 0
    is_gradient: bool = False
    operands: list[int] = field(default_factory=list)

    @property
    def type(self) -> str:
        """The dtype with the shape."""
        return "" if self.shape is None else f"{self.dtype}{list(self.shape)}"

    def describe(self, value: Any) -> None:
        try:
            self.shape, self.dtype = tuple(np.shape(value) if value.shape is None else value.shape), dtype_of(value.dtype).name
        except (AttributeError, RuntimeError, KeyError, TypeError):  # a value that was freed, or none
            self.shape = None

    def lines(self) -> list[str]:
        """The lines of the box: its name, then what else is known of it."""
        formula = self.formula if self.formula != self.expression else ""
        body = [self.op if self.kind == "fold" else "", self.expression and f"= {self.expression}", formula and f"≡ {formula}",
                self.value and f"→ {self.value}", self.gradient_of and f"gradient of {self.gradient_of}"]
        return [short(line) for line in (self.name, self.type, *body) if line]


@dataclass
class GraphView:
    """What is drawn: boxes, edges from operands to results, and pairs of a gradient and what it is the gradient of."""

    boxes: list[NodeBox]
    edges: list[tuple[int, int]]
    cotangents: list[tuple[int, int]]
    items: Sequence[Vertex | Fold]

    @property
    def arrows(self) -> list[tuple[int, int]]:
        """The pairs of gradients that are drawn as edges, those of leaves: the other boxes name what they are the gradients of."""
        return [(g, v) for g, v in self.cotangents if self.boxes[v].kind == "leaf"]


class NodeLabels:
    """The texts of vertices; `values` and `expressions` say whether these are wanted.

    `gradients` has the vertex of the gradient by each vertex that has one; `of_gradients` are the vertices that compute them.
    """

    def __init__(self, gradients: Mapping[Vertex, Vertex], of_gradients: frozenset[Vertex], values: bool, expressions: bool):
        self.gradients, self.of_gradients, self.values, self.expressions = gradients, of_gradients, values, expressions
        self._sizes: dict[Vertex, int] = {}

    def view(self, items: Sequence[Vertex | Fold]) -> GraphView:
        """The boxes of vertices and groups in order, with the edges between them."""
        place: dict[Vertex, int] = {}
        for i, item in enumerate(items):
            place |= dict.fromkeys(item.vertices() if isinstance(item, Fold) else (item,), i)
        boxes = [self.of_group(item) if isinstance(item, Fold) else self.of_vertex(item) for item in items]
        edges: dict[tuple[int, int], None] = {}
        results: dict[int, dict[Vertex, None]] = {}
        for vertex, i in place.items():
            for o in vertex.operands:
                if place.get(o, i) != i:
                    edges[place[o], i] = None
                    results.setdefault(place[o], {})[o] = None
        for a, b in edges:
            boxes[b].operands.append(a)
        for number, found in results.items():
            if boxes[number].kind == "fold" and len(found) == 1:
                boxes[number].describe(next(iter(found)).value)
        cotangents = {(place[g], place[v]): None for v, g in self.gradients.items() if v in place and place.get(g, place[v]) != place[v]}
        for g, v in cotangents:
            boxes[g].gradient_of += ", " * bool(boxes[g].gradient_of) + boxes[v].name
        return GraphView(boxes, list(edges), list(cotangents), items)

    def of_group(self, fold: Fold) -> NodeBox:
        """The box of a group: its title, and how many operations of each kind it has."""
        vertices = list(fold.vertices())
        counts = Counter([v.kind for v in vertices if v.op is not None or v.operands])
        what = ", ".join([f"{kind} × {n}" if n > 1 else kind for kind, n in counts.most_common(4)]) + ", …" * (len(counts) > 4)
        outer = [name for part in fold.scope.split("/") if (name := part.partition("[")[2].removesuffix("]"))]
        title = fold.title.replace("[", "".join(["[", *(f"{name}." for name in outer)]), 1) or f"{fold.count:,} nodes"
        return NodeBox("fold", one_line(title), op=one_line(what), scope=one_line(fold.scope), folded=fold.count,
                   is_gradient=vertices[0] in self.of_gradients)

    def of_vertex(self, vertex: Vertex) -> NodeBox:
        node, value = vertex.node, vertex.value
        kind = ("output" if vertex.operands else "leaf") if vertex.kind == IO else "constant" if vertex.kind == CONSTANT else \
            "leaf" if vertex.kind in MEMBERS or isinstance(node, Leaf) else "operation"
        box = NodeBox(kind, one_line(name_of(vertex) if kind == "leaf" else vertex.label), is_gradient=vertex in self.of_gradients)
        box.scope = one_line(vertex.path.rpartition("/")[0].removeprefix("/"))
        box.op = one_line(vertex.kind) if kind == "operation" else ""
        box.node = node.name() if node is not None and node.requires_grad else ""
        box.describe(value)
        if self.values:
            box.value = one_line(value_text(value)) if kind != "output" else ""
            gradient = self.gradients.get(vertex)
            box.gradient = one_line(value_text(gradient.value)) if gradient is not None else ""
        if self.expressions and kind == "operation":
            box.expression = one_line(formula(vertex))
            box.formula = one_line(self._formula(vertex)) if box.shape is not None and math.prod(box.shape) <= LARGEST_ARRAY else ""
        return box

    def _formula(self, vertex: Vertex) -> str:
        """The formula in terms of symbols, if it is short."""
        node = vertex.node
        if node is None or not node.flags & NAMED or self._size(vertex) > LARGEST_FORMULA:
            return ""
        try:
            return str(expr(wrap(vertex.value, node)))
        except Exception:  # a rule may have no formula
            return ""

    def _size(self, vertex: Vertex) -> int:
        """The number of operations that a formula writes out, with an upper bound."""
        stack = [vertex]
        while stack:
            v = stack[-1]
            missing = [o for o in v.operands if o not in self._sizes]
            if missing and v not in self._sizes:
                stack += missing
                continue
            stack.pop()
            self._sizes[v] = min(10**9, 1 + sum([self._sizes[o] for o in v.operands]))
        return self._sizes[vertex]


def value_text(value: Any) -> str:
    """A value in few characters: a number with five digits, few elements, or the least and the largest finite element of an array."""
    if isinstance(value, (bool, int, np.bool_, np.integer)):
        return str(value)
    if isinstance(value, (float, complex, np.inexact)):
        return f"{value:.5g}"
    if not isinstance(value, np.ndarray):
        return "" if value is None else "freed by a backward" if value is freed or isinstance(value, Released) else text_of(value)
    if not value.ndim:
        return value_text(value.item())
    if value.size > FEW:
        numbers = value[np.isfinite(value)] if value.dtype.kind == "f" else value
        if value.dtype.kind not in "fiu" or not numbers.size:
            return "none finite" * (numbers.size < value.size)
        least, largest = numbers.min(), numbers.max()
        bounds = f"{value_text(least)} … {value_text(largest)}" if least < largest else value_text(least)
        return f"{bounds}, some not finite" if numbers.size < value.size else bounds if least < largest else f"all {bounds}"
    return f"[{', '.join(map(value_text, value))}]"
