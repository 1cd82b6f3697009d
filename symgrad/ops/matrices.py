"""Inverses, solutions, determinants, triangular factors and spectra of matrices; leading axes are a batch.

Of a symmetric (Hermitian) matrix one triangle is read, as in LAPACK, and the derivative is that along Hermitian perturbations: a cotangent of the
matrix and a tangent are replaced by their Hermitian parts, so that both modes agree. Eigenvectors have a derivative where the eigenvalues are
different; equal ones raise RuntimeError. The cofactors, which are the derivative of the determinant, and their derivatives are polynomials of the
elements, as the determinant itself: singular matrices have them, too.
Source: M. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008).
"""

import math

from symgrad.arguments import check_kind, check_one_dtype, check_option, check_shapes
from symgrad.errors import UnsupportedDtype
from symgrad.graph import return_types
from symgrad.graph.domains import DISTINCT, NONSINGULAR, REAL, SEPARATED, SPD, SYMMETRIC, TRIANGULAR
from symgrad.graph.op import composite, primitive
from symgrad.ops.linalg import matrix_transpose
from symgrad.ops.rules import is_complex

MATRIX = ((2, 2),)


def conjugate(xp, a):
    """The conjugate. Elements of a real dtype are left as they are, since a formula of them need not show that it is real."""
    dtype = a.dtype
    real = getattr(dtype, "kind", "") == "f" or getattr(dtype, "is_floating_point", False)
    return a if real else xp.conj(a)


def adjoint(xp, a):
    """Aᴴ."""
    return matrix_transpose(xp, conjugate(xp, a))


def hermitian(xp, a):
    return (a + adjoint(xp, a)) / 2


def _triangle(xp, a, upper, unitriangular):
    return xp.triu(a, int(unitriangular)) if upper else xp.tril(a, -int(unitriangular))


def real_part(xp, a):
    return xp.getitem(xp.view_as_real(a), (..., 0)) if is_complex(a) else a


def check_square(name, a, narrow=False):
    check_shapes(name, "(...,n,n)", a)
    check_numbers(name, a, narrow)


def check_matrix(name, a):
    check_shapes(name, "(...,n,m)", a)
    check_numbers(name, a)


def check_equation(name, A, B, left=True):
    """Check that A is square, and B a right-hand side of A X = B, or of X A = B with `left=False`."""
    check_shapes(name, "(...,n,n),(...,n,k)" if left else "(...,n,n),(...,k,n)", A, B)
    check_numbers(name, A)


def check_numbers(name, a, narrow=False):
    """Refuse integers, and dtypes with fewer digits than float32 unless they may be `narrow`."""
    dtype = a.dtype
    if not (getattr(dtype, "is_complex", True) or dtype.is_floating_point and (dtype.itemsize > 2 or narrow)):
        check_kind(name, a, "fc")
        raise UnsupportedDtype(f"{name}: a tensor of {dtype} has too few digits. Convert it with .to(float32)")


# The primitives: words of the carriers, with rules written in each other


def _pull_inverse(xp, g, y, a):
    back = matrix_transpose(xp, y)
    return -xp.matmul(xp.matmul(back, g), back)


primitive("matrix_inverse", lambda xp, input: xp.matrix_inverse(input), vjp=_pull_inverse, jvp=lambda xp, t, y, a: -xp.matmul(xp.matmul(y, t), y),
          public=False, node_name="LinalgInvEx", shapes=MATRIX, domain=NONSINGULAR, doc="The inverse of a matrix.")


def _pull_solution(xp, g, y, a, b):
    back = xp.solve_system(matrix_transpose(xp, a), g)
    return -xp.matmul(back, matrix_transpose(xp, y)), back


primitive("solve_system", lambda xp, input, other: xp.solve_system(input, other), vjp=_pull_solution, arity=2, public=False,
          jvp=lambda xp, ta, tb, y, a, b: xp.solve_system(a, tb - xp.matmul(ta, y)), node_name="LinalgSolveEx", shapes=((2, 2), (2, 1)),
          domain=(NONSINGULAR, REAL), doc="The solution X of A X = B.")


def _pull_substitution(xp, g, y, a, b, upper, unitriangular):
    back = xp.solve_triangle(matrix_transpose(xp, a), g, not upper, unitriangular)
    return -_triangle(xp, xp.matmul(back, matrix_transpose(xp, y)), upper, unitriangular), back


