"""Eigenvalues and eigenvectors of general matrices, which are complex; leading axes are a batch.

The largest element of an eigenvector is real and positive, so that its derivative is that of one function. The eigenvalues are in LAPACK's order.
Source: M. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008).
"""

from symgrad.graph import return_types
from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import composite, primitive
from symgrad.ops.linalg import matrix_transpose
from symgrad.ops.matrices import MATRIX, adjoint, check_square, pull_turn, turn_of
from symgrad.ops.rules import is_complex


def _first_part(xp, x):
    """The real parts of complex numbers."""
    return xp.getitem(xp.view_as_real(x), (..., 0))


def _of_kind(xp, g, a):
    """The cotangent of a complex matrix as that of one of the kind of `a`."""
    return g if is_complex(a) else _first_part(xp, g)


def _pull_general_eigenvalues(xp, g, y, a):
    back = adjoint(xp, xp.regular(xp.eigenvectors(xp.conj(a)), "linalg.eig"))
    return _of_kind(xp, xp.solve_system(back, xp.reshape(g, (*g.shape, 1)) * back), a)


def _push_general_eigenvalues(xp, t, y, a):
    v = xp.regular(xp.eigenvectors(a), "linalg.eig")
    return xp.sum(matrix_transpose(xp, xp.solve_system(v, t)) * v, (-2,))


primitive("eigenvalues", lambda xp, input: xp.eigenvalues(input), vjp=_pull_general_eigenvalues, jvp=_push_general_eigenvalues, public=False,
          node_name="LinalgEig", shapes=MATRIX, domain=COMPLEX, doc="The eigenvalues of a matrix, complex.")


def _pull_general_eigenvectors(xp, g, y, a):
    v = xp.conj(y)
    product = xp.sum(g * y, (-2,), True)
    g = pull_turn(xp, g, v, product) - v * _first_part(xp, product)
    back = adjoint(xp, v)
    inner = xp.conj(xp.eigenvalue_gaps(xp.eigenvalues(xp.conj(a)), "linalg.eig")) * xp.matmul(back, g)
    return _of_kind(xp, xp.solve_system(back, xp.matmul(inner, back)), a)


def _push_general_eigenvectors(xp, t, y, a):
    out = xp.matmul(y, xp.eigenvalue_gaps(xp.eigenvalues(a), "linalg.eig") * xp.solve_system(y, xp.matmul(t + xp.zeros_like(y), y)))
    return out - y * _first_part(xp, xp.sum(xp.conj(y) * out, (-2,), True)) - 1j * y * turn_of(xp, out, y)


primitive("eigenvectors", lambda xp, input: xp.eigenvectors(input), vjp=_pull_general_eigenvectors, jvp=_push_general_eigenvectors, public=False,
          node_name="LinalgEigBackward1", shapes=MATRIX, domain=COMPLEX, doc="The eigenvectors of a matrix, complex, in columns of length 1.")


@composite("linalg_eigvals", public=False)
def linalg_eigvals(xp, A):
    """The eigenvalues of a square matrix, complex, in the order of LAPACK.

    Those of a matrix without a basis of eigenvectors have no derivative, which raises RuntimeError.
    """
    check_square("linalg.eigvals", A)
    return xp.eigenvalues(A)


@composite("linalg_eig", public=False, joined="LinalgEigBackward0")
def linalg_eig(xp, A):
    """The eigenvalues and the eigenvectors, in columns of length 1, of a square matrix, complex.

    The largest element of an eigenvector is real and positive. A derivative of eigenvectors of equal eigenvalues raises RuntimeError.
    """
    check_square("linalg.eig", A)
    return return_types.linalg_eig((xp.eigenvalues(A), xp.eigenvectors(A)))
