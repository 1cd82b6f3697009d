"""Elimination without row exchanges, the exchanges that LAPACK would make before it, and cofactors, on arrays of numbers; the first on cells, too.

The matrix of cofactors C(A) is the derivative of det A. It and its derivative along a matrix are polynomials, which singular matrices have, too.
C(XY) = C(X) C(Y), and C(Q) = det(Q) conj(Q) for a unitary Q, so that singular values give both: of A = U diag(s) Vᴴ, C(diag(s)) is the diagonal
matrix of the products of all other singular values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.carriers.lapack import det, float64, inv, remembered, scipy_linalg, svd
from symgrad.carriers.spectra import refuse_expressions

BATCHED = 32  # rows from which LAPACK for each matrix of a batch takes less time than steps for all of them


@remembered
def _factorized(a: Any) -> tuple[Any, Any]:
    """L below U in one array, and the exchanges from 0, of one matrix that is not empty, by LAPACK."""
    lapack = scipy_linalg()
    factorize = lapack.lapack.dgetrf if a.dtype is float64 else lapack.get_lapack_funcs(("getrf",), (a,))[0]
    packed, exchanges, _ = factorize(a)
    return packed, exchanges


def _row_exchanges(a: Any) -> Any:
    """The rows, from 1, with which LAPACK exchanges the first, the second and so on."""
    if a.ndim == 2 and a.size:
        return _factorized(a)[1].astype(np.int32) + np.int32(1)
    out = np.empty((*a.shape[:-2], min(a.shape[-2:])), np.int32)
    for at in np.ndindex(a.shape[:-2]) if out.size else ():
        out[at] = _factorized(a[at])[1] + 1
    return out


def _order_of_rows(exchanges: Any, count: int) -> Any:
    """The order of rows after exchanges."""
    *front, steps = exchanges.shape
    rows = exchanges.reshape((math.prod(front), steps)).tolist()
    out = [list(range(count)) for _ in rows]
    for order, others in zip(out, rows):
        for i, other in enumerate(others):
            order[i], order[int(other) - 1] = order[int(other) - 1], order[i]
    return np.array(out, np.int64).reshape((*front, count))


def _triangular_factors(a: Any) -> Any:
    """L below U in one array. A pivot of zero divides by 1, as all below it is zero in rows that are in LAPACK's order."""
    m, n = a.shape[-2:]
    if a.ndim == 2 and a.size:
        packed, exchanges = _factorized(a)
        if exchanges.tolist() == [*range(len(exchanges))]:
            return packed.copy('C')
    out = a.copy()
    if a.ndim > 2 and m > BATCHED:
        for at in np.ndindex(a.shape[:-2]):
            out[at] = _triangular_factors(a[at])
        return out
    for i in range(min(m, n)):
        pivot, below = out[..., i:i + 1, i:i + 1], out[..., i + 1:, i:]
        below[..., :1] /= np.where(pivot == 0, 1, pivot)
        below[..., 1:] -= below[..., :1] * out[..., i:i + 1, i + 1:]
    return out


def _cells_row_exchanges(cls: Any, a: Any) -> Any:
    """As of floats: they are chosen by comparisons."""
    refuse_expressions("lu", a)
    near = np.array([complex(x.mid() if hasattr(x, "mid") else x) for x in a.ravel().tolist()]).reshape(a.shape)
    return [cls.number(i) for i in _row_exchanges(near if near.imag.any() else near.real).tolist()]


def _cells_order_of_rows(cls: Any, exchanges: Any, count: int) -> Any:
    refuse_expressions("lu", exchanges)
    return [cls.number(i) for i in _order_of_rows(np.array([int(i) for i in exchanges.tolist()]), count).tolist()]


def _cells_triangular_factors(cls: Any, a: Any) -> Any:
    a = a.copy()
    for i in range(min(a.shape)):
        for k in range(i + 1, len(a)) if not a[i, i] == 0 else ():  # a ball around 0 is neither
            a[k, i] = a[k, i] / a[i, i]
            a[k, i + 1:] = a[k, i + 1:] - a[k, i] * a[i, i + 1:]
    return a


