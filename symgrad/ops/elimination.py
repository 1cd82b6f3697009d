"""Factors by elimination with row exchanges, P L U, and by reflections I - tau v vᴴ, as in LAPACK, and equations solved with the first.

Source: G. H. Golub and C. F. Van Loan, Matrix Computations (2013), 5.1 and 5.2; R. Schreiber and C. F. Van Loan, A storage-efficient WY
representation for products of Householder transformations (1989).
"""

from symgrad.arguments import check_dims, check_least_rank, check_one_dtype, check_range, check_shapes
from symgrad.dtypes.dtype import DTYPES
from symgrad.graph import return_types
from symgrad.graph.domains import NONSINGULAR, SPD, Domain, Interval
from symgrad.graph.op import composite, primitive
from symgrad.layouts.indices import index_array
from symgrad.ops.linalg import matrix_transpose
from symgrad.ops.matrices import MATRIX, adjoint, check_equation, check_matrix, imaginary_part, real_part
from symgrad.ops.matrices import adjoint as conjugate_transpose
from symgrad.ops.rules import every, is_complex

NUMBERS_OF_ROWS = Domain("NUMBERS_OF_ROWS", (Interval(1.0, 3.0),))

# The primitives: words of the carriers


def _pull_factors(xp, g, y, a):
    n = y.shape[-1]
    top, low, g, rest = y[..., :n, :], y[..., n:, :], g[..., :n, :], g[..., n:, :]
    back, below = matrix_transpose(xp, top), xp.tril(g, -1)
    upper = xp.matmul(xp.triu(g, 0), xp.tril(back, 0))
    upper = upper - xp.matmul(matrix_transpose(xp, low), rest) if low.shape[-2] else upper
    inner = xp.tril(below + xp.matmul(xp.triu(back, 1), below), -1) + xp.triu(upper, 0)
    left = xp.solve_triangle(back, inner, True, True)
    left = xp.cat([left, rest], y.ndim - 2) if low.shape[-2] else left
    return matrix_transpose(xp, xp.solve_triangle(top, matrix_transpose(xp, left), True, False))


def _push_factors(xp, t, y, a):
    n = y.shape[-1]
    top, low, t, rest = y[..., :n, :], y[..., n:, :], t[..., :n, :], t[..., n:, :]

    def divided(x):
        """X U⁻¹."""
        return matrix_transpose(xp, xp.solve_triangle(matrix_transpose(xp, top), matrix_transpose(xp, x), False, False))

    inner = divided(xp.solve_triangle(top, t, False, True))
    below, upper = xp.tril(inner, -1), xp.matmul(xp.triu(inner, 0), xp.triu(top, 0))
    out = below + xp.matmul(xp.tril(top, -1), below) + upper
    return xp.cat([out, divided(rest - xp.matmul(low, upper))], y.ndim - 2) if low.shape[-2] else out


primitive("triangular_factors", lambda xp, input: xp.triangular_factors(input), vjp=_pull_factors, jvp=_push_factors, public=False,
          node_name="LinalgLuFactorEx", shapes=MATRIX, domain=SPD, saved=("result",),
          doc="L below U in one array for A = L U with at least as many rows as columns, by elimination without row exchanges.")
primitive("row_exchanges", lambda xp, input: xp.row_exchanges(input), public=False, shapes=MATRIX, domain=NONSINGULAR,
          doc="The rows, from 1, with which an elimination exchanges the first, the second and so on.")
primitive("order_of_rows", lambda xp, input, count: xp.order_of_rows(input, count), public=False, shapes=((2,),), examples=((3,),),
          domain=NUMBERS_OF_ROWS, doc="The order of a number of rows after exchanges.")


