"""Linear algebra with the names, arguments and errors of `torch.linalg`; leading axes are a batch, and every function is differentiable to any order.

>>> import symgrad
>>> A = symgrad.tensor([[4.0, 2.0], [2.0, 3.0]], requires_grad=True)
>>> symgrad.linalg.solve(A, symgrad.tensor([2.0, 3.0]))
tensor([0., 1.], grad_fn=<SqueezeBackward1>)
"""

from __future__ import annotations

import operator
from typing import Any

from symgrad.arguments import check_range
from symgrad.dtypes.dtype import finfo
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.errors import LinAlgError
from symgrad.factories.random_tensors import randn
from symgrad.ops.matrices import check_matrix, check_square
from symgrad.ops.rules import every

NAMES = """
cholesky cholesky_ex cond cross det diagonal eig eigh eigvals eigvalsh inv inv_ex ldl_factor ldl_factor_ex ldl_solve lstsq lu lu_factor lu_factor_ex
lu_solve matrix_norm matrix_rank multi_dot norm pinv qr slogdet solve solve_ex solve_triangular svd svdvals tensorinv tensorsolve vander vecdot
vector_norm
""".split()

__all__ = [*NAMES, "LinAlgError", "householder_product", "matmul", "matrix_exp", "matrix_power"]  # noqa: PLE0604  derived from the list above

qr, svd, eigh, cholesky, solve_triangular = (getattr(traced, f"linalg_{name}") for name in ("qr", "svd", "eigh", "cholesky", "solve_triangular"))
globals().update({name: getattr(traced, f"linalg_{name}") for name in NAMES})
householder_product, matmul, matrix_exp, matrix_power = traced.householder_product, traced.matmul, traced.matrix_exp, traced.matrix_power


# Parts of a decomposition, which torch has in its top module


