"""Rules for the normal forms of SymPy functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import sympy
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import BooleanFalse, BooleanTrue

from symgrad.algebra.normal import NoNormalForm, Normal, rule
from symgrad.algebra.polynomials import ONE, content, key, whole
from symgrad.algebra.tower import Frac

HALF = Fraction(1, 2)


@rule(sympy.log)
def _log(forms: Normal, e: Any, x: Frac, base: Frac | None = None) -> Frac:
    found = forms.log(x, 1 if e.args[0].is_positive else None)
    return found if base is None else forms.product([found, forms.inverse(forms.log(base))])


# ---------------------------------------------------------------------- trigonometric and hyperbolic


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


# ---------------------------------------------------------------------- inverse functions


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


# ---------------------------------------------------------------------- cases


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


# ---------------------------------------------------------------------- steps


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


# ---------------------------------------------------------------------- functions in terms of others

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
for _kind, _rule in RULES.items():
    rule(_kind)(_rule)
