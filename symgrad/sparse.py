"""SciPy's sparse matrices and linear operators with Tensors: products, and solutions of systems, differentiable to any order in both modes.

`A @ x` and `x @ A` work with a sparse matrix and a Tensor, and `x @ A` with a `LinearOperator`; `symgrad.sparse.matmul(A, x)` is its product from the
left, where SciPy would convert the Tensor. A matrix whose elements are differentiated is a `Matrix`: the places of a SciPy matrix and a Tensor of
values.

>>> import numpy as np, scipy.sparse, symgrad
>>> A = scipy.sparse.csr_array(np.array([[2.0, 0.0], [1.0, 4.0]]))
>>> symgrad.func.hessian(lambda x: x @ (A @ x))(symgrad.ones(2))
tensor([[4., 1.],
        [1., 8.]])
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from symgrad.engine.data import as_value
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.func.foreign import foreign

__all__ = ["Matrix", "matmul", "spsolve"]


class Pattern:
    """The places of the elements of a sparse matrix, in the order of its columns."""

    def __init__(self, matrix: Any):
        self.matrix = matrix  # a csc_array, of which the places are read
        self.factored: tuple[np.ndarray, Any] | None = None  # the values of the last factorization, and its factors

    @functools.cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """The row and the column of each element."""
        return self.matrix.indices, np.repeat(np.arange(self.matrix.shape[1]), np.diff(self.matrix.indptr))

    def with_values(self, values: np.ndarray) -> Any:
        """The sparse matrix with other values."""
        own = self.matrix
        return own if values is own.data else scipy.sparse.csc_array((values, own.indices, own.indptr), own.shape)

    def factors(self, values: np.ndarray) -> Any:
        """The LU factors of the matrix with other values, from the last call if the values are the same."""
        if self.factored is None or self.factored[0].dtype != values.dtype or not np.array_equal(self.factored[0], values):
            self.factored = values.copy(), scipy.sparse.linalg.splu(self.with_values(values))
        return self.factored[1]


kernel = functools.partial(foreign, nondiff_argnums=(0, 1))


@kernel
def product(pattern: Pattern, transposed: bool, values: Any, x: Any) -> Any:
    """A x, or Aᵀ x."""
    matrix = pattern.with_values(values)
    return (matrix.T if transposed else matrix) @ x


def _elements(pattern: Pattern, transposed: bool, a: Tensor, b: Tensor, like: Any) -> Tensor | None:
    """The elements of the matrix a bᴴ at the places of a pattern, the cotangent of its values; None for values without a derivative."""
    if not isinstance(like, Tensor):
        return None
    rows, columns = pattern.places[::-1] if transposed else pattern.places
    found = a[rows] * b[columns].conj()
    return _fitted(found.sum(-1) if found.ndim > 1 else found, like)


def _conj(values: Any) -> Any:
    return values.conj() if isinstance(values, Tensor) or values.dtype.kind == "c" else values  # NumPy copies a real array


def _fitted(c: Tensor, like: Any) -> Tensor:
    """The real part of a cotangent of a real argument."""
    return c if like.is_complex() or not c.is_complex() else c.real


def _pull_product(pattern: Pattern, transposed: bool, residuals: Any, g: Tensor) -> tuple:
    values, x = residuals
    return _elements(pattern, transposed, g, x, values), _fitted(product(pattern, not transposed, _conj(values), g), x)


def _push_product(pattern: Pattern, transposed: bool, primals: tuple, tangents: tuple) -> tuple:
    (values, x), (tv, tx) = primals, tangents
    t = product(pattern, transposed, values, tx)
    return product(pattern, transposed, *primals), t + product(pattern, transposed, tv, x) if isinstance(values, Tensor) else t


product.defvjp(lambda pattern, transposed, values, x: (product(pattern, transposed, values, x), (values, x)), _pull_product)
product.defjvp(_push_product)


@product.defformula
def _sum_of_products(pattern: Pattern, transposed: bool, values: Any, x: Tensor) -> Tensor:
    rows, columns = pattern.places[::-1] if transposed else pattern.places
    values = values if isinstance(values, Tensor) else wrap(values)
    terms = (values[:, None] if x.ndim > 1 else values) * x[columns]
    return traced.index_add(wrap(np.zeros((pattern.matrix.shape[transposed], *x.shape[1:]), terms._value.dtype)), 0, wrap(rows), terms)


def _by_columns(kernel: Any) -> None:
    """Define the values of a batch of right-hand sides: they are columns of one."""
    @kernel.defvmap
    def rule(info: Any, in_dims: Any, *args: Any) -> Any:
        *rest, x = args
        if any([d is not None for d in in_dims[:-1]]):
            return NotImplemented
        columns = np.moveaxis(x, 0, 1)
        found = kernel.kernel(*rest, columns.reshape((len(columns), -1)))
        return found.reshape((len(found), *columns.shape[1:])), 1


@kernel
def solution(pattern: Pattern, transposed: bool, values: Any, b: Any) -> Any:
    """A⁻¹ b, or A⁻ᵀ b."""
    dtype = np.result_type(values, b)
    return pattern.factors(values.astype(dtype)).solve(b.astype(dtype), "T" if transposed else "N")


def _pull_solution(pattern: Pattern, transposed: bool, residuals: Any, g: Tensor) -> tuple:
    values, b, y = residuals
    back = solution(pattern, not transposed, _conj(values), g)
    return _elements(pattern, transposed, -back, y, values), _fitted(back, b)


def _push_solution(pattern: Pattern, transposed: bool, primals: tuple, tangents: tuple) -> tuple:
    values, b = primals
    tv, tb = tangents
    y = solution(pattern, transposed, values, b)
    return y, solution(pattern, transposed, values, tb - product(pattern, transposed, tv, y) if isinstance(values, Tensor) else tb)


def _solved(pattern: Pattern, transposed: bool, values: Any, b: Tensor) -> tuple:
    y = solution(pattern, transposed, values, b)
    return y, (values, b, y)


solution.defvjp(_solved, _pull_solution)
solution.defjvp(_push_solution)


@solution.defformula
def _dense_solution(pattern: Pattern, transposed: bool, values: Any, b: Tensor) -> Tensor:
    identity = wrap(np.eye(pattern.matrix.shape[0]))
    dense = _sum_of_products(pattern, transposed, values, identity)
    return traced.linalg_solve(dense.to(b.dtype), b)


@kernel
def application(operator: Any, adjoint: bool, x: Any) -> Any:
    """A x, or Aᴴ x, for a linear operator."""
    if x.ndim == 1:
        return operator.rmatvec(x) if adjoint else operator.matvec(x)
    return operator.rmatmat(x) if adjoint else operator.matmat(x)


application.defvjp(lambda A, adjoint, x: (application(A, adjoint, x), x), lambda A, adjoint, x, g: (_fitted(application(A, not adjoint, g), x),))
application.defjvp(lambda A, adjoint, primals, tangents: (application(A, adjoint, *primals), application(A, adjoint, *tangents)))
for _kernel in (product, solution, application):
    _by_columns(_kernel)


class Matrix:
    """A sparse matrix with the places of a SciPy matrix and a Tensor of values, which are differentiated.

    The values stand in the order of `matrix.data` for a matrix in CSR or CSC format, and of its conversion to CSR for any other; without values they
    are those of the matrix. Products with `@` and `spsolve` are differentiable by the values as by the vectors, `T` is the transpose.

    >>> import scipy.sparse, symgrad
    >>> places = scipy.sparse.csr_array([[1.0, 1.0], [0.0, 1.0]])
    >>> def energy(values):
    ...     return (symgrad.sparse.Matrix(places, values) @ symgrad.tensor([1.0, 2.0])).square().sum()
    >>> symgrad.func.grad(energy)(symgrad.tensor([3.0, 4.0, 5.0]))
    tensor([22., 44., 40.])
    """

    __array_ufunc__ = None  # NumPy leaves its products to this class

    def __init__(self, matrix: Any, values: Any = None):
        self.transposed = not matrix.format == "csc"
        by_columns = matrix.tocsr().T if self.transposed else matrix
        self.pattern = Pattern(by_columns)
        self.values = by_columns.data if values is None else values
        if tuple(self.values.shape) != by_columns.data.shape:
            raise ValueError(f"sparse.Matrix: values of shape {list(self.values.shape)} for {len(by_columns.data)} stored elements; one for each")

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return self.pattern.matrix.shape[::-1] if self.transposed else self.pattern.matrix.shape

    @property
    def T(self) -> Matrix:
        """The transpose."""
        out: Matrix = object.__new__(Matrix)
        out.transposed, out.pattern, out.values = not self.transposed, self.pattern, self.values
        return out

    def tocsr(self) -> Any:
        """The matrix of SciPy, with the values as numbers."""
        matrix = self.pattern.with_values(as_value(self.values))
        return (matrix.T if self.transposed else matrix).tocsr()

    def __matmul__(self, x: Any) -> Tensor:
        return matmul(self, x)

    def __rmatmul__(self, x: Any) -> Tensor:
        return matmul(x, self)


def _is_sparse(x: Any) -> bool:
    return isinstance(x, Matrix) or scipy.sparse.issparse(x)


def matmul(a: Any, b: Any) -> Tensor:
    """The product of a sparse matrix or a linear operator with a vector or a matrix of columns, or of a tensor with a sparse matrix or an operator.

    Raises RuntimeError for shapes that do not match; NotImplementedError for the pullback of an operator that does not define its adjoint.

    >>> import scipy.sparse, symgrad
    >>> double = scipy.sparse.linalg.aslinearoperator(2 * scipy.sparse.eye_array(3))
    >>> symgrad.sparse.matmul(double, symgrad.ones(3, requires_grad=True))
    tensor([2., 2., 2.], grad_fn=<applicationBackward>)
    """
    left = _is_sparse(a) or not isinstance(a, Tensor) and hasattr(a, "matvec")
    matrix, x = (a, b) if left else (b, a)
    x = x if isinstance(x, Tensor) else wrap(as_value(x))
    size = matrix.shape[1 if left else 0]
    if not x.ndim or x.shape[0 if left else -1] != size or left and x.ndim > 2:
        shapes = [tuple(matrix.shape), tuple(x.shape)]
        raise RuntimeError("sparse.matmul: the shapes {} and {} do not match; the tensor on the right is a vector or a matrix of columns".format(
            *(shapes if left else shapes[::-1])))
    if not left:
        rows = x.reshape(-1, size)
        return matmul(matrix.T, rows.T).T.reshape(*x.shape[:-1], matrix.shape[1])
    if not _is_sparse(matrix):
        return application(matrix, False, x)
    matrix = matrix if isinstance(matrix, Matrix) else Matrix(matrix)
    return product(matrix.pattern, matrix.transposed, matrix.values, x)


def spsolve(A: Any, b: Any) -> Tensor:
    """The solution x of A x = b for a sparse square matrix, of SciPy or a `Matrix`, by SuperLU; b is a vector or a matrix of columns.

    It is differentiable by b, and by the values of a `Matrix`: the pullback solves with the transposed factors, of which there is one computation for
    all derivatives at the same values. Raises RuntimeError for a singular matrix and for shapes that do not match.

    >>> import scipy.sparse, symgrad
    >>> A = scipy.sparse.csr_array([[2.0, 0.0], [1.0, 4.0]])
    >>> def total(values, b):
    ...     return symgrad.sparse.spsolve(symgrad.sparse.Matrix(A, values), b).sum()
    >>> symgrad.func.grad(total, (0, 1))(symgrad.tensor(A.data), symgrad.ones(2))
    (tensor([-0.1875, -0.1250, -0.0312]), tensor([0.3750, 0.2500]))
    """
    matrix = A if isinstance(A, Matrix) else Matrix(A)
    b = b if isinstance(b, Tensor) else wrap(as_value(b))
    if matrix.shape[0] != matrix.shape[1] or b.ndim not in (1, 2) or b.shape[0] != matrix.shape[0]:
        raise RuntimeError(f"sparse.spsolve: the shapes {tuple(matrix.shape)} and {tuple(b.shape)} are not a square matrix and its right sides")
    return solution(matrix.pattern, matrix.transposed, matrix.values, b)
