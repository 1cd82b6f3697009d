"""A picture as PNG, drawn by matplotlib at the places of the SVG."""

from __future__ import annotations

import io
import warnings
from typing import Any

from symgrad.visual.arranging import MARGIN, arranged, baseline
from symgrad.visual.boxes import GraphView
from symgrad.visual.texts import EDGES, LEGEND, colours_of

__all__ = ["png_of"]

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
