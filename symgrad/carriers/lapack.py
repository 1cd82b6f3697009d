"""LAPACK's functions of matrices of floats, without the time that np.linalg takes for preparations, which is most of that of a small matrix."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.system.numpy_internals import linalg_loop

__all__ = ["adjoint", "cholesky", "det", "eig", "eigh", "eigvalsh", "float64", "forget", "hermitian", "inv", "is_remembered", "remembered",
           "scipy_linalg", "slogdet", "solve", "svd", "svdvals"]

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
