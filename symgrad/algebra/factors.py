"""Real factors of normal forms and their signs, such as 1 + exp(ix) = 2 cos(x/2) exp(ix/2) and sqrt(1+x²) - x = 1 / (sqrt(1+x²) + x)."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

import mpmath
import sympy

from symgrad.algebra.polynomials import Monomial, Poly, key, monomial_power, whole
from symgrad.algebra.tower import Frac

BOXES = 400  # the most intervals into which the range of a symbol is divided
DIGITS = 40
HALF = Fraction(1, 2)
MONOTONE = (sympy.sin, sympy.cos, sympy.exp, sympy.log)  # the functions that have intervals


def make_real(forms: Any, number: Any, shared: Monomial, powers: dict[Any, int]) -> tuple[Any, Monomial, dict[Any, int]]:
    """A number, a monomial and powers of polynomials, with real polynomials in place of those that are real up to a unit exp(it)."""
    if all(forms.real(Frac(dict(q))) for q in powers):
        return number, shared, powers
    found: dict[Any, int] = {}
    units = [Frac({shared: number})]
    for q, n in powers.items():
        unit = None if forms.real(Frac(dict(q))) else _unit(forms, Frac(dict(q)))
        turns, m = unit or (0, ())
        factor, times = Frac(dict(q)), n
        if unit is None or turns % 2 and n % 2:
            found[q] = found.get(q, 0) + n
            continue
        if turns % 2:  # q conj(q) >= 0 is q² times the unit
            factor, times = forms.product([factor, forms.conjugate(factor)]), n // 2
            units.append(forms.power(forms.product([forms.term(forms.i, turns), Frac({m: 1})]), -times))
            forms.signs[key(factor.num)] = 1
            forms.weak.add(key(factor.num))
        else:
            half = forms.product([forms.term(forms.i, turns // 2), Frac({monomial_power(m, HALF): 1})])
            factor = forms.product([half, factor])
            units.append(forms.power(half, -n))
            if factor.num[min(factor.num)] < 0:
                factor = forms.minus(factor)
                units.append(forms.number((-1) ** n))
        if factor.den:
            return number, shared, powers
        real = key(factor.num)
        forms.turned.add(real)
        found[real] = found.get(real, 0) + times
    unit = forms.product(units)
    if unit.den or len(unit.num) != 1:
        return number, shared, powers
    [(m, c)] = unit.num.items()
    return c, m, {q: n for q, n in found.items() if n}


def _unit(forms: Any, q: Frac) -> tuple[int, Monomial] | None:
    """k and m with conj(q) = iᵏ m q, where m is a product of complex exponentials; None if they do not exist."""
    try:
        other = forms.conjugate(q)
    except Exception:  # a generator without a known conjugate
        return None
    if other.den:
        return None

    def exponents(p: Poly) -> dict[int, Any]:
        """The product of the monomials, without i and without repetition."""
        out: dict[int, Any] = {}
        for m in {tuple(pair for pair in m if pair[0] != forms.i) for m in p}:
            for g, e in m:
                out[g] = out.get(g, 0) + e
        return out

    count = len({tuple(pair for pair in m if pair[0] != forms.i) for m in q.num})
    before, after = exponents(q.num), exponents(other.num)
    ratio = {g: Fraction(after.get(g, 0) - before.get(g, 0), count) for g in before | after}
    m = tuple(sorted((g, whole(e)) for g, e in ratio.items() if e))
    if not all(forms.generators[g].kind == "exp" for g, _ in m):
        return None
    for k in range(4):
        if forms.same(other, forms.product([forms.term(forms.i, k) if k else forms.number(1), Frac({m: 1}), q])):
            return k, m
    return None


def halves(forms: Any, p: Poly) -> tuple[Poly, Poly] | None:
    """A polynomial as the sum of a part without square roots and a part whose terms have the same square roots; None if it is no such sum."""
    groups: dict[Any, Poly] = {}
    for m, c in p.items():
        roots = tuple(g for g, e in m if Fraction(e).denominator == 2)
        if any(Fraction(e).denominator > 2 for _, e in m):
            return None
        groups.setdefault(roots, {})[m] = c
    if len(groups) != 2 or () not in groups or not forms.real(Frac(p)):
        return None
    [rooted] = [part for roots, part in groups.items() if roots]
    return groups[()], rooted


def norm(forms: Any, parts: tuple[Poly, Poly]) -> Frac:
    """(a + b)(a - b)."""
    a, b = map(Frac, parts)
    found: Frac = forms.sum([forms.product([a, a]), forms.minus(forms.product([b, b]))])
    return found


def conjugate_root(forms: Any, q: Any) -> tuple[Frac, Any] | None:
    """For a positive a + b with square roots in b, the positive norm and the simpler positive conjugate whose product with it is the norm.

    None if a + b itself is the simpler one, or if the signs are not known.
    """
    parts = halves(forms, dict(q))
    if parts is None:
        return None
    product = norm(forms, parts)
    sign = forms.sign(product, strict=True)
    if not sign:
        return None
    other = key({m: sign * c for m, c in parts[0].items()} | {m: -sign * c for m, c in parts[1].items()})
    if (sum(c < 0 for _, c in other), other) >= (sum(c < 0 for _, c in q), q):
        return None
    forms.signs[other] = 1
    return product if sign > 0 else forms.minus(product), other


def logarithms(forms: Any, p: Poly) -> Frac | None:
    """For a sum of whole multiples of logarithms, u - v with the same sign, where the sum is log(u / v); None for any other polynomial."""
    sides: tuple[list[Frac], list[Frac]] = ([], [])
    for m, c in p.items():
        if len(m) != 1 or m[0][1] != 1 or Fraction(c).denominator != 1 or abs(c) > 8:
            return None
        made = forms.generators[m[0][0]]
        if made.kind != "log" or not isinstance(made.base, dict):
            return None
        sides[c < 0].append(forms.power(Frac(made.base), abs(int(c))))
    found: Frac = forms.sum([forms.product(sides[0]), forms.minus(forms.product(sides[1]))])
    return found


def sign_between(e: Any, x: Any, low: Fraction, high: Fraction) -> int | None:
    """The sign of an expression of one symbol in an open interval by interval arithmetic, None if it is not constant or not found.

    >>> x = sympy.Symbol("x", real=True)
    >>> sign_between(sympy.sin(x), x, Fraction(0), Fraction(3)), sign_between(sympy.cos(x), x, Fraction(0), Fraction(3))
    (1, None)
    """
    if e.atoms(sympy.Function) != e.atoms(*MONOTONE) or not e.free_symbols <= {x}:
        return None
    context = mpmath.ctx_iv.MPIntervalContext()
    context.dps = DIGITS
    if not e.free_symbols:
        try:
            return _sign(_interval_of(context, e, x, low, high)) or None
        except (NotImplementedError, ValueError, ArithmeticError, TypeError):
            return None
    slope = sympy.diff(e, x)
    found: set[int] = set()
    boxes = [(low, high)]
    for _ in range(BOXES):
        if not boxes:
            return found.pop()
        a, b = boxes.pop()
        try:
            sign = _sign(_interval_of(context, e, x, a, b))
            if not sign and (a == low or b == high):  # it may vanish at the end if it is monotone next to it
                rising = _sign(_interval_of(context, slope, x, a, b))
                at, away = (a, rising) if a == low else (b, -rising)
                edge = _interval_of(context, e, x, at, at)
                sign = away if rising and (edge.a >= 0 if away > 0 else edge.b <= 0) else 0
        except (NotImplementedError, ValueError, ArithmeticError, TypeError):
            sign = 0
        if sign:
            found.add(sign)
            if len(found) > 1:
                return None
        else:
            boxes += [(a, (a + b) / 2), ((a + b) / 2, b)]
    return None


def _sign(v: Any) -> int:
    return 1 if v.a > 0 else -1 if v.b < 0 else 0


def _interval_of(context: Any, e: Any, x: Any, a: Fraction, b: Fraction) -> Any:
    """An interval that contains the values of an expression between a and b."""
    def number(q: Any) -> Any:
        return context.mpf(int(q.numerator)) / int(q.denominator)

    def inside(part: Any) -> Any:
        if part == x:  # not `is`, since SymPy's cache may contain an equal symbol
            return context.mpf([number(a).a, number(b).b])
        if part.is_Rational:
            return number(Fraction(int(part.p), int(part.q)))
        if part is sympy.pi:
            return +context.pi
        if part.is_Add:
            return sum(map(inside, part.args), context.mpf(0))
        if part.is_Mul:
            return prod(map(inside, part.args), start=context.mpf(1))
        if part.is_Pow and part.exp.is_Integer:
            return inside(part.base) ** int(part.exp)
        if part.is_Pow and part.exp.is_Rational and part.exp.q == 2 and inside(part.base).a >= 0:
            return context.sqrt(inside(part.base)) ** int(part.exp.p)
        if isinstance(part, MONOTONE):
            return getattr(context, type(part).__name__)(inside(part.args[0]))
        raise NotImplementedError

    return inside(e)


def real_expression(e: Any) -> Any:
    """An expression that is known to be real, in sines and cosines instead of complex exponentials."""
    return sympy.expand(e.rewrite(sympy.cos))
