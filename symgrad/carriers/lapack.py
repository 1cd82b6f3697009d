"""LAPACK's functions of matrices of floats, without the time that np.linalg takes for preparations, which is most of that of a small matrix.

Hermitian matrices are given by one triangle, as LAPACK reads them, also those of cells of many digits.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from symgrad.system.numpy_internals import linalg_loop
from symgrad.system.restoring import changed

float64 = np.dtype(np.float64)


@functools.cache
def scipy_linalg() -> Any:
    return importlib.import_module("scipy.linalg")  # takes a tenth of a second


def without_preparations(inner: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of np.linalg that calls its inner function directly for small matrices of float64: for them its preparations take most of the time.

    The inner function answers with NaN for a failure, which is left to the function, as is a name that this NumPy does not have.
    """
    found = linalg_loop(inner)
    if found is None:
        return function

    def compute(*matrices: Any) -> Any:
        for a in matrices:
            if a.ndim != 2 or a.dtype is not float64 or not a.size:
                return function(*matrices)
        try:
            y = found(*matrices)
        except (FloatingPointError, RuntimeWarning):  # where a user has made errors of them
            return function(*matrices)
        first = (y[0] if type(y) is tuple else y).item(0)
        return y if first == first else function(*matrices)

    return compute


MATRICES, BYTES = 8, 1 << 15  # that are remembered of each decomposition, and the most of one matrix


def is_remembered(a: Any) -> bool:
    """Whether the decompositions of a matrix are remembered."""
    return a.nbytes <= BYTES


def remembered(decompose: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], tuple[Any, ...]]:
    """A decomposition whose last results are kept by the elements of the matrix: a value, its vectors and its pullback ask for it again.

    The arrays must not be written or handed to a user.
    """
    @functools.lru_cache(MATRICES)
    def of_elements(dtype: Any, shape: tuple[int, ...], elements: bytes) -> tuple[Any, ...]:
        found = decompose(np.frombuffer(elements, dtype).reshape(shape))
        for x in found:
            x.flags.writeable = False
        return found

    @functools.wraps(decompose)
    def compute(a: Any) -> tuple[Any, ...]:
        return of_elements(a.dtype, a.shape, a.tobytes()) if is_remembered(a) else decompose(a)

    _forgetting.append(of_elements.cache_clear)
    return compute


_forgetting: list[Callable[[], None]] = []


def forget() -> None:
    """Forget all decompositions, so that the next one of a matrix takes as long as the first."""
    for clear in _forgetting:
        clear()


def hermitian(a: Any) -> Any:
    return (a + adjoint(a)) / 2


def adjoint(a: Any) -> Any:
    a = a.swapaxes(-1, -2)
    return a if a.dtype is float64 else a.conj()


inv, solve, cholesky, det, slogdet, eigvalsh, eigh, eig = (without_preparations(inner, getattr(np.linalg, name)) for inner, name in (
    ("inv", "inv"), ("solve", "solve"), ("cholesky_lo", "cholesky"), ("det", "det"), ("slogdet", "slogdet"), ("eigvalsh_lo", "eigvalsh"),
    ("eigh_lo", "eigh"), ("eig", "eig")))
svd = without_preparations("svd_s", functools.partial(np.linalg.svd, full_matrices=False))
svdvals = without_preparations("svd", functools.partial(np.linalg.svd, compute_uv=False))


class _Thread(threading.local):
    parts: list[str] | None = None  # the functions that read a Hermitian part. Not a context variable: rules are computed in another context


_thread = _Thread()


@contextlib.contextmanager
def hermitian_parts() -> Iterator[list[str]]:
    """Within this context functions of a Hermitian matrix read its Hermitian part, not its lower triangle; yields the names of those that differ.

    The value of one triangle and the derivative along Hermitian perturbations are not those of one function of all elements. Where derivatives are
    compared with the function itself, element by element, the function must be that of the Hermitian part, which is the same for Hermitian matrices.
    """
    seen: list[str] = []
    with changed(_thread, "parts", seen):
        yield seen


def as_the_caller_reads(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function for another thread, in which Hermitian matrices are read as in this one."""
    parts = _thread.parts

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        _thread.parts = parts
        return function(*args)

    return call


def one_triangle(name: str, a: Any, conjugate: bool = True) -> Any:
    """The matrix, whose lower triangle LAPACK reads, or within `hermitian_parts` the Hermitian part; without `conjugate` the symmetric one."""
    seen = _thread.parts
    if seen is None:
        return a
    part = hermitian(a) if conjugate else (a + a.swapaxes(-1, -2)) / 2
    if name not in seen and not np.array_equal(part, a, equal_nan=True):
        seen.append(name)
    return part


def _hermitian_matrix(a: Any) -> Any:
    """The Hermitian matrix with the lower triangle of A, without the imaginary parts of the diagonal."""
    a = np.tril(one_triangle("linalg.pinv", a))
    out = a + adjoint(np.tril(a, -1))
    if a.dtype.kind == "c":
        at = np.arange(a.shape[-1])
        out[..., at, at] = out[..., at, at].real
    return out


def hermitian_cells(cls: Any, a: Any, conjugate: bool = True) -> Any:
    """The elements of that matrix, or without `conjugate` those of the symmetric matrix with the lower triangle of A."""
    out, cells, turned = a.copy(), cls.lift(a), cls.lift(a.T)
    turned = cls.carrier.conj(turned) if conjugate else turned
    part = ((cells + turned) / 2).view(np.ndarray)
    if _thread.parts is not None:
        return np.array(part)
    above = np.triu_indices(len(a), 1)
    out[above] = turned.view(np.ndarray)[above]
    if conjugate:
        at = np.diag_indices(len(a))
        out[at] = part[at]
    return out


def _cells_hermitian_matrix(cls: Any, a: Any) -> Any:
    return hermitian_cells(cls, a)
