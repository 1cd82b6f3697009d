"""Composite words in terms of simpler ones, for the back ends that write them: `sigmoid` by `exp`, `softmax` by sums and maxima.

A function takes a builder, the operands, and the parameters. A builder is a `Lowered` or the words of the C back end: `word` applies an elementwise
word, `constant` is a Python number, `reduced` keeps the axes along which it reduces.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

__all__ = ["COMPOSITE", "REDUCING"]


def decay(b: Any, x: Any) -> Any:
    """exp(-|x|)."""
    return b.word("exp", b.word("neg", b.word("abs", x)))


def _sech(b: Any, x: Any) -> Any:
    z = decay(b, x)
    return b.word("div", b.word("mul", b.constant(2), z), b.word("add", b.constant(1), b.word("mul", z, z)))


def _sigmoid(b: Any, x: Any) -> Any:
    z = decay(b, x)
    return b.word("div", b.exp_below_zero(x, z), b.word("add", b.constant(1), z))


def _softplus(b: Any, x: Any, beta: float = 1.0) -> Any:
    scaled = x if beta == 1 else b.word("mul", x, b.constant(beta))
    out = b.word("add", b.word("maximum", scaled, b.constant(0)), b.word("log1p", decay(b, scaled)))
    return out if beta == 1 else b.word("div", out, b.constant(beta))


def _direction(b: Any, x: Any, y: Any) -> Any:
    length = b.word("hypot", x, y)
    return b.word("div", x, b.word("where", b.word("eq", length, b.constant(0)), b.constant(1), length))


def _below_peak(b: Any, x: Any, dim: Any) -> Any:
    """The distance of every element from the largest along `dim`; elements equal to it have the distance 0, infinite ones too."""
    peak = b.reduced("amax", x, dim)
    return b.word("where", b.word("eq", x, peak), b.constant(0), b.word("sub", x, peak))


def _softmax(b: Any, x: Any, dim: Any) -> Any:
    out = b.word("exp", _below_peak(b, x, dim))
    return b.word("div", out, b.reduced("sum", out, dim))


def _log_of_sum(b: Any, x: Any, dim: Any) -> Any:
    """log Σ exp(x) along `dim`, which is kept."""
    peak = b.reduced("amax", x, dim)
    peak = b.word("where", b.word("isfinite", peak), peak, b.constant(0))
    largest = b.word("eq", x, peak)
    others = b.reduced("sum", b.word("where", largest, b.constant(0), b.word("exp", b.word("sub", x, peak))), dim)
    count = b.reduced("sum", b.cast(largest), dim)
    return b.word("add", b.word("log1p", b.word("add", others, b.word("sub", count, b.constant(1)))), peak)


def _log_softmax(b: Any, x: Any, dim: Any) -> Any:
    x = _below_peak(b, x, dim)
    return b.word("sub", x, _log_of_sum(b, x, dim))


def _centred(b: Any, x: Any, dim: Any) -> Any:
    count = b.constant(float(math.prod(b.shape_of(x)[i] for i in dim) or math.nan))
    for _ in range(2):
        x = b.word("sub", x, b.word("div", b.reduced("sum", x, dim), count))
    return x


# Words that reduce along axes, which are their first parameter
REDUCING: dict[str, Callable[..., Any]] = {
    "softmax": _softmax, "log_softmax": _log_softmax, "centred": _centred,
    "logsumexp": lambda b, x, dim=None, keepdim=False: b.in_own_shape(_log_of_sum(b, x, dim)),
}
COMPOSITE: dict[str, Callable[..., Any]] = {
    "sech": _sech, "sigmoid": _sigmoid, "softplus": _softplus, "direction": _direction, **REDUCING,
    "logsigmoid": lambda b, x: b.word("sub", b.word("minimum", x, b.constant(0)), b.word("log1p", decay(b, x))),
    "sigmoid_slope": lambda b, y, x: b.word("mul", y, _sigmoid(b, b.word("neg", x))),
    "one_minus_square": lambda b, x: b.word("mul", b.word("sub", b.constant(1), x), b.word("add", b.constant(1), x)),
    "relu": lambda b, x: b.word("maximum", x, b.constant(0)),
    "rsqrt": lambda b, x: b.word("div", b.constant(1), b.word("sqrt", x)),
    "log_derivative": lambda b, x, base: b.word("div", b.constant(1 / math.log(base)), x),
}
