"""Expressions function by function: evaluated in any carrier, and with the special functions in them kept.

SymPy writes some special functions as longer formulas, which become `Kept` functions again.

>>> a, x = sympy.symbols("a x", positive=True)
>>> keep(1 - sympy.uppergamma(a, 2 * x) / sympy.gamma(a))
1 - gammaincc(a, 2*x)
>>> keep(sympy.exp(-x))
exp(-x)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import sympy

from symgrad.algebra import stable_functions as stable
from symgrad.algebra.stable import stable_form_to_differentiate
from symgrad.algebra.values import value
from symgrad.carriers import numeric
from symgrad.carriers.special.table import SPECIAL
from symgrad.symbolic.catalogue import NAMED, known_formula, plan, special_call, special_formulas
from symgrad.symbolic.generating import DIVIDED, FUNCTIONS
from symgrad.symbolic.kept import Call, Kept, Unknown, is_kept, is_special, kept_function

COMBINED = {"add": sympy.Add, "mul": sympy.Mul}


def keep(expr: Any, elementary: bool = False) -> Any:
    """The expression with `Kept` functions; without one it is unchanged. With `elementary`, those with elementary formulas are among them."""
    if not elementary and not is_special(expr):
        return expr
    found = _Keeping(elementary).of(stable_form_to_differentiate(expr))
    return found if found.has(Kept) else expr


class _Keeping:
    """One pass over an expression from its root down."""

    def __init__(self, elementary: bool):
        self.elementary = elementary

    def accepted(self, name: str) -> bool:
        """Whether an op with a longer formula is kept."""
        return NAMED.get(name, (name,))[0] in SPECIAL if self.elementary else name in special_formulas()

    def of(self, e: Any) -> Any:
        """An expression of kept functions."""
        if not e.args or not self.elementary and not is_special(e):
            return e
        found = self.of_call(known_formula(e, self.accepted) or _planned(e))
        return e.func(*map(self.of, e.args)) if found is None else found

    def of_call(self, call: Any) -> Any:
        """The expression of a call of kept functions, None for another one, and for one with a parameter that no float equals."""
        if not isinstance(call, Call):
            return None
        if call.op in COMBINED:
            parts = [self.of_call(x) if isinstance(x, Call) else self.of(x) for x in call.args]
            return None if None in parts else COMBINED[call.op](*parts)
        op, parameters = NAMED.get(call.op, (call.op, ()))
        if op not in SPECIAL:
            return None
        values, given = call.args[:SPECIAL[op].arity], sympy.Tuple(*call.args[SPECIAL[op].arity:], *parameters)
        exact = all(x.is_Rational and x == sympy.Rational(float(x)) for x in given)
        return kept_function(op)(*map(self.of, values), *given) if exact and (self.elementary or is_kept(op, tuple(given))) else None


def _planned(e: Any) -> Any:
    try:
        return plan(e) if isinstance(e, sympy.Function) else None
    except Unknown:
        return None


NAMES: dict[Any, str] = {
    **{function: name for function, name in FUNCTIONS.items() if hasattr(numeric, name)},
    sympy.Eq: "eq", sympy.Ne: "ne", sympy.Lt: "lt", sympy.Le: "le", sympy.Gt: "gt", sympy.Ge: "ge", sympy.Not: "logical_not",
}
FOLDED: dict[Any, str] = {stable.larger: "maximum", stable.smaller: "minimum", sympy.Max: "maximum", sympy.Min: "minimum", sympy.And: "logical_and",
                          sympy.Or: "logical_or"}


def evaluate_expression(expr: Any, symbols: Sequence[Any], xp: Any, xs: Sequence[Any]) -> Any:
    """The value of an expression at values of a carrier; numbers among several arguments become arrays, so that only constants are numbers.

    >>> import sympy, numpy as np
    >>> from symgrad.carriers import numeric
    >>> x = sympy.Symbol("x")
    >>> evaluate_expression(x**2 + sympy.exp(x), [x], numeric, [np.array([0.0, 1.0])])
    array([1.        , 3.71828183])
    """
    like = next((x for x in xs if hasattr(x, "shape")), xs[0])
    known = {symbol: x if hasattr(x, "shape") else xp.ones_like(like) * x for symbol, x in zip(symbols, xs)}  # a product keeps -0.0

    def of(e: Any) -> Any:
        if e not in known:
            known[e] = _apply_function(xp, e, of, like)
        return known[e]

    return _broadcast(xp, of(expr), like)


def _number(e: Any) -> Any:
    return int(e) if e.is_Integer and abs(e) < 2**53 else float(value(e)([]))


def _apply_function(xp: Any, e: Any, of: Callable[[Any], Any], like: Any) -> Any:
    function, args = e.func, e.args
    if isinstance(e, sympy.Expr) and not e.free_symbols:
        return _number(e)
    if function is sympy.Add:
        return functools.reduce(lambda a, b: a + b, map(of, args))
    if function is sympy.Mul:
        below = [a.base ** -a.exp for a in args if isinstance(a, sympy.Pow) and a.exp.is_Rational and a.exp < 0]
        above = [a for a in args if not (isinstance(a, sympy.Pow) and a.exp.is_Rational and a.exp < 0)]
        top = functools.reduce(lambda a, b: a * b, map(of, above)) if above else 1
        return top / functools.reduce(lambda a, b: a * b, map(of, below)) if below else top
    if function is sympy.Pow:
        return _power(xp, args[0], args[1], of)
    if function is sympy.Piecewise:
        *pairs, (last, condition) = args
        out = of(last)
        for value_, held in reversed(pairs):
            chosen = of(held)
            out = xp.where(chosen, _broadcast(xp, of(value_), like), _broadcast(xp, out, like))
        return out
    if function is stable.step or function is sympy.Heaviside:
        u = of(args[0])
        return (1 + xp.sign(u)) / 2
    if function in DIVIDED:
        return 1 / getattr(xp, DIVIDED[function])(*map(of, args))
    if function in FOLDED:
        return functools.reduce(lambda a, b: getattr(xp, FOLDED[function])(a, b), map(of, args))
    if function in NAMES:
        return getattr(xp, NAMES[function])(*map(of, args))
    if function not in stable.DEFINITIONS and (call := special_call(e)) is not None:
        arity = SPECIAL[call.op].arity
        return getattr(xp, call.op)(*[_broadcast(xp, of(x), like) for x in call.args[:arity]], *call.args[arity:])
    return of(stable.DEFINITIONS[function](*args))


def _broadcast(xp: Any, x: Any, like: Any) -> Any:
    return x if hasattr(x, "shape") else xp.zeros_like(like) + x


def _power(xp: Any, base: Any, exponent: Any, of: Callable[[Any], Any]) -> Any:
    if exponent == sympy.S.Half:
        return xp.sqrt(of(base))
    if exponent.is_Rational and exponent < 0:
        return 1 / of(base**-exponent)
    if exponent == 2:
        return xp.square(of(base))
    return xp.pow(of(base), of(exponent)) if base.free_symbols else xp.exp(of(exponent) * _number(sympy.log(base)))