def _push_substitution(xp, ta, tb, y, a, b, upper, unitriangular):
    return xp.solve_triangle(a, tb - xp.matmul(_triangle(xp, ta, upper, unitriangular), y), upper, unitriangular)


primitive("solve_triangle", lambda xp, input, other, upper, unitriangular: xp.solve_triangle(input, other, upper, unitriangular), arity=2,
          vjp=_pull_substitution, jvp=_push_substitution, public=False, node_name="LinalgSolveTriangular", shapes=((2, 2), (2, 1)),
          domain=(TRIANGULAR, REAL), examples=((False, False), (True, False), (False, True)),
          doc="The solution X of A X = B for a triangular matrix A.")


def halved(xp, a):
    """The lower triangle with half of the diagonal."""
    return (xp.tril(a, 0) + xp.tril(a, -1)) / 2


def _pull_cholesky(xp, g, y, a):
    upper = matrix_transpose(xp, y)
    half = xp.solve_triangle(upper, halved(xp, xp.matmul(upper, g)), True, False)
    return hermitian(xp, xp.solve_triangle(upper, adjoint(xp, half), True, False))


def _push_cholesky(xp, t, y, a):
    half = xp.solve_triangle(y, hermitian(xp, t), False, False)
    return xp.matmul(y, halved(xp, xp.solve_triangle(y, adjoint(xp, half), False, False)))


primitive("cholesky_factor", lambda xp, input: xp.cholesky_factor(input), vjp=_pull_cholesky, jvp=_push_cholesky, public=False,
          node_name="LinalgCholeskyEx", shapes=MATRIX, domain=SPD, saved=("result",),
          doc="The lower triangular factor L of a positive definite matrix L Lᴴ.")


primitive("hermitian_matrix", lambda xp, input: xp.hermitian_matrix(input), vjp=lambda xp, g, y, a: hermitian(xp, g),
          jvp=lambda xp, t, y, a: hermitian(xp, t), public=False, shapes=MATRIX, domain=SYMMETRIC, saves=False,
          doc="The Hermitian matrix with the lower triangle of A.")


def scaled_columns(xp, v, w):
    return v * xp.reshape(w, (*w.shape[:-1], 1, w.shape[-1]))


def _pull_eigenvalues(xp, g, y, a):
    v = xp.hermitian_eigenvectors(a)
    return xp.matmul(scaled_columns(xp, v, g), adjoint(xp, v))


def _push_eigenvalues(xp, t, y, a):
    v = xp.hermitian_eigenvectors(a)
    return real_part(xp, xp.sum(xp.conj(v) * xp.matmul(hermitian(xp, t), v), (-2,)))


primitive("hermitian_eigenvalues", lambda xp, input: xp.hermitian_eigenvalues(input), vjp=_pull_eigenvalues, jvp=_push_eigenvalues, public=False,
          node_name="LinalgEigh", shapes=MATRIX, domain=SEPARATED, doc="The eigenvalues of a Hermitian matrix, ascending.")


def imaginary_part(xp, a):
    return xp.getitem(xp.view_as_real(a), (..., 1))


def largest(xp, y):
    """1 at the largest element of every column, which is real and positive, and 0 elsewhere."""
    if not all(y.shape):
        return xp.zeros_like(y)
    rows = xp.cumsum(xp.abs(xp.ones_like(y)), y.ndim - 2) - 1
    return xp.indicator(xp.eq(rows, xp.reshape(xp.argmax(xp.abs(y), -2), (*y.shape[:-2], 1, y.shape[-1]))), y)


def turn_of(xp, change, y):
    """The rates at which columns y turn so that their largest elements stay real, while they change otherwise by `change`."""
    at = largest(xp, y)
    return imaginary_part(xp, xp.sum(change * at, (-2,), True)) / real_part(xp, xp.sum(y * at, (-2,), True))


def pull_turn(xp, g, y, product):
    """The cotangent of columns y before that turn; `product` is the sum of cotangents times conjugate columns, of all that turns with y."""
    at = largest(xp, y)
    return g - 1j * at * (imaginary_part(xp, product) / real_part(xp, xp.sum(y * at, (-2,), True)))


