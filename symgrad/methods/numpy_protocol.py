"""NumPy's functions on Tensors: those with a symgrad op are recorded, with NumPy's arguments and defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad import fft
from symgrad.engine.data import as_value
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS, traced
from symgrad.methods import numpy_functions
from symgrad.methods.counting import nonzero
from symgrad.methods.numpy_arranging import ARRANGING
from symgrad.methods.numpy_functions import MATRICES
from symgrad.methods.numpy_functions import as_tensor as _as_tensor
from symgrad.methods.numpy_statistics import STATISTICS


def _reduction(name: str) -> Callable[..., Any]:
    """A sum, a product or a mean, with NumPy's `initial` and `where`."""
    function, identity = FUNCTIONS[name], 1.0 if name == "prod" else 0.0

    def reduce(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Any:
        x = _as_tensor(a) if dtype is None else _as_tensor(a).to(dtype)
        if where is True:
            found = function(x, axis, keepdims)
        else:
            chosen = traced.broadcast_to(_as_tensor(where), x.shape)
            found = FUNCTIONS["sum" if name == "mean" else name](traced.where(chosen, x, identity), axis, keepdims)
            found = found / traced.sum(chosen, axis, keepdims) if name == "mean" else found
        return found if initial is None else found * initial if name == "prod" else found + initial

    return reduce


def _extremum(name: str) -> Callable[..., Any]:
    function, larger = FUNCTIONS[name], FUNCTIONS[{"amax": "maximum", "amin": "minimum"}.get(name, "maximum")]

    def extremum(a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Any:
        x = _as_tensor(a)
        if where is not True:
            if initial is None and name in ("amax", "amin"):
                raise ValueError(f"reduction operation '{name[1:]}imum' does not have an identity, so to use a where mask one has to specify "
                                 f"'initial'")
            x = traced.where(_as_tensor(where), x, name == "all" if initial is None else initial)
        found = function(x, axis, keepdims)
        return found if initial is None else larger(found, _as_tensor(initial).to(found.dtype))

    return extremum


def _position(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]
    return lambda a, axis=None, out=None, keepdims=False: function(_as_tensor(a), axis, keepdims)


def _variance(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]

    def variance(a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0, keepdims: bool = False) -> Any:
        return function(_as_tensor(a) if dtype is None else _as_tensor(a).to(dtype), axis, correction=ddof, keepdim=keepdims)

    return variance


def _cumulative(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]

    def cumulative(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        x = _as_tensor(a) if dtype is None else _as_tensor(a).to(dtype)
        return function(x.reshape(-1), 0) if axis is None else function(x, axis)

    return cumulative


def _where(condition: Any, *choices: Any) -> Any:
    if not choices:
        return nonzero(_as_tensor(condition), as_tuple=True)
    return traced.where(_as_tensor(condition), *[_as_tensor(x) if type(x) in (list, tuple) else x for x in choices])


def _reshape(a: Any, shape: Any, order: str = "C", copy: Any = None) -> Any:
    a = _as_tensor(a)
    if order in ("C", "A"):  # the order of a Tensor's memory is not that of its elements
        return traced.reshape(a, shape)
    if order != "F":
        raise ValueError(f"order must be one of 'C', 'F' or 'A', got {order!r}")
    found = traced.reshape(_transpose(a), tuple(reversed(shape)) if isinstance(shape, (tuple, list)) else shape)
    return _transpose(found)


def _dot(a: Any, b: Any, out: None = None) -> Any:
    a, b = _as_tensor(a), _as_tensor(b)
    if not a.ndim or not b.ndim:
        return a * b
    return traced.matmul(a, b) if b.ndim <= 2 else traced.tensordot(a, b, ([a.ndim - 1], [b.ndim - 2]))


def _transpose(a: Any, axes: Any = None) -> Any:
    a = _as_tensor(a)
    return traced.permute(a, tuple(reversed(range(a.ndim))) if axes is None else tuple(axes))


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: None = None, *, min: Any = None, max: Any = None) -> Any:
    return traced.clamp(_as_tensor(a), a_min if min is None else min, a_max if max is None else max)


def _expand_dims(a: Any, axis: Any) -> Any:
    a = _as_tensor(a)
    if not isinstance(axis, (tuple, list)):
        return traced.unsqueeze(a, axis)
    for at in sorted(d % (a.ndim + len(axis)) for d in axis):
        a = traced.unsqueeze(a, at)
    return a


def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    return traced.roll(_as_tensor(a), shift, axis)


def _flip(m: Any, axis: Any = None) -> Any:
    m = _as_tensor(m)
    return traced.flip(m, tuple(range(m.ndim)) if axis is None else axis)


def _sort(a: Any, axis: Any = -1, kind: Any = None, order: None = None, *, stable: Any = None) -> Any:
    return traced.sort(_as_tensor(a) if axis is not None else _as_tensor(a).reshape(-1), -1 if axis is None else axis).values


def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    a = _as_tensor(a)
    ends = [None if end is None else _as_tensor(end) for end in (prepend, append)]
    shape = tuple(1 if i == axis % a.ndim else m for i, m in enumerate(a.shape))
    return traced.diff(a, n, axis, *[end if end is None or end.ndim else traced.broadcast_to(end, shape) for end in ends])


def _concatenation(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]
    return lambda arrays, axis=0, out=None: function([_as_tensor(a) for a in arrays], axis)


def _stacking(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]
    return lambda tup: function([_as_tensor(a) for a in tup])


def _unary(name: str) -> Callable[..., Any]:
    """A function that has the order of arguments of torch's."""
    function = FUNCTIONS[name]
    return lambda x, *rest, **words: function(_as_tensor(x), *rest, **words)


def _binary(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]
    return lambda a, b, **words: function(_as_tensor(a), _as_tensor(b), **words)


def _like(name: str) -> Callable[..., Any]:
    def like(a: Any, *fill: Any, dtype: Any = None, shape: Any = None, fill_value: Any = None, **_: Any) -> Tensor:
        fill = fill if fill_value is None else (fill_value,)
        if any([isinstance(x, Tensor) and x.requires_grad for x in fill]):
            new = wrap(np.empty_like(as_value(a), dtype=dtype, shape=shape))
            return traced.clone(traced.broadcast_to(fill[0].to(new.dtype), new.shape))
        return wrap(getattr(np, name)(as_value(a), *map(as_value, fill), dtype=dtype, shape=shape))

    return like


def _transform(name: str) -> Callable[..., Any]:
    """A Fourier transform, with NumPy's word for the dimensions."""
    function, dims = getattr(fft, name), (-2, -1) if name[-1] == "2" else None
    if name[-1] in "2n":
        return lambda a, s=None, axes=dims, norm=None, out=None: function(_as_tensor(a), s, axes, norm)
    return lambda a, n=None, axis=-1, norm=None, out=None: function(_as_tensor(a), n, axis, norm)


FUNCTIONS_OF_NUMPY: dict[Any, Callable[..., Any]] = {
    np.sum: _reduction("sum"), np.mean: _reduction("mean"), np.prod: _reduction("prod"), np.max: _extremum("amax"), np.amax: _extremum("amax"),
    np.min: _extremum("amin"), np.amin: _extremum("amin"), np.all: _extremum("all"), np.any: _extremum("any"),
    np.argmax: _position("argmax"), np.argmin: _position("argmin"), np.var: _variance("var"), np.std: _variance("std"),
    np.cumsum: _cumulative("cumsum"), np.cumprod: _cumulative("cumprod"), np.where: _where, np.dot: _dot, np.inner: _binary("inner"),
    np.vdot: lambda a, b: traced.dot(traced.conj(_as_tensor(a).reshape(-1)), _as_tensor(b).reshape(-1)),
    np.outer: lambda a, b, out=None: traced.outer(_as_tensor(a).reshape(-1), _as_tensor(b).reshape(-1)), np.kron: _binary("kron"),
    np.einsum: lambda equation, *xs, optimize=None: traced.einsum(equation, *map(_as_tensor, xs)),
    np.tensordot: lambda a, b, axes=2: traced.tensordot(_as_tensor(a), _as_tensor(b), axes),
    np.trace: lambda a, *rest, **words: traced.trace(_as_tensor(a), *rest, **words),
    np.transpose: _transpose, np.reshape: _reshape,
    np.ravel: lambda a, order="C": _reshape(a, (-1,), order),
    np.squeeze: lambda a, axis=None: traced.squeeze(_as_tensor(a)) if axis is None else traced.squeeze(_as_tensor(a), axis),
    np.expand_dims: _expand_dims, np.swapaxes: _unary("transpose"), np.moveaxis: _unary("movedim"),
    np.broadcast_to: lambda array, shape: traced.broadcast_to(_as_tensor(array), shape),
    np.concatenate: _concatenation("cat"), np.stack: _concatenation("stack"), np.vstack: _stacking("vstack"), np.hstack: _stacking("hstack"),
    np.dstack: _stacking("dstack"), np.column_stack: _stacking("column_stack"), np.roll: _roll, np.flip: _flip, np.sort: _sort, np.diff: _diff,
    np.argsort: lambda a, axis=-1, **_: traced.argsort(_as_tensor(a), axis), np.clip: _clip, np.diag: _unary("diag"),
    np.diagonal: lambda a, offset=0, axis1=0, axis2=1: traced.diagonal(_as_tensor(a), offset, axis1, axis2), np.tril: _unary("tril"),
    np.triu: _unary("triu"),
    np.tile: lambda A, reps: traced.tile(_as_tensor(A), reps), np.sinc: _unary("sinc"),
    np.round: lambda a, decimals=0, out=None: _round(_as_tensor(a), decimals),
    np.real: _unary("real"), np.imag: _unary("imag"), np.angle: _unary("angle"),
    np.nan_to_num: lambda x, copy=True, nan=0.0, posinf=None, neginf=None:
    traced.nan_to_num(_as_tensor(x), nan, posinf, neginf), np.shape: lambda a: tuple(a.shape), np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.numel() if axis is None else a.shape[axis], np.zeros_like: _like("zeros_like"), np.ones_like: _like("ones_like"),
    np.full_like: _like("full_like"), np.empty_like: _like("empty_like"), np.iscomplexobj: lambda x: x.is_complex(),
    np.trapezoid: numpy_functions.trapezoid, np.interp: numpy_functions.interp, np.cross: numpy_functions.cross, np.pad: numpy_functions.pad,
    np.convolve: numpy_functions.convolve, **MATRICES, **STATISTICS, **ARRANGING,
    **{getattr(np.fft, name): _transform(name) for name in (
        "fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")},
    np.fft.fftshift: lambda x, axes=None: fft.fftshift(_as_tensor(x), axes),
    np.fft.ifftshift: lambda x, axes=None: fft.ifftshift(_as_tensor(x), axes),
}


def _round(x: Tensor, decimals: int) -> Any:
    return traced.round(x) if not decimals else traced.round(x * 10.0**decimals) / 10.0**decimals
