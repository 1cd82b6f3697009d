"""Functions of matrices that need a factorization, on arrays of numbers and on cells; leading axes are a batch.

A batch of members (`Batched`) is one more leading axis, and a recorded value emits a word. Numbers go to LAPACK; cells are eliminated one by one,
with pivots chosen by size for numbers of many digits and by not being zero for expressions.
"""

from __future__ import annotations

import builtins
import functools
import math
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from symgrad.carriers import MATRIX_WORDS, elimination, lapack, spectra
from symgrad.carriers.batched import Batched, aligned_data
from symgrad.carriers.lapack import cholesky, det, float64, hermitian_cells, inv, one_triangle, scipy_linalg, slogdet, solve
from symgrad.carriers.recorded import Recorded
from symgrad.carriers.spectra import is_number
from symgrad.errors import LinAlgError

ARITIES = dict.fromkeys(MATRIX_WORDS, 1) | {"solve_system": 2, "solve_triangle": 2, "cofactors_along": 2}
OF_VECTORS = ("eigenvalue_gaps", "order_of_rows")
ROWS = 64  # up to which LAPACK, with its threads, takes longer than a loop over rows
COLUMNS = 8  # up to which BLAS, called for each column, takes less time than that loop; for several columns at once it inverts the diagonal first
NOT_INVERTED = ("linalg.inv: {batch}the matrix is singular: element {order} of the diagonal of its triangular factor is zero. Use linalg.pinv, or "
                "add a small multiple of the identity.")
NO_SLOPE = ("linalg.slogdet: {batch}log |det A| is -inf for a singular matrix and has no derivative there, as logdet: element {order} of the "
            "diagonal of its triangular factor is zero. Differentiate linalg.det, or add a small multiple of the identity.")
NOT_SOLVED = ("linalg.solve: {batch}the matrix is singular. Use linalg.lstsq or linalg.pinv for a least-squares answer, or add a small multiple of "
              "the identity.")
NOT_POSITIVE = ("linalg.cholesky: {batch}the matrix is not positive definite: its leading minor of order {order} is not. Add a small multiple of "
                "the identity if rounding is the reason.")


