"""Transforms of arrays of float64 and complex128 by pocketfft's functions for real numbers, in place of rules made of complex transforms.

A table of functions by the names of ops: the value, and the transpose of the linear map, each with the kind of numbers that it takes.
They compute what the rules in `ops/convolution.py` say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.system.numpy_internals import transforms as loops

complex128 = np.complex128


def _along(x: Any, dims: tuple[int, ...], inverse: bool) -> Any:
    """A complex array, transformed in place along dimensions."""
    transform = loops.ifft if inverse else loops.fft
    for dim in dims:
        transform(x, 1, x, axes=[(dim,), (), (dim,)])
    return x


def _half_of_real(x: Any, last: int, inverse: bool) -> Any:
    """The first half of the spectrum of real numbers."""
    shape, n = list(x.shape), x.shape[last]
    shape[last] = n // 2 + 1
    out = np.empty(shape, complex128)
    (loops.rfft_n_odd if n % 2 else loops.rfft_n_even)(x, 1, out, axes=[(last,), (), (last,)])
    return np.conjugate(out, out=out) if inverse else out


def _real_of_half(x: Any, last: int, inverse: bool, n: int) -> Any:
    """The n real numbers with this half of a spectrum; the transform forwards is that of the conjugates backwards."""
    shape = list(x.shape)
    shape[last] = n
    out = np.empty(shape)
    return loops.irfft(x if inverse else x.conj(), 1, out, axes=[(last,), (), (last,)])


def _scaled_inner(x: Any, last: int, n: int, factor: float) -> Any:
    """A half of a spectrum of n numbers with the terms scaled in place that have a conjugate in the other half."""
    if n > 2:
        inner = x[(slice(None),) * last + (slice(1, (n + 1) // 2),)]
        inner *= factor
    return x


def _divided(x: Any, divisor: float) -> Any:
    if divisor != 1:
        x /= divisor
    return x


def _of_real(x: Any, dims: tuple[int, ...], inverse: bool, divisor: float, half: bool) -> Any:
    if not half:
        return _divided(_along(x.astype(complex128), dims, inverse), divisor)
    return _divided(_along(_half_of_real(x, dims[-1], inverse), dims[:-1], inverse), divisor)


def _of_real_transpose(g: Any, shape: tuple[int, ...], dims: tuple[int, ...], inverse: bool, divisor: float, half: bool) -> Any:
    g = _along(g.copy(), dims[:-1] if half else dims, not inverse)
    if not half:
        return _divided(g.real.copy(), divisor)
    n = shape[dims[-1]]
    return _divided(_real_of_half(_scaled_inner(g, dims[-1], n, 0.5), dims[-1], not inverse, n), divisor)


def _to_real(x: Any, dims: tuple[int, ...], inverse: bool, divisor: float, n: int) -> Any:
    x = _along(x.copy(), dims[:-1], inverse) if len(dims) > 1 else x
    return _divided(_real_of_half(x, dims[-1], inverse, n), divisor)


def _to_real_transpose(g: Any, shape: tuple[int, ...], dims: tuple[int, ...], inverse: bool, divisor: float, n: int) -> Any:
    half = _scaled_inner(_half_of_real(g, dims[-1], not inverse), dims[-1], n, 2.0)
    if half.shape[dims[-1]] != shape[dims[-1]]:  # the value was made of fewer terms, and of zeros
        half = half[(slice(None),) * dims[-1] + (slice(shape[dims[-1]]),)].copy()
    return _divided(_along(half, dims[:-1], not inverse), divisor)


TRANSFORMS: dict[str, tuple[Callable[..., Any], str, Callable[..., Any], str]] = {}
if loops is not None:
    TRANSFORMS |= {"fourier_of_real": (_of_real, "d", _of_real_transpose, "D"), "fourier_to_real": (_to_real, "D", _to_real_transpose, "d")}
