"""Matrix calculus: compact formulas of values, gradients and Hessians of vectors and matrices."""

from symgrad.engine.traced import traced
from symgrad.matrixcalc.confirming import Disagreement
from symgrad.matrixcalc.expression import MatrixExpression, matrix_expr, matrix_gradient, matrix_hessian
from symgrad.matrixcalc.terms import NoCompactForm

inv, det, solve, logdet = traced.linalg_inv, traced.linalg_det, traced.linalg_solve, traced.logdet

__all__ = ["Disagreement", "MatrixExpression", "NoCompactForm", "det", "inv", "logdet", "matrix_expr", "matrix_gradient", "matrix_hessian", "solve"]
