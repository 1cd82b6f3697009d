"""Exponents: those with an exact predecessor, and powers of two by which factors are scaled, so that no product of some of them overflows."""

from __future__ import annotations

from typing import Any

import numpy as np

FEW, MANY = 64, 4096  # numbers that Python multiplies sooner than NumPy compares them, and numbers that are not examined, since that takes longer
FAR = 4000  # the exponent of a product that is 0 or infinite, with all its derivatives


def has_predecessor(b: float) -> bool:
    """Whether b - 1 is a float, or b so large that powers are 0, 1 or infinite: b - 1 is the exponent of the derivative of a power. A rounded one
    would be wrong by a factor that grows with the base.

    >>> [has_predecessor(b) for b in (2, 0.5, 1.1, 1 / 3, -0.1, 1e16, 1e20)]
    [True, True, True, False, False, False, True]
    """
    less = b - 1
    return less + 1 == b and (b - less == 1 or abs(b) > 1e19)  # the first fails for small numbers, the second for large ones


def balancing_factors(x: Any, dims: tuple[int, ...]) -> tuple[Any, ...]:
    """Powers of two of product 1 along `dims`, times which the elements of each product are of one size; () where no scaling is needed.

    There are two arrays, whose product may itself be too large or too small to be represented.

    >>> balancing_factors(np.array([2.0, 3.0]), (0,))
    ()
    >>> first, second = balancing_factors(np.array([2.0**700, 2.0**600, 2.0**-800]), (0,))
    >>> np.log2(first * second)
    array([-533., -434.,  967.])
    """
    if _is_harmless(x):
        return ()
    order = (*[i for i in range(x.ndim) if i not in dims], *dims)
    moved = x.transpose(order)
    logs = _logarithms(moved.reshape(*moved.shape[:x.ndim - len(dims)], -1))
    total = logs.sum(-1, keepdims=True)
    places = np.cumsum(logs != 0, -1)
    shifts = _steps(logs.cumsum(-1) - total * (places / np.maximum(places[..., -1:], 1)))
    shifts = np.where(abs(total) < FAR, shifts, 0).reshape(moved.shape).transpose(np.argsort(order))
    return _powers(-shifts, x.dtype) if shifts.any() else ()


def running_factors(x: Any, dim: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Powers of two times which no running product along `dim` is far from 1, and those that undo this in the running products; () as above."""
    if not x.ndim or _is_harmless(x):
        return (), ()
    steps = np.clip(_steps(np.moveaxis(_logarithms(x).cumsum(dim), dim, -1)), -1000, 1000)  # of subnormal numbers almost
    if not steps.any():
        return (), ()
    ends = np.clip(steps.cumsum(-1), -FAR / 2, FAR / 2)
    before, after = (np.moveaxis(exponents, -1, dim) for exponents in (-steps, ends))
    return _powers(before, x.dtype), _powers(after, x.dtype)


def _is_harmless(x: Any) -> bool:
    """Whether every product of some of the elements is representable, as far as products of floats of a plain array go."""
    if type(x) is not np.ndarray or x.dtype.char not in "fdFD" or not 0 < x.size <= MANY:
        return True
    low = 1e-290 if x.dtype.char in "dD" else 1e-30
    if x.size <= FEW:
        small = large = 1.0
        for number in x.tolist() if x.ndim == 1 else x.ravel().tolist():
            size = abs(number)
            if size > 1:
                large *= size
            elif size:
                small *= size
        return small > low and large < 1 / low
    sizes = np.abs(x)
    bound = (1 / low) ** (1 / x.size)
    if sizes.max() < bound and sizes.min() > 1 / bound:
        return True
    sizes = sizes[sizes > 0]
    with np.errstate(all="ignore"):
        return bool(np.minimum(sizes, 1).prod() > low and np.maximum(sizes, 1).prod() < 1 / low)


def _logarithms(x: Any) -> Any:
    """log₂ of the sizes, 0 for numbers without a size."""
    sizes = np.abs(x).astype(np.float64)
    return np.log2(np.where((sizes > 0) & (sizes < np.inf), sizes, 1))


def _steps(sums: Any) -> Any:
    """The differences of rounded sums along the last axis."""
    return np.diff(np.rint(sums), axis=-1, prepend=0)


def _powers(exponents: Any, dtype: Any) -> tuple[Any, Any]:
    half = np.rint(exponents / 2)
    kind = np.float32 if dtype.char in "fF" else np.float64
    return tuple(np.ldexp(np.ones((), kind), part.astype(np.int32)) for part in (half, exponents - half))