def _basis(a: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal columns that nearly span the largest part of the range of a matrix, by products with random columns."""
    def orthonormal(x: Any) -> Any:
        factors = qr(x)
        sizes = traced.abs(traced.diagonal(factors.R.detach(), 0, -2, -1))
        least = finfo(a.dtype).eps * max(x.shape[-2:])
        if a.requires_grad and sizes.numel() and every(sizes.amin(-1) <= least * sizes.amax(-1)).any():
            raise RuntimeError(f"svd_lowrank: the rank of the matrix is less than q = {q}, so that some of the singular vectors are not unique and "
                               f"have no derivative. Choose a smaller q, or detach the matrix.")
        return factors.Q

    out = orthonormal(a @ randn(a.shape[-1], q, dtype=a.dtype))
    for _ in range(niter):
        out = orthonormal(a @ orthonormal(a.mH @ out))
    return out


def _count(name: str, what: str, value: Any, most: int | None = None) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: {what} must be an integer, not {type(value).__name__} ({value!r})") from None
    check_range(name, what, number, 0, most, ValueError)
    return number


@taking_tensors
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The largest q singular values S of A, or of A - M, with their vectors: A is nearly U diag(S) Vᴴ.

    They are those of A on the span of random columns, which `niter` products with A and Aᴴ turn towards the largest ones; `symgrad.manual_seed`
    decides about the columns. A is (..., m, n), U (..., m, q), S (..., q) and V (..., n, q); more than min(m, n) there are not. All three are
    differentiable by A and M.

    Raises RuntimeError for tensors that are no matrices of floats, and for the derivative of a matrix of a rank below q; ValueError for negative
    numbers.

    >>> import symgrad
    >>> _ = symgrad.manual_seed(0)
    >>> symgrad.svd_lowrank(symgrad.tensor([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0]]), q=2)[1].round(decimals=6)
    tensor([3., 2.])

    Source: N. Halko, P.-G. Martinsson and J. A. Tropp, Finding structure with randomness (2011), algorithms 4.4 and 5.1.
    """
    check_matrix("svd_lowrank", A)
    count, steps = _count("svd_lowrank", "q", 6 if q is None else q), _count("svd_lowrank", "niter", 2 if niter is None else niter)
    a: Any = A if M is None else A - traced.broadcast_to(M, tuple(A.shape))
    wide = a.shape[-2] < a.shape[-1]
    a = a.mH if wide else a
    basis: Any = _basis(a, count, steps)
    u, s, vh = svd(basis.mH @ a, full_matrices=False)
    return (vh.mH, s, basis @ u) if wide else (basis @ u, s, vh.mH)


@taking_tensors
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """The principal components of the rows of A: `svd_lowrank` of A, with the mean of its rows subtracted unless `center` is False.

    The columns of V are the principal directions, and S² / (m - 1) the variances along them, largest first. q is min(6, m, n) if it is not given.

    Raises ValueError for a q above min(m, n) and for negative numbers, otherwise as `svd_lowrank`.

    >>> import symgrad
    >>> u, s, v = symgrad.pca_lowrank(symgrad.tensor([[1.0, 5.0], [3.0, 5.0], [5.0, 5.0]]), q=1)
    >>> s.numel(), abs(s.item() ** 2 / 2 - 4) < 1e-12
    (1, True)

    Source: N. Halko, P.-G. Martinsson and J. A. Tropp, Finding structure with randomness (2011).
    """
    check_matrix("pca_lowrank", A)
    most = min(A.shape[-2:])
    count, steps = _count("pca_lowrank", "q", min(6, most) if q is None else q, most), _count("pca_lowrank", "niter", niter)
    return svd_lowrank(A, count, steps, traced.mean(A, -2, True) if center else None)


@taking_tensors
def lobpcg(A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None, iK: Tensor | None = None,
           niter: int | None = None, tol: float | None = None, largest: bool | None = None, method: str | None = None, tracker: Any = None,
           ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) eigenvalues E of A X = B X E for a Hermitian A and a positive definite B, and the vectors X, Xᴴ B X = I.

    A and B are (..., m, m), and only their lower triangles are read; E is (..., k) and X (..., m, k); k is 1, or the number of columns of `X`, if it
    is not given, and E descends unless `largest` is False. All eigenvalues are computed directly, so that there is no least size of A, and that what
    steers torch's iterations (`X`, `n`, `iK`, `niter`, `tol`, `method` and the parameters of the orthogonalization) is accepted and changes nothing.
    A derivative of vectors raises RuntimeError where two eigenvalues of A are equal.

    Raises ValueError for a k that is not from 1 to m, RuntimeError for matrices that are not square, NotImplementedError for a `tracker`.

    >>> import symgrad
    >>> values, vectors = symgrad.lobpcg(symgrad.tensor([[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 1.0]]), 2)
    >>> values.round(decimals=6)
    tensor([3., 2.])

    Source: A. V. Knyazev, Toward the optimal preconditioned eigensolver (2001), for the problem and its arguments.
    """
    if tracker is not None:
        raise NotImplementedError("lobpcg: there are no iterations that a tracker could follow, since the eigenvalues are computed directly; "
                                  "leave it out")
    for matrix in (A,) if B is None else (A, B):
        check_square("lobpcg", matrix)
    count = _count("lobpcg", "k", k if k is not None else 1 if X is None else X.shape[-1])
    check_range("lobpcg", "k", count, 1, A.shape[-1], ValueError)
    if B is None:
        values, vectors = eigh(A)
    else:
        factor: Any = cholesky(B)
        half = solve_triangular(factor, traced.hermitian_matrix(A), upper=False)
        values, vectors = eigh(solve_triangular(factor, half.mH, upper=False))
        vectors = solve_triangular(factor.mH, vectors, upper=True)
    if largest is None or largest:
        return values.flip(-1)[..., :count], vectors.flip(-1)[..., :count]
    return values[..., :count], vectors[..., :count]