def _pull_eigenvectors(xp, g, y, a):
    if is_complex(y):
        g = pull_turn(xp, g, y, xp.sum(g * y, (-2,), True))
    back = matrix_transpose(xp, y)
    inner = xp.eigenvalue_gaps(xp.hermitian_eigenvalues(a), "linalg.eigh") * xp.matmul(back, g)
    return hermitian(xp, xp.matmul(xp.matmul(xp.conj(y), inner), back))


def _push_eigenvectors(xp, t, y, a):
    inner = xp.matmul(adjoint(xp, y), xp.matmul(hermitian(xp, t), y))
    out = xp.matmul(y, xp.eigenvalue_gaps(xp.hermitian_eigenvalues(a), "linalg.eigh") * inner)
    return out - 1j * y * turn_of(xp, out, y) if is_complex(y) else out


primitive("hermitian_eigenvectors", lambda xp, input: xp.hermitian_eigenvectors(input), vjp=_pull_eigenvectors, jvp=_push_eigenvectors, public=False,
          node_name="LinalgEighBackward1", shapes=MATRIX, domain=SEPARATED, doc="The eigenvectors of a Hermitian matrix, in columns.")


def _pull_gaps(xp, g, y, w, name):
    back = -g * y * y
    return xp.sum(back, (-2,)) - xp.sum(back, (-1,))


def _push_gaps(xp, t, y, w, name):
    return -y * y * (xp.reshape(t, (*t.shape[:-1], 1, t.shape[-1])) - xp.reshape(t, (*t.shape, 1)))


primitive("eigenvalue_gaps", lambda xp, input, name: xp.eigenvalue_gaps(input, name), vjp=_pull_gaps, jvp=_push_gaps, public=False, shapes=((2,),),
          examples=(("linalg.eigh",),), domain=DISTINCT, doc="1 / (w_j - w_i), and 0 on the diagonal.")

primitive("regular", lambda xp, input, name: xp.regular(input, name), vjp=lambda xp, g, y, a, name: g, jvp=lambda xp, t, y, a, name: t, public=False,
          shapes=MATRIX, domain=NONSINGULAR, examples=(("linalg.qr",), ("linalg.eig",)), saves=False,
          doc="The matrix itself, whose columns may not be linearly dependent.")


# The public functions


@composite("linalg_inv", public=False)
def linalg_inv(xp, A):
    """The inverse of a square matrix. Raises RuntimeError for a singular one."""
    check_square("linalg.inv", A)
    return xp.matrix_inverse(A)


@composite("inverse", usage="symgrad.inverse(symgrad.tensor([[2.0, 1.0], [1.0, 3.0]]))")
def inverse(xp, input):
    """The inverse of a square matrix. Raises RuntimeError for a singular one."""
    return xp.linalg_inv(input)


def _is_vector(A, B):
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))


@composite("linalg_solve", arity=2, public=False)
def linalg_solve(xp, A, B, *, left=True):
    """The solution X of A X = B, or of X A = B with `left=False`; B may be a vector. Raises RuntimeError for a singular A."""
    check_square("linalg.solve", A)
    check_one_dtype("linalg.solve", A, B)
    vector = _is_vector(A, B)
    if vector and not left:
        raise RuntimeError("linalg.solve: with left=False B must be a matrix, not a vector")
    b = B.unsqueeze(-1) if vector else B
    check_equation("linalg.solve", A, b, left)
    if not left:
        return matrix_transpose(xp, xp.solve_system(matrix_transpose(xp, A), matrix_transpose(xp, b)))
    out = xp.solve_system(A, b)
    return out.squeeze(-1) if vector else out


@composite("linalg_solve_triangular", arity=2, public=False)
def linalg_solve_triangular(xp, A, B, *, upper, left=True, unitriangular=False):
    """The solution X of A X = B, or of X A = B with `left=False`, for a triangular A, of which the other triangle is not read."""
    check_equation("linalg.solve_triangular", A, B, left)
    upper, unitriangular = bool(upper), bool(unitriangular)
    if left:
        return xp.solve_triangle(A, B, upper, unitriangular)
    return matrix_transpose(xp, xp.solve_triangle(matrix_transpose(xp, A), matrix_transpose(xp, B), not upper, unitriangular))


