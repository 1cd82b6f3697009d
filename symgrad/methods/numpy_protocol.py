"""NumPy's functions on Tensors that are ops, reductions, statistics, products and transforms, for the table of `numpy_arguments`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import symgrad.methods.numpy_arranging
import symgrad.methods.numpy_functions  # noqa: F401  these fill the table, too
from symgrad import fft
from symgrad.engine.data import as_value
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS, traced
from symgrad.methods.counting import nonzero
from symgrad.methods.numpy_arguments import FUNCTIONS_OF_NUMPY, as_tensor, floats, of_numpy

# Of a function of NumPy the op that computes it, and the names of NumPy's arguments with which it is called
OPS = {
    "argmax": "argmax a axis keepdims", "argmin": "argmin a axis keepdims", "nanmean": "nanmean a axis keepdims", "kron": "kron a b",
    "inner": "inner a b", "tensordot": "tensordot a b axes", "trace": "trace a", "swapaxes": "transpose a axis1 axis2",
    "moveaxis": "movedim a source destination", "broadcast_to": "broadcast_to array shape", "roll": "roll a shift axis", "argsort": "argsort a axis",
    "diag": "diag v k", "diagflat": "diagflat v k", "diagonal": "diagonal a offset axis1 axis2", "tril": "tril m k", "triu": "triu m k",
    "sinc": "sinc x", "real": "real val", "imag": "imag val", "angle": "angle z", "nan_to_num": "nan_to_num x nan posinf neginf",
    "vander": "vander x N increasing", "i0": "i0 x", "copy": "clone a", "rot90": "rot90 m k axes", "fliplr": "fliplr m", "flipud": "flipud m",
    "tile": "tile A reps",
}
for _name, _call in OPS.items():
    _op, _, _names = _call.partition(" ")
    of_numpy(getattr(np, _name), names=_names)(getattr(traced, _op))


# Reductions and scans


def _reduction(name: str, identity: Any = None, combined: Any = None, missing: Any = None) -> Callable[..., Any]:
    """A reduction: `identity` stands where `where` is false, and the number `missing`, if there is one, for NaN; `initial` is combined."""
    function = FUNCTIONS[name]

    def reduce(a: Any, axis: Any, keepdims: bool = False, initial: Any = None, where: Any = True) -> Any:
        x = a if missing is None else traced.where(traced.isnan(a), missing, a)
        if where is not True:
            if identity is None and initial is None:
                raise ValueError(f"numpy.{name}: the operation does not have an identity; to use `where` give `initial`")
            x = traced.where(as_tensor(where), x, initial if identity is None else identity)
        found = function(x, axis, keepdims)
        if missing is not None and identity is None:
            found = traced.where(traced.all(traced.isnan(a), axis, keepdims), np.nan, found)
        return found if initial is None else combined(found, as_tensor(initial).to(found.dtype))

    return reduce


of_numpy(np.sum)(_reduction("sum", 0.0, traced.add))
of_numpy(np.prod)(_reduction("prod", 1.0, traced.mul))
of_numpy(np.max, np.amax)(_reduction("amax", None, traced.maximum))
of_numpy(np.min, np.amin)(_reduction("amin", None, traced.minimum))
of_numpy(np.all)(_reduction("all", True))
of_numpy(np.any)(_reduction("any", False))
of_numpy(np.nansum)(_reduction("sum", 0.0, traced.add, 0))
of_numpy(np.nanprod)(_reduction("prod", 1.0, traced.mul, 1))
of_numpy(np.nanmax)(_reduction("amax", None, traced.maximum, -np.inf))
of_numpy(np.nanmin)(_reduction("amin", None, traced.minimum, np.inf))


@of_numpy(np.mean)
def _mean(a: Any, axis: Any, keepdims: bool, where: Any = True) -> Any:
    if where is True:
        return traced.mean(a, axis, keepdims)
    chosen = traced.broadcast_to(as_tensor(where), a.shape)
    return traced.sum(traced.where(chosen, a, 0.0), axis, keepdims) / traced.sum(chosen, axis, keepdims)


@of_numpy(np.ptp)
def _ptp(a: Any, axis: Any, keepdims: bool) -> Any:
    return traced.amax(a, axis, keepdims) - traced.amin(a, axis, keepdims)


def _variance(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]

    def variance(a: Any, axis: Any, ddof: Any, keepdims: bool) -> Any:
        return function(a, axis, correction=ddof, keepdim=keepdims)

    return variance


of_numpy(np.var)(_variance("var"))
of_numpy(np.std)(_variance("std"))


def _deviations(x: Any, axis: Any, ddof: float, keepdims: bool) -> tuple[Any, Any]:
    """The distances of the known numbers from their mean, and the number of these less `ddof`, NaN if that is not positive."""
    known = ~traced.isnan(x)
    count = traced.sum(known, axis, keepdims) - ddof
    return traced.where(known, x - traced.nanmean(x, axis, True), 0), traced.where(count > 0, count.to(x.real.dtype), np.nan)


@of_numpy(np.nanvar, convert=floats)
def _nanvar(a: Any, axis: Any, ddof: float, keepdims: bool) -> Any:
    deviations, count = _deviations(a, axis, ddof, keepdims)
    return traced.sum(traced.square(traced.abs(deviations)), axis, keepdims) / count


@of_numpy(np.nanstd, convert=floats)
def _nanstd(a: Any, axis: Any, ddof: float, keepdims: bool) -> Any:
    deviations, count = _deviations(a, axis, ddof, keepdims)
    return traced.norm(deviations, 2, axis, keepdims) / traced.sqrt(count)


def _scan(name: str, missing: Any = None) -> Callable[..., Any]:
    function = FUNCTIONS[name]

    def scan(a: Any, axis: Any) -> Any:
        x = a if missing is None else traced.where(traced.isnan(a), missing, a)
        return function(x.reshape(-1) if axis is None else x, 0 if axis is None else axis)

    return scan


of_numpy(np.cumsum)(_scan("cumsum"))
of_numpy(np.cumprod)(_scan("cumprod"))
of_numpy(np.nancumsum)(_scan("cumsum", 0))
of_numpy(np.nancumprod)(_scan("cumprod", 1))


def _cumulative(name: str) -> Callable[..., Any]:
    def scan(x: Any, axis: Any, include_initial: bool) -> Any:
        if axis is None and x.ndim != 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        y = FUNCTIONS[name](x, 0 if axis is None else axis)
        first = traced.narrow(traced.zeros_like(y), axis or 0, 0, 1) + (name == "cumprod")
        return traced.cat([first, y], axis or 0) if include_initial else y

    return scan


if hasattr(np, "cumulative_sum"):  # NumPy 2.1
    of_numpy(np.cumulative_sum)(_cumulative("cumsum"))
    of_numpy(np.cumulative_prod)(_cumulative("cumprod"))


# Statistics


def _quantile(name: str, percent: float) -> Callable[..., Any]:
    """A quantile: NumPy's methods that torch has, and several axes."""
    function = FUNCTIONS[name]

    def quantile(a: Any, q: Any, axis: Any, method: str = "linear", keepdims: bool = False, weights: Any = None) -> Any:
        if method not in ("linear", "lower", "higher", "midpoint", "nearest") or weights is not None:
            return NotImplemented
        x, shape, dims = a, None, None
        if isinstance(axis, (tuple, list)):
            dims = sorted(d % x.ndim for d in axis)
            shape = tuple(1 if d in dims else n for d, n in enumerate(x.shape))
            kept = [d for d in range(x.ndim) if d not in dims]
            x = traced.reshape(traced.permute(x, (*kept, *dims)), (*(x.shape[d] for d in kept), -1))
        q = floats(q).to(x.dtype) / percent
        y = function(x, traced.reshape(q, (-1,)) if q.ndim > 1 else q, -1 if dims is not None else axis, keepdims and dims is None,
                     interpolation=method)
        rest = tuple(y.shape[1:]) if q.ndim else tuple(y.shape)
        return traced.reshape(y, (*q.shape, *(shape if keepdims and shape is not None else rest)))

    return quantile


