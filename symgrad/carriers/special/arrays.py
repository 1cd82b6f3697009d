"""The special functions of the numeric carrier, from the rows of the table; SciPy is imported when one is first computed."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.carriers.batched import Batched, aligned_data
from symgrad.carriers.recorded import Recorded
from symgrad.carriers.special.table import SPECIAL
from symgrad.dtypes.dtype import get_default_dtype

FLOAT64 = np.dtype(np.float64)


@functools.cache
def _scipy() -> Any:
    return importlib.import_module("scipy.special")


def of_arrays() -> dict[str, Callable[..., Any]]:
    """The functions of the numeric carrier. Types with fewer digits than float32 are computed in float32, integers in the default dtype."""
    return {name: _of_arrays(name) for name in SPECIAL}


def _of_arrays(name: str) -> Callable[..., Any]:
    row = SPECIAL[name]
    arrays, count = row.arrays, row.arity

    def compute(args: tuple[Any, ...]) -> Any:
        with np.errstate(all="ignore"):
            return getattr(_scipy(), arrays)(*args) if isinstance(arrays, str) else arrays(_scipy(), *args)

    def call(*args: Any) -> Any:
        xs, params = args[:count], args[count:]
        if all([type(x) is np.ndarray and x.dtype is FLOAT64 for x in xs]):
            return compute(args)
        for x in xs:
            if type(x) is Recorded:
                return x.recorder.emit(name, xs, params)
        batches = [x for x in xs if type(x) is Batched]
        if batches:
            level, ndim = max([x.level for x in batches]), max([getattr(x, "ndim", 0) for x in xs])
            return Batched(call(*[aligned_data(x, level, ndim) for x in xs], *params), level)
        dtype = np.result_type(*[x for x in xs if hasattr(x, "dtype")] or xs)
        if dtype.kind in "biu":
            dtype = get_default_dtype().numpy
            xs = tuple([np.asarray(x, dtype) for x in xs])
        small = dtype.kind not in "fc" or dtype.itemsize < 4
        if small:
            xs = tuple([np.asarray(x, np.float32) for x in xs])
        y = compute((*xs, *params))
        return np.asarray(y).astype(dtype)[()] if small else y

    call.__name__ = call.__qualname__ = name
    return call
