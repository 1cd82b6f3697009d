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
from typing import Any, NamedTuple

import sympy

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


def _exp(a: Laurent) -> Laurent:
    row = _plain(a)
    out = [context.exp(row[0])] if row else []
    for n in range(1, len(row)):
        out.append(context.fsum(k * row[k] * out[n - k] for k in range(1, n + 1)) / n)
    return _taylor(out)


def _log(a: Laurent) -> Laurent:
    row = _plain(a)
    if a.valuation or not row or row[0] <= 0:
        raise NotAnalytic("the logarithm of a number that is not positive")
    out = [context.log(row[0])]
    for n in range(1, len(row)):
        out.append((row[n] - context.fsum(k * out[k] * row[n - k] for k in range(1, n)) / n) / row[0])
    return _taylor(out)


def _waves(sign: int, first: Callable[..., Any], second: Callable[..., Any]) -> Callable[[Laurent], tuple[Laurent, Laurent]]:
    """sin and cos (sign -1), or sinh and cosh (sign 1), together."""
    def series(a: Laurent) -> tuple[Laurent, Laurent]:
        row = _plain(a)
        s, c = [first(row[0])], [second(row[0])]
        for n in range(1, len(row)):
            s.append(context.fsum(k * row[k] * c[n - k] for k in range(1, n + 1)) / n)
            c.append(sign * context.fsum(k * row[k] * s[n - k] for k in range(1, n + 1)) / n)
        return _taylor(s), _taylor(c)

    return series


_circular, _hyperbolic = _waves(-1, context.sin, context.cos), _waves(1, context.sinh, context.cosh)
MINUS = sympy.S.NegativeOne


def _integral(function: Callable[[Any], Any], slope: Callable[[Laurent], Laurent]) -> Callable[[Laurent], Laurent]:
    """f(u) with f(u)' = u' slope(u)."""
    def series(a: Laurent) -> Laurent:
        row = _plain(a)
        rate = _plain(_multiply(Laurent(0, [k * c for k, c in enumerate(row)][1:]), slope(a)))
        return _taylor([function(row[0])] + [c / (k + 1) for k, c in enumerate(rate)])

    return series


def _number(x: Any, count: int) -> Laurent:
    return Laurent(0, [context.mpf(x)] + [context.zero] * (count - 1))


def _one_plus_square(a: Laurent, sign: int, exponent: Any) -> Laurent:
    square = _multiply(a, a)
    return _power(_add(_number(1, len(a.coefficients) + a.valuation), Laurent(square.valuation, [sign * c for c in square.coefficients])), exponent)


_half = sympy.Rational(-1, 2)
FUNCTIONS: dict[Any, Callable[[Laurent], Laurent]] = {
    sympy.exp: _exp, sympy.log: _log,
    sympy.sin: lambda a: _circular(a)[0], sympy.cos: lambda a: _circular(a)[1],
    sympy.sinh: lambda a: _hyperbolic(a)[0], sympy.cosh: lambda a: _hyperbolic(a)[1],
    sympy.tan: lambda a: _quotient(*_circular(a)), sympy.tanh: lambda a: _quotient(*_hyperbolic(a)),
    sympy.sech: lambda a: _power(_hyperbolic(a)[1], MINUS), sympy.csch: lambda a: _power(_hyperbolic(a)[0], MINUS),
    sympy.sec: lambda a: _power(_circular(a)[1], MINUS), sympy.csc: lambda a: _power(_circular(a)[0], MINUS),
    sympy.cot: lambda a: _quotient(*_circular(a)[::-1]), sympy.coth: lambda a: _quotient(*_hyperbolic(a)[::-1]),
    sympy.atan: _integral(context.atan, lambda a: _one_plus_square(a, 1, MINUS)),
    sympy.atanh: _integral(context.atanh, lambda a: _one_plus_square(a, -1, MINUS)),
    sympy.asinh: _integral(context.asinh, lambda a: _one_plus_square(a, 1, _half)),
    sympy.asin: _integral(context.asin, lambda a: _one_plus_square(a, -1, _half)),
    sympy.acos: _integral(context.acos, lambda a: Laurent((s := _one_plus_square(a, -1, _half)).valuation, [-c for c in s.coefficients])),
}


