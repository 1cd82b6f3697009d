"""The functions of `numpy.linalg` on Tensors, with NumPy's arguments and defaults: for the table of `numpy_protocol`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.carriers.duck import DuckArray
from symgrad.engine.data import as_value
from symgrad.engine.traced import traced
from symgrad.graph import return_types
from symgrad.methods.numpy_functions import as_tensor, cross, floats
from symgrad.ops.rules import every


def _solve(a: Any, b: Any) -> Any:
    """The solution of a x = b; only `b` with one dimension is a vector."""
    a, b = floats(a), floats(b)
    if b.ndim == 1:
        return traced.squeeze(traced.linalg_solve(a, traced.unsqueeze(b, -1)), -1)
    return traced.linalg_solve(a, traced.reshape(b, (*(1,) * (a.ndim - b.ndim), *b.shape)))


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors, or of matrices, by torch's rules for both."""
    x = floats(x)
    if axis is None and ord is not None and x.ndim not in (1, 2):
        raise ValueError("Improper number of dimensions to norm.")
    several = axis is None and ord is not None and x.ndim > 1 or isinstance(axis, (tuple, list)) and len(axis) > 1
    if not several or ord is None:
        if isinstance(ord, str):
            raise ValueError(f"Invalid norm order '{ord}' for vectors")
        return traced.norm(x, 2 if ord is None else ord, axis, keepdims)
    if ord not in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        raise ValueError("Invalid norm order for matrices.")
    return traced.linalg_matrix_norm(x, ord, (-2, -1) if axis is None else tuple(axis), keepdims)


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    a = floats(a)
    if not hermitian:
        return traced.linalg_svd(a, full_matrices) if compute_uv else traced.linalg_svdvals(a)
    if not compute_uv:
        return traced.sort(traced.abs(traced.linalg_eigvalsh(a)), -1, True).values
    values, vectors = traced.linalg_eigh(a)
    s, order = traced.sort(traced.abs(values), -1, True)
    u = traced.take_along_dim(vectors, traced.unsqueeze(order, -2), -1)
    signs = traced.unsqueeze(traced.take_along_dim(traced.copysign(traced.ones_like(values), values), order, -1), -2)
    return return_types.linalg_svd((u, s, traced.adjoint(u * signs)))


def _lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """The least-squares solution, the sums of squared residuals, the rank and the singular values."""
    a, b = floats(a), floats(b)
    columns = traced.unsqueeze(b, -1) if b.ndim == 1 else b
    found = traced.linalg_lstsq(a, columns, rcond=rcond if rcond is None or rcond >= 0 else float(np.finfo(float).eps), driver="gelsd")
    x = traced.squeeze(found.solution, -1) if b.ndim == 1 else found.solution
    full = a.shape[1] < a.shape[0] and bool((every(found.rank) == a.shape[1]).all())
    rank = found.rank if isinstance(found.rank._value, DuckArray) else int(found.rank)
    difference = traced.matmul(a, found.solution) - columns
    residuals = traced.sum(traced.square(traced.abs(difference)), 0) if full else x.new_empty(0)
    return x, residuals, rank, found.singular_values


def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    given = rtol if rcond is None else rcond
    return traced.linalg_pinv(floats(a), hermitian=hermitian, rtol=1e-15 if given is None else given)


def _qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        return NotImplemented
    found = traced.linalg_qr(floats(a), mode)
    return found.R if mode == "r" else found


def _rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    return np.linalg.matrix_rank(as_value(as_tensor(A).detach()), tol, hermitian, **({} if rtol is None else {"rtol": rtol}))


def _by(name: str) -> Callable[..., Any]:
    """A function whose first argument is a matrix, and the others as torch's."""
    function = getattr(traced, name)
    return lambda a, *rest, **words: function(floats(a), *rest, **words)


def _vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    return traced.linalg_vector_norm(floats(x), ord, axis, keepdims)


MATRICES: dict[Any, Callable[..., Any]] = {
    np.linalg.solve: _solve, np.linalg.norm: _norm, np.linalg.svd: _svd, np.linalg.lstsq: _lstsq, np.linalg.pinv: _pinv, np.linalg.qr: _qr,
    np.linalg.matrix_rank: _rank, np.linalg.vector_norm: _vector_norm, np.linalg.cross: lambda x1, x2, /, *, axis=-1: cross(x1, x2, axis=axis),
    np.linalg.matrix_norm: lambda x, /, *, keepdims=False, ord="fro": _norm(x, ord, (-2, -1), keepdims),
    np.linalg.svdvals: lambda x, /: traced.linalg_svdvals(floats(x)), np.linalg.matrix_transpose: lambda x, /: as_tensor(x).mT,
    np.linalg.cond: lambda x, p=None: traced.linalg_cond(floats(x), p), np.linalg.matrix_power: _by("matrix_power"),
    np.linalg.multi_dot: lambda arrays, *, out=None: traced.linalg_multi_dot([floats(a) for a in arrays]),
    np.linalg.tensorsolve: lambda a, b, axes=None: traced.linalg_tensorsolve(floats(a), floats(b), axes),
    np.linalg.tensorinv: lambda a, ind=2: traced.linalg_tensorinv(floats(a), ind),
    np.linalg.diagonal: lambda x, /, *, offset=0: traced.diagonal(as_tensor(x), offset, -2, -1),
    np.linalg.trace: lambda x, /, *, offset=0, dtype=None: traced.sum(traced.diagonal(as_tensor(x), offset, -2, -1), -1),
    np.linalg.outer: lambda x1, x2, /: traced.outer(as_tensor(x1), as_tensor(x2)),
    **{getattr(np.linalg, name): _by(f"linalg_{name}") for name in ("inv", "det", "slogdet", "cholesky", "eigh", "eigvalsh", "eig", "eigvals")},
}
