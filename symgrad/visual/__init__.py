"""Pictures of recorded graphs: values, formulas and gradients as SVG, HTML, PNG, DOT and Mermaid."""

from symgrad.visual.picture import Picture, graph

__all__ = ["Picture", "graph"]
