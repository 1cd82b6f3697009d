"""Matrix calculus: compact formulas of values, gradients and Hessians of vectors and matrices."""

from symgrad.symbolic.matrices.confirming import Disagreement
from symgrad.symbolic.matrices.expression import MatrixExpression, matrix_expr, matrix_gradient, matrix_hessian
from symgrad.symbolic.matrices.linalg import det, inv, logdet, solve
from symgrad.symbolic.matrices.terms import NoCompactForm

__all__ = ["Disagreement", "MatrixExpression", "NoCompactForm", "det", "inv", "logdet", "matrix_expr", "matrix_gradient", "matrix_hessian", "solve"]
