"""Eigenvalues, singular values, orthogonal factors and exponentials of matrices, on arrays of numbers and on cells of many digits.

Each word stands here twice: `_word` takes arrays with a batch of leading axes, by LAPACK, and `_cells_word` one matrix of cells; `matrices` makes the
words of the carriers of both. The sign or phase of a vector, which LAPACK leaves to the last digit, is such that its largest element is positive.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import math
from typing import Any

import numpy as np

from symgrad.carriers.lapack import (
    adjoint,
    eig,
    eigh,
    eigvalsh,
    float64,
    hermitian_cells,
    is_remembered,
    one_triangle,
    remembered,
    scipy_linalg,
    svd,
    svdvals,
)
from symgrad.carriers.structure import triu
from symgrad.errors import LinAlgError

NEITHER = ("so that their vectors are not unique and have no derivative, and the values have no second one. Compute first derivatives with the "
           "values alone (linalg.%s), symmetric functions of them by traces, determinants and matrix functions, or perturb the matrix.")
EIGENVALUES = "the eigenvalues with the numbers {} and {} are equal, " + NEITHER
EQUAL = {"linalg.eigh": EIGENVALUES % "eigvalsh", "linalg.eig": EIGENVALUES % "eigvals",
         "linalg.svd": "two singular values are equal, or one is zero, " + NEITHER % "svdvals"}

IRREGULAR = {"linalg.qr": "the first columns of the matrix are linearly dependent, so that Q and R are not unique and have no derivative. Detach the "
                          "matrix, or use linalg.svdvals or linalg.pinv, which have one.",
             "linalg.eig": "the matrix has no basis of eigenvectors, so that not all of its eigenvalues have a derivative. Perturb the matrix, or "
                           "compute symmetric functions of the eigenvalues by traces and determinants."}


# Numbers, by LAPACK


def _finite(name: str, a: Any, what: str = "eigenvalues") -> Any:
    if not np.logical_and.reduce(np.isfinite(a), None):
        raise LinAlgError(f"{name}: a matrix with NaN or infinite elements has no {what}; symgrad.explain_nan tells where they come from.")
    return a


def _finite_triangle(name: str, a: Any, what: str = "eigenvalues") -> Any:
    """The matrix, of which LAPACK reads the lower triangle; what is in the other one need not be finite."""
    if not np.logical_and.reduce(np.isfinite(a), None):
        _finite(name, np.tril(a), what)
    return a


@remembered
def _hermitian_spectrum(a: Any) -> tuple[Any, Any]:
    w, v = eigh(_finite_triangle("linalg.eigh", a))
    return w, v * _phases(v)


def _hermitian_eigenvalues(a: Any) -> Any:
    a = one_triangle("linalg.eigvalsh", a)
    return _hermitian_spectrum(a)[0].copy() if is_remembered(a) else eigvalsh(_finite_triangle("linalg.eigvalsh", a))


def _hermitian_eigenvectors(a: Any) -> Any:
    return _hermitian_spectrum(one_triangle("linalg.eigh", a))[1].copy()


def _phases(v: Any) -> Any:
    """The factors of columns with which their largest elements are positive: LAPACK's sign may change with the last digit of the matrix."""
    if not v.size:
        return 1
    at = np.abs(v).argmax(-2)
    largest = v[at, np.arange(v.shape[1])] if v.ndim == 2 else np.take_along_axis(v, at[..., None, :], -2)
    return np.abs(largest) / largest


def _eigenvalue_gaps(w: Any, name: str) -> Any:
    """1 / (w_j - w_i), and 0 on the diagonal. Numbers that agree to the last digit of the largest are equal: their vectors have no right digit."""
    gaps = w[..., None, :] - w[..., :, None]
    equal = np.abs(gaps) <= np.abs(w).max(-1, initial=0)[..., None, None] * np.finfo(w.dtype).eps
    if np.count_nonzero(equal) > w.size:  # more than the diagonals
        _refuse_equal(name, *next((i, j) for *_, i, j in np.argwhere(equal).tolist() if i != j))
    gaps[equal] = np.inf
    return 1 / gaps


def _refuse_equal(name: str, i: int, j: int) -> None:
    raise RuntimeError(f"{name}: {EQUAL[name].format(i, j)}")


@remembered
def _singular(a: Any) -> tuple[Any, Any]:
    u, s, vh = svd(_finite("linalg.svd", a, "singular values"))
    return s, np.concatenate([u, adjoint(vh)], -2) * _phases(u)


def _singular_values(a: Any) -> Any:
    return _singular(a)[0].copy() if is_remembered(a) else svdvals(_finite("linalg.svd", a, "singular values"))


def _singular_vectors(a: Any) -> Any:
    return _singular(a)[1].copy()


