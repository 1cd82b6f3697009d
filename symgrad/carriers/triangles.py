"""Hermitian matrices given by one triangle, as LAPACK reads them, on arrays of numbers and on cells of many digits."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from symgrad.carriers.lapack import adjoint, hermitian
from symgrad.system.restoring import changed

__all__ = ["as_the_caller_reads", "hermitian_cells", "hermitian_parts", "one_triangle"]

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
