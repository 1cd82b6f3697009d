"""Guarded passes: 0 · ∞ is 0 in a graph with an op that selects elements, such as `where`.

Such an op has derivative 0 by the elements that it does not select, even if they are infinite or NaN. In a pass over a graph with such an op
the product of a zero derivative of the outputs by a value with an infinite derivative of that value, or a NaN, is 0. In a pullback the zero is the
cotangent, in a pushforward the next factor. Likewise its value does not depend on these elements, even if the derivative by the value is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.batched import raw
from symgrad.carriers.dual import Dual, DualCarrier
from symgrad.carriers.recorded import Recorded
from symgrad.dtypes.dtype import finfo
from symgrad.graph.op import Op

PRECISION = 0.5, 1e30  # the sizes of two numbers of which one is not lost in sums with the other
NARROW = 0.5, 1e3  # the same for floats of less than 8 bytes
INF = float("inf")
FEW, LARGE, FLOAT64 = 16, 1e150, np.dtype(np.float64)  # numbers that Python adds sooner than NumPy, and a size whose square is finite
INFINITE, NAN = 2, 3  # what a pass has seen


def guarded(xp: Any, compute: Callable[[list[Any]], Sequence[Any]], given: Sequence[Any], found: Sequence[Any]) -> Sequence[Any]:
    """The values `found = compute(given)`, with the elements that are NaN computed from the finite elements of `given` if they depend on no others.

    An element depends on no others if it is the same with two different numbers in the place of each of them. None stands for a symbolic zero.
    """
    wrong = [y is not None and has_nan(xp, y) for y in found]
    if not any(wrong):
        return found
    first, second = (compute([_replaced(xp, x, i, k) for i, x in enumerate(given)]) for k in (0, 1))
    return [xp.where(xp.logical_and(xp.isnan(y), xp.eq(a, b)), a, y) if nan else y for y, a, b, nan in zip(found, first, second, wrong)]


def _replaced(xp: Any, x: Any, i: int, k: int) -> Any:
    """A value with finite numbers in place of infinite and NaN elements; no simple relation holds between them."""
    dtype = _inner(x).dtype if hasattr(x, "dtype") else None
    kind = getattr(dtype, "kind", "c" if getattr(dtype, "is_complex", False) else "f")  # a dtype of many-digit numbers has none
    if dtype is None or kind in "biu" or truth(xp.isfinite(x)).all():
        return x
    places = xp.reshape(xp.cumsum(xp.reshape(xp.ones_like(x), (-1,)), 0), tuple(x.shape))
    size = (PRECISION if dtype.itemsize >= 8 else NARROW)[k]
    return xp.where(xp.isfinite(x), x, xp.sqrt(places + (0.31 * i + 0.17 * k)) * (size * (1 + 0.7j) if kind == "c" else size))


def unselected(xp: Any, op: Op, i: int, y: Any, args: tuple) -> Any:
    """Where an elementwise op that selects does not depend on its argument i: the partial derivative is 0 there and on both sides.

    At the end of a region, as relu at 0, it is a convention. A slope is the same on both sides, too.
    """
    partial: Any = op.partials[i]
    if not callable(partial):
        zero = xp.eq(y, y)
    else:
        slope = partial(xp, y, *args)
        zero = xp.eq(slope, 0)
        if not op.piecewise_linear:
            along = Dual(args[i], xp.ones_like(args[i]))
            moved = partial(DualCarrier(xp), Dual(y, slope * along.tangent), *args[:i], along, *args[i + 1:])
            zero = xp.logical_and(zero, xp.eq(moved.tangent, 0)) if type(moved) is Dual else zero
    x: Any = args[i]
    limits = _limits_of(getattr(x, "dtype", None))
    least = xp.zeros_like(x) + limits.tiny * limits.eps  # the smallest positive float: a larger step would pass 0 beside subnormal numbers
    step = xp.where(xp.eq(x, 0), least / limits.eps, xp.maximum(xp.abs(x) * limits.eps, least))
    for beside in (x - step, x + step):
        there = *args[:i], beside, *args[i + 1:]
        value = op.forward(xp, *there)
        if op.slope:
            zero = xp.logical_and(zero, xp.eq(value, y))
        if callable(partial):
            zero = xp.logical_and(zero, xp.eq(partial(xp, value, *there), 0))
    return zero


def _limits_of(dtype: Any) -> finfo:
    """The limits of floats; those of float64 for numbers of many digits, whose dtype is none of ours."""
    try:
        return finfo(dtype)
    except TypeError:
        return finfo(float)


def has_nan(xp: Any, x: Any) -> bool:
    """Whether some element of a value of a carrier is NaN."""
    return not_finite(xp, x) is NAN


def not_finite(xp: Any, x: Any) -> int:
    """NAN if some element of a value of a carrier is NaN, else INFINITE if some element is infinite, or its square, else 0."""
    if type(x) is np.float64:
        return 0 if -INF < x < INF else INFINITE if x == x else NAN
    value = x if type(x) is np.ndarray else raw(_inner(x))
    if type(value) is np.ndarray and value.dtype is FLOAT64 and value.ndim == 1 and value.size <= FEW and math.hypot(*value.tolist()) < LARGE:
        return 0  # in less time than by `vdot`
    if type(value) is Recorded:  # whoever runs the program looks for NaN in its results
        value.recorder.guarded = True
        return 0
    if value.dtype.kind == "O":
        return NAN if xp.any(xp.isnan(x)).item() else 0
    flat = value if value.ndim == 1 else value.ravel("K")  # without a copy of a transposed array
    total = np.vdot(flat, flat)  # NaN if an element is, and not else but for infinite complex numbers; unlike dot it gives no warning
    if abs(total) < INF:
        return 0
    return NAN if total != total and np.isnan(value).any() else INFINITE


def truth(x: Any) -> np.ndarray:
    """The truth values of a carrier as an array, members of batches included."""
    return np.asarray(raw(_inner(x)), bool)


def _inner(x: Any) -> Any:
    """The value inside of a Tensor, or of what a recorder of proofs wraps."""
    return x._value if hasattr(x, "_value") else getattr(x, "value", x)