def _pseudo_inverse(a: Any, atol: float, rtol: float) -> Any:
    u, s, vh = svd(_finite("linalg.pinv", a, "singular values"))
    kept = s > np.maximum(atol, rtol * s.max(-1, keepdims=True, initial=0))
    return adjoint(vh * (kept / np.where(kept, s, 1))[..., None]) @ adjoint(u)


def _qr_factors(a: Any) -> Any:
    m, n = a.shape[-2:]
    if a.ndim > 2 or a.dtype is not float64 or not 0 < n <= m:
        return np.concatenate(np.linalg.qr(a), -2)
    packed, tau, *_ = scipy_linalg().lapack.dgeqrf(a)
    return np.concatenate((scipy_linalg().lapack.dorgqr(packed, tau)[0], triu(packed[:n])))


def _matrix_exponential(a: Any) -> Any:
    """The exponential by the series of exp(x) - 1 at x = A / 2ⁿ, of norm below 1/2, and n steps 2 y + y². SciPy's loses up to four digits at norms of
    some units, since it squares exp(x), in which the identity hides the digits of x."""
    size = np.abs(a).sum(-2, keepdims=True).max(-1, keepdims=True, initial=0)
    if not np.isfinite(size).all():
        return np.full_like(a, np.nan)
    steps = np.maximum(np.frexp(size)[1] + 1, 0)
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.ldexp(np.ones_like(size), -steps) * a
        square = x @ x
        powers = (x, square, square @ x, square @ square)
        out = np.zeros_like(x)
        for first in (13, 9, 5, 1):
            out = sum((power / math.factorial(first + k) for k, power in enumerate(powers)), powers[-1] @ out)
        for step in range(int(steps.max(initial=0))):
            out = np.where(steps > step, 2 * out + out @ out, out)
    return out + np.eye(a.shape[-1], dtype=a.dtype)


@remembered
def _eigen(a: Any) -> tuple[Any, Any]:
    """The eigenvalues and eigenvectors; those of a real matrix are conjugate in pairs."""
    values, vectors = eig(a if np.iscomplexobj(a) and a.imag.any() else a.real)
    kind = np.result_type(a.dtype, np.complex64)
    return values.astype(kind), (vectors * _phases(vectors)).astype(kind)


def eigenvalues_of_numbers(a: Any) -> list[complex]:
    """The eigenvalues in the order of LAPACK, which decides about that of many digits and of balls, too."""
    return _eigen(np.array(a, complex))[0].tolist()


def _eigenvalues(a: Any) -> Any:
    return _eigen(_finite("linalg.eigvals", a))[0].copy()


def _eigenvectors(a: Any) -> Any:
    return _eigen(_finite("linalg.eig", a))[1].copy()


def _regular(a: Any, name: str) -> Any:
    """A copy of the matrix. One whose columns depend on each other to the last digit is refused: its inverse has no right digit."""
    sizes = np.abs(np.diagonal(a, axis1=-2, axis2=-1)) if name == "linalg.qr" else svdvals(a)
    least = sizes.max(-1, initial=0) * np.finfo(a.dtype).eps * a.shape[-1]
    if (sizes.min(-1, initial=np.inf) <= least).any():
        raise RuntimeError(f"{name}: {IRREGULAR[name]}")
    return a.copy()


def _ldl_factors(a: Any, hermitian: bool) -> Any:
    """L D with all rows in the order of the end, above the order, 1 at the first column of a block of two, and the exchanges of LAPACK."""
    a = _finite_triangle("linalg.ldl_factor", one_triangle("linalg.ldl_factor", a, hermitian), "factors")
    (factorize,) = scipy_linalg().get_lapack_funcs(("hetrf" if hermitian and np.iscomplexobj(a) else "sytrf",), (a,))
    n = a.shape[-1]
    out = np.zeros((*a.shape[:-2], n + 3, n), a.dtype)
    for at in np.ndindex(a.shape[:-2]) if n else ():
        packed, exchanges, _ = factorize(a[at], lower=1)
        order, first = _ldl_order(exchanges, packed)
        out[at] = np.concatenate([np.tril(packed), [order, first, exchanges]])
    return out


def _ldl_order(exchanges: Any, packed: Any) -> tuple[list[int], list[int]]:
    """The order of the rows after all exchanges, and 1 at the first column of each block of two; `packed` has its rows exchanged in place."""
    n, k = len(exchanges), 0
    order, first = list(range(n)), [0] * n
    while k < n:
        first[k] = int(exchanges[k] < 0)
        here, other = k + first[k], builtins.abs(int(exchanges[k])) - 1
        order[here], order[other] = order[other], order[here]
        packed[[here, other], :k] = packed[[other, here], :k]
        k += 1 + first[k]
    return order, first


