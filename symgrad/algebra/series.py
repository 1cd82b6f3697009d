"""Laurent series of an expression at a point, with many-digit coefficients.

Formulas are evaluated by these series next to a removable singularity, and where terms cancel: sin(x)/x is 1 - x²/6 + x⁴/120 near 0.
Every function has a recurrence for its coefficients (Griewank and Walther, Evaluating Derivatives, 2nd edition, chapter 13).

>>> import sympy
>>> x = sympy.Symbol("x", real=True)
>>> [float(c) for c in expansion(sympy.sin(x) / x, x, 0, 4).coefficients]
[1.0, 0.0, -0.16666666666666666]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, ClassVar, NamedTuple

import sympy
from sympy.logic.boolalg import BooleanAtom

from symgrad.algebra.evaluating import STEPS, Evaluator
from symgrad.algebra.functions import DEFINED, HOLDS
from symgrad.algebra.stable_functions import elementary, larger, smaller, whole
from symgrad.algebra.values import value
from symgrad.carriers.digits import context, working_precision

DIGITS = 100
SMALL = context.mpf(10) ** -70  # the size, relative to its terms, below which a coefficient is zero


class NotAnalytic(ValueError):
    """The error for an expression without a Laurent series at a point: a kink, a branch point, an essential singularity."""


class Laurent(NamedTuple):
    """Σ coefficients[i] (x - p)^(valuation + i), truncated; the first coefficient is not 0, unless there is none."""

    valuation: int
    coefficients: list[Any]


def _without_zeros(valuation: int, coefficients: Sequence[Any], scale: Sequence[Any]) -> Laurent:
    """A series without leading coefficients that are zero relative to their terms."""
    start = next((i for i, (c, s) in enumerate(zip(coefficients, scale)) if abs(c) > SMALL * s), len(coefficients))
    row = [c if abs(c) > SMALL * s else context.zero for c, s in zip(coefficients, scale)]
    return Laurent(valuation + start, row[start:])


def _add(a: Laurent, b: Laurent) -> Laurent:
    low, high = min(a.valuation, b.valuation), min(a.valuation + len(a.coefficients), b.valuation + len(b.coefficients))
    rows = [([context.zero] * (s.valuation - low) + s.coefficients)[:high - low] for s in (a, b)]
    return _without_zeros(low, [x + y for x, y in zip(*rows)], [abs(x) + abs(y) for x, y in zip(*rows)])


def _multiply(a: Laurent, b: Laurent) -> Laurent:
    count = min(len(a.coefficients), len(b.coefficients))
    row, scale = [], []
    for n in range(count):
        terms = [a.coefficients[k] * b.coefficients[n - k] for k in range(n + 1)]
        row.append(context.fsum(terms))
        scale.append(context.fsum(terms, absolute=True))
    return _without_zeros(a.valuation + b.valuation, row, scale)


def _power(a: Laurent, exponent: Any) -> Laurent:
    """aᵉ by the equation a b' = e a' b."""
    valuation = a.valuation * exponent
    if not a.coefficients:
        raise NotAnalytic("a power of zero")
    if not valuation.is_Integer or not exponent.is_Integer and a.coefficients[0] < 0:
        raise NotAnalytic("a branch point")
    e, first = context.mpf(exponent.p) / exponent.q, a.coefficients[0]
    row = [first**e]
    scale = [abs(row[0])]
    for n in range(1, len(a.coefficients)):
        terms = [(k * e - (n - k)) * a.coefficients[k] * row[n - k] for k in range(1, n + 1)]
        scale.append(context.fsum(terms, absolute=True) / abs(n * first))
        c = context.fsum(terms) / (n * first)
        row.append(c if abs(c) > SMALL * scale[-1] else context.zero)
    return _without_zeros(int(valuation), row, scale)


def _plain(a: Laurent) -> list[Any]:
    """The coefficients from that of (x - p)⁰ on."""
    if a.valuation < 0:
        raise NotAnalytic("a function of an infinite argument")
    return [context.zero] * a.valuation + a.coefficients


def _taylor(row: Sequence[Any]) -> Laurent:
    return _without_zeros(0, row, [max(abs(c), context.mpf(10) ** -20) for c in row])


def _exp(a: Laurent, unit: Any = 1) -> Laurent:
    """exp(a), or exp(i a) for the `unit` i."""
    row = [unit * c for c in _plain(a)]
    out = [context.exp(row[0])] if row else []
    for n in range(1, len(row)):
        out.append(context.fsum(k * row[k] * out[n - k] for k in range(1, n + 1)) / n)
    return _taylor(out)


def _wave(part: str) -> Callable[[Laurent], Laurent]:
    """The real or the imaginary part of exp(i a), cos(a) or sin(a)."""
    return lambda a: _taylor([getattr(c, part) for c in _plain(_exp(a, context.j))])


def _integral(function: Callable[[Any], Any], slope: Callable[[Laurent], Laurent]) -> Callable[[Laurent], Laurent]:
    """f(u) with f(u)' = u' slope(u)."""
    def series(a: Laurent) -> Laurent:
        row = _plain(a)
        if not row or function is context.log and row[0] <= 0:
            raise NotAnalytic("the logarithm of a number that is not positive")
        rate = _plain(_multiply(Laurent(0, [k * c for k, c in enumerate(row)][1:]), slope(a)))
        return _taylor([function(row[0])] + [c / (k + 1) for k, c in enumerate(rate)])

    return series


def _number(x: Any, count: int) -> Laurent:
    return _without_zeros(0, [context.mpf(x)] + [context.zero] * (count - 1), [context.one] * count)


def _one_plus_square(a: Laurent, sign: int, exponent: Any) -> Laurent:
    square = _multiply(a, a)
    return _power(_add(_number(1, len(a.coefficients) + a.valuation), Laurent(square.valuation, [sign * c for c in square.coefficients])), exponent)


def _sides(a: Laurent) -> tuple[int, int]:
    """The signs on the left and on the right of the point."""
    if not a.coefficients:
        return 0, 0
    right = 1 if a.coefficients[0] > 0 else -1
    return right * (-1) ** (a.valuation % 2), right


def _sign(a: Laurent) -> int:
    left, right = _sides(a)
    if left != right or a.valuation > 0:
        raise NotAnalytic("a kink")
    return right


def _extreme(larger: int) -> Callable[..., Laurent]:
    def step(count: int, *xs: Laurent) -> Laurent:
        return reduce(lambda out, x: out if larger * _sign(_add(out, _multiply(x, _number(-1, count)))) >= 0 else x, xs)
    return step


def _floor(count: int, x: Laurent) -> Laurent:
    if not x.coefficients or context.isint(_plain(x)[0]):
        raise NotAnalytic("a jump")
    return _number(context.floor(_plain(x)[0]), count)


def _relation(kind: Any) -> Callable[..., bool]:
    """Whether a relation holds on both sides of the point."""
    def step(count: int, x: Laurent, y: Laurent) -> bool:
        left, right = [side in HOLDS[kind] for side in _sides(_add(x, _multiply(y, _number(-1, count))))]
        if left != right:
            raise NotAnalytic("a kink")
        return left
    return step


MINUS, HALF = sympy.S.NegativeOne, sympy.Rational(-1, 2)
_log = _integral(context.log, lambda a: _power(a, MINUS))
FUNCTIONS: dict[Any, Callable[[Laurent], Laurent]] = {
    sympy.exp: _exp, sympy.sin: _wave("imag"), sympy.cos: _wave("real"), sympy.log: _log,
    sympy.atan: _integral(context.atan, lambda a: _one_plus_square(a, 1, MINUS)),
    sympy.atanh: _integral(context.atanh, lambda a: _one_plus_square(a, -1, MINUS)),
    sympy.asinh: _integral(context.asinh, lambda a: _one_plus_square(a, 1, HALF)),
    sympy.asin: _integral(context.asin, lambda a: _one_plus_square(a, -1, HALF)),
}


class _Series(Evaluator):
    """An expression as a series."""

    table: ClassVar[dict[Any, Callable[..., Any]]] = {
        sympy.Add: lambda a, *xs: reduce(_add, xs), sympy.Mul: lambda a, *xs: reduce(_multiply, xs),
        sympy.Abs: lambda count, x: _multiply(x, _number(_sign(x), count)), sympy.sign: lambda count, x: _number(_sign(x), count),
        sympy.Heaviside: lambda count, x, *at_zero: _number(_sign(x) > 0, count), sympy.floor: _floor, whole: _floor,
        **dict.fromkeys((sympy.Max, larger), _extreme(1)), **dict.fromkeys((sympy.Min, smaller), _extreme(-1)),
        **{kind: _relation(kind) for kind in HOLDS}, **{kind: STEPS[kind] for kind in (sympy.And, sympy.Or, sympy.Not, sympy.ITE)},
        **{kind: (lambda a, x, f=f: f(x)) for kind, f in FUNCTIONS.items()}}

    def _step(self, e: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if isinstance(e, sympy.Expr) and not e.free_symbols:
            number = value(e)([])
            return (lambda count: _number(number, count)), ()
        if e.is_Pow and not e.exp.free_symbols:
            if not e.exp.is_Rational:
                raise NotAnalytic("a power with an irrational exponent")
            return (lambda a, x: _power(x, e.exp)), (e.base,)
        if e.is_Pow:
            return (lambda a, x, y: _exp(_multiply(y, _log(x)))), e.args
        if type(e) in DEFINED and type(e) not in self.table:
            return (lambda a, x: x), (DEFINED[type(e)](*e.args),)
        if not isinstance(e, (*self.table, sympy.Piecewise, BooleanAtom)):
            raise NotAnalytic(f"{type(e).__name__} has no series here")
        return super()._step(e)


def expansion(expr: Any, symbol: Any, point: Any, count: int = 40) -> Laurent:
    """The Laurent series of an expression of one symbol at a point, with about `count` coefficients.

    Raises NotAnalytic if it has none, and `symgrad.algebra.values.Unknown` for a function without a rule.
    """
    with working_precision(DIGITS):
        start = _without_zeros(0, [value(point)([]), context.one] + [context.zero] * (count - 2), [context.one] * count)
        (found,) = _Series([elementary(expr)], [symbol]).at([start], count)
    if isinstance(found, ArithmeticError):
        raise NotAnalytic(str(found) or "no value here")
    return found
