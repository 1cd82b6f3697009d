"""Rules for the normal forms of SymPy functions; those of gamma, erf and related functions are their functional equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import factorial
from typing import Any

import sympy
from sympy import I, gamma
from sympy.functions.elementary.piecewise import ExprCondPair

from symgrad.algebra.catalogue import DEFINITIONS
from symgrad.algebra.effort import TooLarge
from symgrad.algebra.field_extension import Frac
from symgrad.algebra.normal import RULES, NoNormalForm, Normal
from symgrad.algebra.polynomials import ONE, constant, content, key, whole
from symgrad.algebra.simplification import truth

HALF = Fraction(1, 2)


def _unrelated(forms: Normal, e: Any, *xs: Frac, parity: int = 0) -> Frac:
    return forms.opaque(type(e).__name__, e, xs, parity)


def _half_turns(forms: Normal, c: Any) -> Frac:
    """c π / 2."""
    return forms.term(forms.pi, 1, Fraction(c) * HALF)


def _atan(forms: Normal, e: Any, u: Frac) -> Frac:
    if forms.is_zero(u):
        return u
    for g in forms.applied.get("atan", ()):
        product = forms.product([u, forms.generators[g].arguments[0]])
        for sign in (1, -1):
            if forms.same(product, forms.number(sign)) and forms.is_real(u):  # atan(u) + atan(1/u) is a quarter turn with the sign of u
                quarter = forms.number(Fraction(forms.required_sign(u)))
                return forms.sum([forms.product([quarter, _half_turns(forms, 1)]), forms.term(g, 1, -sign)])
    return forms.opaque("atan", sympy.atan(forms.to_sympy(u)), [u], -1)


def _asin(forms: Normal, e: Any, u: Frac) -> Frac:
    if forms.is_real(u):
        inside = forms.difference(forms.number(1), forms.product([u, u]))
        if forms.is_zero(inside):
            return forms.product([u, _half_turns(forms, 1)])
        if forms.sign(inside) == 1:
            return _atan(forms, e, forms.product([u, forms.rational_power(inside, -HALF)]))
    return forms.opaque("asin", sympy.asin(forms.to_sympy(u)), [u], -1)


def _asinh(forms: Normal, e: Any, u: Frac) -> Frac:
    root = forms.rational_power(forms.sum([forms.number(1), forms.product([u, u])]), HALF, 1 if forms.is_real(u) else None)
    if forms.is_real(u):  # u + sqrt(1 + u²) and sqrt(1 + u²) - u are positive
        for f in (forms.sum([root, u]), forms.difference(root, u)):
            number, _, rest = content(f.num)
            forms.signs[key(rest)] = 1 if number > 0 else -1
    return forms.log(forms.sum([u, root]), 1 if forms.is_real(u) else None)


def _atanh(forms: Normal, e: Any, u: Frac) -> Frac:
    above, below = forms.sum([forms.number(1), u]), forms.difference(forms.number(1), u)
    inside = forms.product([above, below])
    if forms.is_real(u) and (forms.required_sign(inside) if forms.split else forms.sign(inside)) != 1:  # on the cut
        return forms.opaque("atanh", sympy.atanh(forms.to_sympy(u)), [u], -1)
    return forms.product([forms.number(HALF), forms.sum([forms.log(above), forms.minus(forms.log(below))])])


def _atan2(forms: Normal, e: Any, y: Frac, x: Frac) -> Frac:
    side = forms.required_sign(x, strict=True)
    if side == 0:
        if forms.is_zero(y):
            raise ZeroDivisionError
        return _half_turns(forms, forms.required_sign(y))
    found = _atan(forms, e, forms.product([y, forms.inverse(x)]))
    return found if side > 0 else forms.sum([found, _half_turns(forms, 2 if forms.required_sign(y, strict=True) >= 0 else -2)])


def _is_real(forms: Normal, e: Any, u: Frac) -> bool:
    return bool(e.args[0].is_extended_real) or forms.is_real(u)


def _extreme(forms: Normal, xs: Sequence[Frac], larger: int) -> Frac:
    best = xs[0]
    for x in xs[1:]:
        difference = forms.difference(x, best)
        if not forms.is_zero(difference) and forms.required_sign(difference) == larger:
            best = x
    return best


def _heaviside(forms: Normal, e: Any, u: Frac, at_zero: Frac | None = None) -> Frac:
    sign = 0 if forms.is_zero(u) else forms.required_sign(u, strict=True)
    if sign == 0:
        return at_zero if at_zero is not None else forms.number(HALF)
    return forms.number(1 if sign > 0 else 0)


def _dirac(forms: Normal, e: Any, u: Frac, *order: Frac) -> Frac:
    if forms.is_zero(u) or forms.required_sign(u, strict=True) == 0:
        raise ZeroDivisionError
    return forms.number(0)


def _piecewise(forms: Normal, e: Any, *pairs: ExprCondPair) -> Frac:
    for pair in pairs:
        try:
            if truth(pair.cond, lambda relation: _holds(forms, relation)):
                return forms.of(pair.expr)
        except TypeError:
            raise NoNormalForm(str(pair.cond)) from None
    raise ZeroDivisionError


HOLDS = {sympy.Lt: (-1,), sympy.Le: (-1, 0), sympy.Gt: (1,), sympy.Ge: (1, 0), sympy.Eq: (0,), sympy.Ne: (-1, 1)}


def _holds(forms: Normal, relation: Any) -> bool:
    """Whether a relation holds in the current region; raises Split if that is not decided."""
    difference = forms.difference(forms.of(relation.lhs), forms.of(relation.rhs))
    return (0 if forms.is_zero(difference) else forms.required_sign(difference, strict=True)) in HOLDS[type(relation)]


def _floor(forms: Normal, e: Any, u: Frac) -> Frac:
    """The floor of a fraction as its integer terms plus the floor of the rest."""
    if u.den:
        return forms.opaque("floor", sympy.floor(forms.to_sympy(u)), [u])
    outside, inside = {}, {}
    for m, c in u.num.items():
        integral = all(forms.integral(g, e) for g, e in m)
        n = Fraction(c).__floor__() if integral and (m == ONE or Fraction(c).denominator == 1) else 0
        if n:
            outside[m] = n
        if c != n:
            inside[m] = whole(Fraction(c) - n)
    if not inside or set(inside) == {ONE}:
        return Frac(outside)
    found = forms.opaque("floor", sympy.floor(forms.to_sympy(Frac(inside))), [Frac(inside)])
    forms.whole_valued.update(g for m in found.num for g, _ in m)
    return forms.sum([Frac(outside), found])


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
    """Γ(v + n) = v (v+1) ... (v+n-1) Γ(v)."""
    n, v = _shift(u)
    if not v.num:
        if n <= 0:
            raise ZeroDivisionError
        return forms.of(gamma(n))
    rising = [_plus(forms, v, k) for k in range(n)] + [forms.inverse(_plus(forms, v, -k)) for k in range(1, -n + 1)]
    return forms.product([*_gamma_factors(forms, v), *rising])


def _gamma_factors(forms: Normal, v: Frac) -> list[Frac]:
    """Γ(1/2) = sqrt(π); Γ(2v) = 2^(2v-1) Γ(v) Γ(v+1/2) / sqrt(π); Γ(v) Γ(1-v) = π / sin(πv)."""
    terms = {m: c for m, c in v.num.items() if m != ONE}
    if not v.den and v.num == {ONE: HALF}:
        return [forms.term(forms.pi, HALF)]
    if not v.den and terms and all(Fraction(c).denominator == 1 and c % 2 == 0 for c in terms.values()):
        half = forms.product([v, forms.number(HALF)])
        power = forms.exp(forms.product([_plus(forms, v, -1), forms.log(forms.number(2))]))
        return [power, _gamma(forms, half), _gamma(forms, _plus(forms, half, HALF)), forms.term(forms.pi, -HALF)]
    for g in forms.applied.get("gamma", ()):
        other = forms.generators[g].arguments[0]
        total = forms.sum([v, other])
        if not total.den and set(total.num) <= {ONE} and Fraction(total.num.get(ONE, 0)).denominator == 1 and not forms.same(v, other):
            reflected = forms.of(sympy.pi / sympy.sin(sympy.pi * forms.to_sympy(v)))
            return [reflected, forms.inverse(_gamma(forms, _plus(forms, forms.minus(v), 1)))]
    return [forms.opaque("gamma", gamma(forms.to_sympy(v)), [v])]


def _loggamma(forms: Normal, e: Any, u: Frac) -> Frac:
    """log Γ(v + n) = log Γ(v) + Σ log(v + k), which holds for positive v."""
    n, v = _shift(u)
    if n <= 0 or forms.sign(v) != 1:
        return _unrelated(forms, e, u)
    return forms.sum([forms.opaque("loggamma", sympy.loggamma(forms.to_sympy(v)), [v]), *(forms.log(_plus(forms, v, k), 1) for k in range(n))])


def _polygamma(forms: Normal, order: int, u: Frac) -> Frac:
    """ψ⁽ᵐ⁾(v + 1) = ψ⁽ᵐ⁾(v) + (-1)ᵐ m! / v^(m+1)."""
    n, v = _shift(u)
    found = forms.opaque("polygamma", sympy.polygamma(order, forms.to_sympy(v)), [forms.number(order), v])
    c = (-1) ** order * factorial(order)
    steps = range(n) if n >= 0 else range(n, 0)
    c = c if n >= 0 else -c
    return forms.sum([found, *(forms.product([forms.number(c), forms.power(_plus(forms, v, k), -order - 1)]) for k in steps)])


def _zeta(forms: Normal, e: Any, s: Frac, u: Frac | None = None) -> Frac:
    """ζ(n, u) = (-1)ⁿ ψ⁽ⁿ⁻¹⁾(u) / (n-1)!."""
    n = e.args[0]
    if u is None or not n.is_Integer or n < 2:
        return _unrelated(forms, e, *[s] if u is None else [s, u])
    return forms.product([forms.number(Fraction((-1) ** int(n), factorial(int(n) - 1))), _polygamma(forms, int(n) - 1, u)])


def _erf(forms: Normal, e: Any, u: Frac) -> Frac:
    return forms.opaque("erf", sympy.erf(forms.to_sympy(u)), [u], -1)


# Functions that are defined by others.
DEFINED: dict[Any, Callable[..., Any]] = {
    sympy.sin: lambda x: (sympy.exp(I * x) - sympy.exp(-I * x)) / (2 * I), sympy.cos: lambda x: (sympy.exp(I * x) + sympy.exp(-I * x)) / 2,
    sympy.sinh: lambda x: (sympy.exp(x) - sympy.exp(-x)) / 2, sympy.cosh: lambda x: (sympy.exp(x) + sympy.exp(-x)) / 2,
    sympy.tan: lambda x: sympy.sin(x) / sympy.cos(x), sympy.tanh: lambda x: sympy.sinh(x) / sympy.cosh(x),
    sympy.acos: lambda x: sympy.pi / 2 - sympy.asin(x),
    sympy.acosh: lambda x: sympy.log(x + sympy.sqrt(x + 1) * sympy.sqrt(x - 1)),
    sympy.re: lambda x: (x + sympy.conjugate(x)) / 2, sympy.im: lambda x: (x - sympy.conjugate(x)) / (2 * I),
    sympy.factorial: lambda x: gamma(x + 1), sympy.beta: lambda x, y: gamma(x) * gamma(y) / gamma(x + y),
    sympy.RisingFactorial: lambda x, n: gamma(x + n) / gamma(x), sympy.FallingFactorial: lambda x, n: gamma(x + 1) / gamma(x - n + 1),
    sympy.binomial: lambda n, k: gamma(n + 1) / (gamma(k + 1) * gamma(n - k + 1)), sympy.erfc: lambda x: 1 - sympy.erf(x),
    **{kind: DEFINITIONS[kind] for kind in (sympy.sec, sympy.csc, sympy.cot, sympy.sech, sympy.csch, sympy.coth, sympy.asec, sympy.acsc,
                                           sympy.asech, sympy.acsch, sympy.acoth, sympy.Mod, sympy.frac)},
}


RULES.update(dict.fromkeys(DEFINED, lambda forms, e, *xs: forms.of(DEFINED[type(e)](*e.args))) | {
    sympy.I: lambda forms, e: forms.imaginary(),
    sympy.pi: lambda forms, e: forms.term(forms.pi),
    sympy.E: lambda forms, e: forms.exp(forms.number(1)),
    sympy.GoldenRatio: lambda forms, e: forms.of((1 + sympy.sqrt(5)) / 2),
    sympy.exp: lambda forms, e, u: forms.exp(u), sympy.log: lambda forms, e, u: forms.log(u, 1 if e.args[0].is_positive else None),
    sympy.sinc: lambda forms, e, u: forms.number(1) if forms.is_zero(u) else forms.product([forms.of(sympy.sin(e.args[0])), forms.inverse(u)]),
    sympy.asin: _asin, sympy.atan: _atan,
    sympy.acot: lambda forms, e, u: _half_turns(forms, 1) if forms.is_zero(u) else _atan(forms, e, forms.inverse(u)),
    sympy.asinh: _asinh, sympy.atanh: _atanh, sympy.atan2: _atan2,
    sympy.arg: lambda forms, e, u: _half_turns(forms, 0 if forms.required_sign(u) > 0 else 2) if forms.is_real(u) else _unrelated(forms, e, u),
    sympy.Abs: lambda forms, e, u: forms.product([forms.number(forms.required_sign(u)), u]) if _is_real(forms, e, u) else forms.modulus(u),
    sympy.sign: lambda forms, e, u: forms.number(forms.required_sign(u, strict=True)) if _is_real(forms, e, u) else
        forms.product([u, forms.inverse(forms.modulus(u))]),
    sympy.Max: lambda forms, e, *xs: _extreme(forms, xs, 1), sympy.Min: lambda forms, e, *xs: _extreme(forms, xs, -1),
    sympy.Heaviside: _heaviside, sympy.DiracDelta: _dirac, sympy.Piecewise: _piecewise,
    sympy.floor: _floor, sympy.ceiling: lambda forms, e, u: forms.minus(_floor(forms, e, forms.minus(u))),
    sympy.conjugate: lambda forms, e, u: forms.conjugate(u),
    sympy.gamma: lambda forms, e, u: _gamma(forms, u), sympy.loggamma: _loggamma, sympy.zeta: _zeta,
    sympy.polygamma: lambda forms, e, n, u: _polygamma(forms, int(e.args[0]), u) if e.args[0].is_Integer and e.args[0] >= 0 else
        _unrelated(forms, e, n, u),
    sympy.digamma: lambda forms, e, u: _polygamma(forms, 0, u),
    sympy.harmonic: lambda forms, e, u, *order: _unrelated(forms, e, u, *order) if order else
        forms.sum([_polygamma(forms, 0, _plus(forms, u, 1)), forms.of(sympy.EulerGamma)]),
    sympy.erf: _erf, sympy.erfi: lambda forms, e, u: forms.product([forms.imaginary(-1), _erf(forms, e, forms.product([forms.imaginary(), u]))]),
    **dict.fromkeys((sympy.erfinv, sympy.Si, sympy.Shi, sympy.fresnels, sympy.fresnelc), lambda forms, e, u: _unrelated(forms, e, u, parity=-1)),
})
