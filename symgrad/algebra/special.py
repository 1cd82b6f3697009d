"""Rules for the normal forms of gamma, erf and related functions, by their functional equations."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import factorial
from typing import Any

import sympy

from symgrad.algebra.normal import Normal, rule
from symgrad.algebra.polynomials import ONE, TooLarge, constant
from symgrad.algebra.tower import Frac

SHIFTS = 40  # the largest number of steps of a recurrence


def _shift(u: Frac) -> tuple[int, Frac]:
    """A fraction as an integer plus a rest whose constant term is in [0, 1)."""
    if u.den:
        return 0, u
    c = Fraction(u.num.get(ONE, 0))
    n = c.__floor__()
    if abs(n) > SHIFTS:
        raise TooLarge
    rest = {m: d for m, d in u.num.items() if m != ONE}
    return n, Frac(rest | constant(c - n))


def _plus(forms: Normal, u: Frac, k: Any) -> Frac:
    return forms.sum([u, forms.number(k)])


def _gamma(forms: Normal, u: Frac) -> Frac:
    """Γ(v + n) = v (v+1) ... (v+n-1) Γ(v); Γ(v) Γ(1-v) = π / sin(πv); Γ(2v) = 2^(2v-1) Γ(v) Γ(v+1/2) / sqrt(π)."""
    n, v = _shift(u)
    if not v.den and set(v.num) <= {ONE}:
        number = v.num.get(ONE, 0)
        if number == 0:
            if n <= 0:
                raise ZeroDivisionError
            return forms.of(sympy.gamma(n))
        if number == Fraction(1, 2):
            base = forms.term(forms.pi, Fraction(1, 2))
            return forms.product([base, *_rising(forms, v, n)])
    if not v.den and len(v.num) > len(set(v.num) & {ONE}) and all(Fraction(c).denominator == 1 and c % 2 == 0 for m, c in v.num.items() if m != ONE):
        half = forms.product([v, forms.number(Fraction(1, 2))])
        power = forms.exp(forms.product([_plus(forms, v, -1), forms.log(forms.number(2))]))
        doubled = [power, _gamma(forms, half), _gamma(forms, _plus(forms, half, Fraction(1, 2))), forms.term(forms.pi, Fraction(-1, 2))]
        return forms.product([*doubled, *_rising(forms, v, n)])
    for g in forms.applied.get("gamma", ()):
        total = forms.sum([v, forms.generators[g].arguments[0]])
        if not total.den and set(total.num) <= {ONE} and Fraction(total.num.get(ONE, 0)).denominator == 1:
            reflected = forms.of(sympy.pi / sympy.sin(sympy.pi * forms.to_sympy(v)))
            return forms.product([reflected, forms.inverse(_gamma(forms, _plus(forms, forms.minus(v), 1))), *_rising(forms, v, n)]) \
                if not forms.same(v, forms.generators[g].arguments[0]) else forms.product([forms.term(g), *_rising(forms, v, n)])
    return forms.product([forms.opaque("gamma", sympy.gamma(forms.to_sympy(v)), [v]), *_rising(forms, v, n)])


def _rising(forms: Normal, v: Frac, n: int) -> list[Frac]:
    """Γ(v+n) / Γ(v) in factors."""
    if n >= 0:
        return [_plus(forms, v, k) for k in range(n)]
    return [forms.inverse(_plus(forms, v, -k)) for k in range(1, -n + 1)]


@rule(sympy.binomial)
def _binomial(forms: Normal, e: Any, n: Frac, k: Frac) -> Frac:
    below = [_gamma(forms, _plus(forms, k, 1)), _gamma(forms, _plus(forms, forms.sum([n, forms.minus(k)]), 1))]
    return forms.product([_gamma(forms, _plus(forms, n, 1)), *map(forms.inverse, below)])


@rule(sympy.FallingFactorial)
def _falling_factorial(forms: Normal, e: Any, u: Frac, n: Frac) -> Frac:
    return forms.product([_gamma(forms, _plus(forms, u, 1)), forms.inverse(_gamma(forms, _plus(forms, forms.sum([u, forms.minus(n)]), 1)))])


@rule(sympy.loggamma)
def _loggamma(forms: Normal, e: Any, u: Frac) -> Frac:
    """log Γ(v + n) = log Γ(v) + Σ log(v + k), which holds for positive v."""
    n, v = _shift(u)
    if n <= 0 or forms.sign(v) != 1:
        return forms.opaque(type(e).__name__, e, [u])
    return forms.sum([forms.opaque("loggamma", sympy.loggamma(forms.to_sympy(v)), [v]), *(forms.log(_plus(forms, v, k), 1) for k in range(n))])


def _polygamma(forms: Normal, order: int, u: Frac) -> Frac:
    """ψ⁽ᵐ⁾(v + 1) = ψ⁽ᵐ⁾(v) + (-1)ᵐ m! / v^(m+1)."""
    n, v = _shift(u)
    found = forms.opaque("polygamma", sympy.polygamma(order, forms.to_sympy(v)), [forms.number(order), v])
    c = (-1) ** order * factorial(order)
    steps = range(n) if n >= 0 else range(n, 0)
    c = c if n >= 0 else -c
    return forms.sum([found, *(forms.product([forms.number(c), forms.power(_plus(forms, v, k), -order - 1)]) for k in steps)])


@rule(sympy.polygamma)
def _polygamma_rule(forms: Normal, e: Any, order: Frac, u: Frac) -> Frac:
    return _polygamma(forms, int(e.args[0]), u) if e.args[0].is_Integer and e.args[0] >= 0 else forms.opaque(type(e).__name__, e, [order, u])


def _zeta(forms: Normal, e: Any, s: Frac, u: Frac | None = None) -> Frac:
    """ζ(n, u) = (-1)ⁿ ψ⁽ⁿ⁻¹⁾(u) / (n-1)!."""
    n = e.args[0]
    if u is None or not n.is_Integer or n < 2:
        return forms.opaque("zeta", e, [s] if u is None else [s, u])
    return forms.product([forms.number(Fraction((-1) ** int(n), factorial(int(n) - 1))), _polygamma(forms, int(n) - 1, u)])


@rule(sympy.harmonic)
def _harmonic(forms: Normal, e: Any, u: Frac, *order: Frac) -> Frac:
    if order:
        return forms.opaque(type(e).__name__, e, [u, *order])
    return forms.sum([_polygamma(forms, 0, _plus(forms, u, 1)), forms.of(sympy.EulerGamma)])


def _erf(forms: Normal, e: Any, u: Frac) -> Frac:
    return forms.opaque("erf", sympy.erf(forms.to_sympy(u)), [u], -1)


RULES: dict[Any, Callable[..., Frac]] = {
    sympy.gamma: lambda forms, e, u: _gamma(forms, u),
    sympy.factorial: lambda forms, e, u: _gamma(forms, _plus(forms, u, 1)),
    sympy.beta: lambda forms, e, u, v: forms.product([_gamma(forms, u), _gamma(forms, v), forms.inverse(_gamma(forms, forms.sum([u, v])))]),
    sympy.RisingFactorial: lambda forms, e, u, n: forms.product([_gamma(forms, forms.sum([u, n])), forms.inverse(_gamma(forms, u))]),
    sympy.digamma: lambda forms, e, u: _polygamma(forms, 0, u),
    sympy.erf: _erf,
    sympy.erfc: lambda forms, e, u: forms.sum([forms.number(1), forms.minus(_erf(forms, e, u))]),
    sympy.erfi: lambda forms, e, u: forms.product([forms.imaginary(-1), _erf(forms, e, forms.product([forms.imaginary(), u]))]),
    sympy.zeta: _zeta,
    **dict.fromkeys((sympy.erfinv, sympy.Si, sympy.Shi, sympy.fresnels, sympy.fresnelc),
                    lambda forms, e, u: forms.opaque(type(e).__name__, e, [u], -1)),
}
for _kind, _rule in RULES.items():
    rule(_kind)(_rule)
