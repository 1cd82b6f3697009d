"""Triangular factors by elimination with row exchanges, P L U, and equations solved with them; leading axes are a batch."""

from symgrad.graph.op import composite
from symgrad.ops.linalg import matrix_transpose
from symgrad.ops.matrices import adjoint as conjugate_transpose
from symgrad.ops.matrices import check_numbers
from symgrad.ops.rules import is_complex
from symgrad.types import return_types
from symgrad.types.dtypes import DTYPES


def _positions(xp, like, n):
    """0 to n - 1."""
    return (xp.cumsum(xp.abs(xp.ones_like(like, (n,))), 0) - 1).to(DTYPES["int64"])


def _exchanged(xp, at, order):
    """The rows with the first one and that at position `at` exchanged."""
    return xp.where(xp.eq(order, 0), at, xp.where(xp.eq(order, at), xp.zeros_like(order), order))


def _rows(xp, a, order):
    """The rows in an order, which may differ between the matrices of a batch."""
    front = xp.broadcast_to(a, (*order.shape[:-1], *a.shape[-2:])) if order.ndim + 1 > a.ndim else a
    return xp.take_along_dim(front, xp.broadcast_to(order.unsqueeze(-1), (*front.shape[:-2], order.shape[-1], a.shape[-1])), -2)


def _size(xp, x):
    """The size by which LAPACK compares pivots."""
    x = x.detach()
    return xp.sum(xp.abs(xp.view_as_real(x)), -1) if is_complex(x) else xp.abs(x)


def _eliminated(xp, a):
    """L below U in one array, and the row, from 1, with which each row was exchanged."""
    (m, n), done, pivots, rest = a.shape[-2:], [], [], a
    for i in range(min(m, n)):
        at = xp.argmax(_size(xp, rest[..., :, i]), -1, True)
        pivots.append(at + (i + 1))
        rest = _rows(xp, rest, _exchanged(xp, at, _positions(xp, a, m - i)))
        row, below = rest[..., :1, :], rest[..., 1:, :]
        pivot = row[..., i:i + 1]
        zero = xp.eq(pivot, 0)
        if a.requires_grad and zero.any():
            raise RuntimeError(f"linalg.lu: The diagonal element {i + 1} of U is zero, so that L and U have no derivative. Detach the matrix, or "
                               f"add a small multiple of the identity.")
        factors = below[..., i:i + 1] / xp.where(zero, xp.ones_like(pivot), pivot)
        done.append(row)
        rest = xp.cat([below[..., :i], factors, below[..., i + 1:] - factors * row[..., i + 1:]], a.ndim - 1)
    packed = xp.cat([*done, rest], a.ndim - 2)
    if not pivots:
        return xp.clone(a), xp.zeros_like(a, (*a.shape[:-2], 0)).to(DTYPES["int32"])
    return packed, xp.cat(pivots, a.ndim - 2).to(DTYPES["int32"])


def _order_of(xp, pivots, like, m):
    """The order of the rows after the exchanges."""
    order = xp.broadcast_to(_positions(xp, like, m), (*pivots.shape[:-1], m))
    for i in range(pivots.shape[-1]):
        at = (pivots[..., i:i + 1] - (i + 1)).to(DTYPES["int64"])
        tail = order[..., i:]
        order = xp.cat([order[..., :i], xp.take_along_dim(tail, xp.broadcast_to(_exchanged(xp, at, _positions(xp, like, m - i)), tail.shape), -1)],
                       pivots.ndim - 1)
    return order


def _check_pivot(name, a, pivot):
    if a.ndim < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(a.shape)} instead")
    check_numbers(name, a)
    if not pivot:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU")


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
    packed, pivots = _eliminated(xp, A)
    info = _info(xp, packed)
    if check_errors and info.any():
        raise RuntimeError(f"linalg.lu_factor_ex: The diagonal element {int(info.max())} of U is zero, and using it on lu_solve would result in a "
                           f"division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
                           f"linalg.lu_factor_ex(A, pivot)")
    return return_types.linalg_lu_factor_ex((packed, pivots, info))


@composite("linalg_lu_factor", public=False)
def linalg_lu_factor(xp, A, *, pivot=True):
    """L below U in one array, and the row exchanges from 1."""
    _check_pivot("linalg.lu_factor", A, pivot)
    return return_types.linalg_lu_factor(_eliminated(xp, A))


@composite("lu", usage="symgrad.lu(a)[0]")
def lu(xp, A, pivot=True, get_infos=False):
    """L below U in one array, the row exchanges from 1, and with `get_infos` the position of the first zero on the diagonal of U, or 0."""
    packed, pivots, info = linalg_lu_factor_ex(xp, A, pivot=pivot)
    return (packed, pivots, info) if get_infos else (packed, pivots)


@composite("lu_unpack", usage="symgrad.lu_unpack(*symgrad.lu(a)).U", method=False)
def lu_unpack(xp, LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    """P, L and U of A = P L U, from L below U in one array and the row exchanges; empty tensors for what is not unpacked."""
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    p = lower = upper = xp.zeros_like(LU_data, (0,))
    if unpack_pivots:
        p = matrix_transpose(xp, xp.getitem(xp.eye_like(LU_data, m), _order_of(xp, LU_pivots, LU_data, m)))
    if unpack_data:
        lower = xp.tril(LU_data[..., :, :k], -1) + xp.eye_like(LU_data, m)[:, :k]
        upper = xp.triu(LU_data[..., :k, :], 0)
    return return_types.lu_unpack((p, lower, upper))


@composite("linalg_lu", public=False)
def linalg_lu(xp, A, *, pivot=True):
    """The factors P, L and U of A = P L U: a permutation, a lower triangle with ones on its diagonal, and an upper triangle."""
    _check_pivot("linalg.lu", A, pivot)
    return return_types.linalg_lu(lu_unpack(xp, *_eliminated(xp, A)))


@composite("linalg_lu_solve", arity=3, public=False)
def linalg_lu_solve(xp, LU, pivots, B, *, left=True, adjoint=False):
    """The solution X of A X = B, of X A = B with `left=False`, or of these with Aᴴ in place of A with `adjoint`, from the factors of A."""
    if not left:
        return conjugate_transpose(xp, linalg_lu_solve(xp, LU, pivots, conjugate_transpose(xp, B), adjoint=not adjoint))
    if str(pivots.dtype) != "torch.int32":
        raise RuntimeError(f"linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32. Got {pivots.dtype} instead")
    if B.ndim < 2 or LU.shape[-1] != B.shape[-2]:
        raise RuntimeError(f"linalg.lu_solve: Incompatible shapes of A and B for the equation AX = B ({LU.shape[-2]}x{LU.shape[-1]} and "
                           f"{'x'.join(map(str, B.shape[-2:]))})")
    order = _order_of(xp, pivots, LU, LU.shape[-1])
    if adjoint:
        back = conjugate_transpose(xp, LU)
        x = xp.solve_triangle(back, xp.solve_triangle(back, B, False, False), True, True)
        return _rows(xp, x, xp.argsort(order, -1))
    return xp.solve_triangle(LU, xp.solve_triangle(LU, _rows(xp, B, order), False, True), True, False)


@composite("lu_solve", arity=3, usage="symgrad.lu_solve(symgrad.ones(2, 1), *symgrad.lu(symgrad.tensor([[2.0, 1.0], [1.0, 3.0]])))")
def lu_solve(xp, b, LU_data, LU_pivots):
    """The solution X of A X = b from the factors of A."""
    return linalg_lu_solve(xp, LU_data, LU_pivots, b)
