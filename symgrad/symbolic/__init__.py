"""Conversion between code and formulas: ops from formulas, functions as formulas, and matrix calculus."""
