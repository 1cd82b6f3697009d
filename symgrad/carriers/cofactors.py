"""The matrix of cofactors C(A), which is the derivative of det A, and its derivative along a matrix, on arrays of numbers.

They are polynomials, which singular matrices have, too. C(XY) = C(X) C(Y), and C(Q) = det(Q) conj(Q) for a unitary Q, so that singular values give
both: of A = U diag(s) Vᴴ, C(diag(s)) is the diagonal matrix of the products of all other singular values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.carriers.lapack import det, inv, svd

__all__: list[str] = []  # its words are taken by name, as those of `spectra`

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
