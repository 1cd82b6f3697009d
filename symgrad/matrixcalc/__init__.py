"""Matrix calculus: compact formulas of values, gradients and Hessians of vectors and matrices."""

from symgrad.matrixcalc.confirming import Disagreement
from symgrad.matrixcalc.expression import MatrixExpression, matrix_expr, matrix_gradient, matrix_hessian
from symgrad.matrixcalc.linalg import det, inv, logdet, solve
from symgrad.matrixcalc.terms import NoCompactForm

__all__ = ["Disagreement", "MatrixExpression", "NoCompactForm", "det", "inv", "logdet", "matrix_expr", "matrix_gradient", "matrix_hessian", "solve"]
