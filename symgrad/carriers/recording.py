"""NumPy's functions on recorded values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.duck import Unrecordable
from symgrad.carriers.recorded import FUNCTIONS, Recorded, reduced


def _matmul(a: Any, b: Any) -> Any:
    on = a if type(a) is Recorded else b
    return on.recorder.emit("matmul", (a, b), ())


def _recorder(xs: Any) -> Any:
    return next(x.recorder for x in xs if type(x) is Recorded)


def _where(condition: Any, *values: Any) -> Any:
    if len(values) != 2:
        raise Unrecordable("numpy.where without values")
    return _recorder((condition, *values)).emit_where(condition, *values)


def _without_ellipses(equation: str, xs: Sequence[Any]) -> str:
    """A subscript string with letters in place of ellipses, and with its result."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow:
        right = "..." * ("..." in left) + "".join(sorted(c for c in set(left) - set(",.") if left.count(c) == 1))
    free = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in equation]
    counts = [x.ndim - len(term.replace("...", "")) if "..." in term else 0 for term, x in zip(terms, xs)]
    letters = "".join(free[:max(counts)])
    spelled = [term.replace("...", letters[len(letters) - n:]) for term, n in zip(terms, counts)]
    return ",".join(spelled) + "->" + right.replace("...", letters)


def _like(value: int) -> Callable[..., Any]:
    def like(x: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Any:
        shape = x.shape if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        return x.recorder.constant(np.broadcast_to(np.full((), value, x.dtype if dtype is None else dtype), shape))

    return like


def _joined(name: str) -> Callable[..., Any]:
    def join(xs: Sequence[Any], axis: int = 0, **kwargs: Any) -> Any:
        ndim = max([x.ndim for x in xs]) + (name == "stack")
        return _recorder(xs).emit(name, tuple(xs), (axis % ndim,))

    return join


def _along(name: str) -> Callable[..., Any]:
    def along(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if name in ("cumsum", "cumprod"):
            return x.ravel().emit(name, 0) if axis is None else x.emit(name, axis % max(x.ndim, 1))
        return x.emit(name, None if axis is None else axis % max(x.ndim, 1), bool(keepdims))

    return along


def _moved(ndim: int, source: Any, destination: Any) -> tuple[int, ...]:
    """The order of axes after some were moved."""
    froms, tos = ([a % ndim for a in np.atleast_1d(at).tolist()] for at in (source, destination))
    order = [a for a in range(ndim) if a not in froms]
    for to, a in sorted(zip(tos, froms)):
        order.insert(to, a)
    return tuple(order)


def _swapaxes(x: Any, a: int, b: int) -> Any:
    order = list(range(x.ndim))
    order[a % x.ndim], order[b % x.ndim] = b % x.ndim, a % x.ndim
    return x.transpose(tuple(order))


def _diag(x: Any, k: int = 0) -> Any:
    return x.diagonal(k) if x.ndim == 2 else x.emit("diagonal_place", k, None)


def _take_along_axis(x: Any, indices: Any, axis: int = -1) -> Any:
    axis, places = axis % x.ndim, list(np.ix_(*map(np.arange, indices.shape)))
    places[axis] = indices
    return _recorder((x, indices)).emit_index("getitem", (x,), tuple(places))


def _flip(x: Any, axis: Any = None) -> Any:
    return x.emit("flip", tuple(range(x.ndim)) if axis is None else tuple(a % x.ndim for a in np.atleast_1d(axis).tolist()))


def _roll(x: Any, shift: Any, axis: Any = None) -> Any:
    return x.ravel().emit("roll", shift, 0).reshape(x.shape) if axis is None else x.emit("roll", shift, axis)


def _clipped(x: Any, low: Any, high: Any) -> Any:
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


FUNCTIONS |= {
    np.where: _where, np.zeros_like: _like(0), np.ones_like: _like(1), np.empty_like: _like(0),
    np.concatenate: _joined("cat"), np.stack: _joined("stack"), np.matmul: _matmul, np.dot: _matmul,
    np.einsum: lambda equation, *xs, optimize=False: _recorder(xs).emit("einsum", xs, (_without_ellipses(equation, xs),)),
    np.broadcast_to: lambda x, shape, subok=False: x.emit("broadcast_to", (shape,) if isinstance(shape, int) else tuple(shape)),
    np.reshape: lambda x, shape, **kwargs: x.reshape(shape), np.ravel: lambda x, order="C": x.ravel(),
    np.transpose: lambda x, axes=None: x.transpose(*(() if axes is None else (tuple(axes),))), np.swapaxes: _swapaxes,
    np.moveaxis: lambda x, source, destination: x.transpose(_moved(x.ndim, source, destination)),
    np.expand_dims: lambda x, axis: x.reshape(np.expand_dims(np.empty(x.shape, np.bool_), axis).shape),
    np.squeeze: lambda x, axis=None: x.squeeze(axis), np.diag: _diag, np.take_along_axis: _take_along_axis, np.flip: _flip, np.roll: _roll,
    np.diagonal: lambda x, offset=0, axis1=0, axis2=1: x.diagonal(offset, axis1, axis2),
    np.tril: lambda x, k=0: x.emit("tril", k), np.triu: lambda x, k=0: x.emit("triu", k),
    np.cumsum: _along("cumsum"), np.cumprod: _along("cumprod"), np.argmax: _along("argmax"), np.argmin: _along("argmin"),
    np.sum: lambda x, axis=None, **kwargs: reduced(np.add, x, axis, **kwargs), np.prod: lambda x, axis=None, **kwargs: reduced(np.multiply, x, axis,
                                                                                                                              **kwargs),
    np.all: lambda x, axis=None, keepdims=False: reduced(np.logical_and, x, axis, keepdims),
    np.any: lambda x, axis=None, keepdims=False: reduced(np.logical_or, x, axis, keepdims),
    np.shape: lambda x: x.shape, np.ndim: lambda x: x.ndim, np.size: lambda x: x.size, np.iscomplexobj: lambda x: x.dtype.kind == "c",
    np.result_type: lambda *xs: np.result_type(*(x.dtype if type(x) is Recorded else x for x in xs)),
    np.may_share_memory: lambda a, b: False, np.shares_memory: lambda a, b: False, np.copy: lambda x, *rest, **kwargs: x.copy(),
    np.clip: lambda x, low=None, high=None, **kwargs: _clipped(x, low, high), np.real: lambda x: x.real,
    np.broadcast_arrays: lambda *xs, subok=False: tuple(np.broadcast_to(x, np.broadcast_shapes(*[np.shape(x) for x in xs])) for x in xs),
    np.choose: lambda which, choices: functools.reduce(lambda rest, k: np.where(which == k, choices[k], rest), reversed(range(len(choices) - 1)),
                                                       choices[-1]),
}
