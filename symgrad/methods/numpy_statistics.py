"""NumPy's statistics and numerical functions on Tensors, with NumPy's arguments and defaults: for the table of `numpy_protocol`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.engine.tensor import wrap
from symgrad.engine.traced import FUNCTIONS, traced
from symgrad.methods.numpy_functions import as_tensor, convolve, floats


def _ignoring_nan(name: str, filled: Any) -> Callable[..., Any]:
    """A reduction in which NaN counts as a number that changes nothing."""
    function = FUNCTIONS[name]

    def reduce(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
        x = as_tensor(a) if dtype is None else as_tensor(a).to(dtype)
        return function(traced.where(traced.isnan(x), filled, x), axis, keepdims)

    return reduce


def _extremum_ignoring_nan(name: str, filled: float) -> Callable[..., Any]:
    function = FUNCTIONS[name]

    def reduce(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        x = as_tensor(a)
        y = function(traced.where(traced.isnan(x), filled, x), axis, keepdims)
        return traced.where(traced.all(traced.isnan(x), axis, keepdims), np.nan, y)

    return reduce


def _deviations(a: Any, axis: Any, ddof: float, keepdims: bool) -> tuple[Any, Any]:
    """The distances of the known numbers from their mean, and the number of these less `ddof`, NaN if that is not positive."""
    x = floats(a)
    known = ~traced.isnan(x)
    count = traced.sum(known, axis, keepdims) - ddof
    return traced.where(known, x - traced.nanmean(x, axis, True), 0), traced.where(count > 0, count.to(x.real.dtype), np.nan)


def _nanvar(a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False) -> Any:
    deviations, count = _deviations(a, axis, ddof, keepdims)
    return traced.sum(traced.square(traced.abs(deviations)), axis, keepdims) / count


def _nanstd(a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False) -> Any:
    deviations, count = _deviations(a, axis, ddof, keepdims)
    return traced.norm(deviations, 2, axis, keepdims) / traced.sqrt(count)


def _cumulative_ignoring_nan(name: str, filled: float) -> Callable[..., Any]:
    function = FUNCTIONS[name]

    def scan(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        x = as_tensor(a)
        x = traced.where(traced.isnan(x), filled, x)
        return function(x.reshape(-1) if axis is None else x, 0 if axis is None else axis)

    return scan


def _quantile_like(name: str, percent: float) -> Callable[..., Any]:
    """A quantile: NumPy's methods that torch has, and several axes."""
    function = FUNCTIONS[name]

    def quantile(a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear", keepdims: bool = False,
                 **words: Any) -> Any:
        if method not in ("linear", "lower", "higher", "midpoint", "nearest") or words.get("weights") is not None:
            return NotImplemented
        x, shape, dims = floats(a), None, None
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
    quantile = _quantile_like(name, 1.0)
    return lambda a, axis=None, out=None, overwrite_input=False, keepdims=False: quantile(a, 0.5, axis, method="midpoint", keepdims=keepdims)


def _average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    x = floats(a)
    if weights is None:
        mean = traced.mean(x, axis, keepdims)
        return (mean, wrap(np.full(mean.shape, x.numel() / max(mean.numel(), 1)))) if returned else mean
    w = floats(weights)
    if w.shape != x.shape:
        if axis is None or isinstance(axis, (tuple, list)) or w.ndim != 1 or w.shape[0] != x.shape[axis]:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        w = traced.reshape(w, tuple(-1 if d == axis % x.ndim else 1 for d in range(x.ndim)))
    total = traced.sum(traced.broadcast_to(w, x.shape), axis, keepdims)
    if bool((total == 0).any()):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    mean = traced.sum(x * w, axis, keepdims) / total
    return (mean, total) if returned else mean


def _rows(m: Any, y: Any, rowvar: bool) -> Any:
    """The variables as rows, with those of `y` below."""
    rows = [floats(x) for x in (m, y) if x is not None]
    rows = [traced.reshape(x, (1, -1)) if x.ndim < 2 else x if rowvar or x.shape[0] == 1 else x.T for x in rows]
    return rows[0] if len(rows) == 1 else traced.cat(rows, 0)


def _cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, fweights: Any = None, aweights: Any = None, *,
         dtype: Any = None) -> Any:
    weights = [None if w is None else as_tensor(w) for w in (fweights, aweights)]
    return traced.cov(_rows(m, y, rowvar), correction=int(not bias) if ddof is None else ddof, fweights=weights[0], aweights=weights[1]).squeeze()


def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    return traced.corrcoef(_rows(x, y, rowvar)).squeeze()


