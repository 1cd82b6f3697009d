"""Strategies of hypothesis for numbers, arrays, matrices, trees and programs."""

from symgrad.testing.strategies.arrays import arrays, broadcastable_shapes, edges, numbers, shapes, tangents, tied_arrays
from symgrad.testing.strategies.indexing import axes, indices, permutations, pytrees
from symgrad.testing.strategies.matrices import degenerate, ill_conditioned, low_rank, orthogonal, positive_definite, singular, symmetric, triangular
from symgrad.testing.strategies.programs import DrawnProgram, programs

__all__ = ["arrays", "axes", "broadcastable_shapes", "degenerate", "edges", "ill_conditioned", "indices", "low_rank", "numbers",
           "orthogonal", "permutations", "positive_definite", "DrawnProgram", "programs", "pytrees", "shapes", "singular", "symmetric", "tangents",
           "tied_arrays", "triangular"]
