"""Linear algebra with the names, arguments and errors of `torch.linalg`; leading axes are a batch, and every function is differentiable to any order.

>>> import symgrad
>>> A = symgrad.tensor([[4.0, 2.0], [2.0, 3.0]], requires_grad=True)
>>> symgrad.linalg.solve(A, symgrad.tensor([2.0, 3.0]))
tensor([0., 1.], grad_fn=<SqueezeBackward1>)
"""

from symgrad.engine.traced import traced

__all__ = ["cholesky", "det", "eigh", "eigvalsh", "inv", "slogdet", "solve", "solve_triangular"]

cholesky, det, eigh, eigvalsh = traced.linalg_cholesky, traced.linalg_det, traced.linalg_eigh, traced.linalg_eigvalsh
inv, slogdet, solve, solve_triangular = traced.linalg_inv, traced.linalg_slogdet, traced.linalg_solve, traced.linalg_solve_triangular
