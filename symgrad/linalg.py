"""Linear algebra with the names, arguments and errors of `torch.linalg`; leading axes are a batch, and every function is differentiable to any order.

>>> import symgrad
>>> A = symgrad.tensor([[4.0, 2.0], [2.0, 3.0]], requires_grad=True)
>>> symgrad.linalg.solve(A, symgrad.tensor([2.0, 3.0]))
tensor([0., 1.], grad_fn=<SqueezeBackward1>)
"""

from symgrad.engine.traced import traced

NAMES = """
cholesky cholesky_ex cond cross det diagonal eig eigh eigvals eigvalsh inv inv_ex lstsq lu lu_factor lu_factor_ex lu_solve matrix_norm matrix_rank
multi_dot norm pinv qr slogdet solve solve_ex solve_triangular svd svdvals tensorinv tensorsolve vander vecdot vector_norm
""".split()

__all__ = [*NAMES, "householder_product", "matmul", "matrix_exp", "matrix_power"]  # noqa: PLE0604  derived from the list above

globals().update({name: getattr(traced, f"linalg_{name}") for name in NAMES})
householder_product, matmul, matrix_exp, matrix_power = traced.householder_product, traced.matmul, traced.matrix_exp, traced.matrix_power