@composite("linalg_cholesky", public=False)
def linalg_cholesky(xp, A, *, upper=False):
    """The lower triangular factor L of a positive definite matrix A = L Lᴴ, or Lᴴ with `upper`. Raises RuntimeError for another matrix.

    Only the lower triangle of A is read, or with `upper` the upper one. The derivative is that along Hermitian perturbations of A: the gradient is
    Hermitian, and of a tangent the Hermitian part counts.
    """
    check_square("linalg.cholesky", A)
    return adjoint(xp, xp.cholesky_factor(adjoint(xp, A))) if upper else xp.cholesky_factor(A)


@composite("cholesky", usage="symgrad.cholesky(symgrad.tensor([[2.0, 1.0], [1.0, 3.0]]))")
def cholesky(xp, input, upper=False):
    """The lower triangular factor L of a positive definite matrix L Lᴴ, or Lᴴ with `upper`. Raises RuntimeError for another matrix."""
    return xp.linalg_cholesky(input, upper=upper)


@composite("cholesky_solve", arity=2, usage="symgrad.cholesky_solve(symgrad.ones(2, 1), symgrad.tensor([[2.0, 0.0], [1.0, 3.0]]))")
def cholesky_solve(xp, B, L, upper=False):
    """The solution X of A X = B for the Cholesky factor L of A = L Lᴴ, or of A = Lᴴ L with `upper`."""
    check_equation("cholesky_solve", L, B)
    first, second = (adjoint(xp, L), L) if upper else (L, adjoint(xp, L))
    half = xp.linalg_solve_triangular(first, B, upper=False)
    return xp.linalg_solve_triangular(second, half, upper=True)


@composite("cholesky_inverse", usage="symgrad.cholesky_inverse(symgrad.tensor([[2.0, 0.0], [1.0, 3.0]]))")
def cholesky_inverse(xp, L, upper=False):
    """The inverse of A for its Cholesky factor L, A = L Lᴴ, or A = Lᴴ L with `upper`."""
    check_square("cholesky_inverse", L)
    return xp.cholesky_solve(xp.eye_like(L, L.shape[-1]), L, upper)


@composite("linalg_eigvalsh", public=False)
def linalg_eigvalsh(xp, A, UPLO="L"):
    """The eigenvalues of a Hermitian matrix, ascending. Only the lower triangle of A is read, or the upper one with the `UPLO` "U".

    The derivative is that along Hermitian perturbations of A: the gradient is Hermitian, and of a tangent the Hermitian part counts. The first
    derivative exists where the eigenvalue is different from the others, the mean of those of equal ones is right; the second derivative raises
    RuntimeError where two are equal.
    """
    return xp.hermitian_eigenvalues(_read_triangle(xp, "linalg.eigvalsh", A, UPLO))


@composite("linalg_eigh", public=False, joined="LinalgEighBackward0")
def linalg_eigh(xp, A, UPLO="L"):
    """The eigenvalues, ascending, and the eigenvectors, in columns, of a Hermitian matrix.

    Only the lower triangle of A is read, or the upper one with the `UPLO` "U". The derivative is that along Hermitian perturbations of A: the
    gradient is Hermitian, and of a tangent the Hermitian part counts. A derivative of eigenvectors of equal eigenvalues raises RuntimeError.
    """
    A = _read_triangle(xp, "linalg.eigh", A, UPLO)
    return return_types.linalg_eigh((xp.hermitian_eigenvalues(A), xp.hermitian_eigenvectors(A)))


def _read_triangle(xp, name, a, uplo):
    """A matrix whose lower triangle is that of the Hermitian matrix."""
    check_square(name, a)
    check_option(name, "UPLO", str(uplo).upper(), ("L", "U"))
    return adjoint(xp, a) if str(uplo).upper() == "U" else a


def _as_matrices(xp, g):
    """Numbers as matrices of one element."""
    return xp.reshape(g, (*g.shape, 1, 1))


def _trace_of_product(xp, a, b):
    """tr(Aᵀ B)."""
    return xp.sum(a * b, (-2, -1))


primitive("determinant", lambda xp, input: xp.determinant(input), public=False, node_name="LinalgDet", shapes=((3, 3),),
          vjp=lambda xp, g, y, a: _as_matrices(xp, g) * xp.cofactors(a), jvp=lambda xp, t, y, a: _trace_of_product(xp, xp.cofactors(a), t),
          doc="The determinant of a matrix, up to 3 by 3 as the polynomial of its elements.")
