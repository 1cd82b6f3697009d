"""What a picture shows of a vertex or of a group, as plain text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import dtype_of
from symgrad.engine.tensor import wrap
from symgrad.formulas.expressions import expr
from symgrad.graph.freed import Released, freed
from symgrad.graph.node import NAMED, Leaf
from symgrad.visual.folding import Fold, formula, name_of, text_of
from symgrad.visual.tracing import CONSTANT, IO, MEMBERS, Vertex

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