def _rows(xp, a, order):
    """The rows in an order, which may differ between the matrices of a batch."""
    if order.ndim == 1 and a.ndim == 2:
        return xp.getitem(a, (index_array(order),))
    front = xp.broadcast_to(a, (*order.shape[:-1], *a.shape[-2:])) if order.ndim + 1 > a.ndim else a
    return xp.take_along_dim(front, xp.broadcast_to(order.unsqueeze(-1), (*front.shape[:-2], order.shape[-1], a.shape[-1])), -2)


def _eliminated(xp, a, name=""):
    """L below U in one array, the row, from 1, with which each row was exchanged, and the order of the rows after all exchanges.

    With a name a zero on the diagonal of U is refused also of a matrix that requires no gradient.
    """
    m, n = a.shape[-2:]
    pivots = xp.row_exchanges(a.detach())
    order = xp.order_of_rows(pivots, m)
    rows = _rows(xp, a, order)
    packed = xp.triangular_factors(rows if m >= n else rows[..., :m])
    if m < n:
        packed = xp.cat([packed, xp.solve_triangle(packed, rows[..., m:], False, True)], a.ndim - 1)
    if name or a.requires_grad:
        zero = every(packed).diagonal(0, -2, -1) == 0
        if zero.any():
            _refuse(name, a, zero)
    return packed, pivots, order


def _refuse(name, a, zero):
    """Refuse a matrix for which no derivative exists, or factors with which no equation can be solved."""
    rows = zero.reshape(-1, zero.shape[-1]).tolist()
    at = next(i for i, row in enumerate(rows) if any(row))
    order = rows[at].index(True) + 1
    if a.requires_grad:
        raise RuntimeError(f"linalg.lu: element {order} of the diagonal of U is zero, so that L and U have no derivative. Detach the matrix, or "
                           f"add a small multiple of the identity.")
    raise RuntimeError(f"linalg.{name}: element {order} of the diagonal of U is zero{f' in matrix {at}' * (zero.ndim > 1)}, so that no equation can "
                       f"be solved with it; linalg.lu_factor_ex(A) returns the factors")


def _check_pivot(name, a, pivot):
    check_matrix(name, a)
    if not pivot:
        raise RuntimeError(f"{name}: pivot must be true; there is no elimination without exchanges of rows")


def _info(xp, packed):
    """For each matrix the position, from 1, of the first zero on the diagonal of U, or 0."""
    zero = xp.eq(xp.diagonal(packed.detach(), 0, -2, -1), 0)
    if not zero.shape[-1]:
        return xp.sum(zero, -1).to(DTYPES["int32"])
    return xp.where(xp.any(zero, -1), xp.argmax(zero.to(DTYPES["int64"]), -1) + 1, 0).to(DTYPES["int32"])


@composite("linalg_lu_factor_ex", public=False)
def linalg_lu_factor_ex(xp, A, *, pivot=True, check_errors=False):
    """L below U in one array, the row exchanges from 1, and for each matrix 0, or the position of the first zero on the diagonal of U."""
    _check_pivot("linalg.lu_factor_ex", A, pivot)
    packed, pivots, _ = _eliminated(xp, A, "lu_factor_ex" if check_errors else "")
    return return_types.linalg_lu_factor_ex((packed, pivots, _info(xp, packed)))


@composite("linalg_lu_factor", public=False)
def linalg_lu_factor(xp, A, *, pivot=True):
    """L below U in one array, and the row exchanges from 1. Raises RuntimeError for a zero on the diagonal of U."""
    _check_pivot("linalg.lu_factor", A, pivot)
    return return_types.linalg_lu_factor(_eliminated(xp, A, "lu_factor")[:2])


@composite("lu", usage="symgrad.lu(a)[0]")
def lu(xp, A, pivot=True, get_infos=False):
    """L below U in one array, the row exchanges from 1, and with `get_infos` the position of the first zero on the diagonal of U, or 0.

    Without `get_infos` such a zero raises RuntimeError.
    """
    if get_infos:
        return tuple(linalg_lu_factor_ex(xp, A, pivot=pivot))
    _check_pivot("linalg.lu_factor_ex", A, pivot)
    return _eliminated(xp, A, "lu_factor_ex")[:2]