NEXT, LAST = [1, 2, 0], [2, 0, 1]


def _cofactors(a: Any) -> Any:
    n = a.shape[-1]
    if n < 2:
        return np.ones_like(a)
    if n == 2:
        return _turned(a)
    if n == 3:
        return _cross(a[..., NEXT, :], a[..., LAST, :])
    try:
        found = det(a)[..., None, None] * inv(a).swapaxes(-1, -2)
    except np.linalg.LinAlgError:
        found = np.full_like(a, np.inf)
    if np.isfinite(found).all() or not np.isfinite(a).all():
        return found
    scaled, restore, _ = _balanced(a)
    u, s, vh = svd(scaled)
    return restore((det(u) * det(vh))[..., None, None] * (u.conj() * _others(s)[..., None, :]) @ vh.conj())


def _cofactors_along(a: Any, t: Any) -> Any:
    """The derivative of the cofactors along t; both may be batches."""
    n = a.shape[-1]
    if n < 2:
        return np.zeros(np.broadcast_shapes(a.shape, t.shape), np.result_type(a, t))
    if n == 2:
        return _turned(t) + np.zeros_like(a)
    if n == 3:
        return _cross(t[..., NEXT, :], a[..., LAST, :]) + _cross(a[..., NEXT, :], t[..., LAST, :])
    if not np.isfinite(a).all():
        return np.full(np.broadcast_shapes(a.shape, t.shape), np.nan, np.result_type(a, t))
    scaled, restore, rescaled = _balanced(a)
    u, s, vh = svd(scaled)
    unit, u, vh, here = (det(u) * det(vh))[..., None, None], u.conj(), vh.conj(), np.eye(n, dtype=bool)
    inner = u.swapaxes(-1, -2) @ rescaled(t) @ vh.swapaxes(-1, -2)
    pairs = np.where(here, 0, _others(np.where(here, 1, s[..., None, :])))  # the products of all singular values but two
    inner = np.where(here, pairs @ np.diagonal(inner, 0, -2, -1)[..., None], -pairs * inner.swapaxes(-1, -2))
    return restore(unit * u @ inner @ vh)


def _turned(a: Any) -> Any:
    out = np.empty_like(a)
    out[..., 0, 0], out[..., 0, 1], out[..., 1, 0], out[..., 1, 1] = a[..., 1, 1], -a[..., 1, 0], -a[..., 0, 1], a[..., 0, 0]
    return out


def _cross(x: Any, y: Any) -> Any:
    """The cross products of rows."""
    return x[..., NEXT] * y[..., LAST] - x[..., LAST] * y[..., NEXT]


def _others(s: Any) -> Any:
    """For each number the product of the others, without a division."""
    ones = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate([ones, s[..., :-1]], -1), -1)
    after = np.cumprod(np.concatenate([ones, s[..., :0:-1]], -1), -1)[..., ::-1]
    return before * after


def _balanced(a: Any) -> tuple[Any, Any, Any]:
    """The matrix with rows and columns scaled by powers of two to a similar size, the cofactors of `a` from those of it, and a direction so scaled.

    Singular values alone would lose the digits of cofactors that are much smaller than the largest.
    """
    rows = _exponents(np.abs(a).max(-1, keepdims=True))
    columns = _exponents(np.abs(_times_power(a, -rows)).max(-2, keepdims=True))
    left = rows.sum(-2, keepdims=True) - rows + columns.sum(-1, keepdims=True) - columns

    def rescaled(x: Any) -> Any:
        return _times_power(x, -rows - columns)

    return rescaled(a), lambda x: _times_power(x, left), rescaled


def _exponents(x: Any) -> Any:
    return np.where(x > 0, np.frexp(x)[1], 0)


def _times_power(x: Any, exponent: Any) -> Any:
    """x 2^exponent, in two steps, since the power alone may be out of range."""
    first = exponent // 2
    real = x.real.dtype
    return x * np.exp2(first.astype(real)) * np.exp2((exponent - first).astype(real))
