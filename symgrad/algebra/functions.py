"""Rules for the normal forms of SymPy functions; those of gamma, erf and related functions are their functional equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import factorial
from typing import Any

import sympy
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import BooleanFalse, BooleanTrue

from symgrad.algebra.normal import NoNormalForm, Normal, rule
from symgrad.algebra.polynomials import ONE, TooLarge, constant, content, key, whole
from symgrad.algebra.tower import Frac

HALF = Fraction(1, 2)


@rule(sympy.log)
def _log(forms: Normal, e: Any, x: Frac, base: Frac | None = None) -> Frac:
    found = forms.log(x, 1 if e.args[0].is_positive else None)
    return found if base is None else forms.product([found, forms.inverse(forms.log(base))])


def _pair(forms: Normal, x: Frac, turn: bool) -> tuple[Frac, Frac]:
    """exp of x and -x, or of i x and -i x."""
    t = forms.product([forms.imaginary(), x]) if turn else x
    return forms.exp(t), forms.exp(forms.minus(t))


def _sine(forms: Normal, x: Frac, turn: bool) -> Frac:
    up, down = _pair(forms, x, turn)
    return forms.product([forms.imaginary(-HALF) if turn else forms.number(HALF), forms.sum([up, forms.minus(down)])])


def _cosine(forms: Normal, x: Frac, turn: bool) -> Frac:
    return forms.product([forms.number(HALF), forms.sum(_pair(forms, x, turn))])


def _tangent(forms: Normal, x: Frac, turn: bool) -> Frac:
    return forms.product([_sine(forms, x, turn), forms.inverse(_cosine(forms, x, turn))])


for _turn, _kinds in ((True, (sympy.sin, sympy.cos, sympy.tan, sympy.csc, sympy.sec, sympy.cot)),
                      (False, (sympy.sinh, sympy.cosh, sympy.tanh, sympy.csch, sympy.sech, sympy.coth))):
    for _kind, _plain in zip((*_kinds[:3], _kinds[5]), (_sine, _cosine, _tangent, lambda *of: of[0].inverse(_tangent(*of)))):
        rule(_kind)(lambda forms, e, x, plain=_plain, turn=_turn: plain(forms, x, turn))
    for _kind, _plain in zip(_kinds[3:5], (_sine, _cosine)):
        rule(_kind)(lambda forms, e, x, plain=_plain, turn=_turn: forms.inverse(plain(forms, x, turn)))


@rule(sympy.sinc)
def _sinc(forms: Normal, e: Any, x: Frac) -> Frac:
    return forms.number(1) if forms.is_zero(x) else forms.product([_sine(forms, x, True), forms.inverse(x)])


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
        inside = forms.sum([forms.number(1), forms.minus(forms.product([u, u]))])
        if forms.is_zero(inside):
            return forms.product([u, _half_turns(forms, 1)])
        if forms.sign(inside) == 1:
            return _atan(forms, e, forms.product([u, forms.rational_power(inside, -HALF)]))
    return forms.opaque("asin", sympy.asin(forms.to_sympy(u)), [u], -1)


@rule(sympy.asinh)
def _asinh(forms: Normal, e: Any, u: Frac) -> Frac:
    root = forms.rational_power(forms.sum([forms.number(1), forms.product([u, u])]), HALF, 1 if forms.is_real(u) else None)
    if forms.is_real(u):  # u + sqrt(1 + u²) and sqrt(1 + u²) - u are positive
        for f in (forms.sum([root, u]), forms.sum([root, forms.minus(u)])):
            number, _, rest = content(f.num)
            forms.signs[key(rest)] = 1 if number > 0 else -1
    return forms.log(forms.sum([u, root]), 1 if forms.is_real(u) else None)


@rule(sympy.acosh)
def _acosh(forms: Normal, e: Any, u: Frac) -> Frac:
    above, below = (forms.rational_power(forms.sum([u, forms.number(c)]), HALF) for c in (1, -1))
    return forms.log(forms.sum([u, forms.product([above, below])]), 1 if (e.args[0] - 1).is_positive else None)


def _atanh(forms: Normal, e: Any, u: Frac) -> Frac:
    above, below = forms.sum([forms.number(1), u]), forms.sum([forms.number(1), forms.minus(u)])
    inside = forms.product([above, below])
    if forms.is_real(u) and (forms.required_sign(inside) if forms.split else forms.sign(inside)) != 1:  # on the cut
        return forms.opaque("atanh", sympy.atanh(forms.to_sympy(u)), [u], -1)
    return forms.product([forms.number(HALF), forms.sum([forms.log(above), forms.minus(forms.log(below))])])


@rule(sympy.atan2)
def _atan2(forms: Normal, e: Any, y: Frac, x: Frac) -> Frac:
    side = forms.required_sign(x, strict=True)
    if side == 0:
        if forms.is_zero(y):
            raise ZeroDivisionError
        return _half_turns(forms, forms.required_sign(y))
    found = _atan(forms, e, forms.product([y, forms.inverse(x)]))
    return found if side > 0 else forms.sum([found, _half_turns(forms, 2 if forms.required_sign(y, strict=True) >= 0 else -2)])


@rule(sympy.Abs)
def _abs(forms: Normal, e: Any, u: Frac) -> Frac:
    if e.args[0].is_extended_real or forms.is_real(u):
        return forms.product([forms.number(forms.required_sign(u)), u])
    return forms.modulus(u)


@rule(sympy.sign)
def _sign(forms: Normal, e: Any, u: Frac) -> Frac:
    if e.args[0].is_extended_real or forms.is_real(u):
        return forms.number(forms.required_sign(u, strict=True))
    return forms.product([u, forms.inverse(forms.modulus(u))])


def _extreme(forms: Normal, xs: Sequence[Frac], larger: int) -> Frac:
    best = xs[0]
    for x in xs[1:]:
        difference = forms.sum([x, forms.minus(best)])
        if not forms.is_zero(difference) and forms.required_sign(difference) == larger:
            best = x
    return best


@rule(sympy.Heaviside)
def _heaviside(forms: Normal, e: Any, u: Frac, at_zero: Frac | None = None) -> Frac:
    sign = 0 if forms.is_zero(u) else forms.required_sign(u, strict=True)
    if sign == 0:
        return at_zero if at_zero is not None else forms.number(HALF)
    return forms.number(1 if sign > 0 else 0)


@rule(sympy.DiracDelta)
def _dirac(forms: Normal, e: Any, u: Frac, *order: Frac) -> Frac:
    if forms.is_zero(u) or forms.required_sign(u, strict=True) == 0:
        raise ZeroDivisionError
    return forms.number(0)


@rule(sympy.Piecewise)
def _piecewise(forms: Normal, e: Any, *pairs: ExprCondPair) -> Frac:
    for pair in pairs:
        if _holds(forms, pair.cond):
            return forms.of(pair.expr)
    raise ZeroDivisionError


HOLDS = {sympy.Lt: (-1,), sympy.Le: (-1, 0), sympy.Gt: (1,), sympy.Ge: (1, 0), sympy.Eq: (0,), sympy.Ne: (-1, 1)}


def _holds(forms: Normal, condition: Any) -> bool:
    """Whether a condition holds in the current region; raises Split if that is not decided."""
    if isinstance(condition, (BooleanTrue, BooleanFalse)):
        return bool(condition)
    if isinstance(condition, sympy.And):
        return all(_holds(forms, part) for part in condition.args)
    if isinstance(condition, sympy.Or):
        return any(_holds(forms, part) for part in condition.args)
    if isinstance(condition, sympy.Not):
        return not _holds(forms, condition.args[0])
    if isinstance(condition, sympy.Xor):
        return sum(_holds(forms, part) for part in condition.args) % 2 == 1
    if isinstance(condition, sympy.ITE):
        return _holds(forms, condition.args[1 if _holds(forms, condition.args[0]) else 2])
    if isinstance(condition, sympy.core.relational.Relational):
        difference = forms.sum([forms.of(condition.lhs), forms.minus(forms.of(condition.rhs))])
        sign = 0 if forms.is_zero(difference) else forms.required_sign(difference, strict=True)
        return sign in HOLDS[type(condition)]
    raise NoNormalForm(str(condition))


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


@rule(sympy.arg)
def _arg(forms: Normal, e: Any, u: Frac) -> Frac:
    if forms.is_real(u):
        return _half_turns(forms, 0 if forms.required_sign(u) > 0 else 2)
    return forms.opaque(type(e).__name__, e, [u])


RULES: dict[Any, Callable[..., Frac]] = {
    sympy.I: lambda forms, e: forms.imaginary(),
    sympy.pi: lambda forms, e: forms.term(forms.pi),
    sympy.E: lambda forms, e: forms.exp(forms.number(1)),
    sympy.GoldenRatio: lambda forms, e: forms.of((1 + sympy.sqrt(5)) / 2),
    sympy.exp: lambda forms, e, u: forms.exp(u),
    sympy.asin: _asin,
    sympy.acos: lambda forms, e, u: forms.sum([_half_turns(forms, 1), forms.minus(_asin(forms, e, u))]),
    sympy.atan: _atan,
    sympy.acot: lambda forms, e, u: _half_turns(forms, 1) if forms.is_zero(u) else _atan(forms, e, forms.inverse(u)),
    sympy.acsc: lambda forms, e, u: _asin(forms, e, forms.inverse(u)),
    sympy.asec: lambda forms, e, u: RULES[sympy.acos](forms, e, forms.inverse(u)),
    sympy.atanh: _atanh,
    sympy.acoth: lambda forms, e, u: _atanh(forms, e, forms.inverse(u)),
    sympy.acsch: lambda forms, e, u: _asinh(forms, e, forms.inverse(u)),
    sympy.asech: lambda forms, e, u: forms.of(sympy.acosh(1 / e.args[0])),
    sympy.Max: lambda forms, e, *xs: _extreme(forms, xs, 1),
    sympy.Min: lambda forms, e, *xs: _extreme(forms, xs, -1),
    sympy.floor: _floor,
    sympy.ceiling: lambda forms, e, u: forms.minus(_floor(forms, e, forms.minus(u))),
    sympy.frac: lambda forms, e, u: forms.sum([u, forms.minus(_floor(forms, e, u))]),
    sympy.Mod: lambda forms, e, u, v: forms.sum([u, forms.minus(forms.product([v, _floor(forms, e, forms.product([u, forms.inverse(v)]))]))]),
    sympy.conjugate: lambda forms, e, u: forms.conjugate(u),
    sympy.re: lambda forms, e, u: forms.product([forms.number(HALF), forms.sum([u, forms.conjugate(u)])]),
    sympy.im: lambda forms, e, u: forms.product([forms.imaginary(-HALF), forms.sum([u, forms.minus(forms.conjugate(u))])]),
}


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


SPECIAL_RULES: dict[Any, Callable[..., Frac]] = {
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

for _kind, _rule in (RULES | SPECIAL_RULES).items():
    rule(_kind)(_rule)
