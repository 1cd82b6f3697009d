"""Ratios: quotients that are 0/0 at a point and smooth there, such as sin(u)/u, as functions in formulas of several variables.

A formula of one variable is computed by a series next to such a point. In a formula of several variables, such as x³/(exp(x/T) - 1), the quotient
is a function of one inner argument u = x/T. The formula becomes x² T · ratio(u) with ratio(u) = u/(exp(u) - 1); a ratio and its derivatives are
computed like formulas of one variable.

>>> import sympy
>>> x, T = sympy.symbols("x T", positive=True)
>>> with_ratios(x**3 / expm1(x / T))
T*x**2*over_expm1(x/T)
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy import Mul, Pow, atan, sin, sinh, tan, tanh

from symgrad.algebra.stable_functions import DEFINITIONS, StableFunction, expm1, log1p
from symgrad.algebra.stable_products import _powers

__all__ = ["Ratio", "VARIABLE", "with_ratios"]

VARIABLE = sympy.Symbol("u", real=True)
VANISHING = (sin, expm1, tan, sinh, tanh, atan, log1p)  # f(u) = u + ..., without another zero in its domain


def _formulas() -> tuple[Any, ...]:
    """f(u)/u and u/f(u) in turn for every f, in elementary functions."""
    out = []
    for f in VANISHING:
        form = DEFINITIONS.get(f, f)(VARIABLE)
        out += [form / VARIABLE, VARIABLE / form]
    return tuple(out)


FORMULAS = _formulas()


class Ratio(StableFunction):
    """A derivative of f(u)/u or u/f(u): the index in `FORMULAS`, the order, and the argument."""

    nargs = 3

    def fdiff(self, argindex: int = 3) -> Any:
        """The next derivative."""
        which, order, u = self.args
        return Ratio(which, order + 1, u) if argindex == 3 else sympy.S.Zero

    def _sympystr(self, printer: Any) -> str:
        which, order, u = self.args
        name = VANISHING[which // 2].__name__
        return f"{f'over_{name}' if which % 2 else f'{name}_over'}{chr(39) * int(order)}({printer.doprint(u)})"

    @staticmethod
    def definition(which: Any, order: Any, u: Any) -> Any:
        """The derivative in elementary functions."""
        return FORMULAS[which].diff(VARIABLE, order).xreplace({VARIABLE: u})


DEFINITIONS[Ratio] = Ratio.definition


def with_ratios(expr: Any) -> Any:
    """An expression with a `Ratio` for every factor f(u) next to a power of u, or of a factor of u."""
    return expr.replace(lambda e: isinstance(e, (Mul, Pow)), _with_ratio)


def _with_ratio(expr: Any) -> Any:
    powers = _powers(expr)
    for f, n in powers.items():
        if not (isinstance(f, VANISHING) and n.is_Integer):
            continue
        (u,) = f.args
        for w in [u, *Mul.make_args(u)]:
            m = powers.get(w, sympy.S.Zero)
            if w.is_number or not m.is_Integer or m * n >= 0:
                continue
            k = min(abs(m), abs(n))
            turn = 1 if n > 0 else -1
            which = 2 * VANISHING.index(f.func) + (0 if n > 0 else 1)
            rest = Mul(*[base**power for base, power in powers.items() if base not in (f, w)])
            return _with_ratio(rest * f ** (n - turn * k) * w**(m + turn * k) * (u / w) ** (turn * k)) * Ratio(which, 0, u) ** k
    return expr
