"""Functions of NumPy that torch has not, or has with other rules for shapes, as composites of ops: for the table of `numpy_protocol`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.engine.data import as_value
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.methods.counting import searchsorted
from symgrad.methods.predicates import result_type
from symgrad.types.dtypes import get_default_dtype

__all__ = ["as_tensor", "convolve", "cross", "floats", "interp", "norm", "pad", "solve", "trapezoid"]


def as_tensor(x: Any) -> Any:
    """A tensor of an array, of nested sequences or of a number; a Tensor itself."""
    return x if isinstance(x, Tensor) else wrap(as_value(x))


def floats(x: Any) -> Any:
    """The numbers as floats, or complex."""
    x = as_tensor(x)
    return x if x.is_floating_point() or x.is_complex() else x.to(get_default_dtype())


# Matrices


def solve(a: Any, b: Any) -> Any:
    """The solution of a x = b; only `b` with one dimension is a vector."""
    a, b = floats(a), floats(b)
    if b.ndim == 1:
        return traced.squeeze(traced.linalg_solve(a, traced.unsqueeze(b, -1)), -1)
    return traced.linalg_solve(a, traced.reshape(b, (*(1,) * (a.ndim - b.ndim), *b.shape)))


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors, or of matrices: the largest sum of a column (1) or of a row (inf), the smallest ones, or Frobenius'."""
    x = floats(x)
    if axis is None and ord is not None and x.ndim not in (1, 2):
        raise ValueError("Improper number of dimensions to norm.")
    several = axis is None and ord is not None and x.ndim > 1 or isinstance(axis, (tuple, list)) and len(axis) > 1
    if not several or ord in (None, "fro"):
        return traced.norm(x, 2 if ord in (None, "fro") else ord, axis, keepdims)
    if ord not in (1, -1, np.inf, -np.inf):
        return NotImplemented
    first, second = (d % x.ndim for d in ((-2, -1) if axis is None else axis))
    inner, outer = (first, second) if abs(ord) == 1 else (second, first)
    sums = traced.sum(traced.abs(x), inner, True)
    out = (traced.amax if ord > 0 else traced.amin)(sums, outer, True)
    return out if keepdims else traced.squeeze(out, (first, second))


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """The cross product of vectors along an axis; of vectors of two elements its third component."""
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = traced.movedim(as_tensor(a), axisa, -1), traced.movedim(as_tensor(b), axisb, -1)
    sizes = {a.shape[-1], b.shape[-1]}
    if not sizes <= {2, 3}:
        raise ValueError(f"incompatible dimensions for cross product (dimension must be 2 or 3), got {a.shape[-1]} and {b.shape[-1]}")
    if sizes == {2}:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    a, b = (x if x.shape[-1] == 3 else traced.cat([x, traced.zeros_like(x[..., :1])], -1) for x in (a, b))
    shape = np.broadcast_shapes(a.shape, b.shape)
    return traced.movedim(traced.cross(traced.broadcast_to(a, shape), traced.broadcast_to(b, shape), -1), -1, axisc)


# Sampled functions


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral by the trapezoidal rule."""
    return traced.trapezoid(as_tensor(y), dx=dx, dim=axis) if x is None else traced.trapezoid(as_tensor(y), as_tensor(x), dim=axis)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """The piecewise linear function through points, differentiable by all of `x`, `xp` and `fp`; at a point the derivative is that from the right."""
    x, xp, fp = map(floats, (x, xp, fp))
    if xp.ndim != 1 or fp.ndim != 1:
        raise ValueError("Data points must be 1-D sequences")
    if xp.shape != fp.shape:
        raise ValueError("fp and xp are not of the same length.")
    if not xp.numel():
        raise ValueError("array of sample points is empty")
    if period is not None:
        if period == 0:
            raise ValueError("period must be a non-zero value")
        x, xp, left, right = x % abs(period), xp % abs(period), None, None
        order = traced.argsort(xp)
        xp, fp = xp[order], fp[order]
        xp, fp = traced.cat([xp[-1:] - abs(period), xp, xp[:1] + abs(period)], 0), traced.cat([fp[-1:], fp, fp[:1]], 0)
    last = xp.numel() - 1
    places = searchsorted(xp.detach(), x.detach(), right=True) - 1
    inside, low = (places >= 0) & (places < last), traced.clamp(places, 0, last)
    high = traced.clamp(low + 1, 0, last)
    width = traced.where(inside, xp[high] - xp[low], 1.0)
    out = traced.where(inside, fp[low] + (fp[high] - fp[low]) / width * (x - xp[low]), fp[low])
    for outside, value in ((x < xp[0], left), (x > xp[last], right), (x != x, np.nan)):
        out = out if value is None else traced.where(outside, value, out)
    return out


def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """The convolution of two vectors."""
    a, v = as_tensor(a), as_tensor(v)
    for x in (a, v):
        if x.ndim > 1:
            raise ValueError("object too deep for desired array")
        if not x.numel():
            raise ValueError("a cannot be empty" if x is a else "v cannot be empty")
    dtype = result_type(a, v)
    a, v = sorted((traced.reshape(a, (-1,)).to(dtype), traced.reshape(v, (-1,)).to(dtype)), key=len, reverse=True)
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'full', 'same', or 'valid' (got {mode!r})")
    m = len(v)
    before, after = {"full": (m - 1, m - 1), "same": (m // 2, (m - 1) // 2), "valid": (0, 0)}[mode]
    return traced.matmul(traced.unfold(pad(a, (before, after)), 0, m, 1), traced.flip(v, (0,)))


def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0, reflect_type: str = "even") -> Any:
    """The array with a border: of constants, or of its own elements ("edge", "wrap", "reflect", "symmetric")."""
    out = as_tensor(array)
    if mode not in ("constant", "edge", "wrap", "reflect", "symmetric") or reflect_type != "even":
        return NotImplemented
    widths = _pairs(pad_width, out.ndim)
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError("index can't contain negative values")
    constants = _pairs(constant_values, out.ndim)
    for axis, pair in enumerate(widths):
        if not any(pair):
            continue
        if mode == "constant":
            before, after = (wrap(np.full((*out.shape[:axis], n, *out.shape[axis + 1:]), value, out._value.dtype))
                             for n, value in zip(pair, constants[axis]))
            out = traced.cat([before, out, after], axis)
        else:
            out = traced.index_select(out, axis, wrap(np.pad(np.arange(out.shape[axis]), pair, mode=mode)))  # type: ignore[call-overload]
    return traced.clone(out) if out is array else out


def _pairs(given: Any, ndim: int) -> list[Sequence[Any]]:
    """A number, a pair or pairs as one pair for each axis; a mapping has those of some axes."""
    if isinstance(given, dict):
        given = [np.broadcast_to(given[d] if d in given else given.get(d - ndim, 0), 2) for d in range(ndim)]
    return np.broadcast_to(given, (ndim, 2)).tolist()