def _quotient(a: Laurent, b: Laurent) -> Laurent:
    return _multiply(a, _power(b, MINUS))


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


RELATIONS = {sympy.Eq: (0,), sympy.Ne: (-1, 1), sympy.Lt: (-1,), sympy.Le: (-1, 0), sympy.Gt: (1,), sympy.Ge: (0, 1)}


class _Expansion:
    def __init__(self, symbol: Any, point: Any, count: int):
        self.symbol, self.count = symbol, count
        self.known: dict[Any, Laurent] = {symbol: _without_zeros(0, [point, context.one] + [context.zero] * (count - 2), [context.one] * count)}

    def of(self, expr: Any) -> Laurent:
        if expr not in self.known:
            self.known[expr] = self.number(expr) if self.symbol not in expr.free_symbols else self.series_of(expr)
        return self.known[expr]

    def number(self, expr: Any) -> Laurent:
        number = value(expr)([])
        return _without_zeros(0, [number] + [context.zero] * (self.count - 1), [context.one] * self.count)

    def series_of(self, expr: Any) -> Laurent:
        function, args = expr.func, expr.args
        if function is sympy.Piecewise:
            return next(self.of(e) for e, condition in args if self.holds(condition))
        if function is sympy.Pow and self.symbol in args[1].free_symbols:
            return _exp(_multiply(args[1] and self.of(args[1]), _log(self.of(args[0]))))
        if function is sympy.Pow:
            if not args[1].is_Rational:
                raise NotAnalytic("a power with an irrational exponent")
            return _power(self.of(args[0]), args[1])
        parts = [self.of(arg) for arg in args]
        if function in (sympy.Add, sympy.Mul):
            out = parts[0]
            for part in parts[1:]:
                out = (_add if function is sympy.Add else _multiply)(out, part)
            return out
        if function in FUNCTIONS:
            return FUNCTIONS[function](parts[0])
        if function is sympy.Abs:
            return _multiply(parts[0], _number(_sign(parts[0]), self.count))
        if function is sympy.sign:
            return _number(_sign(parts[0]), self.count)
        if function is sympy.Heaviside:
            return _without_zeros(0, [context.mpf(_sign(parts[0]) > 0)] + [context.zero] * (self.count - 1), [context.one] * self.count)
        if function in (sympy.Max, sympy.Min, larger, smaller):
            out = parts[0]
            for part in parts[1:]:
                above = _sign(_add(out, _multiply(part, _number(-1, self.count)))) >= 0
                out = out if above == (function in (sympy.Max, larger)) else part
            return out
        if function in (whole, sympy.floor) and parts[0].valuation >= 0 and parts[0].coefficients and not context.isint(_plain(parts[0])[0]):
            return _number(context.floor(_plain(parts[0])[0]), self.count)
        raise NotAnalytic(f"{function} has no series here")

    def holds(self, condition: Any) -> bool:
        """Whether a condition holds on both sides of the point."""
        if condition in (sympy.true, sympy.false):
            return bool(condition)
        if isinstance(condition, (sympy.And, sympy.Or)):
            parts = [self.holds(c) for c in condition.args]
            return all(parts) if isinstance(condition, sympy.And) else any(parts)
        if isinstance(condition, sympy.Not):
            return not self.holds(condition.args[0])
        if isinstance(condition, sympy.ITE):
            choice, yes, no = condition.args
            return self.holds(yes if self.holds(choice) else no)
        difference = self.of(condition.lhs - condition.rhs)
        left, right = [s in RELATIONS[condition.func] for s in _sides(difference)]
        if left != right:
            raise NotAnalytic("a kink")
        return left


def expansion(expr: Any, symbol: Any, point: Any, count: int = 40) -> Laurent:
    """The Laurent series of an expression of one symbol at a point, with about `count` coefficients.

    Raises NotAnalytic if it has none, and `symgrad.algebra.values.Unknown` for a function without a rule.
    """
    try:
        with working_precision(DIGITS):
            return _Expansion(symbol, value(point)([]), count).of(elementary(expr))
    except (ZeroDivisionError, StopIteration, IndexError) as error:
        raise NotAnalytic(str(error) or "no value here") from None