def _word(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of matrices on plain arrays as one on batched and recorded values, too."""
    count = ARITIES[name]

    def call(*args: Any) -> Any:
        xs, params = args[:count], args[count:]
        batches = [x for x in xs if type(x) is Batched]
        if batches:
            level, ndim = max([x.level for x in batches]), max([x.ndim for x in xs])
            return Batched(call(*[aligned_data(x, level, ndim) for x in xs], *params), level)
        for x in xs:
            if type(x) is Recorded:
                return x.recorder.emit(name, xs, params)
        return function(*xs, *params)

    call.__name__ = call.__qualname__ = name
    return call


def of_arrays() -> dict[str, Callable[..., Any]]:
    """The functions of the numeric carrier."""
    return {name: _quick(name, FUNCTIONS[f"_{name}"]) for name in MATRIX_WORDS}


def _quick(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of numbers as one of any values, which are asked what they are only if they are not arrays of float64."""
    count, general = ARITIES[name], _word(name, _wide(name, function))

    @functools.wraps(general)
    def call(*args: Any) -> Any:
        for x in args[:count]:
            if type(x) is not np.ndarray or x.dtype is not float64:
                return general(*args)
        return function(*args)

    return call


def _wide(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of numbers; types with fewer digits than float32 are computed in float32."""
    count = ARITIES[name]

    def call(*args: Any) -> Any:
        dtype = np.result_type(*args[:count])
        if dtype.kind not in "fcV" or dtype.kind != "V" and dtype.itemsize >= 4:
            return function(*args)
        return np.asarray(function(*[x.astype(np.float32) for x in args[:count]], *args[count:])).astype(dtype)[()]

    return call


def of_cells(own: Mapping[str, Callable[..., Any]] = types.MappingProxyType({})) -> dict[str, Callable[..., Any]]:
    """The functions of the carriers of cells; `own` are those of one matrix in which a carrier differs from the others."""
    return {name: _word(name, functools.partial(_each_matrix, name, own.get(name, FUNCTIONS[f"_cells_{name}"]))) for name in MATRIX_WORDS}


# Numbers, by LAPACK


def _failure(text: str, a: Any, failed: Callable[[Any], int]) -> LinAlgError:
    """The error of the first matrix of a batch for which `failed` gives a position, with that position."""
    at, order = next(((i, found) for i, matrix in enumerate(a.reshape((-1, *a.shape[-2:]))) if (found := failed(matrix))), (0, a.shape[-1]))
    return LinAlgError(text.format(batch=f"(Batch element {at}): " * (a.ndim > 2), order=order), order)


def _first_zero(matrix: Any) -> int:
    """The position, from 1, of the first zero on the diagonal of U in the LU factorization, or 0."""
    (zeros,) = np.nonzero(np.diagonal(scipy_linalg().lu(matrix)[2]) == 0) if np.isfinite(matrix).all() else ([0],)
    return int(zeros[0]) + 1 if len(zeros) else 0


def _matrix_inverse(a: Any) -> Any:
    try:
        return inv(a)
    except np.linalg.LinAlgError:
        raise _failure(NOT_INVERTED, a, _first_zero) from None


def _log_det_slope(a: Any) -> Any:
    try:
        return inv(a).swapaxes(-1, -2)
    except np.linalg.LinAlgError:
        raise _failure(NO_SLOPE, a, _first_zero) from None


def _solve_system(a: Any, b: Any) -> Any:
    try:
        return solve(a, b)
    except np.linalg.LinAlgError:
        raise _failure(NOT_SOLVED, a, _first_zero) from None


def _solve_triangle(a: Any, b: Any, upper: bool, unitriangular: bool) -> Any:
    """The solution by substitution, row by row for all matrices of a batch; a zero on the diagonal gives infinities, as in torch."""
    n = a.shape[-1]
    if a.ndim == b.ndim == 2 and b.dtype is a.dtype is float64 and b.shape[1] <= COLUMNS and n <= ROWS:
        substitute, x = scipy_linalg().blas.dtrsv, b.copy()
        for column in x.T if n else ():
            column[:] = substitute(a, column, lower=not upper, diag=unitriangular)
        return x
    front, dtype = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), np.result_type(a, b)
    x = np.empty((*front, *b.shape[-2:]), dtype)
    x[...] = b
    if n > ROWS and x.size and np.all(np.diagonal(a, axis1=-2, axis2=-1)):
        (substitute,) = scipy_linalg().get_lapack_funcs(("trtrs",), dtype=dtype)
        many = np.broadcast_to(a, (*front, n, n))
        for at in np.ndindex(front):
            x[at] = substitute(many[at], x[at], lower=not upper, unitdiag=unitriangular)[0]
        return x
    with np.errstate(all="ignore"):
        for i in reversed(range(n)) if upper else range(n):
            rest, here = slice(i + 1, None) if upper else slice(0, i), slice(i, i + 1)
            x[..., here, :] -= a[..., here, rest] @ x[..., rest, :]
            if not unitriangular:
                x[..., i, :] /= a[..., i, i, None]
    return x


def _cholesky_factor(a: Any) -> Any:
    a = one_triangle("linalg.cholesky", a)
    try:
        return cholesky(a)
    except np.linalg.LinAlgError:
        (factorize,) = scipy_linalg().get_lapack_funcs(("potrf",), (a,))
        raise _failure(NOT_POSITIVE, a, lambda matrix: factorize(matrix, lower=True)[1]) from None


def _determinant(a: Any) -> Any:
    n = a.shape[-1]
    if not 0 < n < 4:
        return det(a)
    if a.ndim == 2 and a.dtype is float64:
        return np.float64(_polynomial(a.tolist()))
    return _polynomial(a.transpose((a.ndim - 2, a.ndim - 1, *range(a.ndim - 2))))


def _polynomial(rows: Any) -> Any:
    """The determinant of 1, 2 or 3 rows."""
    if len(rows) == 1:
        return rows[0][0] * 1
    a, b, *c = rows
    if not len(c):
        return a[0] * b[1] - a[1] * b[0]
    (c,) = c
    return a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0])


def _log_abs_det(a: Any) -> Any:
    return slogdet(a)[1]


def _sign_of_det(a: Any) -> Any:
    return slogdet(a)[0]


# Cells


def _each_matrix(name: str, function: Callable[..., Any], *args: Any) -> Any:
    """A function of matrices, or of vectors, for each of a batch."""
    count, rank = ARITIES[name], 1 if name in OF_VECTORS else 2
    xs, params = args[:count], args[count:]
    cls = next(type(x) for x in xs if hasattr(type(x), "carrier"))
    xs = tuple(cls.lift(x) for x in xs)
    front = np.broadcast_shapes(*[x.shape[:-rank] for x in xs])
    many = [np.broadcast_to(x.view(np.ndarray), (*front, *x.shape[-rank:])).reshape((math.prod(front), *x.shape[-rank:])) for x in xs]
    found = [np.asarray(function(cls, *[np.array(x) for x in matrices], *params), object) for matrices in zip(*many)]
    if not found:
        return cls.fill([], FUNCTIONS[f"_{name}"](*[np.empty(x.shape) for x in xs], *params).shape)
    return cls.fill([v for y in found for v in y.ravel().tolist()], (*front, *found[0].shape))


def _pivot(column: list) -> int:
    """The place of the best pivot. Raises ZeroDivisionError for a column of zeros."""
    if hasattr(column[0], "is_zero"):
        at = next((i for i, x in enumerate(column) if not x.is_zero and x.is_number), next((i for i, x in enumerate(column) if not x.is_zero), None))
        if at is None:
            raise ZeroDivisionError
        return at
    at = max(range(len(column)), key=lambda i: builtins.abs(column[i]))
    if not column[at]:
        raise ZeroDivisionError
    return at


def _eliminated(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """The upper triangle U of the elimination of `a`, the right-hand side eliminated with it, and the sign of the row exchanges."""
    a, b, sign = a.copy(), b.copy(), 1
    for k in range(len(a)):
        at = k + _pivot(a[k:, k].tolist())
        if at != k:
            a[[k, at]], b[[k, at]], sign = a[[at, k]], b[[at, k]], -sign
        for i in range(k + 1, len(a)):
            factor = a[i, k] / a[k, k]
            a[i, k + 1:] = a[i, k + 1:] - factor * a[k, k + 1:]
            b[i] = b[i] - factor * b[k]
    return a, b, sign


def _cells_solve_system(cls: Any, a: Any, b: Any) -> Any:
    if len(a) and hasattr(a[0, 0], "is_zero") and len(a) <= 3:  # Cramer's rule, which does not divide by symbols that may be zero
        return _cells_cofactors(cls, a).T @ b / _cells_determinant(cls, a) if b.size else b
    try:
        u, y, _ = _eliminated(a, b)
    except ZeroDivisionError:
        raise LinAlgError(NOT_SOLVED.format(batch=""), len(a)) from None
    return _back(u, y)


def _back(u: Any, y: Any) -> Any:
    for i in reversed(range(len(u))):
        for j in range(i + 1, len(u)):
            y[i] = y[i] - u[i, j] * y[j]
        y[i] = y[i] / u[i, i]
    return y


def _minors(cls: Any, a: Any) -> Any:
    """The matrix without row i and column j at [i, j]."""
    n = len(a)
    return cls.lift(np.array([[np.delete(np.delete(a, i, 0), j, 1) for j in range(n)] for i in range(n)], object).reshape((n, n, n - 1, n - 1)))


def _signs(n: int) -> Any:
    return (-1) ** np.add.outer(np.arange(n), np.arange(n))


def _cells_cofactors(cls: Any, a: Any) -> Any:
    return cls.carrier.determinant(_minors(cls, a)).view(np.ndarray) * _signs(len(a)) if len(a) else a


def _cells_cofactors_along(cls: Any, a: Any, t: Any) -> Any:
    if len(a) < 2:
        return a * cls.number(0)
    products = cls.carrier.cofactors(_minors(cls, a)).view(np.ndarray) * _minors(cls, t).view(np.ndarray)
    return np.add.reduce(products.reshape((len(a), len(a), -1)), -1) * _signs(len(a))


def _identity(cls: Any, n: int) -> Any:
    return np.array(cls.lift(np.eye(n)).view(np.ndarray))


def _cells_matrix_inverse(cls: Any, a: Any) -> Any:
    return _cells_solve_system(cls, a, _identity(cls, len(a)))


def _cells_log_det_slope(cls: Any, a: Any) -> Any:
    try:
        return cls.carrier.matrix_inverse(cls.lift(a)).view(np.ndarray).T
    except LinAlgError as error:
        raise LinAlgError(NO_SLOPE.format(batch="", order=error.info), error.info) from None


def _cells_solve_triangle(cls: Any, a: Any, b: Any, upper: bool, unitriangular: bool) -> Any:
    a, order = a.copy(), slice(None) if upper else slice(None, None, -1)
    if unitriangular:
        a[np.diag_indices(len(a))] = cls.number(1)
    return _back(a[order, order], b[order].copy())[order]


def _cells_cholesky_factor(cls: Any, a: Any) -> Any:
    n, zero = len(a), cls.number(0)
    a = hermitian_cells(cls, a)
    out, conjugates = _identity(cls, n) * zero, _identity(cls, n) * zero
    for j in range(n):
        rest = a[j, j] - sum(out[j, :j] * conjugates[j, :j], zero)
        if is_number(rest) and not rest.real > 0:
            raise LinAlgError(NOT_POSITIVE.format(batch="", order=j + 1), j + 1)
        root = cls.carrier.sqrt(cls.fill([rest if hasattr(rest, "is_number") else rest.real], ())).item()
        out[j, j] = conjugates[j, j] = root  # a root of an expression is positive, which it need not show
        for i in range(j + 1, n):
            out[i, j] = (a[i, j] - sum(out[i, :j] * conjugates[j, :j], zero)) / root
            conjugates[i, j] = (a[j, i] - sum(conjugates[i, :j] * out[j, :j], zero)) / root
    return out


def _cells_determinant(cls: Any, a: Any) -> Any:
    n = len(a)
    if not n:
        return cls.number(1)
    if n == 1:
        return a[0, 0]
    if n == 2:
        return a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    if n == 3 or not is_number(a[0, 0]):
        return sum(((-1) ** j * a[0, j] * _cells_determinant(cls, np.delete(a[1:], j, 1)) for j in range(n)), cls.number(0))
    try:
        u, _, sign = _eliminated(a, a)
    except ZeroDivisionError:
        return cls.number(0)
    out = cls.number(sign)
    for i in range(n):
        out = out * u[i, i]
    return out


def _cells_log_abs_det(cls: Any, a: Any) -> Any:
    xp = cls.carrier
    return xp.log(xp.abs(xp.determinant(cls.lift(a)))).item()


def _cells_sign_of_det(cls: Any, a: Any) -> Any:
    xp = cls.carrier
    return xp.sign(xp.determinant(cls.lift(a))).item()


FUNCTIONS: dict[str, Callable[..., Any]] = {**vars(spectra), **vars(elimination), **vars(elimination), **vars(lapack), **globals()}
