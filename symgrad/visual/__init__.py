"""Pictures of recorded graphs: values, formulas and gradients as SVG, HTML, PNG, DOT, Mermaid and LaTeX."""

from symgrad.visual.picture import Picture, graph

__all__ = ["Picture", "graph"]
