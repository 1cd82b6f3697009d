"""The table of special functions: one row for each, read by every carrier.

A row names an elementwise function and says how it is computed: of arrays (a ufunc of `scipy.special`, or a function of that module and arrays), of
many-digit numbers (a function of an mpmath context and numbers), as a SymPy expression (a function of the module and expressions), and of balls.
Parameters that are numbers, such as an order, follow the values.

`sources` says how it is written by language: NumPy, Torch, Jax and C, or Python for those that have none of their own. A source is the name of a
function, a format as in `symgrad.codegen.languages`, or the definition of a helper, where `{m}` is the module of arrays; one in Python is translated
for C. A ufunc of SciPy is known by its name.
A name followed by parameters, as in "C 0", is the source for these.
What has no source is refused by the printer of the language with a TypeError.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from symgrad.carriers.batched import Batched, aligned_data
from symgrad.carriers.cells import each
from symgrad.carriers.recorded import Recorded
from symgrad.carriers.special import FAMILIES, printed
from symgrad.dtypes.dtype import get_default_dtype


class Row(NamedTuple):
    """A special function of `arity` values, followed by parameters; None where there is no enclosure."""

    arrays: str | Callable[..., Any]
    digits: Callable[..., Any]
    formula: Callable[..., Any]
    balls: Callable[..., Any] | None = None
    arity: int = 1
    sources: Mapping[str, str] = {}


SPECIAL: dict[str, Row] = {}
for _family, _names in FAMILIES.items():
    _rows = importlib.import_module(f"{__package__}.{_family}").ROWS
    SPECIAL |= {name: Row(*_rows[name]) for name in _names.split()}
for _name, _sources in printed.PRINTED.items():
    SPECIAL[_name] = SPECIAL[_name]._replace(sources={**SPECIAL[_name].sources, **_sources})
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


def _parameter(value: Any) -> int | float:
    """A parameter as a Python number, whole ones as integers."""
    return int(value) if value == int(value) else float(value)


def _cells(function: Callable[..., Any], arity: int, wrap: Callable[..., Any] = lambda function: function) -> Callable[..., Any]:
    """A function of numbers or expressions and parameters as one of cells."""
    return lambda *args: each(wrap(lambda *xs: function(*xs, *map(_parameter, args[arity:]))), arity)(*args[:arity])


def of_cells(carrier: str, module: Any, wrap: Callable[..., Any] = lambda function: function) -> dict[str, Callable[..., Any]]:
    """The functions of a carrier of numbers or expressions, which are computed one by one with a library, an mpmath context or SymPy."""
    return {name: _cells(functools.partial(getattr(row, carrier), module), row.arity, wrap) for name, row in SPECIAL.items()}


def of_balls() -> dict[str, Callable[..., Any]]:
    """The functions of balls. One without an enclosure raises Undecided."""
    def refusing(name: str) -> Callable[..., Any]:
        def refuse(*args: Any) -> Any:
            from symgrad.carriers.digits import Undecided  # imports mpmath, which would delay a first special function

            raise Undecided(f"{name} has no enclosure")

        return refuse

    return {name: _cells(row.balls or refusing(name), row.arity) for name, row in SPECIAL.items()}
