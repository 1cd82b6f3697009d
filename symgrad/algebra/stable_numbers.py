"""Evaluation of expressions with many digits: the reference for stable forms.

>>> import sympy
>>> x = sympy.Symbol("x")
>>> float(truth(1 - sympy.cos(x), [x])([1e-9]))
5e-19
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import sympy

from symgrad.algebra.stable_heads import DEFINITIONS, elementary, larger, smaller, whole

__all__ = ["FUNCTIONS", "KNOWN", "Unknown", "context", "truth", "value"]

context = mpmath.MPContext()
context.dps = 60
LARGE = 10**7  # powers beyond it have no meaningful digits
HUGE = 100_000  # bits before the point; more would fill the memory


class Unknown(TypeError):
    """A function without a rule."""


def _bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: function(context.sign(x) * context.inf if x and context.mag(x) > HUGE else x)


def _exponential(x: Any) -> Any:
    """e**x; a large integer is shifted by a half, since mpmath would multiply e with itself that often."""
    if context.isint(x) and context.mag(x) > 30:
        return context.exp(context.fadd(x, 0.5, exact=True)) / context.exp(0.5)
    return context.exp(x)


def _power(a: Any, b: Any) -> Any:
    if a == 0 and b < 0:
        return context.nan
    if abs(b) > LARGE:
        return context.nan
    return a**b


def _sign(x: Any) -> Any:
    return context.sign(x)


def _heaviside(x: Any, middle: Any = 0.5) -> Any:
    return middle if x == 0 else context.mpf(x > 0)


def _divided(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: 1 / function(x)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    sympy.Add: lambda *xs: context.fsum(xs), sympy.Mul: lambda *xs: context.fprod(xs), sympy.Pow: _power,
    sympy.exp: _bounded(_exponential), sympy.log: context.log,
    **{getattr(sympy, name): _bounded(getattr(context, name)) for name in "sin cos tan sinh cosh tanh sec csc cot sech csch coth atan asinh".split()},
    **{getattr(sympy, name): getattr(context, name) for name in "asin acos acosh atanh atan2 erf erfc".split()},
    sympy.Abs: lambda x: abs(x), sympy.sign: _sign, sympy.Heaviside: _heaviside, sympy.floor: context.floor, sympy.ceiling: context.ceil,
    sympy.Max: max, sympy.Min: min, larger: max, smaller: min, whole: context.floor, sympy.Mod: lambda a, b: a - b * context.floor(a / b),
    sympy.Eq: operator.eq, sympy.Ne: operator.ne, sympy.Lt: operator.lt, sympy.Le: operator.le, sympy.Gt: operator.gt, sympy.Ge: operator.ge,
    sympy.And: lambda *xs: all(xs), sympy.Or: lambda *xs: any(xs), sympy.Not: operator.not_, sympy.re: lambda x: context.re(x),
}
GROWING = (sympy.exp, sympy.sinh, sympy.cosh, sympy.tanh, sympy.sech, sympy.csch, sympy.coth, *DEFINITIONS)
KNOWN = frozenset(FUNCTIONS) | {sympy.Piecewise}


def _steps(expr: Any, places: dict[Any, int], steps: list[Any]) -> int:
    """Append an expression to a list of steps, each of which reads the slots of its arguments; return its slot."""
    if expr in places:
        return places[expr]
    if expr.is_Atom:
        if isinstance(expr, sympy.Symbol):
            raise Unknown(f"{expr} is not among the arguments")
        if expr in (sympy.true, sympy.false):
            step: Any = (lambda truth=bool(expr): truth), ()
        else:
            if not (expr.is_number and expr.is_finite and expr.is_real):
                raise Unknown(f"{expr} is no real number")
            step = (lambda: _constant(expr)), ()
    elif isinstance(expr, sympy.Piecewise):
        places_of = [_steps(part, places, steps) for pair in expr.args for part in pair.args]
        step = _chosen, tuple(places_of)
    elif isinstance(expr, sympy.functions.elementary.piecewise.ExprCondPair):
        raise Unknown("a pair of Piecewise by itself")
    elif expr.func not in FUNCTIONS:
        raise Unknown(f"{expr.func.__name__} is not a function that NumPy code can be generated for")
    else:
        step = FUNCTIONS[expr.func], tuple(_steps(arg, places, steps) for arg in expr.args)
    steps.append(step)
    places[expr] = len(places)
    return places[expr]


def _constant(expr: Any) -> Any:
    """A constant at the working precision."""
    return context.mpf(expr.p) / expr.q if expr.is_Rational else context.mpf(expr._mpf_ if expr.is_Float else expr._as_mpf_val(context.prec))


def _chosen(*parts: Any) -> Any:
    return next((value for value, condition in zip(parts[::2], parts[1::2]) if condition is True), context.nan)


def value(expr: Any, symbols: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
    """The function that evaluates an expression of symbols at the precision of `context`; NaN if it has no real value.

    Raises Unknown for a function without a rule.
    """
    places = {symbol: i for i, symbol in enumerate(symbols)}
    steps: list[Any] = []
    end = _steps(elementary(expr), places, steps)

    def evaluate(xs: Sequence[Any]) -> Any:
        values = [context.mpf(x) for x in xs]
        for function, args in steps:
            given = [values[i] for i in args]
            try:
                out = context.nan if any(v != v for v in given) and function is not _chosen else function(*given)
            except (ZeroDivisionError, ValueError, OverflowError):
                out = context.nan
            values.append(context.nan if isinstance(out, context.mpc) else out)
        return values[end]

    return evaluate


def truth(expr: Any, symbols: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
    """Like `value`, with enough digits for some of them to be right (25, unless more are requested); NaN if there is no value."""
    evaluate, grows = value(expr, symbols), expr.has(*GROWING)

    def at(xs: Sequence[Any], right: int = 25) -> Any:
        # Two evaluations with too few digits may agree and be wrong, where a very small or large number cancels.
        sizes = [abs(math.log10(abs(x))) for x in xs if x and abs(x) < math.inf]
        largest = max((abs(float(x)) for x in xs), default=0.0) if grows else 0.0
        before, digits, found = context.dps, right + 25 + int(6 * max(sizes, default=0) + min(largest, 2000.0)), None
        most, enough = max(8000, 4 * digits), context.mpf(10) ** -right
        try:
            while digits < most:
                context.dps = digits
                now = evaluate(xs)
                if now != now:
                    return now
                if found is not None and abs(now - found) <= abs(now) * enough:
                    return now
                if found is not None and digits > 4000 and abs(now) < context.mpf("1e-600"):
                    return context.zero
                found, digits = now, 2 * digits
            return context.nan
        finally:
            context.dps = before

    return at
