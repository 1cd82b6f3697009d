"""The ball carrier: midpoints with a radius (Arb, by python-flint). Every number is an interval that contains the exact value.

A condition that is undecided for the balls is `MAYBE`; a selection by it is the union of both values. NaN is a value without bounds.
The comparison of an element with itself, as of a maximum with one of its elements, is certain for balls of any width.
Arb's precision is global; the context manager `precision` sets it temporarily. This module needs python-flint.
"""

from __future__ import annotations

import builtins
import sys
from contextlib import AbstractContextManager
from functools import reduce as _reduce
from typing import Any

import numpy as np
from flint import acb, arb, ctx

from symgrad.carriers.ball_matrices import BALL_MATRICES as _BALL_MATRICES
from symgrad.carriers.cells import *  # noqa: F403  the functions that are not defined below
from symgrad.carriers.cells import Cells, fold, logsumexp
from symgrad.carriers.cells import each as _each
from symgrad.carriers.cells import sinc_of_ball as _sinc_of_ball
from symgrad.carriers.digits import Undecided
from symgrad.carriers.matrices import of_cells as _matrix_functions
from symgrad.carriers.special.table import of_balls as _special_functions
from symgrad.system.restoring import workprec


class Maybe:
    """An unknown truth value: the result of a comparison of balls that overlap."""

    def __bool__(self) -> bool:
        raise Undecided("two numbers are too close to each other to be compared")

    def __repr__(self) -> str:
        return "MAYBE"


MAYBE = Maybe()


def precision(bits: int) -> AbstractContextManager[None]:
    """A context manager that sets the precision of balls in bits."""
    return workprec(ctx, bits)


def _number(x: Any) -> Any:
    if isinstance(x, bool):
        return x
    if isinstance(x, complex):
        return acb(arb(x.real), arb(x.imag))
    if isinstance(x, float):
        x = float(x)
        return arb(x) if builtins.abs(x) != float("inf") else arb.pos_inf() if x > 0 else arb.neg_inf()
    return arb(int(x)) if isinstance(x, int) else x


def _method(name: str) -> Any:
    return _each(lambda x: getattr(x, name)())


# Conditions


def _as_condition(x: Any) -> Any:
    """A condition unchanged; for a number, whether it is not zero."""
    if isinstance(x, (bool, Maybe)):
        return x
    return _not(_equal(x, arb(0)))


def _equal(a: Any, b: Any) -> Any:
    if a is b:
        return True
    a, b = (x if isinstance(x, acb) else arb(x) for x in (a, b))
    if not a.overlaps(b) and not builtins.any(x.is_nan() for x in (a, b) if isinstance(x, arb)):
        return False
    return True if a.is_exact() and b.is_exact() and bool(a == b) else MAYBE


def _less(a: Any, b: Any) -> Any:
    if a is b:
        return False
    return True if a < b else False if a >= b else MAYBE


def _at_most(a: Any, b: Any) -> Any:
    return _not(_less(b, a))


def _not(a: Any) -> Any:
    return a if a is MAYBE else not a


def _and(a: Any, b: Any) -> Any:
    a, b = _as_condition(a), _as_condition(b)
    return False if a is False or b is False else MAYBE if a is MAYBE or b is MAYBE else True


def _or(a: Any, b: Any) -> Any:
    return _not(_and(_not(_as_condition(a)), _not(_as_condition(b))))


def _choice(condition: Any, a: Any, b: Any) -> Any:
    condition = _as_condition(condition)
    if condition is not MAYBE:
        return a if condition else b
    if isinstance(a, (bool, Maybe)):
        return a if a is b else MAYBE
    return a if a is b else a.union(b)


# Functions of one and of two balls


def _square(x: Any) -> Any:
    return (x * x).nonnegative_part() if isinstance(x, arb) else x * x


def _monotone(function: Any) -> Any:
    """A function of balls from a monotone function of numbers, by its values at the two ends."""
    def call(x: Any) -> Any:
        return function(x) if x.is_exact() else function(x.lower()).union(function(x.upper())) if x.is_finite() else arb.nan()

    return call


def _nearest(x: Any) -> Any:
    """The nearest integer of a number without radius; halves are rounded to even."""
    if x.is_integer():
        return x
    above = x + arb(0.5)
    rounded = above.floor()
    return rounded - 1 if above.is_integer() and not (rounded / 2).is_integer() else rounded


def _softplus(x: Any) -> Any:
    """log(1 + exp(x)), without an exponential of a large number."""
    return x.exp().log1p() if (x.real if isinstance(x, acb) else x).mid() < 0 else x + (-x).exp().log1p()


def _direction(a: Any, b: Any) -> Any:
    length = (_square(a) + _square(b)).sqrt()
    if length.is_zero():
        return arb(0)
    out = a / length
    return out if out.is_finite() else arb(0, 1)  # the magnitude is at most 1


