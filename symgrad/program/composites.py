"""Composite words as the ufuncs and reductions that the numeric carrier calls for them.

A function takes a `Lowered`, which records the operations, the registers of the operands, and the parameters; its result is a register, or None where
the carrier is to be called.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["COMPOSITE"]

BOOLEAN = np.dtype(bool)


def _sech(b: Any, xs: list[int]) -> int:
    z = b.ufunc("exp", b.ufunc("negative", b.ufunc("absolute", *xs)))
    return b.ufunc("true_divide", b.ufunc("multiply", b.constant(2), z), b.ufunc("add", b.constant(1), b.ufunc("multiply", z, z)))


def _sigmoid(b: Any, xs: list[int]) -> int:
    z = b.ufunc("exp", b.ufunc("negative", b.ufunc("absolute", *xs)))
    return b.ufunc("true_divide", b.ufunc("exp", b.ufunc("minimum", xs[0], b.constant(0))), b.ufunc("add", b.constant(1), z))


def _softplus(b: Any, xs: list[int], beta: float = 1.0) -> int | None:
    if beta != 1:
        return None
    z = b.ufunc("exp", b.ufunc("negative", b.ufunc("absolute", *xs)))
    return b.ufunc("add", b.ufunc("maximum", xs[0], b.constant(0)), b.ufunc("log1p", z))


def _logsigmoid(b: Any, xs: list[int]) -> int:
    z = b.ufunc("exp", b.ufunc("negative", b.ufunc("absolute", *xs)))
    return b.ufunc("subtract", b.ufunc("minimum", xs[0], b.constant(0)), b.ufunc("log1p", z))


def _one_minus_square(b: Any, xs: list[int]) -> int:
    one = b.constant(1)
    return b.ufunc("multiply", b.ufunc("subtract", one, *xs), b.ufunc("add", one, *xs))


def _direction(b: Any, xs: list[int]) -> int:
    length = b.ufunc("hypot", *xs)
    zero = b.ufunc("equal", length, b.constant(0), dtype=BOOLEAN)
    return b.ufunc("true_divide", xs[0], b.where(zero, b.constant(1), length))


def _pow(b: Any, xs: list[int]) -> int | None:
    """A power; NumPy has short cuts for arrays to some numbers."""
    x, exponent = xs[0], b.constants.get(xs[1])
    if not b.specs[xs[1]].shape and type(exponent) not in (int, float):
        return None
    match exponent if type(exponent) in (int, float) else None:
        case 1:
            return x
        case 2:
            return b.ufunc("square", x)
        case 3:  # at most one unit in the last place from the power, and thirty times as fast
            return b.ufunc("multiply", b.ufunc("square", x), x)
        case 4:
            return b.ufunc("square", b.ufunc("square", x))
        case -1:
            return b.ufunc("reciprocal", x)
        case 0.5:
            return b.ufunc("sqrt", x)
    return b.ufunc("power", *xs)


def _where(b: Any, xs: list[int]) -> int | None:
    dtype = b.step.dtype
    fits = b.specs[xs[0]].dtype == BOOLEAN and dtype.kind in "fbi" and all(b.specs[i].dtype == dtype or b.weak(i) for i in xs[1:])
    return b.emit("where", "where", xs) if fits else None


def _indicator(b: Any, xs: list[int]) -> int | None:
    fits = b.specs[xs[0]].dtype == BOOLEAN and b.step.dtype.kind == "f" and b.step.dtype.itemsize >= 4
    return b.emit("copyto", "copyto", xs[:1]) if fits and b.specs[xs[0]].shape else None


def _peak(b: Any, x: int, dim: Any) -> int:
    """The largest value along `dim`, or 0 where it is infinite."""
    peak = b.reduce("maximum", x, dim)
    return b.where(b.ufunc("isfinite", peak, dtype=BOOLEAN), peak, b.constant(0.0))


def _below_peak(b: Any, x: int, dim: Any) -> int:
    """The distance of every element from the largest along `dim`; elements equal to it have the distance 0, infinite ones too."""
    peak = b.reduce("maximum", x, dim)
    finite, other = b.ufunc("isfinite", peak, dtype=BOOLEAN), b.ufunc("not_equal", x, peak, dtype=BOOLEAN)
    return b.where(b.ufunc("logical_or", finite, other, dtype=BOOLEAN), b.ufunc("subtract", x, peak), b.constant(0.0))


def _softmax(b: Any, xs: list[int], dim: Any) -> int | None:
    if not b.can_reduce(xs[0], dim):
        return None
    out = b.ufunc("exp", _below_peak(b, xs[0], dim))
    return b.ufunc("true_divide", out, b.reduce("add", out, dim))


def _log_of_sum(b: Any, x: int, dim: Any) -> int:
    """log Σ exp(x) along `dim`, which is kept."""
    peak = _peak(b, x, dim)
    largest = b.ufunc("equal", x, peak, dtype=BOOLEAN)
    others = b.reduce("add", b.where(largest, b.constant(0), b.ufunc("exp", b.ufunc("subtract", x, peak))), dim)
    total = b.ufunc("add", others, b.ufunc("subtract", b.reduce("add", b.cast(largest), dim), b.constant(1)))
    return b.ufunc("add", b.ufunc("log1p", total), peak)


def _logsumexp(b: Any, xs: list[int], dim: Any = None, keepdim: bool = False) -> int | None:
    (x,) = xs
    if not b.can_reduce(x, dim):
        return None
    out = _log_of_sum(b, x, dim)
    return out if b.specs[out].shape == b.step.shape else b.emit("view", "reshape", (out,), (b.step.shape,))


def _log_softmax(b: Any, xs: list[int], dim: Any) -> int | None:
    if not b.can_reduce(xs[0], dim):
        return None
    x = _below_peak(b, xs[0], dim)
    return b.ufunc("subtract", x, _log_of_sum(b, x, dim))


def _centred(b: Any, xs: list[int], dim: Any) -> int | None:
    (x,) = xs
    if not b.can_reduce(x, dim):
        return None
    count = b.constant(float(math.prod(b.specs[x].shape[i] for i in dim)))
    for _ in range(2):
        x = b.ufunc("subtract", x, b.ufunc("true_divide", b.reduce("add", x, dim), count))
    return x


COMPOSITE: dict[str, Callable[..., int | None]] = {
    "sech": _sech, "sigmoid": _sigmoid, "softplus": _softplus, "logsigmoid": _logsigmoid, "one_minus_square": _one_minus_square, "pow": _pow,
    "direction": _direction, "where": _where, "indicator": _indicator,
    "softmax": _softmax, "log_softmax": _log_softmax, "logsumexp": _logsumexp, "centred": _centred,
    "sech_square": lambda b, xs: b.ufunc("square", b.ufunc("reciprocal", b.ufunc("cosh", *xs))),
    "sigmoid_slope": lambda b, xs: b.ufunc("multiply", xs[0], _sigmoid(b, [b.ufunc("negative", xs[1])])),
    "relu": lambda b, xs: b.ufunc("maximum", xs[0], b.constant(0)),
    "rsqrt": lambda b, xs: b.ufunc("true_divide", b.constant(1), b.ufunc("sqrt", *xs)),
    "log_derivative": lambda b, xs, base: b.ufunc("true_divide", b.constant(1 / math.log(base)), *xs),
}
