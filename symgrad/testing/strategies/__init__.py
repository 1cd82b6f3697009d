"""Strategies of hypothesis for numbers, arrays, matrices, trees and programs."""

from symgrad.testing.strategies.arrays import arrays, tied_arrays
from symgrad.testing.strategies.indexing import axes, indices, permutations
from symgrad.testing.strategies.matrices import degenerate, ill_conditioned, low_rank, orthogonal, positive_definite, singular, symmetric, triangular
from symgrad.testing.strategies.numbers import edges, numbers
from symgrad.testing.strategies.programs import DrawnProgram, programs
from symgrad.testing.strategies.shapes import broadcastable_shapes, shapes
from symgrad.testing.strategies.tangents import tangents
from symgrad.testing.strategies.trees import pytrees

__all__ = ["arrays", "axes", "broadcastable_shapes", "degenerate", "edges", "ill_conditioned", "indices", "low_rank", "numbers",
           "orthogonal", "permutations", "positive_definite", "DrawnProgram", "programs", "pytrees", "shapes", "singular", "symmetric", "tangents",
           "tied_arrays", "triangular"]
