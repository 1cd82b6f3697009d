"""The symbolic carrier: SymPy expressions, for which a rule returns a formula."""

from __future__ import annotations

import builtins
import operator
import sys
from functools import cache
from typing import Any

import numpy as np
import sympy

from symgrad.carriers.cells import *  # noqa: F403  the functions that are not defined below
from symgrad.carriers.cells import Cells, square, sum
from symgrad.carriers.cells import each as _each
from symgrad.carriers.sizes import growing as _growing
from symgrad.carriers.sizes import of_moderate_numbers as _of_moderate_numbers
from symgrad.carriers.sizes import power as _power
from symgrad.carriers.sizes import remainder as _remainder
from symgrad.carriers.special.table import of_cells as _special_functions

LARGEST = 2**53  # the largest integer-valued float that is shown as an integer; larger ones may be rounded


def exact_number(x: Any) -> Any:
    """A Python number as a SymPy number of exactly the same value."""
    if isinstance(x, float) and np.isfinite(x):
        return sympy.Rational(*x.as_integer_ratio())
    if isinstance(x, complex):
        return exact_number(x.real) + sympy.I * exact_number(x.imag)
    return sympy.sympify(x)


def readable_number(x: Any) -> Any:
    """A Python number as a SymPy integer if it is integer-valued, otherwise as a Float, which prints as a short decimal."""
    if isinstance(x, float):
        return sympy.Integer(int(x)) if builtins.abs(x) < LARGEST and x.is_integer() else sympy.Float(x)
    if isinstance(x, complex):
        return readable_number(x.real) + sympy.I * readable_number(x.imag)
    return sympy.sympify(x)


def _as_condition(x: Any) -> Any:
    """A condition unchanged; for a number, the condition that it is not zero."""
    return sympy.Ne(x, 0) if isinstance(x, sympy.Expr) else x


def _as_number(x: Any) -> Any:
    """A number unchanged; for a condition, 1 where it holds and 0 elsewhere."""
    return x if isinstance(x, sympy.Expr) else sympy.Piecewise((1, x), (0, True))


def _comparison(relation: Any) -> Any:
    """A comparison by order; complex numbers are compared by their real parts."""
    def call(a: Any, b: Any) -> Any:
        try:
            return relation(a, b)
        except TypeError:
            return relation(sympy.re(a), sympy.re(b))

    return _each(call, 2)


def _may_be_complex(x: Any) -> bool:
    """Whether an expression contains the imaginary unit or a symbol that is not real."""
    return bool(x.has(sympy.I)) or not builtins.all(s.is_real for s in x.free_symbols)


_magnitude = _each(lambda x: sympy.Abs(x) if _may_be_complex(x) else x)


class Expressions(Cells):
    """Arrays of SymPy expressions with readable numbers."""

    carrier, complex_parts = sys.modules[__name__], (sympy.re, sympy.im)
    number, may_be_complex = staticmethod(readable_number), staticmethod(_may_be_complex)
    folds = {
        np.add: lambda row: sympy.Add(*map(_as_number, row)), np.multiply: lambda row: sympy.Mul(*map(_as_number, row)),
        np.maximum: lambda row: sympy.Max(*row), np.minimum: lambda row: sympy.Min(*row),
        np.logaddexp: lambda row: sympy.log(sympy.Add(*map(sympy.exp, row))),
        np.logical_and: lambda row: sympy.And(*map(_as_condition, row)), np.logical_or: lambda row: sympy.Or(*map(_as_condition, row)),
    }


class ExactExpressions(Expressions):
    """Arrays of SymPy expressions with rational numbers of exactly the same values."""

    number = staticmethod(exact_number)


def lift_value(value: Any, exact: bool = False) -> Any:
    """A number or an array of numbers as expressions without symbols: readable numbers, or with `exact` rational ones for proofs."""
    return (ExactExpressions if exact else Expressions).lift(value)


def conjugate(x: Any) -> Any:
    """The complex conjugate, for the pullback; rules use `conj`."""
    return _conjugates(x)


abs, sign = _each(sympy.Abs), _each(sympy.sign)
_exponential = _growing(sympy.exp)
exp, log, sqrt = _each(_exponential), _each(sympy.log), _each(sympy.sqrt)
sin, cos, tan, asin, acos, atan = map(_each, (sympy.sin, sympy.cos, sympy.tan, sympy.asin, sympy.acos, sympy.atan))
sinh, cosh = _each(_growing(sympy.sinh, True)), _each(_growing(sympy.cosh, True))
tanh, asinh, acosh, atanh = map(_each, (sympy.tanh, sympy.asinh, sympy.acosh, sympy.atanh))
floor, ceil = _each(sympy.floor), _each(sympy.ceiling)
exp2 = _each(lambda x: _power(sympy.Integer(2), x))
expm1 = _each(lambda x: _exponential(x) - 1)
log1p = _each(lambda x: sympy.log(1 + x))
sech = _each(lambda x: 1 / sympy.cosh(x))
one_minus_square = _each(lambda x: 1 - x**2)
# One half is rounded up, and 1 is subtracted if the result is odd.
round = _each(lambda x: sympy.floor(x + sympy.S.Half) - _choice(sympy.Eq(_remainder(x + sympy.S.Half, 2), 1), sympy.S.One, sympy.S.Zero))