def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x = floats(f)
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError("invalid number of arguments")
    steps = [as_tensor(h) for h in (varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes))]
    found = [_gradient_along(x, d, h, edge_order) for d, h in zip(axes, steps)]
    return found[0] if len(found) == 1 else tuple(found)


def _gradient_along(x: Any, dim: int, step: Any, edge_order: int) -> Any:
    """Differences of second order inside, also for unequal steps, and of order 1 or 2 at the ends."""
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    f = traced.movedim(x, dim, -1)
    n = f.shape[-1]
    if n < edge_order + 1:
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required.")
    if step.ndim and step.numel() != n:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    h = step[1:] - step[:-1] if step.ndim else traced.broadcast_to(step, (n - 1,))
    slopes = (f[..., 1:] - f[..., :-1]) / h
    before, after = h[:-1], h[1:]
    inside = (slopes[..., :-1] * after + slopes[..., 1:] * before) / (before + after)
    first, last = slopes[..., :1], slopes[..., -1:]
    if edge_order == 2:
        curvature = (slopes[..., 1:] - slopes[..., :-1]) / (before + after)
        first, last = first - curvature[..., :1] * h[:1], last + curvature[..., -1:] * h[-1:]
    return traced.movedim(traced.cat([first, inside, last], -1), -1, dim)


def _cumulative(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]

    def scan(x: Any, /, *, axis: Any = None, dtype: Any = None, out: None = None, include_initial: bool = False) -> Any:
        x = as_tensor(x)
        if axis is None and x.ndim != 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        axis = 0 if axis is None else axis
        y = function(x, axis)
        if not include_initial:
            return y
        first = traced.narrow(traced.zeros_like(y), axis, 0, 1) + (name == "cumprod")
        return traced.cat([first, y], axis)

    return scan


def _polyval(p: Any, x: Any) -> Any:
    p, x = as_tensor(p), as_tensor(x)
    y = traced.zeros_like(x)
    for coefficient in traced.unbind(p):
        y = y * x + coefficient
    return y


def _vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    return traced.vander(as_tensor(x), N, increasing)


def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    a, v = as_tensor(a), as_tensor(v)
    if len(v) > len(a) and mode != "full":
        return NotImplemented
    return convolve(a, traced.conj(traced.flip(v, (0,))), mode)


def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    x = traced.reshape(as_tensor(ary), (-1,))
    ends = [None if part is None else traced.reshape(as_tensor(part), (-1,)).to(x.dtype) for part in (to_begin, to_end)]
    parts = [part for part in (ends[0], x[1:] - x[:-1], ends[1]) if part is not None]
    return traced.cat(parts, 0) if len(parts) > 1 else parts[0]


def _unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * np.pi) -> Any:
    """The numbers plus multiples of the period, such that no difference is above half of it; the multiples are constants."""
    x = floats(p)
    value = np.asarray(x.detach().numpy())
    return x + wrap(np.unwrap(value, discont, axis, period=period) - value)


STATISTICS: dict[Any, Callable[..., Any]] = {
    np.nansum: _ignoring_nan("sum", 0), np.nanprod: _ignoring_nan("prod", 1), np.nanmax: _extremum_ignoring_nan("amax", -np.inf),
    np.nanmin: _extremum_ignoring_nan("amin", np.inf),
    np.nanmean: lambda a, axis=None, dtype=None, out=None, keepdims=False: traced.nanmean(as_tensor(a), axis, keepdims),
    np.nanvar: _nanvar, np.nanstd: _nanstd, np.nancumsum: _cumulative_ignoring_nan("cumsum", 0),
    np.nancumprod: _cumulative_ignoring_nan("cumprod", 1), np.quantile: _quantile_like("quantile", 1.0),
    np.percentile: _quantile_like("quantile", 100.0), np.nanquantile: _quantile_like("nanquantile", 1.0),
    np.nanpercentile: _quantile_like("nanquantile", 100.0), np.median: _median("quantile"), np.nanmedian: _median("nanquantile"),
    np.ptp: lambda a, axis=None, out=None, keepdims=False: traced.amax(as_tensor(a), axis, keepdims) - traced.amin(as_tensor(a), axis, keepdims),
    np.average: _average, np.cov: _cov, np.corrcoef: _corrcoef, np.gradient: _gradient, np.polyval: _polyval, np.vander: _vander,
    np.correlate: _correlate, np.ediff1d: _ediff1d, np.unwrap: _unwrap, np.i0: lambda x: traced.i0(as_tensor(x)),
}
if hasattr(np, "cumulative_sum"):  # NumPy 2.1
    STATISTICS |= {np.cumulative_sum: _cumulative("cumsum"), np.cumulative_prod: _cumulative("cumprod")}