def _check_exchanges(name, pivots, size, most):
    """Refuse row exchanges of another dtype, number or range."""
    if pivots.dtype is not DTYPES["int32"] or not pivots.ndim or pivots.shape[-1] != size:
        raise RuntimeError(f"{name}: pivots must be {size} numbers of int32 for each matrix, as of lu_factor, but they are {list(pivots.shape)} of "
                           f"{pivots.dtype}")
    if pivots.numel():
        check_range(name, "the least of pivots", int(every(pivots).min()), 1)
        check_range(name, "the largest of pivots", int(every(pivots).max()), 1, most)


@composite("lu_unpack", joined="LuUnpackBackward0", usage="symgrad.lu_unpack(*symgrad.lu(a)).U", method=False)
def lu_unpack(xp, LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    """P, L and U of A = P L U, from L below U in one array and the row exchanges; empty tensors for what is not unpacked."""
    m, n = LU_data.shape[-2:]
    if unpack_pivots:
        _check_exchanges("lu_unpack", LU_pivots, min(m, n), m)
    order = xp.order_of_rows(LU_pivots, m) if unpack_pivots else None
    return return_types.lu_unpack(_unpacked(xp, LU_data, order, unpack_data))


def _unpacked(xp, packed, order, data=True):
    """P, L and U; empty tensors in place of P without an order, and of L and U without `data`."""
    m, n = packed.shape[-2:]
    k, p = min(m, n), xp.zeros_like(packed, (0,))
    lower = upper = p
    if order is not None:
        p = _rows(xp, xp.eye_like(packed, m), order.argsort(-1))
    if data:
        lower = xp.tril(packed if k == n else packed[..., :k], -1) + (xp.eye_like(packed, m) if k == m else xp.eye_like(packed, m)[:, :k])
        upper = xp.triu(packed if k == m else packed[..., :k, :], 0)
    return p, lower, upper


@composite("linalg_lu", public=False, joined="LinalgLuBackward0")
def linalg_lu(xp, A, *, pivot=True):
    """The factors P, L and U of A = P L U: a permutation, a lower triangle with ones on its diagonal, and an upper triangle."""
    _check_pivot("linalg.lu", A, pivot)
    packed, _, order = _eliminated(xp, A)
    return return_types.linalg_lu(_unpacked(xp, packed, order))


@composite("linalg_lu_solve", arity=3, public=False)
def linalg_lu_solve(xp, LU, pivots, B, *, left=True, adjoint=False):
    """The solution X of A X = B, of X A = B with `left=False`, or of these with Aᴴ in place of A with `adjoint`, from the factors of A."""
    if not left and B.ndim > 1:
        return xp.copy(conjugate_transpose(xp, linalg_lu_solve(xp, LU, pivots, conjugate_transpose(xp, B), adjoint=not adjoint)), "C")
    check_equation("linalg.lu_solve", LU, B)
    _check_exchanges("linalg.lu_solve", pivots, LU.shape[-1], LU.shape[-1])
    order = xp.order_of_rows(pivots, LU.shape[-1])
    if adjoint:
        back = conjugate_transpose(xp, LU)
        x = xp.solve_triangle(back, xp.solve_triangle(back, B, False, False), True, True)
        return _rows(xp, x, xp.argsort(order, -1))
    return xp.solve_triangle(LU, xp.solve_triangle(LU, _rows(xp, B, order), False, True), True, False)


@composite("lu_solve", arity=3, usage="symgrad.lu_solve(symgrad.ones(2, 1), *symgrad.lu(symgrad.tensor([[2.0, 1.0], [1.0, 3.0]])))")
def lu_solve(xp, b, LU_data, LU_pivots):
    """The solution X of A X = b from the factors of A."""
    return linalg_lu_solve(xp, LU_data, LU_pivots, b)


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
