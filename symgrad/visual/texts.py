"""A picture in the languages of Graphviz and of Mermaid, and its formulas in LaTeX."""

from __future__ import annotations

import re

from symgrad.visual.boxes import GraphView
from symgrad.visual.folding import Fold
from symgrad.visual.formulas import expression, name_of
from symgrad.visual.svg import CAPTIONS, COLOURS, colours_of
from symgrad.visual.tracing import Vertex

__all__ = ["dot_of", "latex_of", "mermaid_of"]

PLAIN = frozenset(" _.,=+*/^()-")  # the characters, besides letters and digits, that Mermaid takes as they are
SHAPES = {"leaf": "([{}])", "constant": "[{}]", "operation": "[{}]", "output": "[/{}/]", "fold": "[[{}]]", "outside": "[{}]"}


def dot_of(view: GraphView, caption: str = "") -> str:
    """The DOT source; text is quoted, so that no character of it has a meaning in DOT."""
    lines = ["digraph graph_of_tensors {", '    node [shape=box, style=filled, fontname="monospace"]']
    if caption:
        lines.append(f"    label={_quoted(caption)}")
    for i, box in enumerate(view.boxes):
        fill, line = colours_of(box)
        shape = {"leaf": ", shape=ellipse", "fold": ", peripheries=2"}.get(box.kind, "")
        lines.append(f'    {i} [label={_quoted(*box.lines())}, fillcolor="{fill}", color="{line}"{shape}]')
    lines += [f"    {a} -> {b}" for a, b in view.edges]
    lines += [f'    {a} -> {b} [style=dashed, color="{COLOURS["gradient"][1]}", constraint=false, tooltip="{CAPTIONS["cotangent"]}"]'
              for a, b in view.arrows]
    return "\n".join([*lines, "}"])


def _quoted(*lines: str) -> str:
    return '"' + "\\n".join([line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]) + '"'


def mermaid_of(view: GraphView, caption: str = "") -> str:
    """The Mermaid source; characters that may have a meaning are written as their codes."""
    lines = ["flowchart TD"]
    if caption:
        lines.append(f"    %% {''.join(c for c in caption if c.isalnum() or c in ' ,')}")
    for i, box in enumerate(view.boxes):
        label = '"' + "<br/>".join(map(_coded, box.lines())) + '"'
        lines.append(f"    n{i}{SHAPES[box.kind].format(label)}")
    lines += [f"    n{a} --> n{b}" for a, b in view.edges]
    lines += [f"    n{a} -.-> n{b}" for a, b in view.arrows]
    styles: dict[tuple[str, str], list[str]] = {}
    for i, box in enumerate(view.boxes):
        styles.setdefault(colours_of(box), []).append(f"n{i}")
    lines += [f"    style {name} fill:{fill},stroke:{line},color:#202124" for (fill, line), names in styles.items() for name in names]
    return "\n".join(lines)


def _coded(text: str) -> str:
    return "".join([c if c.isalnum() or c in PLAIN else f"#{ord(c)};" for c in text])


def latex_of(view: GraphView) -> str:
    """The operations of a view as `aligned` equations; groups and what has no formula are left out."""
    rows = [rf"{_latex_name(item.label)} &= {_right_side(item)}" for item in view.items if not isinstance(item, Fold) and item.op is not None]
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


def _right_side(vertex: Vertex) -> str:
    import sympy

    if vertex.op is not None and vertex.op.kind == "elementwise":
        try:
            found = expression(vertex)
            return sympy.latex(found, symbol_names={s: _latex_name(s.name) for s in found.free_symbols})
        except Exception:  # a user's rule may take numbers only; then the call is shown
            pass
    return rf"\operatorname{{{_latex_text(vertex.kind)}}}\left({', '.join(_latex_name(name_of(v)) for v in vertex.operands)}\right)"


def _latex_name(name: str) -> str:
    """A name of letters, digits and an index as SymPy writes it, any other as upright text."""
    import sympy

    if re.fullmatch(r"-?[\d.]+", name):
        return name
    word = re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)?", name)
    return sympy.latex(sympy.Symbol(name)) if word and len(name.partition("_")[0]) == 1 else rf"\mathrm{{{_latex_text(name)}}}"


def _latex_text(text: str) -> str:
    return "".join([rf"\{c}" if c in "_&%#$" else c if c.isalnum() or c in " .,+-*/=()[]" else "?" for c in text])
