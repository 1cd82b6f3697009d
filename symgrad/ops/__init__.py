"""The rule tables. Importing this package fills the registry."""

from symgrad.ops import (
    activations,
    arithmetic,
    arranging,
    elementary,
    elimination,
    factorizations,
    floats,
    fourier,
    indexing,
    linalg,
    matrices,
    matrix_functions,
    mixed,
    neural,
    parts,
    placing,
    reduction,
    selection,
    shape,
    special,
    special_bessel,
    special_integrals,
    special_polynomials,
    spectra,
    statistics,
    writing,
)

__all__ = ["activations", "arithmetic", "arranging", "elementary", "elimination", "factorizations", "floats", "fourier", "indexing", "linalg",
           "matrices", "matrix_functions", "mixed", "neural", "parts", "placing", "reduction", "selection", "shape", "special",
           "special_bessel", "special_integrals", "special_polynomials", "spectra", "statistics", "writing"]
