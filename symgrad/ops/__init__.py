"""The rule tables. Importing this package fills the registry."""

from symgrad.ops import (
    arithmetic,
    arranging,
    elementary,
    fourier,
    indexing,
    linalg,
    mixed,
    neural,
    parts,
    placing,
    reduction,
    selection,
    shape,
    special,
    statistics,
    writing,
)

__all__ = ["arithmetic", "arranging", "elementary", "fourier", "indexing", "linalg", "mixed", "neural", "parts", "placing", "reduction",
           "selection", "shape", "special", "statistics", "writing"]
