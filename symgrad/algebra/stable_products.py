"""Products and quotients in stable forms: those of exponentials and hyperbolic functions, ratios, and means.

Ratios are quotients that are 0/0 at a point and smooth there, such as sin(u)/u, as functions in formulas of several variables: x³/(exp(x/T) - 1) is
x² T · ratio(u) with ratio(u) = u/(exp(u) - 1) and u = x/T. A ratio and its derivatives are computed like formulas of one variable, by a series.
Means are quotients of several arguments that are 0/0 on a surface and smooth there, such as (f(x) - f(y)) / (x - y), as averages of a derivative.
Where N vanishes with its first n - 1 derivatives at x = r(y), by Taylor's theorem with the integral remainder

    N(x, y) / (x - r)ⁿ = ∫ (1 - t)ⁿ⁻¹ / (n - 1)! · ∂ⁿN/∂xⁿ(r + t (x - r), y) dt over 0 <= t <= 1,

which has no cancellation next to x = r, and whose derivatives are those of the integrand.

Source: N. J. Higham, Functions of Matrices, section B.16, for divided differences as integrals (Hermite and Genocchi).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy
from sympy import Add, Mul, Pow, atan, cosh, exp, sech, sign, sin, sinh, tan, tanh

from symgrad.algebra.stable_functions import DEFINITIONS, StableFunction, elementary, expm1, log1p, partial, sech_squared, sigmoid

ONE = sympy.S.One


def _powers(expr: Any) -> dict[Any, Any]:
    """The factors of a product by base, with their exponents."""
    out: dict[Any, Any] = {}
    for f in Mul.make_args(expr):
        base, power = (f, ONE) if isinstance(f, exp) else f.as_base_exp()
        out[base] = out.get(base, 0) + power
    return out


def _product(powers: dict[Any, Any]) -> Any:
    return Mul(*[base**power for base, power in powers.items()])


def of_pairs(rule: Callable[[Any, Any], tuple[Any, str] | None], *kinds: Any,
             partners: Callable[[Any], Sequence[Any]] | None = None) -> Callable[[Any], tuple[Any, str] | None]:
    """The rule for a sum that replaces c f - c g for the first f of some kinds and the first g for whose difference a rule has a form.

    `partners(f)` are the possible functions g, if these are known.
    """
    def of_sum(expr: Any) -> tuple[Any, str] | None:
        terms = set(expr.args)
        for term in expr.args:
            factors = Mul.make_args(term)
            for i, f in enumerate(factors):
                if not isinstance(f, kinds) or f.is_Pow and f.exp.is_Integer and not (f.exp == 2 and isinstance(f.base, sympy.Function)):
                    continue
                c = Mul(*factors[:i], *factors[i + 1:])
                for other in expr.args if partners is None else [-c * g for g in partners(f) if -c * g in terms]:
                    better = rule(f, -other / c) if other != term else None
                    if better is not None:
                        return Add(*(x for x in expr.args if x not in (term, other)), c * better[0]), better[1]
        return None

    return of_sum


def by_exponential(expr: Any) -> tuple[Any, str] | None:
    """exp(-k u) sigmoid(u)ⁿ as sigmoid(-u)ᵏ sigmoid(u)ⁿ⁻ᵏ, and similarly for 1 / expm1(u)ⁿ and 1 / (exp(a) + exp(b))ⁿ."""
    powers = _powers(expr)
    for e in [base for base in powers if isinstance(base, exp) and powers[base].is_Integer]:
        v = e.args[0] * powers[e]
        for base, n in powers.items():
            if not n.is_Integer:
                continue
            if isinstance(base, sigmoid) and n > 0:
                k, (u,) = -v / base.args[0], base.args
                name, turn, turned = "sigmoid", 1, sigmoid(-u) if not u.is_zero else ONE
            elif isinstance(base, expm1) and n < 0:
                k, (u,) = v / base.args[0], base.args
                name, turn, turned = "expm1", -1, 1 / expm1(-u)
            else:
                continue
            if not k.is_Integer or k < 1:
                continue
            k, total = min(k, abs(n)), k
            rest = {b: p for b, p in powers.items() if b not in (e, base)}
            left = exp(v * (1 - k / total)) if total != k else ONE
            return _product(rest) * left * turn**k * turned**k * base ** (n - k * (1 if n > 0 else -1)), name
        for base, n in powers.items():
            if isinstance(base, Add) and n.is_Integer and n < 0 and len(base.args) == 2 and all(isinstance(t, exp) for t in base.args):
                for t, s in (base.args, base.args[::-1]):
                    if v == t.args[0]:
                        rest = {b: p for b, p in powers.items() if b not in (e, base)}
                        return _product(rest) * sigmoid(t.args[0] - s.args[0]) * base ** (n + 1), "sigmoid"
    return None


def hyperbolic(expr: Any) -> tuple[Any, str] | None:
    """sinh(u) / cosh(u) as tanh(u), also in a denominator, and the remaining 1 / cosh(u) as sech(u) or sech_squared(u)."""
    powers = _powers(expr)
    for u in dict.fromkeys(base.args[0] for base in powers if isinstance(base, (cosh, sech, sech_squared))):
        below = {base: p for base, p in powers.items() if isinstance(base, (cosh, sech, sech_squared)) and base.args[0] == u}
        total = sum(p * {cosh: -1, sech: 1, sech_squared: 2}[base.func] for base, p in below.items())
        above = powers.get(sinh(u), sympy.S.Zero)
        if not (total.is_Integer and above.is_Integer):
            continue
        k = sympy.sign(total) * min(abs(total), abs(above)) if total * above > 0 else sympy.S.Zero
        if not k and (len(below) == 1 and (total < 0 or next(iter(below.items())) in ((sech(u), 1), (sech_squared(u), total / 2)))):
            continue
        rest = {base: p for base, p in powers.items() if base not in below and base != sinh(u)}
        total -= k
        left = cosh(u) ** -total if total < 0 else sech_squared(u) ** (total // 2) * sech(u) ** (total % 2)
        return _product(rest) * tanh(u) ** k * sinh(u) ** (above - k) * left, "tanh" if k else "sech_squared" if total > 1 else "sech"
    return None


def magnitudes(expr: Any) -> tuple[Any, str] | None:
    """u sign(u) as |u|."""
    powers = _powers(expr)
    for s in [base for base in powers if isinstance(base, sign)]:
        (u,) = s.args
        if powers[s] == 1 and u in powers and powers[u].is_Integer and powers[u] >= 1:
            rest = {base: p for base, p in powers.items() if base not in (s, u)}
            return _product(rest) * sympy.Abs(u) * u ** (powers[u] - 1), "magnitude"
    return None


VARIABLE = sympy.Symbol("u", real=True)
VANISHING = (sin, expm1, tan, sinh, tanh, atan, log1p)  # f(u) = u + ..., without another zero in its domain


# f(u)/u and u/f(u) in turn for every f, in elementary functions.
FORMULAS = tuple(form for f in VANISHING for g in [DEFINITIONS.get(f, f)(VARIABLE)] for form in (g / VARIABLE, VARIABLE / g))


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
        found = next(filter(None, (_mean(rest, base, n, symbol, expr) for symbol in sorted(base.free_symbols, key=str))), None)
        found = found or _inverse_mean(rest, base, n)
        if found is not None:
            return found
    return expr


def _inverse_mean(above: Any, base: Any, n: int) -> Any:
    """(x - y)ⁿ / N(x, y)ⁿ as the inverse of a mean."""
    for factor in sympy.Mul.make_args(above):
        gap, power = factor.as_base_exp()
        if power.is_Integer and power >= n and len(gap.free_symbols) > 1:
            found = next(filter(None, (_mean(base, gap, 1, symbol, base / gap) for symbol in sorted(gap.free_symbols, key=str))), None)
            if found is not None:
                return above / gap**n / found**n
    return None


def join_logarithms(expr: Any) -> Any:
    """An expression with c log(a / b) for c log(a) - c log(b) of positive a and b, which cancel if a is close to b.

    >>> p, q = sympy.symbols("p q", positive=True)
    >>> join_logarithms(p * sympy.log(p) - p * sympy.log(q) + q)
    p*log(p/q) + q
    """
    def joined(f: Any, g: Any) -> tuple[Any, str] | None:
        logarithms = isinstance(f, sympy.log) and isinstance(g, sympy.log) and f.args[0].is_positive and g.args[0].is_positive
        return (sympy.log(f.args[0] / g.args[0]), "") if logarithms else None

    def of_sum(e: Any) -> Any:
        found = of_pairs(joined, sympy.log)(e) if e.is_Add else None
        return e if found is None else of_sum(found[0])

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
