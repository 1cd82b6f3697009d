"""Means: quotients of several arguments that are 0/0 on a surface and smooth there, such as (f(x) - f(y)) / (x - y), as averages of a derivative.

Where N vanishes with its first n - 1 derivatives at x = r(y), by Taylor's theorem with the integral remainder

    N(x, y) / (x - r)ⁿ = ∫ (1 - t)ⁿ⁻¹ / (n - 1)! · ∂ⁿN/∂xⁿ(r + t (x - r), y) dt over 0 <= t <= 1,

which has no cancellation next to x = r, and whose derivatives are those of the integrand.

>>> import sympy
>>> x, y = sympy.symbols("x y", real=True)
>>> with_means((sympy.exp(x) - sympy.exp(y)) / (x - y))
mean of exp(t*(x - y) + y)

Source: N. J. Higham, Functions of Matrices, section B.16, for divided differences as integrals (Hermite and Genocchi).
"""

from __future__ import annotations

from typing import Any

import sympy

from symgrad.algebra.stable_functions import DEFINITIONS, StableFunction, elementary, partial

__all__ = ["Mean", "PARAMETER", "join_logarithms", "with_means"]

PARAMETER = sympy.Symbol("t", real=True)
_T = sympy.Dummy("t", real=True)
HIGHEST, LARGE = 3, 200  # the highest order of a zero, and the most operations of an expression whose quotients are examined


class Mean(StableFunction):
    """The average over t of `Lambda(t, integrand)`, which equals the quotient `closed`; `ends` is (x, r) for the surface x = r."""

    nargs = 3

    def _eval_derivative(self, s: Any) -> Any:
        closed, integrand, ends = self.args
        slope = partial(integrand.expr, s)
        return Mean(partial(closed, s), sympy.Lambda(integrand.variables, slope), ends) if slope != 0 else sympy.S.Zero

    def _eval_is_extended_real(self) -> bool | None:
        return self.args[0].is_extended_real

    def _eval_is_positive(self) -> bool | None:
        return True if self.args[1].expr.is_positive else None

    def _sympystr(self, printer: Any) -> str:
        integrand = self.args[1]
        return f"mean of {printer.doprint(integrand.expr.xreplace({integrand.variables[0]: PARAMETER}))}"

    @staticmethod
    def definition(closed: Any, integrand: Any, ends: Any) -> Any:
        """The quotient."""
        return closed


DEFINITIONS[Mean] = Mean.definition


def with_means(expr: Any) -> Any:
    """An expression with a `Mean` for every quotient that is 0/0 on the surface where its denominator is 0."""
    if sympy.count_ops(expr) > LARGE:
        return expr
    for form in (expr, sympy.together(expr)):
        out = form.replace(lambda e: isinstance(e, (sympy.Mul, sympy.Pow)), _with_mean)
        if out.has(Mean):
            return out
    return expr


def _with_mean(expr: Any) -> Any:
    if expr.has(Mean):
        return expr
    for factor in sympy.Mul.make_args(expr):
        base, power = factor.as_base_exp()
        if not (power.is_Integer and -HIGHEST <= power < 0) or len(base.free_symbols) < 2:
            continue
        rest, n = expr / factor, -int(power)
        for found in (_mean(rest, base, n, symbol, expr) for symbol in sorted(base.free_symbols, key=str)):
            if found is not None:
                return found
        inverse = _inverse_mean(rest, base, n)
        if inverse is not None:
            return inverse
    return expr


def _inverse_mean(above: Any, base: Any, n: int) -> Any:
    """(x - y)ⁿ / N(x, y)ⁿ as the inverse of a mean."""
    for factor in sympy.Mul.make_args(above):
        gap, power = factor.as_base_exp()
        if power.is_Integer and power >= n and len(gap.free_symbols) > 1:
            for symbol in sorted(gap.free_symbols, key=str):
                found = _mean(base, gap, 1, symbol, base / gap)
                if found is not None:
                    return above / gap**n / found**n
    return None


def join_logarithms(expr: Any) -> Any:
    """An expression with c log(a / b) for c log(a) - c log(b) of positive a and b, which cancel if a is close to b.

    >>> p, q = sympy.symbols("p q", positive=True)
    >>> join_logarithms(p * sympy.log(p) - p * sympy.log(q) + q)
    p*log(p/q) + q
    """
    def of_sum(e: Any) -> Any:
        for term in e.args:
            for f in (f for f in sympy.Mul.make_args(term) if isinstance(f, sympy.log) and f.args[0].is_positive):
                for other in e.args:
                    g = -other * f / term
                    if isinstance(g, sympy.log) and g.args[0].is_positive:
                        return of_sum(e - term - other + term / f * sympy.log(f.args[0] / g.args[0])) if e.is_Add else e
        return e

    return expr.replace(lambda e: e.is_Add, of_sum)


def _mean(above: Any, gap: Any, n: int, x: Any, closed: Any) -> Any:
    """above / gapⁿ as a mean over x, None if its singularity is not removable."""
    if not gap.is_polynomial(x) or sympy.degree(gap, x) != 1 or x not in above.free_symbols:
        return None
    slope = gap.diff(x)
    root = sympy.cancel(x - gap / slope)
    if not root.free_symbols or x in slope.free_symbols:
        return None
    derivative = elementary(above)
    for _ in range(n):
        at = derivative.xreplace({x: root})
        if at != 0 and sympy.expand(at) != 0 and sympy.simplify(at) != 0:
            return None
        derivative = partial(derivative, x)
    weight = (1 - _T) ** (n - 1) / sympy.factorial(n - 1)
    integrand = weight * derivative.xreplace({x: root + _T * (x - root)}) / slope**n
    return Mean(sympy.logcombine(closed), sympy.Lambda(_T, integrand), sympy.Tuple(x, root))
