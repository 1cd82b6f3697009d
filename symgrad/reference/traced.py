"""The traced carrier: the ball carrier whose scalars are those of a tape. This module needs python-flint."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from symgrad.carriers import ball
from symgrad.carriers.ball_matrices import BALL_MATRICES
from symgrad.carriers.cells import Cells, each, fold
from symgrad.carriers.matrices import of_cells
from symgrad.carriers.special.table import SPECIAL, _parameter
from symgrad.reference.tape import _imaginary_part, _real_part, emit, item, total


class NoEnclosure(Exception):
    """The error for a function without an enclosure."""


def _traced(function: Any, arity: int) -> Any:
    return each(functools.partial(emit, function), arity)


class Traced(Cells):
    """Arrays of scalars of a tape, of exact balls and of conditions."""

    carrier = types.SimpleNamespace()
    complex_parts = functools.partial(emit, _real_part), functools.partial(emit, _imaginary_part)
    number = staticmethod(ball._number)


def lift_value(value: Any) -> Any:
    """A number or an array of them as exact balls."""
    return Traced.lift(value)


def _folded(function: Callable[[list], Any]) -> Callable[[list], Any]:
    def call(*row: Any) -> Any:
        return function(list(row))

    return lambda row: emit(call, *row)


def _chained(function: Any, start: Any) -> Callable[[list], Any]:
    return lambda row: reduce(functools.partial(emit, function), row) if row else start


def _special(name: str) -> Callable[..., Any]:
    row = SPECIAL[name]

    @functools.cache
    def with_parameters(*parameters: Any) -> Any:
        return lambda *xs: row.balls(*xs, *parameters)  # type: ignore[misc]

    def call(*args: Any) -> Any:
        if row.balls is None:
            raise NoEnclosure(f"{name} has no enclosure")
        return _traced(with_parameters(*map(_parameter, args[row.arity:])), row.arity)(*args[:row.arity])

    return call


def _matrix(name: str) -> Callable[..., Any]:
    function: Any = BALL_MATRICES[name]

    @functools.cache
    def of_shapes(shapes: tuple[tuple[int, ...], ...], parameters: tuple[Any, ...]) -> Any:
        sizes = [int(np.prod(shape)) for shape in shapes]
        ends = np.cumsum(sizes).tolist()

        def call(*xs: Any) -> Any:
            arrays = [ball.Balls.fill(xs[end - size:end], shape).view(np.ndarray) if shape else xs[end - 1]
                      for end, size, shape in zip(ends, sizes, shapes)]
            out: Any = np.array(function(ball.Balls, *arrays, *parameters), dtype=np.object_)
            return [*out.ravel().tolist(), out.shape]

        return call

    def call(cls: Any, *args: Any) -> Any:
        arrays = [a for a in args if isinstance(a, np.ndarray)]
        step = of_shapes(tuple(a.shape for a in arrays), args[len(arrays):])
        flat = [x for a in arrays for x in a.ravel().tolist()]
        if not flat:
            return function(ball.Balls, *args)
        found = emit(step, *flat)
        *elements, shape = found.value
        return Traced.fill([emit(item(i), found) for i in range(len(elements))], shape).view(np.ndarray)

    return call


def _fill() -> None:
    names = {name: value for name, value in vars(ball).items() if not name.startswith("_")}
    elements = ball.ELEMENTS
    names |= {name: _traced(elements[f], f.nin) for name, f in names.items() if isinstance(f, np.ufunc) and f in elements}
    names |= {name: _special(name) for name in SPECIAL}
    names |= of_cells({name: _matrix(name) for name in BALL_MATRICES})
    softpluses = _traced(elements[ball._softpluses], 2)
    first, last = (_folded(functools.partial(ball._position, before=before)) for before in (ball._less, lambda a, b: ball._less(b, a)))
    names |= {
        "lift_value": lift_value, "is_precise": True, "softplus": lambda x, beta=1.0: softpluses(x, beta),
        "softmax": lambda x, dim: names["exp"](x - names["logsumexp"](x, dim, True)),
        "argmax": lambda x, dim=None, keepdim=False: fold(first, x, dim, keepdim),
        "argmin": lambda x, dim=None, keepdim=False: fold(last, x, dim, keepdim)}
    vars(Traced.carrier).update(names)
    arithmetic = {np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.true_divide: operator.truediv,
                  np.power: ball._power}
    Traced.ufuncs = {u: _traced(f, 2) for u, f in arithmetic.items()} | {np.negative: _traced(operator.neg, 1), np.absolute: names["abs"]} | {
        u: names[name] for u, name in ((np.less, "lt"), (np.less_equal, "le"), (np.greater, "gt"), (np.greater_equal, "ge"))}
    folds = ball.Balls.folds
    Traced.folds = {np.add: lambda row: emit(total, *row) if row else ball.arb(0), np.multiply: _chained(operator.mul, ball.arb(1)),
                    np.logaddexp: _folded(folds[np.logaddexp]), np.maximum: _chained(ball._larger, None),
                    np.minimum: _chained(ball._smaller, None), np.logical_and: _chained(ball._and, True), np.logical_or: _chained(ball._or, False)}


_fill()
