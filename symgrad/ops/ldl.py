"""Factors P L D Lᵀ Pᵀ of symmetric (Hermitian) matrices, D with blocks of one or two rows, and equations solved with them.

The lower triangle of a matrix is read, and the derivative is that along symmetric (Hermitian) perturbations. The exchanges of rows are
LAPACK's, by Bunch and Kaufman, and L D in one array stands as there: the rows of L are exchanged up to their own step alone.
Source: J. R. Bunch and L. Kaufman, Some stable methods for calculating inertia and solving symmetric linear systems (1977).
"""

from symgrad.arguments import check_kind, check_one_dtype, check_range
from symgrad.dtypes.dtype import DTYPES
from symgrad.graph import return_types
from symgrad.graph.domains import NONSINGULAR
from symgrad.graph.op import composite, primitive
from symgrad.ops.linalg import matrix_transpose
from symgrad.ops.matrices import MATRIX, adjoint, check_equation, check_square
from symgrad.ops.rules import every


def _mirror(xp, a, hermitian):
    return adjoint(xp, a) if hermitian else matrix_transpose(xp, a)


def _diagonal(xp, a):
    return xp.tril(a, 0) - xp.tril(a, -1)


def _below(xp, a, blocks):
    """The elements below the blocks of D."""
    return xp.tril(a, -1) - a * blocks


def _parts(xp, packed, first, hermitian):
    """L, D, and 1 where D has an element below its diagonal; `first` is a row with 1 at the first column of each block of two."""
    ones = xp.ones_like(packed)
    blocks = (xp.tril(ones, -1) - xp.tril(ones, -2)) * first
    low = packed * blocks
    return (_below(xp, packed, blocks) + _diagonal(xp, ones), _diagonal(xp, packed) + low + _mirror(xp, low, hermitian), blocks)


# All rows in the order of the end: L D, the order of the rows, 1 at the first column of a block of two, and LAPACK's exchanges


def _read(xp, y, hermitian):
    """L, D, the places of its blocks, and the permutation of the rows."""
    n = y.shape[-1]
    first = xp.indicator(xp.ne(y[..., n + 1:n + 2, :], 0), y)
    order = matrix_transpose(xp, y[..., n:n + 1, :])
    places = xp.indicator(xp.eq(order, xp.cumsum(xp.ones_like(y[..., :1, :]), y.ndim - 1) - 1), y)
    return (*_parts(xp, y[..., :n, :], first, hermitian), places)


def _pull_ldl(xp, g, y, a, hermitian):
    lower, d, blocks, places = _read(xp, y, hermitian)
    upper, g = matrix_transpose(xp, lower), g[..., :y.shape[-1], :]
    inner = matrix_transpose(xp, xp.solve_system(d, matrix_transpose(xp, xp.matmul(upper, _below(xp, g, blocks)))))
    inner = _below(xp, inner, blocks) + _diagonal(xp, g) + g * blocks
    right = _mirror(xp, xp.solve_triangle(upper, _mirror(xp, inner, hermitian), True, True), hermitian)
    out = xp.matmul(matrix_transpose(xp, places), xp.matmul(xp.solve_triangle(upper, right, True, True), places))
    return (out + _mirror(xp, out, hermitian)) / 2


def _push_ldl(xp, t, y, a, hermitian):
    lower, d, blocks, places = _read(xp, y, hermitian)
    t = xp.matmul(places, xp.matmul((t + _mirror(xp, t, hermitian)) / 2, matrix_transpose(xp, places)))
    half = xp.solve_triangle(lower, t, False, True)
    inner = _mirror(xp, xp.solve_triangle(lower, _mirror(xp, half, hermitian), False, True), hermitian)
    turn = _mirror(xp, xp.solve_system(d, _mirror(xp, _below(xp, inner, blocks), hermitian)), hermitian)
    out = xp.matmul(lower, turn) + _diagonal(xp, inner) + inner * blocks
    return xp.cat([out, xp.zeros_like(out, (*out.shape[:-2], 3, out.shape[-1]))], out.ndim - 2)


primitive("ldl_factors", lambda xp, input, hermitian: xp.ldl_factors(input, hermitian), vjp=_pull_ldl, jvp=_push_ldl, public=False,
          node_name="LinalgLdlFactorEx", shapes=MATRIX, domain=NONSINGULAR, examples=((False,), (True,)),
          doc="L D with all rows in the order of the end, above the order, the places of blocks of two rows, and the exchanges.")


# LAPACK's form


def _orders(xp, pivots):
    """For each column of L the order of its rows after the exchanges that follow its step, the order after all, and the first columns of blocks."""
    n, axis = pivots.shape[-1], pivots.ndim - 1
    given = pivots.to(DTYPES["int64"])
    rows = xp.cumsum(xp.ones_like(given), -1) - 1
    first, before = [], xp.zeros_like(given[..., :1])
    for j in range(n):
        before = xp.lt(given[..., j:j + 1], 0) & xp.eq(before, 0)
        first.append(before)
        before = before.to(DTYPES["int64"])
    order, columns = rows, []
    for j in reversed(range(n)):
        columns.append(order)
        here = first[j].to(DTYPES["int64"]) + j
        second = xp.lt(given[..., j:j + 1], 0) & xp.eq(here, j)
        other = xp.where(second, here, xp.abs(given[..., j:j + 1]) - 1)
        order = xp.where(xp.eq(order, here), other, xp.where(xp.eq(order, other), here, order))
    if not n:
        return rows.unsqueeze(-1), rows, rows
    return xp.stack(columns[::-1], axis + 1), order, xp.cat(first, axis)


