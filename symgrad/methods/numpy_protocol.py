"""NumPy's functions on Tensors: those with a symgrad op are recorded, with NumPy's arguments and defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.engine.data import as_value
from symgrad.engine.tables import MethodTable
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS, traced

__all__ = ["FUNCTIONS_OF_NUMPY"]

METHODS = MethodTable()


def _t(x: Any) -> Any:
    return x if isinstance(x, Tensor) else wrap(as_value(x))


def _reduction(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]

    def reduce(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
        x = _t(a) if dtype is None else _t(a).to(dtype)
        return function(x, axis, keepdims)

    return reduce


def _extremum(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]
    return lambda a, axis=None, out=None, keepdims=False: function(_t(a), axis, keepdims)


def _spread(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]
    return lambda a, axis=None, dtype=None, out=None, ddof=0, keepdims=False: function(_t(a), axis, correction=ddof, keepdim=keepdims)


def _running(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]
    return lambda a, axis=None, dtype=None, out=None: function(_t(a).reshape(-1) if axis is None else _t(a), 0 if axis is None else axis)


def _prod(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    return FUNCTIONS["prod"](_t(a) if dtype is None else _t(a).to(dtype), axis, keepdims)


def _where(condition: Any, x: Any, y: Any) -> Any:
    return traced.where(_t(condition), x, y)


def _dot(a: Any, b: Any, out: None = None) -> Any:
    a, b = _t(a), _t(b)
    if not a.ndim or not b.ndim:
        return a * b
    return traced.matmul(a, b) if b.ndim <= 2 else traced.tensordot(a, b, ([a.ndim - 1], [b.ndim - 2]))


def _transpose(a: Any, axes: Any = None) -> Any:
    a = _t(a)
    return traced.permute(a, tuple(reversed(range(a.ndim))) if axes is None else tuple(axes))


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: None = None, *, min: Any = None, max: Any = None) -> Any:
    return traced.clamp(_t(a), a_min if min is None else min, a_max if max is None else max)


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = _t(x)
    if axis is None and ord is not None and x.ndim > 1 and ord != "fro" or isinstance(axis, (tuple, list)) and ord not in (None, "fro"):
        return NotImplemented  # matrix norms other than the Frobenius norm
    return traced.norm(x, 2 if ord in (None, "fro") else ord, axis, keepdims)


def _expand_dims(a: Any, axis: Any) -> Any:
    a = _t(a)
    if not isinstance(axis, (tuple, list)):
        return traced.unsqueeze(a, axis)
    for at in sorted(d % (a.ndim + len(axis)) for d in axis):
        a = traced.unsqueeze(a, at)
    return a


def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    return traced.roll(_t(a), shift, axis)


def _flip(m: Any, axis: Any = None) -> Any:
    m = _t(m)
    return traced.flip(m, tuple(range(m.ndim)) if axis is None else axis)


def _sort(a: Any, axis: Any = -1, kind: Any = None, order: None = None, *, stable: Any = None) -> Any:
    return traced.sort(_t(a) if axis is not None else _t(a).reshape(-1), -1 if axis is None else axis).values


def _diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    return traced.diff(_t(a), n, axis)


def _joined(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]
    return lambda arrays, axis=0, out=None: function([_t(a) for a in arrays], axis)


def _stacked(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]
    return lambda tup: function([_t(a) for a in tup])


def _one(name: str) -> Callable[..., Any]:
    """A function whose arguments are torch's in NumPy's order."""
    function = FUNCTIONS[name]
    return lambda x, *rest, **words: function(_t(x), *rest, **words)


def _two(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]
    return lambda a, b, **words: function(_t(a), _t(b), **words)


def _like(name: str) -> Callable[..., Any]:
    def like(a: Any, *fill: Any, dtype: Any = None, shape: Any = None, **_: Any) -> Tensor:
        return wrap(getattr(np, name)(as_value(a), *map(as_value, fill), dtype=dtype, shape=shape))

    return like


FUNCTIONS_OF_NUMPY: dict[Any, Callable[..., Any]] = {
    np.sum: _reduction("sum"), np.mean: _reduction("mean"), np.prod: _prod, np.max: _extremum("amax"), np.amax: _extremum("amax"),
    np.min: _extremum("amin"), np.amin: _extremum("amin"), np.all: _extremum("all"), np.any: _extremum("any"),
    np.argmax: _extremum("argmax"), np.argmin: _extremum("argmin"), np.var: _spread("var"), np.std: _spread("std"),
    np.cumsum: _running("cumsum"), np.cumprod: _running("cumprod"), np.where: _where, np.dot: _dot, np.inner: _two("inner"),
    np.vdot: lambda a, b: traced.dot(traced.conj(_t(a).reshape(-1)), _t(b).reshape(-1)),
    np.outer: lambda a, b, out=None: traced.outer(_t(a).reshape(-1), _t(b).reshape(-1)), np.kron: _two("kron"),
    np.einsum: lambda equation, *xs, optimize=None: traced.einsum(equation, *map(_t, xs)),
    np.tensordot: lambda a, b, axes=2: traced.tensordot(_t(a), _t(b), axes), np.trace: lambda a, *rest, **words: traced.trace(_t(a), *rest, **words),
    np.transpose: _transpose, np.reshape: lambda a, shape, **words: traced.reshape(_t(a), shape), np.ravel: lambda a: traced.reshape(_t(a), (-1,)),
    np.squeeze: lambda a, axis=None: traced.squeeze(_t(a)) if axis is None else traced.squeeze(_t(a), axis), np.expand_dims: _expand_dims,
    np.swapaxes: _one("transpose"), np.moveaxis: _one("movedim"), np.broadcast_to: lambda array, shape: traced.broadcast_to(_t(array), shape),
    np.concatenate: _joined("cat"), np.stack: _joined("stack"), np.vstack: _stacked("vstack"), np.hstack: _stacked("hstack"),
    np.dstack: _stacked("dstack"), np.column_stack: _stacked("column_stack"), np.roll: _roll, np.flip: _flip, np.sort: _sort, np.diff: _diff,
    np.argsort: lambda a, axis=-1, **_: traced.argsort(_t(a), axis), np.clip: _clip, np.linalg.norm: _norm, np.diag: _one("diag"),
    np.diagonal: lambda a, offset=0, axis1=0, axis2=1: traced.diagonal(_t(a), offset, axis1, axis2), np.tril: _one("tril"), np.triu: _one("triu"),
    np.tile: lambda A, reps: traced.tile(_t(A), reps), np.sinc: _one("sinc"), np.round: lambda a, decimals=0, out=None: _rounded(_t(a), decimals),
    np.real: _one("real"), np.imag: _one("imag"), np.angle: _one("angle"), np.nan_to_num: lambda x, copy=True, nan=0.0, posinf=None, neginf=None:
    traced.nan_to_num(_t(x), nan, posinf, neginf), np.shape: lambda a: tuple(a.shape), np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.numel() if axis is None else a.shape[axis], np.zeros_like: _like("zeros_like"), np.ones_like: _like("ones_like"),
    np.full_like: _like("full_like"), np.empty_like: _like("empty_like"), np.iscomplexobj: lambda x: x.is_complex(),
}


def _rounded(x: Tensor, decimals: int) -> Any:
    return traced.round(x) if not decimals else traced.round(x * 10.0**decimals) / 10.0**decimals


def _plain(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.numpy()
    return type(x)(map(_plain, x)) if type(x) in (list, tuple) else x


@METHODS.define
def __array_function__(self: Tensor, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's functions on Tensors; a function without an op gets plain arrays, unless a Tensor requires grad."""
    known = FUNCTIONS_OF_NUMPY.get(function)
    if known is not None and kwargs.get("out") is None:
        try:
            found = known(*args, **kwargs)
        except TypeError as error:
            if "unexpected keyword" not in str(error):
                raise
            raise TypeError(f"numpy.{function.__name__}: on Tensors, {error}") from None
        if found is not NotImplemented:
            return found
    return function(*map(_plain, args), **{key: _plain(value) for key, value in kwargs.items()})
