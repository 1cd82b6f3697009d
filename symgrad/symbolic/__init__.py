"""Between code and formulas: ops from formulas, functions as formulas and back, and matrix calculus."""

from symgrad.symbolic.conversion import from_sympy
from symgrad.symbolic.operations import op_from_sympy
from symgrad.symbolic.printers import to_latex
from symgrad.symbolic.sources import to_c, to_jax, to_python, to_torch
from symgrad.symbolic.tracing import to_sympy

__all__ = ["from_sympy", "op_from_sympy", "to_c", "to_jax", "to_latex", "to_python", "to_sympy", "to_torch"]
