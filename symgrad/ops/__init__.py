"""The rule tables. Importing this package fills the registry."""

from symgrad.ops import (
    arithmetic,
    arranging,
    elementary,
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

__all__ = ["arithmetic", "arranging", "elementary", "indexing", "linalg", "matrices", "mixed", "neural", "parts", "placing", "reduction",
           "selection", "shape", "special", "writing"]