def _median(name: str) -> Callable[..., Any]:
    quantile = _quantile(name, 1.0)
    return lambda a, axis, keepdims: quantile(a, 0.5, axis, "midpoint", keepdims)


for _name, _function in {"quantile": _quantile("quantile", 1.0), "percentile": _quantile("quantile", 100.0), "median": _median("quantile"),
                         "nanquantile": _quantile("nanquantile", 1.0), "nanpercentile": _quantile("nanquantile", 100.0),
                         "nanmedian": _median("nanquantile")}.items():
    of_numpy(getattr(np, _name), convert=floats)(_function)


@of_numpy(np.average, convert=floats)
def _average(a: Any, axis: Any, weights: Any, returned: bool, keepdims: bool) -> Any:
    if weights is None:
        mean = traced.mean(a, axis, keepdims)
        return (mean, wrap(np.full(mean.shape, a.numel() / max(mean.numel(), 1)))) if returned else mean
    w = floats(weights)
    if w.shape != a.shape:
        if axis is None or isinstance(axis, (tuple, list)) or w.ndim != 1 or w.shape[0] != a.shape[axis]:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        w = traced.reshape(w, tuple(-1 if d == axis % a.ndim else 1 for d in range(a.ndim)))
    total = traced.sum(traced.broadcast_to(w, a.shape), axis, keepdims)
    if bool((total == 0).any()):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    mean = traced.sum(a * w, axis, keepdims) / total
    return (mean, total) if returned else mean


def _rows(m: Any, y: Any, rowvar: bool) -> Any:
    """The variables as rows, with those of `y` below."""
    rows = [traced.reshape(x, (1, -1)) if x.ndim < 2 else x if rowvar or x.shape[0] == 1 else x.T for x in (m, y) if x is not None]
    return rows[0] if len(rows) == 1 else traced.cat(rows, 0)


@of_numpy(np.cov, convert=floats)
def _cov(m: Any, y: Any, rowvar: bool, bias: bool, ddof: Any, fweights: Any, aweights: Any) -> Any:
    weights = [None if w is None else as_tensor(w) for w in (fweights, aweights)]
    return traced.cov(_rows(m, y, rowvar), correction=int(not bias) if ddof is None else ddof, fweights=weights[0], aweights=weights[1]).squeeze()


