"""`symgrad.visual.graph`: the picture of a recorded graph, and its HTML page with a script of its own, which shows the groups one inside another."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from html import escape
from pathlib import Path
from typing import IO, Any

from symgrad.engine.tensor import Tensor
from symgrad.system.atomic_write import write_whole
from symgrad.visual.boxes import Fold, GraphView, NodeLabels, grouped, opened, ordered
from symgrad.visual.texts import dot_of, latex_of, mermaid_of, svg_of
from symgrad.visual.tracing import GRADIENTS, Vertex, call_recorded, differentiate, read

LARGEST = 4000  # boxes of a page, which is about six megabytes
INNER = 24  # boxes of the picture of a group, if it has fewer members
AROUND = 12  # operands from outside that the picture of a group shows
LEVELS = 300  # boxes of the picture of a depth


@cache
def _file(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def page_of(groups: Sequence[Fold], content: NodeLabels, drawn: Sequence[Vertex | Fold], caption: str) -> str:
    """The page; `drawn` is what its first picture shows of the groups."""
    pages = [_page(groups[0].title, -1, content.view(drawn))]
    levels = _levels(groups, content, drawn, pages)
    order = {v: k for k, v in enumerate([v for group in groups for v in group.vertices()])}
    total = sum([len(page["boxes"]) for page in pages])
    number: dict[Fold, int] = {}
    waiting = [(i, k) for i, page in enumerate(pages) for k in range(len(page["items"]))]
    for i, k in waiting:
        item, box = pages[i]["items"][k], pages[i]["boxes"][k]
        if isinstance(item, Fold):
            inner = opened(item, max(INNER, len(item.members)), None)
            if item not in number and total + len(inner) <= LARGEST:
                outside = _around(item, order)
                view = content.view([*outside, *inner])
                for each in view.boxes[:len(outside)]:
                    each.kind = "outside"
                number[item] = len(pages)
                waiting += [(len(pages), n) for n in range(len(outside), len(view.boxes))]
                pages.append(_page(box["name"], i, view))
                total += len(view.boxes)
            if item in number:
                box["open"] = number[item]
    for page in pages:
        page.pop("items")
    data = json.dumps({"pages": pages, "levels": levels, "caption": caption})
    script = _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    found = {"title": escape(f"{groups[0].title}: {caption}"), "hash": f"sha256-{digest}", "script": script,
             "data": data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: found[match[1]], _file("page.html"))


def _page(title: str, parent: int, view: GraphView) -> dict[str, Any]:
    boxes = []
    for box in view.boxes:
        known = {key: value for key, value in asdict(box).items() if key != "shape" and value not in ("", 0, None, False)}
        boxes.append(known | {"type": box.type})
    return {"title": title, "parent": parent, "svg": svg_of(view), "boxes": boxes, "items": view.items}


def _levels(groups: Sequence[Fold], content: NodeLabels, drawn: Sequence[Vertex | Fold], pages: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """The pictures of all depths that are not too large, appended to `pages`; none if there is one depth."""
    levels, before = [], None
    for depth in range(1, 20):
        try:
            items = [item for group in groups for item in opened(group, 1, depth)]
        except ValueError:
            break
        if len(items) > LEVELS or items == before:
            break
        before = items
        if items == list(drawn):
            levels.append((str(depth), 0))
        else:
            levels.append((str(depth), len(pages)))
            pages.append(_page(groups[0].title, -1, content.view(items)))
    if len(levels) < 2:
        del pages[1:]
        return []
    return levels


def _around(fold: Fold, order: Mapping[Vertex, int]) -> list[Vertex]:
    """The newest operands of a group that are not in it, oldest first."""
    inside = set(fold.vertices())
    return sorted({o for v in inside for o in v.operands if o in order} - inside, key=order.__getitem__)[-AROUND:]


MOST = 5000  # operations whose gradients are drawn
DRAWN = 40  # boxes that are drawn, if nothing else is said


class Picture:
    """The picture of a graph, made by `symgrad.visual.graph`.

    `boxes` are what is drawn, with the texts of each; `edges` and `cotangents` are pairs of their numbers, the latter of a gradient and what it
    is the gradient of. `count` is the number of nodes, and `folded` the number of those that stand in a box with others. A notebook shows the
    page of `html()`.
    """

    def __init__(self, groups: Sequence[Fold], content: NodeLabels, fold: int, depth: int | None):
        self._groups, self._content, self._fold, self._depth = groups, content, fold, depth
        self._drawn = [item for group in groups for item in opened(group, fold, depth)]
        self.count = sum([group.count for group in groups])
        self.folded = sum([item.count for item in self._drawn if isinstance(item, Fold)])

    @functools.cached_property
    def view(self) -> GraphView:
        return self._content.view(self._drawn)

    boxes = property(lambda self: self.view.boxes)
    edges = property(lambda self: self.view.edges)
    cotangents = property(lambda self: self.view.cotangents)

    @property
    def caption(self) -> str:
        """How many nodes there are, and how many of them are folded."""
        boxes = sum([isinstance(item, Fold) for item in self._drawn])
        nodes = f"{self.count:,} node{'s' * (self.count != 1)}"
        return f"{nodes}, {self.folded:,} of them folded into {boxes:,} box{'es' * (boxes != 1)}" if boxes else nodes

    def __repr__(self) -> str:
        return f"<Picture of {self.caption}>"

    @property
    def dot(self) -> str:
        """The picture in the DOT language of Graphviz."""
        return dot_of(self.view, self.caption * bool(self.folded))

    @property
    def mermaid(self) -> str:
        """The picture in the Mermaid language, which Markdown pages show."""
        return mermaid_of(self.view, self.caption * bool(self.folded))

    def svg(self) -> str:
        """The picture as SVG, which needs neither fonts, scripts nor a network."""
        return svg_of(self.view, self.caption)

    def png(self, dpi: int = 144) -> bytes:
        """The picture as PNG, drawn by matplotlib. Raises ImportError where that is not installed."""
        from symgrad.visual.texts import png_of  # imports matplotlib

        return png_of(self.view, self.caption, dpi)

    def html(self) -> str:
        """A page to open in a browser: it can be moved and enlarged, a click on a box shows what is known of it, and a double click opens a group.

        It has all it needs and asks no network.
        """
        return page_of(self._groups, self._content, self._drawn, self.caption)

    def latex(self) -> str:
        """The operations that are drawn as equations in LaTeX, each in terms of its operands."""
        return latex_of(self.view)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file, whole or not at all, in the form that its ending names: .svg, .html, .png, .dot, .mmd (Mermaid) or .tex.

        Raises ValueError for another ending, ImportError for PNG without matplotlib, and RuntimeError or OSError where nothing can be written.
        """
        forms: Mapping[str, Callable[[], str | bytes]] = {".svg": self.svg, ".html": self.html, ".png": self.png, ".dot": lambda: self.dot,
                                                          ".mmd": lambda: self.mermaid, ".tex": self.latex}
        ending = os.path.splitext(os.fspath(path))[1].lower()
        if ending not in forms:
            raise ValueError(f"save: {os.fspath(path)!r} has none of the endings {', '.join(forms)}")
        found = forms[ending]()
        content = found if isinstance(found, bytes) else found.encode()

        def write(stream: IO[bytes]) -> None:
            stream.write(content)

        write_whole(os.fspath(path), write)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{escape(self.html())}" sandbox="allow-scripts" style="width: 100%; height: 620px; border: 1px solid #dadce0" '
                f'title="{escape(self.caption)}"></iframe>')

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"


