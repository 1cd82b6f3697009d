"""The rule tables. Importing this package fills the registry."""

from symgrad.ops import (
    activations,
    arithmetic,
    arranging,
    elementary,
    floats,
    fourier,
    indexing,
    linalg,
    matrices,
    mixed,
    neural,
    parts,
    placing,
    reduction,
    selection,
    shape,
    special,
    writing,
)

__all__ = ["activations", "arithmetic", "arranging", "elementary", "floats", "fourier", "indexing", "linalg", "matrices", "mixed", "neural", "parts",
           "placing", "reduction", "selection", "shape", "special", "writing"]
