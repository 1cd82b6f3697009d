"""A picture as SVG, without a network, a style sheet or a script."""

from __future__ import annotations

from html import escape

from symgrad.visual.arranging import MARGIN, Arrangement, EdgeCurve, arranged, baseline
from symgrad.visual.boxes import GraphView, NodeBox

__all__ = ["CAPTIONS", "COLOURS", "EDGES", "LEGEND", "colours_of", "svg_of"]

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