def graph(x: Any, *inputs: Any, gradient: bool = False, values: bool = True, expressions: bool = True, fold: int = DRAWN, depth: int | None = None,
          names: Mapping[str, Tensor] | None = None) -> Picture:
    """The picture of the graph of a tensor or of several, or of one call of a module or function with `inputs`.

    Each node has its operation, shape and dtype, with `values` its value, and with `expressions` its formula, in terms of its operands and, where it
    is short, of the symbols of leaves. Leaves have their symbol, or their name in `names`, for instance `dict(model.named_parameters())`. With
    `gradient` the graph that computes the gradients of the sum of the results stands beside it, and dashed edges lead from each gradient to its
    node; hooks are not called. A module is called in evaluation mode, and its parts are groups.

    Groups are opened level by level while at most `fold` boxes are drawn; where there are no modules, neighbours are folded. `depth` opens the
    groups down to this depth instead: at 1 a module is one box.

    Raises TypeError for what is no tensor, module or function; ValueError for a tensor without a graph, for `gradient` where nothing requires
    grad or of more than 5000 nodes, and for numbers of boxes that are not positive or too large; RuntimeError for the gradient of a graph that
    was freed.

    >>> import symgrad
    >>> x = symgrad.tensor(0.5, requires_grad=True, symbol="x")
    >>> picture = symgrad.visual.graph(x.sin() * x)
    >>> picture
    <Picture of 3 nodes>
    >>> [(box.name, box.value, box.expression, box.formula) for box in picture.boxes]
    [('x', '0.5', '', ''), ('sin', '0.47943', 'sin(x)', 'sin(x)'), ('mul', '0.23971', 'sin*x', 'x*sin(x)')]
    >>> print(picture.mermaid.partition("    style")[0])
    flowchart TD
        n0(["x<br/>float64#91;#93;<br/>#8594; 0.5"])
        n1["sin<br/>float64#91;#93;<br/>= sin(x)<br/>#8594; 0.47943"]
        n2["mul<br/>float64#91;#93;<br/>= sin*x<br/>#8801; x*sin(x)<br/>#8594; 0.23971"]
        n0 --> n1
        n1 --> n2
        n0 --> n2
    <BLANKLINE>
    """
    for name, number in (("fold", fold), ("depth", depth)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= 2000):
            raise ValueError(f"graph: {name} must be a whole number from 1 to 2000, not {number!r}")
    title = "graph"
    if isinstance(x, (Tensor, tuple, list)):
        results = [x] if isinstance(x, Tensor) else list(x)
        _check(results, inputs)
        recorder = read(results, {t._node: name for name, t in (names or {}).items() if t._node is not None})
    elif callable(x):
        recorder, results = call_recorded(x, inputs)
        title = type(x).__name__
    else:
        raise TypeError(f"graph: expected a tensor, several, a module or a function, but got {type(x).__name__}")
    forward = ordered(recorder.vertices)
    gradients: Mapping[Vertex, Vertex] = {}
    count = len(recorder.vertices)
    if gradient:
        differentiable = [t for t in results if t.requires_grad]
        if not differentiable:
            raise ValueError("graph: gradient=True, but no result requires grad; make the leaves with requires_grad=True")
        if len(forward) > MOST:
            raise ValueError(f"graph: the gradients of {len(forward):,} nodes are too many for a picture; draw a part with at most {MOST:,} nodes, "
                             f"or give gradient=False")
        gradients = differentiate(recorder, differentiable)
    own = frozenset(recorder.vertices[count:])
    backward = _needed([v for v in ordered(recorder.vertices[count:]) if v in own], set(gradients.values()))
    groups = [grouped(forward, title), *([grouped(backward, GRADIENTS, 1)] if backward else [])]
    return Picture(groups, NodeLabels(gradients, own, values, expressions), fold, depth)


def _check(results: Sequence[Any], inputs: tuple) -> None:
    if inputs:
        raise TypeError("graph: inputs are for a module or a function; give several tensors as a list")
    if not results:
        raise ValueError("graph: there is no tensor to draw")
    for t in results:
        if not isinstance(t, Tensor):
            raise TypeError(f"graph: expected a tensor, but got {type(t).__name__}")
        if t._node is None or t._node.in_inference:
            raise ValueError(f"graph: the tensor of shape {list(t.shape)} has no graph: nothing was recorded for it; make the leaves that it is "
                             f"computed from with requires_grad=True or symbol=..., outside of no_grad and inference_mode")


def _needed(vertices: Sequence[Vertex], gradients: set[Vertex]) -> list[Vertex]:
    """Those of the vertices that some gradient is computed from."""
    found = set(gradients)
    for vertex in reversed(vertices):
        if vertex in found:
            found |= set(vertex.operands)
    return [v for v in vertices if v in found]
