"""SymPy functions for formulas whose elementary forms lose digits in floats; `elementary` expands them.

Each of them has one definition. Its derivatives are stable forms, too, and it can be evaluated with any number of digits.
`expm1`, `log1p` and `hypot` are those of `sympy.codegen.cfunctions`, which SymPy's printers support.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import mpmath
import sympy
from sympy.codegen.cfunctions import expm1, hypot, log1p

__all__ = ["DEFINITIONS", "StableFunction", "elementary", "expm1", "hypot", "larger", "log1mexp", "log1p", "log_cosh", "logaddexp",
           "partial", "sech_squared", "sigmoid", "smaller", "softplus", "step", "whole", "with_kinks"]


class StableFunction(sympy.Function):
    """A function with a `definition` by elementary functions, its `partials`, and perhaps its value `at_zero`.

    It may be `even`, or `positive` for real arguments.
    """

    definition: ClassVar[Callable[..., Any]]
    partials: ClassVar[tuple[Callable[..., Any], ...]]
    even: ClassVar[bool] = False
    positive: ClassVar[bool] = False
    at_zero: ClassVar[Any] = None

    def fdiff(self, argindex: int = 1) -> Any:
        """The partial derivative by one argument."""
        return type(self).partials[argindex - 1](*self.args)

    @classmethod
    def eval(cls, *args: Any) -> Any:
        """The value at 0 if it is known, and for an even function the function of the argument without its sign."""
        if cls.at_zero is not None and args[0].is_zero:
            return cls.at_zero
        return cls(-args[0]) if cls.even and args[0].could_extract_minus_sign() else None

    def _eval_is_positive(self) -> bool | None:
        return True if self.positive and self.args[0].is_real else None

    def _eval_is_extended_real(self) -> bool | None:
        return True if all(arg.is_extended_real for arg in self.args) else None

    def _eval_rewrite(self, rule: Any, args: Any, **hints: Any) -> Any:
        return type(self).definition(*self.args).rewrite(rule)

    def _eval_expand_func(self, **hints: Any) -> Any:
        return type(self).definition(*self.args)

    def _eval_mpmath(self) -> tuple[Callable[..., Any], Any]:
        return type(self).number, self.args

    @classmethod
    def number(cls, *xs: Any) -> Any:
        """The value at numbers of mpmath, at its working precision."""
        symbols = [sympy.Dummy() for _ in xs]
        with mpmath.extradps(15):
            out = sympy.lambdify(symbols, cls.definition(*symbols), "mpmath")(*xs)
        return +out


def _declared(name: str, doc: str, definition: Callable[..., Any], *partials: Callable[..., Any], number: Callable[..., Any], **facts: Any) -> Any:
    """A stable function with its definition, its partial derivatives, and its value at numbers of mpmath."""
    return type(name, (StableFunction,), {"__doc__": doc, "nargs": len(partials), "definition": staticmethod(definition), "partials": partials,
                                          "number": staticmethod(number), **facts})


def _number_of_log_cosh(u: Any) -> Any:
    """log1p(2 sinh²(u/2)) next to 0, and |u| + log1p(exp(-2|u|)) - log(2) elsewhere."""
    u = abs(u)
    return mpmath.log1p(2 * mpmath.sinh(u / 2) ** 2) if u < 1 else u + mpmath.log1p(mpmath.exp(-2 * u)) - mpmath.ln2


sech_squared: Any = _declared(
    "sech_squared", "1 / cosh(u)², the derivative of tanh.", lambda u: 1 / sympy.cosh(u) ** 2, lambda u: -2 * sech_squared(u) * sympy.tanh(u),
    number=lambda u: mpmath.sech(u) ** 2, even=True, positive=True, at_zero=sympy.S.One)
sigmoid: Any = _declared("sigmoid", "1 / (1 + exp(-u)).", lambda u: 1 / (1 + sympy.exp(-u)), lambda u: sigmoid(u) * sigmoid(-u),
                         number=lambda u: 1 / (1 + mpmath.exp(-u)), positive=True)
softplus = _declared("softplus", "log(1 + exp(u)).", lambda u: sympy.log(1 + sympy.exp(u)), lambda u: sigmoid(u),
                     number=lambda u: mpmath.log1p(mpmath.exp(u)), positive=True)
log1mexp = _declared("log1mexp", "log(1 - exp(u)) for u < 0.", lambda u: sympy.log(1 - sympy.exp(u)), lambda u: 1 / expm1(-u) * -1,
                     number=lambda u: mpmath.log1p(-mpmath.exp(u)) if u < -1 else mpmath.log(-mpmath.expm1(u)))
log_cosh = _declared("log_cosh", "log(cosh(u)), without overflow and with all digits next to 0.", lambda u: sympy.log(sympy.cosh(u)),
                     lambda u: sympy.tanh(u), number=_number_of_log_cosh, even=True)
logaddexp = _declared("logaddexp", "log(exp(u) + exp(v)).", lambda u, v: sympy.log(sympy.exp(u) + sympy.exp(v)),
                      lambda u, v: sigmoid(u - v), lambda u, v: sigmoid(v - u),
                      number=lambda u, v: max(u, v) + mpmath.log1p(mpmath.exp(-abs(u - v))))
larger = _declared("larger", "max(u, v), with the derivative shared at a tie.", sympy.Max, lambda u, v: step(u - v), lambda u, v: step(v - u),
                   number=lambda u, v: max(u, v))
smaller = _declared("smaller", "min(u, v), with the derivative shared at a tie.", sympy.Min, lambda u, v: step(v - u), lambda u, v: step(u - v),
                    number=lambda u, v: min(u, v))
step: Any = _declared("step", "0, 1/2 at 0, or 1: the derivative of a maximum; its own derivative is 0.",
                      lambda u: sympy.Heaviside(u, sympy.S.Half), lambda u: sympy.S.Zero,
                      number=lambda u: mpmath.mpf(0.5) if u == 0 else mpmath.mpf(u > 0))
whole = _declared("whole", "The largest integer not above u, with the derivative 0.", sympy.floor, lambda u: sympy.S.Zero, number=mpmath.floor)


def with_kinks(expr: Any) -> Any:
    """An expression whose derivatives at kinks follow symgrad's conventions: ties share the gradient, step functions have the derivative 0."""
    out = expr.replace(sympy.ceiling, lambda u: -whole(-u)).replace(sympy.floor, whole).replace(sympy.Mod, lambda a, b: a - b * whole(a / b))
    out = out.replace(sympy.Heaviside, lambda u, middle=sympy.S.Half: step(u) if middle == sympy.S.Half else sympy.Heaviside(u, middle))
    for kind, function in ((sympy.Max, larger), (sympy.Min, smaller)):
        out = out.replace(kind, lambda *args, function=function: functools.reduce(
            lambda b, a: function(a, b), sorted(args, key=sympy.default_sort_key)[::-1]))
    return out


def partial(expr: Any, symbol: Any) -> Any:
    """The derivative of an expression of real symbols, at kinks by symgrad's conventions."""
    return with_kinks(expr).diff(symbol).replace(sympy.DiracDelta, lambda *args: sympy.S.Zero)


DEFINITIONS: dict[Any, Callable[..., Any]] = {
    expm1: lambda u: sympy.exp(u) - 1, log1p: lambda u: sympy.log(1 + u), hypot: lambda u, v: sympy.sqrt(u**2 + v**2),
    **{function: function.definition for function in (sech_squared, sigmoid, softplus, log1mexp, log_cosh, logaddexp, larger, smaller, step, whole)}}


def elementary(expr: Any) -> Any:
    """An expression with every stable function replaced by its definition."""
    return _expand(sympy.sympify(expr), {})


def _expand(expr: Any, known: dict[Any, Any]) -> Any:
    if not expr.args or not expr.has(*DEFINITIONS):
        return expr
    if expr not in known:
        args = [_expand(arg, known) for arg in expr.args]
        known[expr] = DEFINITIONS.get(expr.func, expr.func)(*args)
    return known[expr]