def _log_sum_exp(row: Any) -> Any:
    """log Σ exp(xᵢ) as the maximum m plus log(1 + Σ exp(xᵢ - m)) over the other elements."""
    at = builtins.max(range(len(row)), key=lambda i: float(row[i].mid()))
    rest = [x for i, x in enumerate(row) if i != at]
    return row[at] + builtins.sum(((x - row[at]).exp() for x in rest), arb(0)).log1p()


def _larger(a: Any, b: Any) -> Any:
    less = _less(a, b)
    return a.max(b) if less is MAYBE else b if less else a


def _smaller(a: Any, b: Any) -> Any:
    less = _less(b, a)
    return a.min(b) if less is MAYBE else b if less else a


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, arb) and isinstance(b, arb) and b.is_exact() and not b.is_integer() and a.is_zero() and b > 0:
        return arb(0)
    return a**b


def _sinc_derivative(x: Any, order: Any) -> Any:
    n, pi = int(order.unique_fmpz()), arb.pi()
    return _sinc_of_ball(pi * x, x.sin_pi(), x.cos_pi(), n) * pi**n


pow = _each(_power, 2)


class Balls(Cells):
    """Arrays of balls; floats in operations with them are converted exactly."""

    carrier, complex_parts = sys.modules[__name__], (lambda x: x.real, lambda x: x.imag)
    number = staticmethod(_number)
    folds = {np.add: lambda row: builtins.sum(row[1:], row[0]) if row else arb(0), np.logaddexp: _log_sum_exp,
             np.maximum: lambda row: _reduce(_larger, row), np.minimum: lambda row: _reduce(_smaller, row),
             np.logical_and: lambda row: _reduce(_and, row, True), np.logical_or: lambda row: _reduce(_or, row, False)}
    ufuncs = {np.power: pow}


def lift_value(value: Any) -> Any:
    """A number or an array of them as balls of exactly the same values."""
    return Balls.lift(value)


abs = _each(builtins.abs)
exp, expm1, log, log1p, sqrt, rsqrt = map(_method, ("exp", "expm1", "log", "log1p", "sqrt", "rsqrt"))
sin, cos, tan, asin, acos, atan = map(_method, ("sin", "cos", "tan", "asin", "acos", "atan"))
sinh, cosh, tanh, sech, asinh, acosh, atanh = map(_method, ("sinh", "cosh", "tanh", "sech", "asinh", "acosh", "atanh"))
sign, floor, ceil = map(_method, ("sgn", "floor", "ceil"))
round = _each(_monotone(_nearest))
exp2 = _each(lambda x: (x * arb(2).log()).exp() if not x.is_exact() or not isinstance(x, arb) or not x.is_integer() else arb(2) ** x)
square = _each(_square)
sigmoid = _each(lambda x: (-_softplus(-x)).exp())

atan2 = _each(lambda a, b: arb.atan2(a, b), 2)
direction = _each(_direction, 2)
logaddexp = _each(lambda a, b: _log_sum_exp([a, b]), 2)
maximum, minimum = _each(_larger, 2), _each(_smaller, 2)
remainder = _each(lambda a, b: a - b * (a / b).floor(), 2)
conj = _each(lambda x: x.conjugate() if isinstance(x, acb) else x)
where = _each(_choice, 3)
eq, ne = _each(_equal, 2), _each(lambda a, b: _not(_equal(a, b)), 2)
lt, le, gt, ge = _each(_less, 2), _each(_at_most, 2), _each(lambda a, b: _less(b, a), 2), _each(lambda a, b: _at_most(b, a), 2)
Balls.ufuncs = {**Balls.ufuncs, np.less: lt, np.less_equal: le, np.greater: gt, np.greater_equal: ge}  # of operators
logical_and, logical_or, logical_not = _each(_and, 2), _each(_or, 2), _each(lambda a: _not(_as_condition(a)))
isfinite = _each(lambda x: True if x.is_finite() else MAYBE)
isnan = isinf = _each(lambda x: False if x.is_finite() else MAYBE)

_softpluses = _each(lambda x, beta: _softplus(beta * x) / beta, 2)
sinc_derivative = _each(_sinc_derivative, 2)
globals().update(_special_functions() | _matrix_functions(_BALL_MATRICES))


def softplus(x: Any, beta: float = 1.0) -> Any:
    return _softpluses(x, beta)


def _position(row: Any, before: Any) -> Any:
    """The position of the first largest (or smallest) element. Raises Undecided if the balls do not determine it."""
    best = 0
    for i in range(1, len(row)):
        if bool(before(row[best], row[i])):
            best = i
    return arb(best)


def argmax(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return fold(lambda row: _position(row, _less), x, dim, keepdim)


def argmin(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return fold(lambda row: _position(row, lambda a, b: _less(b, a)), x, dim, keepdim)


def softmax(x: Any, dim: Any) -> Any:
    return exp(x - logsumexp(x, dim, True))