@of_numpy(np.corrcoef, convert=floats)
def _corrcoef(x: Any, y: Any, rowvar: bool) -> Any:
    return traced.corrcoef(_rows(x, y, rowvar)).squeeze()


# Products and shapes


of_numpy(np.vdot)(lambda a, b: traced.dot(traced.conj(a.reshape(-1)), b.reshape(-1)))
of_numpy(np.outer)(lambda a, b: traced.outer(a.reshape(-1), b.reshape(-1)))
of_numpy(np.squeeze)(lambda a, axis: traced.squeeze(a) if axis is None else traced.squeeze(a, axis))
of_numpy(np.flip)(lambda m, axis: traced.flip(m, tuple(range(m.ndim)) if axis is None else axis))
of_numpy(np.sort)(lambda a, axis: traced.sort(a.reshape(-1) if axis is None else a, -1 if axis is None else axis).values)
of_numpy(np.round)(lambda a, decimals: traced.round(a * 10.0**decimals) / 10.0**decimals if decimals else traced.round(a))
of_numpy(np.shape)(lambda a: tuple(a.shape))
of_numpy(np.ndim)(lambda a: a.ndim)
of_numpy(np.size)(lambda a, axis: a.numel() if axis is None else a.shape[axis])
of_numpy(np.iscomplexobj)(lambda x: x.is_complex())
of_numpy(np.isrealobj)(lambda x: not x.is_complex())
of_numpy(np.concatenate)(lambda arrays, axis=0: traced.cat([as_tensor(a) for a in arrays], axis))
of_numpy(np.stack)(lambda arrays, axis: traced.stack([as_tensor(a) for a in arrays], axis))
for _name in ("vstack", "hstack", "dstack", "column_stack"):
    of_numpy(getattr(np, _name))(lambda tup, function=FUNCTIONS[_name]: function([as_tensor(a) for a in tup]))


@of_numpy(np.dot)
def _dot(a: Any, b: Any) -> Any:
    if not a.ndim or not b.ndim:
        return a * b
    return traced.matmul(a, b) if b.ndim <= 2 else traced.tensordot(a, b, ([a.ndim - 1], [b.ndim - 2]))


@of_numpy(np.transpose)
def _transpose(a: Any, axes: Any = None) -> Any:
    return traced.permute(a, tuple(reversed(range(a.ndim))) if axes is None else tuple(axes))


def _reshape(a: Any, shape: Any, order: str = "C", copy: Any = None) -> Any:
    a = as_tensor(a)
    if order in ("C", "A"):  # the order of a Tensor's memory is not that of its elements
        return traced.reshape(a, shape)
    if order != "F":
        raise ValueError(f"order must be one of 'C', 'F' or 'A', got {order!r}")
    return _transpose(traced.reshape(_transpose(a), tuple(reversed(shape)) if isinstance(shape, (tuple, list)) else shape))


of_numpy(np.ravel)(lambda a, order: _reshape(a, (-1,), order))


@of_numpy(np.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Any:
    if not isinstance(axis, (tuple, list)):
        return traced.unsqueeze(a, axis)
    for at in sorted(d % (a.ndim + len(axis)) for d in axis):
        a = traced.unsqueeze(a, at)
    return a


@of_numpy(np.diff)
def _diff(a: Any, n: int, axis: int, prepend: Any, append: Any) -> Any:
    ends = [None if end is None else as_tensor(end) for end in (prepend, append)]
    shape = tuple(1 if i == axis % a.ndim else m for i, m in enumerate(a.shape))
    return traced.diff(a, n, axis, *[end if end is None or end.ndim else traced.broadcast_to(end, shape) for end in ends])


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: None = None, *, min: Any = None, max: Any = None) -> Any:
    return traced.clamp(as_tensor(a), a_min if min is None else min, a_max if max is None else max)


def _where(condition: Any, *choices: Any) -> Any:
    if not choices:
        return nonzero(as_tensor(condition), as_tuple=True)
    return traced.where(as_tensor(condition), *[as_tensor(x) if type(x) in (list, tuple) else x for x in choices])


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
    function = getattr(fft, name)
    if name[-1] in "2n":
        return lambda a, s, axes, norm: function(a, s, axes, norm)
    return lambda a, n, axis, norm: function(a, n, axis, norm)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
    of_numpy(getattr(np.fft, _name))(_transform(_name))
of_numpy(np.fft.fftshift)(lambda x, axes: fft.fftshift(x, axes))
of_numpy(np.fft.ifftshift)(lambda x, axes: fft.ifftshift(x, axes))
# Those of any number of arguments, or whose names differ between the versions of NumPy, take them as they are given
FUNCTIONS_OF_NUMPY.update({
    np.where: _where, np.reshape: _reshape, np.clip: _clip,
    np.einsum: lambda equation, *xs, optimize=None: traced.einsum(equation, *map(as_tensor, xs)),
    **{getattr(np, name): _like(name) for name in ("zeros_like", "ones_like", "full_like", "empty_like")}})