primitive("cofactors", lambda xp, input: xp.cofactors(input), public=False, shapes=((3, 3),), vjp=lambda xp, g, y, a: xp.cofactors_along(a, g),
          jvp=lambda xp, t, y, a: xp.cofactors_along(a, t), doc="The derivative of the determinant by the elements, also of a singular matrix.")


def _third_derivative(xp, a, t, g):
    """The derivative of Σ g cofactors_along(a, t) by a. That sum is one of determinants: of a with one row from g and another from t."""
    n = a.shape[-1]
    eye, (x, along, back) = xp.eye_like(a, n), (xp.reshape(m, (*m.shape[:-2], 1, 1, n, n)) for m in (a, t, g))
    of_back, of_along = xp.reshape(eye, (n, 1, n, 1)), xp.reshape(eye, (1, n, n, 1))
    kept = (1 - of_back) * (1 - of_along)
    both = xp.cofactors(x * kept + back * of_back + along * of_along)
    return xp.sum(both * kept * (1 - xp.reshape(eye, (n, n, 1, 1))), (-4, -3))


primitive("cofactors_along", lambda xp, input, tangent: xp.cofactors_along(input, tangent), arity=2, public=False, shapes=((3, 3), (3, 3)),
          vjp=lambda xp, g, y, a, t: (_third_derivative(xp, a, t, g), xp.cofactors_along(a, g)),
          jvp=lambda xp, ta, tt, y, a, t: _third_derivative(xp, a, t, ta) + xp.cofactors_along(a, tt),
          doc="The derivative of the cofactors along a matrix.")
primitive("log_abs_det", lambda xp, input: xp.log_abs_det(input), public=False, node_name="LinalgSlogdet", shapes=MATRIX, domain=NONSINGULAR,
          vjp=lambda xp, g, y, a: _as_matrices(xp, g) * conjugate(xp, xp.log_det_slope(a)),
          jvp=lambda xp, t, y, a: real_part(xp, _trace_of_product(xp, xp.log_det_slope(a), t)), doc="log |det A|.")
primitive("log_det_slope", lambda xp, input: xp.log_det_slope(input), public=False, shapes=MATRIX, domain=NONSINGULAR,
          vjp=lambda xp, g, y, a: -xp.matmul(xp.matmul(y, matrix_transpose(xp, g)), y),
          jvp=lambda xp, t, y, a: -xp.matmul(xp.matmul(y, matrix_transpose(xp, t)), y), doc="A⁻ᵀ, the derivative of log det A.")
primitive("sign_of_det", lambda xp, input: xp.sign_of_det(input), public=False, shapes=MATRIX, domain=NONSINGULAR, doc="det A / |det A|.")


# The public functions


@composite("linalg_det", public=False)
def linalg_det(xp, A):
    """The determinant of a square matrix. Its derivatives are polynomials of the elements, those of a singular matrix are right, too."""
    check_square("linalg.det", A)
    return xp.determinant(A)


@composite("det", usage="symgrad.det(symgrad.tensor([[2.0, 1.0], [1.0, 3.0]]))")
def det(xp, input):
    """The determinant of a square matrix."""
    return xp.linalg_det(input)


def _slogdet(xp, a, kind):
    check_square("linalg.slogdet", a)
    if a.is_complex():
        return kind((xp.sgn(xp.linalg_det(a)), xp.log_abs_det(a)))
    return kind((xp.sign_of_det(a), xp.log_abs_det(a)))


@composite("linalg_slogdet", public=False)
def linalg_slogdet(xp, A):
    """The sign of the determinant and the logarithm of its absolute value, which neither overflow nor underflow."""
    return _slogdet(xp, A, return_types.linalg_slogdet)


@composite("slogdet", usage="symgrad.slogdet(symgrad.tensor([[2.0, 1.0], [1.0, 3.0]]))")
def slogdet(xp, input):
    """The sign of the determinant and the logarithm of its absolute value, which neither overflow nor underflow."""
    return _slogdet(xp, input, return_types.slogdet)


@composite("logdet", usage="symgrad.logdet(symgrad.tensor([[2.0, 1.0], [1.0, 3.0]]))")
def logdet(xp, input):
    """The logarithm of the determinant: NaN for a negative one, -inf for a singular matrix."""
    check_square("logdet", input)
    if input.is_complex():
        return xp.log(xp.linalg_det(input))
    return xp.where(xp.lt(xp.sign_of_det(input), 0), math.nan, xp.log_abs_det(input))
