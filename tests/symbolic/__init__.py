"""Tests of expressions, parsing, printers, `op_from_sympy` and matrix calculus."""
