"""Elementary functions with derivatives by SymPy: the factors of the oracle's chain rule.

An `ElementaryFunction` is one function of a few placeholders, such as p0*p1 or exp(p0). Its partial derivatives are
elementary functions again, computed by `sympy.diff`; its values are computed by mpmath. No rule of this library is used here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import mpmath
import sympy
from mpmath.libmp import MPZ

from symgrad.algebra.values import Real, Unknown
from symgrad.carriers.digits import TooLarge, Undefined
from symgrad.carriers.special.zeta_formula import zeta_derivative

STEPS = (sympy.floor, sympy.ceiling, sympy.frac, sympy.Mod)
HUGE = 100_000  # the largest binary exponent of a value; it is beyond all floats, and larger ones would need too much memory


class _Kink:
    """A flag: whether a function was evaluated at a kink since the flag was last read."""

    reached = False


@cache
def placeholder(i: int) -> sympy.Symbol:
    """The i-th argument of an elementary function."""
    return sympy.Symbol(f"p{i}", real=True)


def _noting_kink(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, x: Any, *more: Any) -> Any:
        _Kink.reached |= x == 0
        return function(x, *more)

    return call


class _Values(Real):
    """The values of an elementary function; an argument at a kink sets the flag."""

    table = Real.table | {sympy.Heaviside: _noting_kink(lambda x, at_zero=0.5: mpmath.mpf(at_zero if x == 0 else x > 0)),
                          sympy.DiracDelta: _noting_kink(lambda x, order=0: mpmath.mpf(0)), sympy.sign: _noting_kink(mpmath.sign)}


def evaluator(symbols: Sequence[sympy.Symbol], e: sympy.Expr) -> Callable[..., Any]:
    """An expression as a function of numbers, at the precision of `precise.working_precision`.

    The function raises Undefined outside the domain, at a pole, and if it cannot be evaluated.
    """
    function: Any = None

    def call(*xs: Any) -> Any:
        nonlocal function
        try:
            function = function or _Values(e, symbols, complex=True)
        except Unknown as error:
            raise Undefined(str(error)) from None
        out = function(*xs)
        if mpmath.isnan(out):
            raise Undefined(str(e))
        return mpmath.mp.make_mpf(out._mpf_)

    return call


class ElementaryFunction:
    """A function of placeholders: a call gives its value at the working precision, `partial(i)` its derivative by the i-th placeholder.

    A call raises Undefined outside the domain, at a pole and beyond any float.

    >>> product = elementary(placeholder(0) * placeholder(1))
    >>> product.partial(0).expr, float(product(mpmath.mpf(2), mpmath.mpf(3)))
    (p1, 6.0)
    """

    __slots__ = ("expr", "arity", "zero", "_call", "_partials")

    def __init__(self, expr: sympy.Expr, arity: int):
        self.expr, self.arity, self.zero = expr, arity, expr == 0
        self._call: Callable[..., Any] | None = None
        self._partials: list[ElementaryFunction | None] = [None] * arity

    def __call__(self, *xs: Any) -> Any:
        call = self._call
        if call is None:
            call = self._call = self._compile()
        out = call(*xs)
        _, mantissa, exponent, bits = out._mpf_
        if not mantissa and exponent or abs(exponent + bits) > HUGE:
            raise (TooLarge if mantissa and exponent > 0 else Undefined)(str(self.expr))
        return out

    def _compile(self) -> Callable[..., Any]:
        e, p = self.expr, [placeholder(i) for i in range(self.arity)]
        if e in p:
            i = p.index(e)
            return lambda *xs: xs[i]
        if e.is_number:
            return lambda *xs: number(e)
        if len(p) == 2 and e == p[0] * p[1]:
            return lambda a, b: a * b
        if e.has(sympy.Piecewise):
            raise NotImplementedError(f"{e} contains a Piecewise")
        return evaluator(p, e)

    def partial(self, i: int) -> ElementaryFunction:
        found = self._partials[i]
        if found is None:
            found = self._partials[i] = elementary(derivative(self.expr, placeholder(i)), self.arity)
        return found


def derivative(e: sympy.Expr, x: sympy.Symbol) -> sympy.Expr:
    """`sympy.diff`, with the derivative 0 for floor and ceiling, which SymPy leaves unevaluated, u'/u for log|u|, without a sign, and a
    name for the derivative of the zeta function by its first argument.

    Raises NotImplementedError for a function that SymPy cannot differentiate.

    >>> x = placeholder(0)
    >>> derivative(x * sympy.floor(x), x), derivative(sympy.Mod(x, 3), x)
    (floor(p0), 1)
    """
    held: dict[Any, Any] = {}
    if e.has(sympy.Abs):
        e = e.replace(lambda f: isinstance(f, sympy.log) and isinstance(f.args[0], sympy.Abs) and f.args[0].args[0].is_real,
                      lambda f: sympy.log(f.args[0].args[0] ** 2) / 2)
    if e.has(sympy.zeta):
        e = e.replace(sympy.zeta, lambda s, a=sympy.S.One: zeta_derivative(s, a, 0))
    if e.has(*STEPS):
        e = e.replace(lambda f: isinstance(f, sympy.Mod), lambda f: f.args[0] - f.args[1] * sympy.floor(f.args[0] / f.args[1]))
        e = e.replace(lambda f: isinstance(f, sympy.frac), lambda f: f.args[0] - sympy.floor(f.args[0]))
        held = {f: sympy.Dummy(real=True) for f in e.atoms(sympy.floor, sympy.ceiling)}
    out = sympy.diff(e.xreplace(held), x).xreplace({dummy: f for f, dummy in held.items()})
    if out.has(zeta_derivative):
        out = out.replace(zeta_derivative, zeta_derivative.of)
    if out.has(sympy.Derivative, sympy.Subs):
        raise NotImplementedError(f"SymPy has no derivative of {e}")
    return out


_functions: dict[tuple[sympy.Expr, int], ElementaryFunction] = {}


def elementary(expr: sympy.Expr, arity: int | None = None) -> ElementaryFunction:
    """The elementary function of an expression in placeholders, cached by the expression."""
    if arity is None:
        arity = 1 + max((int(s.name[1:]) for s in expr.free_symbols), default=-1)
    key = expr, arity
    if key not in _functions:
        _functions[key] = ElementaryFunction(expr, arity)
    return _functions[key]


def number(e: sympy.Expr) -> Any:
    """A SymPy number at the working precision."""
    if isinstance(e, sympy.Rational):
        return mpmath.mpf(MPZ(e.p)) / int(e.q)
    out: Any = evaluator([], e)()
    return out


def pop_kink_flag() -> bool:
    """Whether a function was evaluated at a kink since the last call; resets the flag."""
    reached, _Kink.reached = _Kink.reached, False
    return reached


def taylor_coefficients(function: ElementaryFunction, points: Sequence[Any], memo: dict[ElementaryFunction, Any], length: int,
                        evaluate: Callable[..., Any] = ElementaryFunction.__call__) -> list[Any]:
    """The Taylor coefficients of f(x1(t), ..., xn(t)), where each xi is given by its Taylor coefficients; None is a zero coefficient.

    d/dt f = Σ (∂f/∂xi)(x(t)) xi'(t), applied once for each coefficient. `evaluate(function, *xs)` computes a value.
    """
    value = memo.get(function)
    if value is None:
        value = memo[function] = evaluate(function, *[p[0] for p in points])
    if length == 1:
        return [value]
    rate: list[Any] = [None] * (length - 1)
    for i, p in enumerate(points):
        if len(p) == 1:
            continue
        derivative = function.partial(i)
        if derivative.zero:
            continue
        series = taylor_coefficients(derivative, points, memo, length - 1, evaluate)
        speed = p[1:] if length == 2 else [c if c is None else k * c for k, c in enumerate(p[1:], 1)]
        multiply_into(rate, series, speed)
    if all(r is None for r in rate):
        return [value]
    return [value, *(r if r is None or k == 1 else r / k for k, r in enumerate(rate, 1))]


def multiply_into(total: list[Any], a: Sequence[Any], b: Sequence[Any]) -> None:
    """Add the product of two truncated series to a third; None stands for a zero coefficient."""
    for i, x in enumerate(a):
        if x is None:
            continue
        for j in range(min(len(b), len(total) - i)):
            y = b[j]
            if y is not None:
                term = x * y
                old = total[i + j]
                total[i + j] = term if old is None else old + term