# Cells


def is_number(x: Any) -> bool:
    """Whether an element is a number of many digits, which can be compared."""
    return hasattr(x, "ae")


@functools.cache
def _digits() -> Any:
    return importlib.import_module("symgrad.carriers.digits")  # brings mpmath


class NoExpression(TypeError):
    """A function of matrices has values in many digits, but no formula."""


def refuse_expressions(name: str, a: Any) -> None:
    if a.size and hasattr(a.flat[0], "free_symbols"):
        raise NoExpression(f"{name}: of a matrix of expressions there is no formula in general; evaluate them at numbers")


def _matrix(name: str, a: Any) -> Any:
    """The matrix of mpmath. Raises TypeError for expressions, Undecided for balls."""
    refuse_expressions(name, a)
    if not is_number(a.flat[0]):
        raise _digits().Undecided(f"{name} of a matrix has no enclosure")
    return _digits().context.matrix(a.tolist())


def _objects(x: Any, real: bool = False) -> Any:
    """A matrix of mpmath as an array; its real part for `real`."""
    rows = [[_digits().context.re(v) if real else v for v in row] for row in x.tolist()]
    return np.array(rows, object).reshape((x.rows, x.cols))


def _is_real(a: Any) -> bool:
    return builtins.all(not _digits().context.im(x) for x in a.ravel())


def _cells_phases(v: Any) -> Any:
    largest = [max(column, key=builtins.abs) for column in v.T.tolist()]
    return np.array([builtins.abs(x) / x for x in largest], object)


def _spectrum(cls: Any, a: Any) -> tuple[Any, Any]:
    """Eigenvalues, ascending, and eigenvectors of a Hermitian matrix of many-digit numbers."""
    a = hermitian_cells(cls, a)
    if not a.size:
        return a[:0].ravel(), a
    values, vectors = _digits().context.eighe(_matrix("eigh", a))
    order = sorted(range(len(a)), key=lambda i: _digits().context.re(values[i]))
    found = _objects(vectors, _is_real(a))[:, order]
    return np.array([_digits().context.re(values[i]) for i in order], object), found * _cells_phases(found)


def _cells_hermitian_eigenvalues(cls: Any, a: Any) -> Any:
    return _spectrum(cls, a)[0]


def _cells_hermitian_eigenvectors(cls: Any, a: Any) -> Any:
    return _spectrum(cls, a)[1]


def _cells_eigenvalue_gaps(cls: Any, w: Any, name: str) -> Any:
    n, zero = len(w), cls.number(0)
    least = _digits().context.eps * max(map(builtins.abs, w.tolist()), default=zero) if n and is_number(w[0]) else None
    for i in range(n):
        for j in range(i):
            if w[i] == w[j] if least is None else builtins.abs(w[i] - w[j]) <= least:
                _refuse_equal(name, j, i)
    return np.array([[zero if i == j else 1 / (w[j] - w[i]) for j in range(n)] for i in range(n)], object).reshape((n, n))


def _decomposed(name: str, a: Any) -> tuple[Any, Any, Any]:
    """U, s and V of U diag(s) Vᴴ."""
    if not a.size:
        k = min(a.shape)
        return a[:, :k], a[:k, 0] if k else a.ravel()[:0], a.T[:, :k]
    u, s, vh = _digits().context.svd(_matrix(name, a))
    return _objects(u), _objects(s).ravel(), adjoint_of_cells(_objects(vh))


def _cells_singular_values(cls: Any, a: Any) -> Any:
    return _decomposed("svdvals", a)[1]


def _cells_singular_vectors(cls: Any, a: Any) -> Any:
    u, _, v = _decomposed("svd", a)
    return np.concatenate([u, v]) * _cells_phases(u)


def _cells_pseudo_inverse(cls: Any, a: Any, atol: float, rtol: float) -> Any:
    u, s, v = _decomposed("pinv", a)
    least = max([atol, *[rtol * x for x in s]])
    inverses = np.array([1 / x if x > least else cls.number(0) for x in s], object)
    return (v * inverses) @ adjoint_of_cells(u)


