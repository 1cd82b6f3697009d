"""Sums of few weighted elements along each of the last axes (see `symgrad.layouts.resampling_weights`): `resample`, which is its own transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched
from symgrad.carriers.contracting import ROWS
from symgrad.layouts.resampling_weights import Tap, taps


def of_carrier(carrier: Callable[[Any], Any]) -> Callable[..., Any]:
    """The word for values whose carrier `carrier(x)` returns; they are multiplied by exact numbers."""
    def resample(x: Any, specs: Sequence[Any], transposed: bool) -> Any:
        return _along_each(carrier(x), x, specs, transposed, lambda part, tap, shape: part * _turned(tap.numerators, shape) / _turned(
            tap.denominators, shape))

    return resample


def of_arrays() -> dict[str, Callable[..., Any]]:
    """The word of the numeric carrier."""
    def resample(x: Any, specs: Sequence[Any], transposed: bool) -> Any:
        if type(x) is Batched:
            return x._with(resample(x.data, specs, transposed))
        if x.dtype.char in "eE":
            return resample(x.astype(np.float32), specs, transposed).astype(x.dtype)
        if x.dtype.kind in "biu":  # the weights are no whole numbers
            return resample(x.astype(np.float64), specs, transposed)
        if type(x) is not np.ndarray:
            return _along_each(numeric, x, specs, transposed, lambda part, tap, shape: part * _turned(tap.floats, shape, x.dtype))
        for k, spec in enumerate(specs, x.ndim - len(specs)):
            x = x if spec is None else _along(x, k, *taps(spec, transposed))
        return x if any(spec is not None for spec in specs) else x.copy()

    return {"resample": resample}


def _turned(numbers: Any, shape: tuple[int, ...], dtype: Any = None) -> Any:
    """Weights in the direction of an axis; one for all stays a number."""
    return numbers if not isinstance(numbers, np.ndarray) else (numbers if dtype is None else numbers.astype(dtype)).reshape(shape)


def _along_each(xp: Any, x: Any, specs: Sequence[Any], transposed: bool, weighted: Callable[[Any, Tap, tuple[int, ...]], Any]) -> Any:
    for k, spec in enumerate(specs, x.ndim - len(specs)):
        if spec is None:
            continue
        count, found = taps(spec, transposed)
        shape, before, turned = (*x.shape[:k], count, *x.shape[k + 1:]), (slice(None),) * k, (-1, *(1,) * (x.ndim - k - 1))
        out = None
        for tap in found:
            part = weighted(xp.getitem(x, (*before, tap.elements)), tap, turned)
            part = part if tap.results is None else xp.place(part, (*before, tap.results), shape)
            out = part if out is None else out + part
        x = xp.zeros_like(x, shape) if out is None else out
    return x


def _along(x: np.ndarray, axis: int, count: int, found: Sequence[Tap]) -> np.ndarray:
    """The sums along one axis of an array; those of many elements in halves, so that rounding errors do not grow with their number."""
    if len(found) > ROWS:
        middle = len(found) // 2
        total = _along(x, axis, count, found[:middle])
        total += _along(x, axis, count, found[middle:])
        return total
    shape, before, turned = (*x.shape[:axis], count, *x.shape[axis + 1:]), (slice(None),) * axis, (-1, *(1,) * (x.ndim - axis - 1))
    out = None
    for tap in found:
        part = x[(*before, tap.elements)] * _turned(tap.floats, turned, x.dtype)
        if out is None:
            out = part if tap.results is None else np.zeros(shape, x.dtype)
            if out is part:
                continue
        target = out if tap.results is None else out[(*before, tap.results)]
        target += part
        if type(tap.results) is np.ndarray:
            out[(*before, tap.results)] = target
    return np.zeros(shape, x.dtype) if out is None else out
