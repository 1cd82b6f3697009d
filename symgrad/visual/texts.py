"""A picture as SVG, as PNG by matplotlib, and in the languages of Graphviz and of Mermaid; its formulas in LaTeX."""

from __future__ import annotations

import io
import re
import warnings
from html import escape
from typing import Any

from symgrad.visual.arranging import MARGIN, Arrangement, EdgeCurve, arranged, baseline
from symgrad.visual.boxes import Fold, GraphView, NodeBox, expression, name_of
from symgrad.visual.tracing import Vertex

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


COLOURS = {"leaf": ("#e6f4ea", "#1e7e34"), "constant": ("#f1f3f4", "#80868b"), "operation": ("#e8f0fe", "#1a56b0"), "output": ("#ffffff", "#202124"),
           "fold": ("#f3e8fd", "#7b3fb5"), "outside": ("#ffffff", "#9aa0a6"),
           "gradient": ("#fef0e1", "#b45309")}  # the fill and the line
EDGES = {"operand": ("#5f6368", 1.3, ""), "used": ("#c4c7cc", 1.0, ""), "cotangent": ("#b45309", 1.1, "5 4")}
CAPTIONS = {"operand": "operand of", "used": "value used in a gradient", "cotangent": "gradient of"}
LEGEND = 22.0


def svg_of(view: GraphView, caption: str = "") -> str:
    """The SVG of a view; `caption` stands below it."""
    found = arranged(view)
    kinds = {curve.kind for curve in found.curves}
    legend = [kind for kind in CAPTIONS if kind in kinds] if "cotangent" in kinds or "used" in kinds else []
    below = LEGEND * bool(caption) + LEGEND * bool(legend)
    width = max(found.width, 2 * MARGIN + 6.0 * len(caption), MARGIN + 215.0 * len(legend))
    height = found.height + below
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
             f'role="img" font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace">',
             f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>']
    parts += [_curve(curve) for curve in sorted(found.curves, key=lambda c: c.kind != "used")]
    parts += [_box(i, box, found) for i, box in enumerate(view.boxes)]
    y = found.height + 4
    for k, kind in enumerate(legend):
        colour, thick, dashes = EDGES[kind]
        x = MARGIN + 215 * k
        parts.append(f'<line x1="{x:g}" y1="{y:g}" x2="{x + 26:g}" y2="{y:g}" stroke="{colour}" stroke-width="{thick}" stroke-dasharray="{dashes}"/>'
                     f'<text x="{x + 32:g}" y="{y + 4:g}" font-size="11" fill="#5f6368">{CAPTIONS[kind]}</text>')
    if caption:
        parts.append(f'<text x="{MARGIN:g}" y="{height - 8:g}" font-size="11" fill="#5f6368">{escape(caption)}</text>')
    return "".join([*parts, "</svg>"])


def _curve(curve: EdgeCurve) -> str:
    colour, thick, dashes = EDGES[curve.kind]
    (x, y), *rest = curve.points
    path = f"M{x:.1f} {y:.1f}C" + " ".join([f"{p:.1f} {q:.1f}" for p, q in rest])
    (p, q), (a, b) = curve.points[-2:]
    vertical = abs(a - p) < abs(b - q) or curve.kind == "operand"
    s = 1 if (b > q if vertical else a > p) else -1
    head = f"M{a:.1f} {b:.1f}" + (f"l-4 {-7 * s}h8z" if vertical else f"l{-7 * s} -4v8z")
    return (f'<g data-edge="{curve.source} {curve.target}"><path d="{path}" fill="none" stroke="{colour}" stroke-width="{thick}" '
            f'stroke-dasharray="{dashes}"/><path d="{head}" fill="{colour}"/></g>')


def colours_of(box: NodeBox) -> tuple[str, str]:
    """The fill and the line of a box."""
    return COLOURS["gradient" if box.is_gradient and box.kind not in ("fold", "outside") else box.kind]


def _box(i: int, box: NodeBox, found: Arrangement) -> str:
    fill, line = colours_of(box)
    left, top, width, height = found.rectangles[i]
    radius = 12 if box.kind == "leaf" else 3
    shadow = f'<rect x="{left + 4:.1f}" y="{top + 4:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}" fill="{fill}" stroke="{line}"/>'
    texts = []
    for k, text in enumerate(found.lines[i]):
        style = f'font-size="13" font-weight="bold" font-family="sans-serif" fill="{line}"' if not k else \
            f'font-size="11" fill="{"#5f6368" if k == 1 and box.type else "#202124"}"'
        texts.append(f'<text x="{left + width / 2:.1f}" y="{baseline(top, k):.1f}" text-anchor="middle" {style}>{escape(text)}</text>')
    tooltip = "\n".join([box.name, *(t for t in (box.type, box.expression, box.formula, box.value) if t)])
    return (f'<g data-box="{i}" class="{box.kind}"><title>{escape(tooltip)}</title>{shadow if box.kind == "fold" else ""}'
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}" fill="{fill}" stroke="{line}"/>'
            f'{"".join(texts)}</g>')


INCH = 96.0  # units of the SVG
LARGEST = 30000  # dots of a side


def png_of(view: GraphView, caption: str, dpi: int) -> bytes:
    """The PNG of a view with its caption, in fewer dots per inch if a side would be too long."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
        from matplotlib.path import Path
    except ImportError:
        raise ImportError("a picture as PNG needs matplotlib: pip install 'symgrad[visual]'; SVG and HTML need nothing") from None
    found = arranged(view)
    width, height = max(found.width, MARGIN + 6.7 * len(caption)), found.height + LEGEND
    figure = Figure(figsize=(width / INCH, height / INCH))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    for curve in found.curves:
        colour, thick, dashes = EDGES[curve.kind]
        style: Any = "solid" if not dashes else (0, (4, 3))
        path = Path(curve.points, [Path.MOVETO, *[Path.CURVE4] * (len(curve.points) - 1)])
        axes.add_patch(FancyArrowPatch(path=path, arrowstyle="-|>", mutation_scale=8, color=colour, linewidth=0.75 * thick, linestyle=style,
                                       shrinkA=0, shrinkB=0, zorder=1))
    for box, (left, top, wide, tall), lines in zip(view.boxes, found.rectangles, found.lines):
        fill, line = colours_of(box)
        for shift in (4, 0) if box.kind == "fold" else (0,):
            axes.add_patch(FancyBboxPatch((left + shift, top + shift), wide, tall, facecolor=fill, edgecolor=line, linewidth=0.75, zorder=2,
                                          boxstyle=f"round,pad=0,rounding_size={12 if box.kind == 'leaf' else 3}"))
        for k, text in enumerate(lines):
            axes.text(left + wide / 2, baseline(top, k), text, ha="center", va="baseline", fontsize=8.25 if k else 9.75, zorder=3,
                      family="monospace" if k else "sans-serif", weight="normal" if k else "bold", color="#202124" if k else line, parse_math=False)
    axes.text(MARGIN, height - 8, caption, fontsize=8.25, family="monospace", color="#5f6368", parse_math=False)
    stream = io.BytesIO()
    figure.set_dpi(min(dpi, int(LARGEST * INCH / max(width, height))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a character that the font does not have is drawn as a box
        FigureCanvasAgg(figure).print_png(stream)
    return stream.getvalue()
