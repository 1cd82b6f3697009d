"""Guarded passes: 0 · ∞ is 0 in a graph with an op that selects elements, such as `where`.

Such an op has derivative 0 by the elements that it does not select, even if they are infinite or NaN. In a pass over a graph with such an op
the product of a zero derivative of the outputs by a value with an infinite derivative of that value, or a NaN, is 0. In a pullback the zero is the
cotangent, in a pushforward the next factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.batched import raw

__all__ = ["guarded_call", "guarded_map", "guarded_product", "has_nan"]


def guarded_product(xp: Any, x: Any, factor: Any) -> Any:
    """The product of a tangent and a derivative, which is 0 where the derivative is 0."""
    out = x * factor
    if not has_nan(xp, out):
        return out
    return xp.where(xp.logical_and(xp.eq(factor, 0), xp.isnan(out)), xp.zeros_like(out), out)


def guarded_map(xp: Any, apply: Callable[[Any], Any], x: Any) -> Any:
    """A linear map of a tangent, in which a zero coefficient times an element that is infinite or NaN is 0: these elements one at a time."""
    finite, zeros = xp.isfinite(x), xp.zeros_like(x)
    out, rest = apply(xp.where(finite, x, zeros)), xp.where(finite, zeros, x)
    shape, known = tuple(x.shape), np.asarray(raw(getattr(finite, "_value", finite)), bool)
    for place in np.argwhere(~known.reshape(known.size // (math.prod(shape) or 1), *shape).all(0)).tolist():
        element = xp.getitem(rest, tuple(place))
        out = out + guarded_product(xp, element, apply(xp.place(xp.ones_like(element), tuple(place), shape)))
    return out


def guarded_call(xp: Any, call: Callable[[list[Any]], Any], values: Sequence[Any], moving: Sequence[int]) -> Any:
    """A multilinear function of values, as `guarded_map` in each of the arguments with the numbers `moving`."""
    if not moving:
        return call([*values])
    i = moving[0]
    return guarded_map(xp, lambda x: guarded_call(xp, call, [*values[:i], x, *values[i + 1:]], moving[1:]), values[i])


def has_nan(xp: Any, x: Any) -> bool:
    """Whether some element of a value of a carrier is NaN."""
    value = raw(getattr(x, "_value", getattr(x, "value", x)))
    return xp.any(xp.isnan(x)).item() if value.dtype.kind == "O" else np.isnan(value).any()