def _packed(xp, y):
    """L D in one array, the exchanges, and the position, from 1, of the first zero of D that is a block, or 0."""
    n = y.shape[-1]
    rows = y[..., n + 1:, :].detach()
    rows = (rows.real if rows.is_complex() else rows).to(DTYPES["int32"])
    pivots = rows[..., 1, :].contiguous()
    places = xp.argsort(_orders(xp, pivots)[0], -2)
    packed = xp.take_along_dim(y[..., :n, :], places, -2) if n else y[..., :n, :]
    single = xp.gt(pivots, 0)
    zero = xp.eq(xp.diagonal(packed.detach(), 0, -2, -1), 0) & single
    if not n:
        return packed, pivots, xp.sum(zero, -1).to(DTYPES["int32"])
    return packed, pivots, xp.where(xp.any(zero, -1), xp.argmax(zero.to(DTYPES["int64"]), -1) + 1, 0).to(DTYPES["int32"])


def _factor(xp, name, a, hermitian, check):
    check_square(f"linalg.{name}", a)
    packed, pivots, info = _packed(xp, xp.ldl_factors(a, bool(hermitian)))
    found = every(info)
    if (check or a.requires_grad) and found.any():
        flat = found.reshape(-1).tolist()
        at = next(i for i, order in enumerate(flat) if order)
        rest = "so that no equation can be solved with it; linalg.ldl_factor_ex returns the factors" if check else \
            "so that the factors have no derivative; detach the matrix, or add a small multiple of the identity"
        raise RuntimeError(f"linalg.{name}: element {flat[at]} of the diagonal of D is zero{f' in matrix {at}' * (found.ndim > 0)}, {rest}")
    return packed, pivots, info


@composite("linalg_ldl_factor_ex", public=False)
def linalg_ldl_factor_ex(xp, A, *, hermitian=False, check_errors=False):
    """L below D in one array, the row exchanges, and for each matrix 0, or the position of the first zero of D that is a block by itself.

    Two equal negative exchanges mark a block of two rows, as in LAPACK's sytrf and hetrf. Only the lower triangle of A is read, and the
    derivative is that along symmetric perturbations of A, or with `hermitian` along Hermitian ones.
    """
    return return_types.linalg_ldl_factor_ex(_factor(xp, "ldl_factor_ex", A, hermitian, check_errors))


@composite("linalg_ldl_factor", public=False)
def linalg_ldl_factor(xp, A, *, hermitian=False):
    """L below D in one array, and the row exchanges; two equal negative ones mark a block of two rows. Raises RuntimeError for a zero of D.

    Only the lower triangle of A is read, and the derivative is that along symmetric perturbations of A, or with `hermitian` along Hermitian ones.
    """
    return return_types.linalg_ldl_factor(_factor(xp, "ldl_factor", A, hermitian, True)[:2])


def _check_equation(LD, pivots, B):
    name = "linalg.ldl_solve"
    check_equation(name, LD, B)
    if tuple(pivots.shape) != tuple(LD.shape[:-1]):
        raise RuntimeError(f"{name}: pivots must have the shape {list(LD.shape[:-1])}, as of ldl_factor, not {list(pivots.shape)}")
    check_kind(name, pivots, "iu", "pivots")
    check_one_dtype(name, LD, B)
    if pivots.numel():
        check_range(name, "the least size of pivots", int(abs(every(pivots)).min()), 1)
        check_range(name, "the largest size of pivots", int(abs(every(pivots)).max()), 1, LD.shape[-1])


@composite("linalg_ldl_solve", arity=3, public=False)
def linalg_ldl_solve(xp, LD, pivots, B, *, hermitian=False):
    """The solution X of A X = B from the factors of a symmetric A, or with `hermitian` of a Hermitian one.

    Raises linalg.LinAlgError for a singular D.
    """
    _check_equation(LD, pivots, B)
    if not B.numel() or not LD.numel():
        return xp.broadcast_to(B, tuple(xp.matmul(LD, B).shape)).clone()
    columns, order, first = _orders(xp, pivots)
    packed = xp.take_along_dim(LD, columns, -2)
    lower, d, _ = _parts(xp, packed, first.unsqueeze(-2).to(LD.dtype), bool(hermitian))
    front = tuple(xp.matmul(lower.detach(), B.detach()).shape)
    b = xp.take_along_dim(xp.broadcast_to(B, front), xp.broadcast_to(order.unsqueeze(-1), front), -2)
    x = xp.solve_system(d, xp.solve_triangle(lower, b, False, True))
    x = xp.solve_triangle(_mirror(xp, lower, bool(hermitian)), x, True, True)
    return xp.take_along_dim(x, xp.broadcast_to(xp.argsort(order, -1).unsqueeze(-1), front), -2)