def _cells_qr_factors(cls: Any, a: Any) -> Any:
    """Q and R by reflections with LAPACK's signs: a diagonal element of R has the sign opposite to that of the element it replaces."""
    refuse_expressions("qr", a)
    (m, n), r, reflections = a.shape, a.copy(), []
    for j in range(n):
        alpha, below = r[j, j], r[j + 1:, j].tolist()
        if alpha.imag == 0 and builtins.all(x == 0 for x in below):
            continue
        if not (alpha.imag != 0 or builtins.any(x != 0 for x in below)) or not (alpha.real < 0 or alpha.real >= 0):
            raise _digits().Undecided("qr: an element of a matrix is too close to zero to choose a sign")
        length = cls.carrier.sqrt(cls.fill([sum(builtins.abs(x) ** 2 for x in [alpha, *below])], ())).item()
        beta = length if alpha.real < 0 else -length
        v = np.array([cls.number(1), *[x / (alpha - beta) for x in below]], object)
        reflections.append((j, v, (beta - alpha) / beta))
        r[j:, j:] = r[j:, j:] - _conjugate((beta - alpha) / beta) * np.outer(v, adjoint_of_cells(v) @ r[j:, j:])
        r[j + 1:, j] = cls.number(0)
    q = np.array([[cls.number(int(i == j)) for j in range(n)] for i in range(m)], object).reshape((m, n))
    for j, v, tau in reversed(reflections):
        q[j:, :] = q[j:, :] - tau * np.outer(v, adjoint_of_cells(v) @ q[j:, :])
    return np.concatenate([q, r[:n]])


def _conjugate(x: Any) -> Any:
    return x.conjugate() if hasattr(x, "conjugate") else x  # real balls have none


def adjoint_of_cells(a: Any) -> Any:
    """Aᴴ."""
    out = a.T.copy()
    out[...] = np.frompyfunc(_conjugate, 1, 1)(out)
    return out


def _cells_matrix_exponential(cls: Any, a: Any) -> Any:
    return _objects(_digits().context.expm(_matrix("matrix_exp", a)), _is_real(a)) if a.size else a


def _general_spectrum(name: str, a: Any) -> tuple[Any, Any]:
    """Eigenvalues in the order of LAPACK, and eigenvectors of length 1, of a matrix of many-digit numbers."""
    if not a.size:
        return a[:0].ravel(), a
    values, vectors = _digits().context.eig(_matrix(name, a))
    left = list(range(len(a)))
    order = []
    for w in eigenvalues_of_numbers(a):
        order.append(min(left, key=lambda i, w=w: builtins.abs(values[i] - w)))
        left.remove(order[-1])
    found = _objects(vectors)[:, order]
    lengths = np.array([_digits().context.sqrt(sum(builtins.abs(x) ** 2 for x in column)) for column in found.T.tolist()], object)
    return np.array([values[i] for i in order], object), found / lengths * _cells_phases(found)


def _cells_eigenvalues(cls: Any, a: Any) -> Any:
    return _general_spectrum("eigvals", a)[0]


def _cells_eigenvectors(cls: Any, a: Any) -> Any:
    return _general_spectrum("eig", a)[1]


def _cells_regular(cls: Any, a: Any, name: str) -> Any:
    """The matrix. One of numbers is refused if its columns depend on each other to the last digit."""
    if a.size and is_number(a.flat[0]):
        sizes = [builtins.abs(x) for x in (np.diagonal(a).tolist() if name == "linalg.qr" else _cells_singular_values(cls, a).tolist())]
        if min(sizes) <= max(sizes) * _digits().context.eps * len(a):
            raise RuntimeError(f"{name}: {IRREGULAR[name]}")
    return a


def _cells_ldl_factors(cls: Any, a: Any, hermitian: bool) -> Any:
    """As of floats, whose exchanges are taken: they are part of the value, and are chosen by comparisons."""
    a = hermitian_cells(cls, a, hermitian)
    n, zero = len(a), cls.number(0)
    refuse_expressions("ldl_factor", a)
    out = np.full((n + 3, n), zero, object)
    near = np.array([complex(x.mid() if hasattr(x, "mid") else x) for x in a.ravel().tolist()]).reshape(a.shape)
    exchanges = _ldl_factors(near if near.imag.any() else near.real, hermitian)[n + 2].real.astype(int)
    order, first = _ldl_order(exchanges, out)
    rest, k = a[np.ix_(order, order)], 0
    while k < n:
        end = k + 1 + first[k]
        block, below = rest[k:end, k:end], rest[end:, k:end]
        out[k:end, k:end] = block
        if end - k == 2:
            out[k, k + 1] = zero
            inverse = np.array([[block[1, 1], -block[0, 1]], [-block[1, 0], block[0, 0]]], object) / (
                block[0, 0] * block[1, 1] - block[0, 1] * block[1, 0])
            below = below @ inverse
        elif not block[0, 0] == 0:  # a ball around 0 is neither
            below = below / block[0, 0]
        out[end:n, k:end] = below
        rest[end:, end:] = rest[end:, end:] - below @ rest[k:end, end:]
        k = end
    for i, row in enumerate((order, first, exchanges)):
        out[n + i] = [cls.number(int(x)) for x in row]
    return out
