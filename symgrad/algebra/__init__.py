"""Symbolic algebra: a zero test for the difference of two expressions, and numerically stable forms."""
