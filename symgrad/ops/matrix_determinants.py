"""Determinants, their logarithms and their derivatives; leading axes are a batch.

The cofactors, which are the derivative of the determinant, and their derivatives are polynomials of the elements, as the determinant itself: singular
matrices have them, too. The derivative of its logarithm is the transposed inverse.
"""

import math

from symgrad.graph import return_types
from symgrad.graph.domains import NONSINGULAR
from symgrad.graph.op import composite, primitive
from symgrad.ops.linalg import matrix_transpose
from symgrad.ops.matrices import MATRIX, check_square, conjugate, real_part


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
