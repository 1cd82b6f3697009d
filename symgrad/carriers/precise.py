"""The precise carrier: many-digit floats, the reference for the accuracy of rules.

The numbers are those of `symgrad.carriers.digits.context`; the context manager `working_precision` sets the number of digits.
Functions with cancellation use more digits inside. All results are accurate except for about the last ten digits.
"""

from __future__ import annotations

import builtins
import operator
import sys
from typing import Any

import numpy as np

from symgrad.carriers import digits as _digits
from symgrad.carriers import reducing
from symgrad.carriers.cells import *  # noqa: F403  the functions that are not defined below
from symgrad.carriers.cells import Cells, amax, sum
from symgrad.carriers.cells import each as _each
from symgrad.carriers.cells import sinc_digits as _sinc_digits
from symgrad.carriers.digits import context, working_precision
from symgrad.carriers.digits import with_bounded_arguments as _bounded
from symgrad.carriers.special.table import of_cells as _special_functions

GUARD = 30
is_precise = True  # its numbers are a reference, so that a declared formula that disagrees with them is not used


def _number(x: Any) -> Any:
    if isinstance(x, bool):
        return x
    return context.mpc(x) if isinstance(x, complex) else context.mpf(x) if isinstance(x, (int, float)) else x


def _with_guard_digits(function: Any) -> Any:
    """The function computed with additional digits and rounded at the end."""
    def call(*xs: Any) -> Any:
        with context.extradps(GUARD):
            out = function(*xs)
        return +out

    return call


def _real(function: Any) -> Any:
    """The function with real results for real arguments, and NaN outside its domain, as for floats."""
    def call(*xs: Any) -> Any:
        try:
            out = function(*xs)
        except (ZeroDivisionError, ValueError):
            return context.nan
        if isinstance(out, context.mpc) and not builtins.any(isinstance(x, context.mpc) for x in xs):
            return context.nan
        return out

    return call


def _divide(a: Any, b: Any) -> Any:
    """a / b, with the result of floats for a division by zero."""
    if b != 0:
        return a / b
    return context.nan if a == 0 or a != a else context.inf * context.sign(a)


def _power(a: Any, b: Any) -> Any:
    b = b if context.im(b) else context.re(b)
    if b == 0:
        return context.one
    return context.inf if a == 0 and context.re(b) < 0 else a**b


def _comparison(relation: Any) -> Any:
    """A comparison; complex numbers are ordered by their real, then by their imaginary parts, as in NumPy."""
    def call(a: Any, b: Any) -> bool:
        complex = isinstance(a, context.mpc) or isinstance(b, context.mpc)
        return relation((context.re(a), context.im(a)), (context.re(b), context.im(b))) if complex else relation(a, b)

    return _each(call, 2)


def _larger(a: Any, b: Any) -> Any:
    return a if a >= b or a != a else b


def _smaller(a: Any, b: Any) -> Any:
    return a if a <= b or a != a else b


pow = _each(_real(_bounded(_power)), 2)


@_with_guard_digits
def _log_sum_exp(row: Any) -> Any:
    """log Σ exp(xᵢ) as the maximum m plus log(1 + Σ exp(xᵢ - m)) over the other elements."""
    largest = max(row)
    if not context.isfinite(largest):
        return largest
    rest = list(row)
    rest.remove(largest)
    return largest + context.log1p(context.fsum(_digits.exponential(x - largest) for x in rest))


class Digits(Cells):
    """Arrays of many-digit floats; floats in operations with them are converted exactly."""

    carrier, complex_parts = sys.modules[__name__], (context.re, context.im)
    number, may_be_complex = staticmethod(_number), staticmethod(lambda x: isinstance(x, context.mpc))
    folds = {np.add: context.fsum, np.multiply: context.fprod, np.maximum: max, np.minimum: min, np.logaddexp: _log_sum_exp,
             np.logical_and: lambda row: builtins.all(map(bool, row)), np.logical_or: lambda row: builtins.any(map(bool, row))}
    ufuncs = {np.true_divide: _each(_divide, 2), np.power: pow}


def lift_value(value: Any) -> Any:
    """A number or an array of them as many-digit floats of exactly the same values."""
    return Digits.lift(value)


abs, sign = _each(builtins.abs), _each(context.sign)
exp, sinh, cosh, sech = map(_each, (_digits.exponential, _digits.sinh, _digits.cosh, _digits.sech))
sin, cos, tan, atan, tanh, asinh, expm1 = (
    _each(_bounded(f)) for f in (context.sin, context.cos, context.tan, context.atan, context.tanh, context.asinh, context.expm1))
log, log10, sqrt, asin, acos, acosh, atanh, log1p = (
    _each(_real(f)) for f in (context.log, context.log10, context.sqrt, context.asin, context.acos, context.acosh, context.atanh, context.log1p))
floor, ceil, round = _each(context.floor), _each(context.ceil), _each(context.nint)
exp2 = _each(_bounded(lambda x: context.power(2, x)))
log2 = _each(_real(_with_guard_digits(lambda x: context.log(x) / context.ln2)))

atan2, hypot = _each(context.atan2, 2), _each(context.hypot, 2)
direction = _each(lambda a, b: a / (context.hypot(a, b) or context.one), 2)
remainder = _each(_real(lambda a, b: a % b), 2)
fmod = _each(_real(lambda a, b: context.sign(a) * (builtins.abs(a) % builtins.abs(b))), 2)
floor_divide = _each(_real(lambda a, b: context.floor(_divide(a, b))), 2)
conj = _each(context.conj)
maximum, minimum = _each(_larger, 2), _each(_smaller, 2)
where = _each(lambda condition, a, b: a if condition else b, 3)
eq, ne, (lt, le, gt, ge) = _each(operator.eq, 2), _each(operator.ne, 2), map(_comparison, (operator.lt, operator.le, operator.gt, operator.ge))
logical_and, logical_or = _each(lambda a, b: bool(a) and bool(b), 2), _each(lambda a, b: bool(a) or bool(b), 2)
logical_not = _each(lambda a: not a)
isfinite, isnan, isinf = _each(context.isfinite), _each(context.isnan), _each(context.isinf)
logaddexp = _each(lambda a, b: _log_sum_exp([a, b]), 2)


@_with_guard_digits
def _sinc_derivative(x: Any, order: Any) -> Any:
    return _sinc_digits(context, context.pi * x, context.sinpi(x), context.cospi(x), int(order)) * context.pi ** int(order)


sinc_derivative = _each(_sinc_derivative, 2)
globals().update(_special_functions("digits", context, lambda function: _real(_bounded(function))))


def softmax(x: Any, dim: Any) -> Any:
    out = exp(x - amax(x, dim, True))
    return out / sum(out, dim, True)


def reference(g: Any, y: Any, dim: Any) -> Any:
    return Digits.lift(reducing.reference(g.view(np.ndarray), y.view(np.ndarray), dim))


def argmax(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return Digits.lift(np.argmax(x.view(np.ndarray), axis=dim, keepdims=keepdim))


def argmin(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return Digits.lift(np.argmin(x.view(np.ndarray), axis=dim, keepdims=keepdim))
