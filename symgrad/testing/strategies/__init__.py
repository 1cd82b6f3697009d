"""Strategies of hypothesis for numbers, arrays, matrices, trees and programs."""

from symgrad.testing.strategies.numbers import edges, numbers

__all__ = ["edges", "numbers"]