pow = _each(_power, 2)
atan2, remainder = _each(sympy.atan2, 2), _each(_remainder, 2)
direction = _each(lambda a, b: sympy.S.Zero if a == 0 and b == 0 else a / sympy.sqrt(a**2 + b**2), 2)
logaddexp = _each(lambda a, b: sympy.log(sympy.exp(a) + sympy.exp(b)), 2)
maximum, minimum = _each(sympy.Max, 2), _each(sympy.Min, 2)
eq, ne, lt, le, gt, ge = (_comparison(relation) for relation in (sympy.Eq, sympy.Ne, sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge))
Expressions.ufuncs = {np.power: pow, np.equal: eq, np.not_equal: ne,  # of operators
                      np.less: lt, np.less_equal: le, np.greater: gt, np.greater_equal: ge}
logical_and = _each(lambda a, b: sympy.And(_as_condition(a), _as_condition(b)), 2)
logical_or = _each(lambda a, b: sympy.Or(_as_condition(a), _as_condition(b)), 2)
logical_not = _each(lambda a: sympy.Not(_as_condition(a)))
isfinite = _each(lambda x: sympy.true)
isnan = isinf = _each(lambda x: sympy.false)

conj = _conjugates = _each(lambda x: sympy.conjugate(x) if isinstance(x, sympy.Expr) else x)


@cache
def _sinc(order: int) -> tuple[Any, Any, Any]:
    """The derivative of sin(πu)/(πu) of an order: the variable, the formula, and the value at 0."""
    u = sympy.Dummy("u", real=True)
    limit = 0 if order % 2 else (-1) ** (order // 2) * sympy.pi**order / (order + 1)
    return u, sympy.diff(sympy.sin(sympy.pi * u) / (sympy.pi * u), u, order), sympy.sympify(limit)


def _sinc_derivative(x: Any, order: Any) -> Any:
    u, formula, limit = _sinc(int(order))
    if x.is_number:
        return limit if x == 0 else formula.xreplace({u: x})
    return sympy.Piecewise((formula.xreplace({u: x}), sympy.Ne(x, 0)), (limit, True))


sinc_derivative = _each(_sinc_derivative, 2)
# Of large numbers SymPy writes these as products and sums with as many factors and terms.
_WRITTEN_OUT = ("beta", "digamma", "gamma", "lgamma", "logaddexp2", "polygamma", "sigmoid2", "zeta")
globals().update(_special_functions("formula", sympy) | {
    name: function for name, function in _special_functions("formula", sympy, _of_moderate_numbers).items() if name.startswith(_WRITTEN_OUT)})


def _assuming(expr: Any, condition: Any, holds: bool, depth: int = 4) -> Any:
    """An expression simplified under the assumption that a condition holds or does not, as for nested selections by the same condition."""
    if isinstance(expr, sympy.Piecewise) and len(expr.args) == 2 and expr.args[0][1] == condition:
        return expr.args[0 if holds else 1][0]
    if not depth or not isinstance(expr, (sympy.Add, sympy.Mul, sympy.Pow, sympy.Function)):
        return expr
    args = [_assuming(arg, condition, holds, depth - 1) for arg in expr.args]
    return expr if builtins.all(map(operator.is_, args, expr.args)) else expr.func(*args)


def _choice(condition: Any, a: Any, b: Any) -> Any:
    condition = _as_condition(condition)
    if condition == sympy.true or a == b:
        return a
    if condition == sympy.false:
        return b
    if not isinstance(a, sympy.Expr):
        return sympy.ITE(condition, _as_condition(a), _as_condition(b))
    return sympy.Piecewise((_assuming(a, condition, True), condition), (_assuming(b, condition, False), True))


where = _each(_choice, 3)


def softmax(x: Any, dim: Any) -> Any:
    out = exp(x)
    return out / sum(out, dim, True)


def norm(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return sqrt(sum(square(_magnitude(x)), dim, keepdim))


def argmax(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    raise TypeError("argmax: the position of the largest element depends on the numbers, so it has no expression; use amax for the value")


def argmin(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    raise TypeError("argmin: the position of the smallest element depends on the numbers, so it has no expression; use amin for the value")
