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

__all__ = ["adjoint_of_cells", "hermitian", "hermitian_part_of_cells", "is_number", "scipy_linalg"]

EIGENVALUES = ("the eigenvalues {} and {} are equal, so that their eigenvectors are not unique and have no derivative. Compute with the eigenvalues "
               "alone (linalg.%s), or perturb the matrix.")
EQUAL = {"linalg.eigh": EIGENVALUES % "eigvalsh", "linalg.eig": EIGENVALUES % "eigvals",
         "linalg.svd": "two singular values are equal, or one is zero, so that the singular vectors are not unique and have no derivative. Compute "
                       "with the singular values alone (linalg.svdvals), or perturb the matrix."}


@functools.cache
def scipy_linalg() -> Any:
    return importlib.import_module("scipy.linalg")  # takes a tenth of a second


# Numbers, by LAPACK


def hermitian(a: Any) -> Any:
    return (a + adjoint(a)) / 2


def adjoint(a: Any) -> Any:
    return np.conj(np.swapaxes(a, -1, -2))


def _finite(name: str, a: Any, what: str = "eigenvalues") -> Any:
    if not np.isfinite(a).all():
        raise RuntimeError(f"{name}: the input has NaN or infinite elements, so it has no {what}")
    return a


def _hermitian_eigenvalues(a: Any) -> Any:
    return np.linalg.eigvalsh(hermitian(_finite("linalg.eigvalsh", a)))


def _hermitian_eigenvectors(a: Any) -> Any:
    v = np.linalg.eigh(hermitian(_finite("linalg.eigh", a)))[1]
    return v * _phases(v)


def _phases(v: Any) -> Any:
    """The factors of columns with which their largest elements are positive: LAPACK's sign may change with the last digit of the matrix."""
    if not v.size:
        return 1
    largest = np.take_along_axis(v, np.argmax(np.abs(v), -2)[..., None, :], -2)
    return np.abs(largest) / largest


def _eigenvalue_gaps(w: Any, name: str) -> Any:
    """1 / (w_j - w_i), and 0 on the diagonal. Numbers that agree to the last digit of the largest are equal: their vectors have no right digit."""
    n = w.shape[-1]
    gaps = w[..., None, :] - w[..., :, None]
    least = np.abs(w).max(-1, initial=0)[..., None, None] * np.finfo(w.dtype).eps
    equal = np.argwhere((np.abs(gaps) <= least) & ~np.eye(n, dtype=bool))
    if len(equal):
        _refuse_equal(name, *map(int, equal[0][-2:]))
    return (1 - np.eye(n, dtype=w.dtype)) / (gaps + np.eye(n, dtype=w.dtype))


def _refuse_equal(name: str, i: int, j: int) -> None:
    raise RuntimeError(f"{name}: {EQUAL[name].format(i, j)}")


def _singular_values(a: Any) -> Any:
    return np.linalg.svd(_finite("linalg.svd", a, "singular values"), compute_uv=False)


def _singular_vectors(a: Any) -> Any:
    u, _, vh = np.linalg.svd(_finite("linalg.svd", a, "singular values"), full_matrices=False)
    return np.concatenate([u, adjoint(vh)], -2) * _phases(u)


def _pseudo_inverse(a: Any, atol: float, rtol: float) -> Any:
    u, s, vh = np.linalg.svd(_finite("linalg.pinv", a, "singular values"), full_matrices=False)
    kept = s > np.maximum(atol, rtol * s.max(-1, keepdims=True, initial=0))
    return adjoint(vh * (kept / np.where(kept, s, 1))[..., None]) @ adjoint(u)


def _qr_factors(a: Any) -> Any:
    return np.concatenate(np.linalg.qr(a), -2)


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


def _eigen(a: Any) -> tuple[Any, Any]:
    """The eigenvalues and eigenvectors; those of a real matrix are conjugate in pairs."""
    values, vectors = np.linalg.eig(a if np.iscomplexobj(a) and a.imag.any() else a.real)
    kind = np.result_type(a.dtype, np.complex64)
    return values.astype(kind), (vectors * _phases(vectors)).astype(kind)


def _eigenvalues(a: Any) -> Any:
    return _eigen(_finite("linalg.eigvals", a))[0]


def _eigenvectors(a: Any) -> Any:
    return _eigen(_finite("linalg.eig", a))[1]


# Cells


def is_number(x: Any) -> bool:
    """Whether an element is a number of many digits, which can be compared."""
    return hasattr(x, "ae")


def hermitian_part_of_cells(cls: Any, a: Any) -> Any:
    """The elements of (A + Aᴴ)/2."""
    cells = cls.lift(a)
    return np.array(((cells + cls.carrier.conj(cells.T)) / 2).view(np.ndarray))


@functools.cache
def _digits() -> Any:
    return importlib.import_module("symgrad.carriers.digits")  # brings mpmath


def _refuse_expressions(name: str, a: Any) -> None:
    if a.size and hasattr(a.flat[0], "free_symbols"):
        raise TypeError(f"{name}: of a matrix of expressions there is no formula in general; evaluate them at numbers")


def _matrix(name: str, a: Any) -> Any:
    """The matrix of mpmath. Raises TypeError for expressions, Undecided for balls."""
    _refuse_expressions(name, a)
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
    a = hermitian_part_of_cells(cls, a)
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
    _refuse_expressions("qr", a)
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
    for w in _eigen(np.array(a, complex))[0].tolist():
        order.append(min(left, key=lambda i, w=w: builtins.abs(values[i] - w)))
        left.remove(order[-1])
    found = _objects(vectors)[:, order]
    lengths = np.array([_digits().context.sqrt(sum(builtins.abs(x) ** 2 for x in column)) for column in found.T.tolist()], object)
    return np.array([values[i] for i in order], object), found / lengths * _cells_phases(found)


def _cells_eigenvalues(cls: Any, a: Any) -> Any:
    return _general_spectrum("eigvals", a)[0]


def _cells_eigenvectors(cls: Any, a: Any) -> Any:
    return _general_spectrum("eig", a)[1]
