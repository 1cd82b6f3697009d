"""Orthogonal factors as products of reflections I - tau v vᴴ: their computation, as in LAPACK, and their application; leading axes are a batch.

Source: G. H. Golub and C. F. Van Loan, Matrix Computations (2013), 5.1 and 5.2; R. Schreiber and C. F. Van Loan, A storage-efficient WY
representation for products of Householder transformations (1989).
"""

from symgrad.arguments import check_dims, check_least_rank, check_one_dtype, check_range, check_shapes
from symgrad.graph import return_types
from symgrad.graph.op import composite
from symgrad.ops.matrices import adjoint, check_matrix, imaginary_part, real_part
from symgrad.ops.rules import every, is_complex


def _reflection(xp, column):
    """The element beta, tau, and v below its first element 1, of the reflection with which a column becomes (beta, 0, ..., 0), beta real."""
    first, below = column[..., :1, :], column[..., 1:, :]
    real = real_part(xp, first)
    rest = xp.sum(xp.abs(below.detach()), -2, True)
    still = xp.eq(rest + xp.abs(imaginary_part(xp, first.detach())) if is_complex(column) else rest, 0)
    if column.requires_grad and (below.shape[-2] or is_complex(column)) and every(still).any():
        raise RuntimeError("geqrf: a column is zero below the diagonal before its reflection, which is none there and no limit of those next to "
                           "it: it has no derivative. Use linalg.qr, or detach the matrix.")
    length = xp.norm(column, 2, (-2,), True)
    beta = xp.where(xp.lt(real, 0), length, -length)
    beta = xp.where(still, real, beta)
    safe = xp.where(still, xp.ones_like(real), beta)
    tau = (beta - first) / safe
    return beta.to(column.dtype), xp.where(still, xp.zeros_like(tau), tau), below / xp.where(still, xp.ones_like(first), first - beta)


@composite("geqrf", usage="symgrad.geqrf(a).a")
def geqrf(xp, input):
    """The triangle R of a matrix Q R, the reflections of Q below it, from whose columns an element 1 is left out, and their factors tau.

    `householder_product` and `ormqr` read them. A derivative by a column that is zero below the diagonal raises RuntimeError.
    """
    check_matrix("geqrf", input)
    done, factors, rest, axis = [], [], input, input.ndim - 1
    for i in range(min(input.shape[-2:])):
        beta, tau, below = _reflection(xp, rest[..., i:i + 1])
        v, later = xp.cat([xp.ones_like(beta), below], axis - 1), rest[..., i + 1:]
        later = later - xp.conj(tau) * v * xp.matmul(adjoint(xp, v), later) if later.shape[-1] else later
        done.append(xp.cat([rest[..., :1, :i], beta, later[..., :1, :]], axis))
        rest = xp.cat([rest[..., 1:, :i], below, later[..., 1:, :]], axis)
        factors.append(tau[..., 0])
    if not factors:
        return return_types.geqrf((xp.clone(input), xp.zeros_like(input, (*input.shape[:-2], 0))))
    return return_types.geqrf((xp.cat([*done, rest], axis - 1), xp.cat(factors, axis - 1)))


def _first_columns(xp, a, k):
    """The first k columns of the identity with as many rows as a matrix has."""
    return xp.getitem(xp.eye_like(a, a.shape[-2]), (slice(None), slice(0, k)))


def _reflected(xp, name, a, tau, other, adjoined):
    """The product Q of reflections I - tau v vᴴ with other columns, or with `adjoined` that of Qᴴ.

    It is I - V T Vᴴ, where T (I + D U) = D for the diagonal matrix D of the tau and the part U of VᴴV above the diagonal, or for Qᴴ below it.
    """
    check_least_rank(name, a, 2)
    check_one_dtype(name, a, tau)
    check_dims(name, tau, a.ndim - 1, word="tau")
    k = tau.shape[-1]
    check_range(name, "the number of tau", k, high=min(a.shape[-2:]))
    v = xp.tril(a if k == a.shape[-1] else a[..., :k], -1) + _first_columns(xp, a, k)
    back, scale = adjoint(xp, v), (xp.conj(tau) if adjoined else tau).unsqueeze(-1)
    gram = xp.matmul(back, v)
    part = xp.tril(gram, -1) if adjoined else xp.triu(gram, 1)
    return other - xp.matmul(v, xp.solve_triangle(scale * part, scale * xp.matmul(back, other), not adjoined, True))


@composite("householder_product", arity=2, public=False)
def householder_product(xp, A, tau):
    """The first columns of the product of reflections I - tau_i v_i v_iᴴ; v_i has 1 in row i and the elements of column i of A below."""
    check_matrix("linalg.householder_product", A)
    check_range("linalg.householder_product", "the number of columns", A.shape[-1], high=A.shape[-2])
    return _reflected(xp, "linalg.householder_product", A, tau, _first_columns(xp, A, A.shape[-1]), False)


@composite("orgqr", arity=2, usage="symgrad.orgqr(a.T, symgrad.tensor([0.5, 0.25]))")
def orgqr(xp, input, tau):
    """The first columns of the product of reflections, as `linalg.householder_product`."""
    return householder_product(xp, input, tau)


@composite("ormqr", arity=3, usage="symgrad.ormqr(a.T, symgrad.tensor([0.5, 0.25]), a.T)")
def ormqr(xp, input, tau, other, left=True, transpose=False):
    """The product of reflections Q with a matrix: Q other, or other Q with `left=False`; Qᴴ in place of Q with `transpose`."""
    if not left:
        return adjoint(xp, ormqr(xp, input, tau, adjoint(xp, other), True, not transpose))
    check_one_dtype("ormqr", input, tau, other)
    check_dims("ormqr", other, input.ndim, word="other")
    check_shapes("ormqr", "(...,n,k),(...,n,m)", input, other)
    return _reflected(xp, "ormqr", input, tau, other, transpose)
