"""Triangular factors by elimination with row exchanges, P L U, and equations solved with them; leading axes are a batch."""

from symgrad.arguments import check_range
from symgrad.dtypes.dtype import DTYPES
from symgrad.graph import return_types
from symgrad.graph.domains import NONSINGULAR, SPD, Domain, Interval
from symgrad.graph.op import composite, primitive
from symgrad.layouts.indices import index_array
from symgrad.ops.linalg import matrix_transpose
from symgrad.ops.matrices import MATRIX, check_equation, check_matrix
from symgrad.ops.matrices import adjoint as conjugate_transpose
from symgrad.ops.rules import every

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
