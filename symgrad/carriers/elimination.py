"""Elimination without row exchanges, and the exchanges that LAPACK would make before it, on arrays of numbers and on cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.carriers.lapack import float64, remembered, scipy_linalg
from symgrad.carriers.spectra import refuse_expressions

__all__: list[str] = []  # its words are taken by name, as those of `spectra`

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
