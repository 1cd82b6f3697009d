"""The rule tables. Importing this package fills the registry."""

from symgrad.ops import arithmetic, elementary, indexing, linalg, neural, reduction, shape, writing

__all__ = ["arithmetic", "elementary", "indexing", "linalg", "neural", "reduction", "shape", "writing"]
