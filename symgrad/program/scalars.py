"""What words are made of: composite ones of simpler ones, and those of 0-d float64 values of expressions of Python's floats and of `math`.

The latter take a tenth of NumPy's time. `math` raises where NumPy gives inf or NaN; the run is then repeated with NumPy's numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.program.program import ArraySpec, Step

FAILURES = (OverflowError, ValueError, ZeroDivisionError)  # what `math` and Python's operators raise
# Words whose result is the operand itself, if it is 0-d and has the same dtype.
ALIASES = {"copy", "conj", "prod", "amax", "amin", "reshape", "view", "permute", "broadcast_to", "astype"}
FLOAT, BOOLEAN = ArraySpec((), np.dtype(np.float64)), ArraySpec((), np.dtype(bool))

_SIGMOID = "(1.0 / (1.0 + exp(-{x})) if {x} >= 0.0 else (z := exp({x})) / (1.0 + z))"
_SECH = "2.0 * (z := exp(-fabs({0}))) / (1.0 + z * z)"
EXPRESSIONS = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "neg": "-{0}", "abs": "fabs({0})",
    "sign": "1.0 if {0} > 0.0 else -1.0 if {0} < 0.0 else 0.0 if {0} == 0.0 else {0}",
    "sum": "{0}", "sum_to_size": "{0} + 0.0",  # NumPy adds to a zero
    "rsqrt": "1.0 / sqrt({0})", "square": "{0} * {0}", "reciprocal": "1.0 / {0}", "one_minus_square": "(1.0 - {0}) * (1.0 + {0})",
    "sech": _SECH, "sech_square": f"(s := {_SECH}) * s", "sigmoid": _SIGMOID.format(x="{0}"),
    "sigmoid_slope": "{0} * (1.0 / (1.0 + exp({1})) if {1} <= 0.0 else (z := exp(-{1})) / (1.0 + z))",
    "logsigmoid": "({0} if {0} < 0.0 else 0.0) - log1p(exp(-fabs({0})))",
    "softplus": "({0} if {0} > 0.0 else 0.0) + log1p(exp(-fabs({0})))",
    "relu": "{0} if {0} > 0.0 or {0} != {0} else 0.0",
    "maximum": "{0} if {0} > {1} or {0} != {0} else {1}", "minimum": "{0} if {0} < {1} or {0} != {0} else {1}",
    "direction": "{0} / (hypot({0}, {1}) or 1.0)", "logaddexp": "logaddexp({0}, {1})",
    "pow": "pow({0}, {1})", "remainder": "{0} % {1}", "floor_divide": "{0} // {1}",
    **{name: name + "({0})" for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "asin", "acos",
                                         "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh")},
    **{name: name + "({0}, {1})" for name in ("atan2", "hypot", "fmod")},
    **{name: f"copysign({name}({{0}}), {{0}})" for name in ("floor", "ceil", "round", "trunc")},  # the result of -0.5 is -0.0
}
COMPARISONS = {
    "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}", "ge": "{0} >= {1}",
    "isfinite": "isfinite({0})", "isnan": "isnan({0})", "isinf": "isinf({0})",
}
LOGIC = {"logical_and": "{0} and {1}", "logical_or": "{0} or {1}", "logical_not": "not {0}"}
POWERS = {1: "{0}", 2: "{0} * {0}", 3: "{0} * {0} * {0}", -1: "1.0 / {0}"}


def _logaddexp(a: float, b: float) -> float:
    """log(exp(a) + exp(b)), as NumPy computes it."""
    if a == b:
        return a + math.log(2.0)
    return a + math.log1p(math.exp(b - a)) if a > b else b + math.log1p(math.exp(a - b)) if a < b else a - b


NAMES = {name: function for name, function in vars(math).items() if not name.startswith("_")} | {
    "abs": abs, "round": round, "float": float, "bool": bool, "logaddexp": _logaddexp}


def scalar_expression(step: Step, specs: Sequence[ArraySpec], values: Sequence[object]) -> str | None:
    """The expression of a word on Python's numbers, with {0} and {1} for the operands; None if there is none that gives the same.

    `values` has the constants among the operands, and None for the others.
    """
    name, boolean = step.name, [spec == BOOLEAN for spec in specs]
    fits = [b or spec == FLOAT or literal(x) is not None for b, spec, x in zip(boolean, specs, values, strict=True)]
    if not all(fits) or all(x is not None for x in values):
        return None
    if step.dtype == BOOLEAN.dtype:
        if name in LOGIC and all(boolean):
            return LOGIC[name]
        return COMPARISONS.get(name) if not any(boolean) else None
    if step.dtype != FLOAT.dtype:
        return None
    if name == "where":
        return "{1} if {0} else {2}" if boolean == [True, False, False] else None
    if name == "indicator":
        return "1.0 if {0} else 0.0" if boolean[0] else None
    if any(boolean):
        return {"astype": "float({0})", "mul": "{0} * {1}"}.get(name) if not all(boolean) or name == "astype" else None
    if name == "log_derivative":
        return f"{1 / math.log(step.params[0])!r} / {{0}}"
    if step.params and name not in ("sum", "sum_to_size") and (name != "softplus" or step.params != (1,)):
        return None
    if name == "pow" and type(values[1]) in (int, float) and values[1] in POWERS:
        return POWERS[values[1]]
    return EXPRESSIONS.get(name)


def literal(value: object) -> str | None:
    """A number as it is written in the source, as a float; None if it has no literal."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, np.ndarray) and value.shape == ():
        value = value[()]
    if isinstance(value, (float, np.floating)) or isinstance(value, (int, np.integer)) and abs(int(value)) < 2**63:
        text = repr(float(value))
        return None if text in ("inf", "-inf", "nan") else f"({text})" if text[0] == "-" else text
    return None


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
