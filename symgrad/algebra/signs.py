"""Signs of normal forms that follow from assumptions, from intervals, and from the facts of a region, and their real factors.

Real factors are those such as 1 + exp(ix) = 2 cos(x/2) exp(ix/2) and sqrt(1+x²) - x = 1 / (sqrt(1+x²) + x).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import lcm, prod
from typing import Any

import sympy

from symgrad.algebra.effort import Effort, TooLarge
from symgrad.algebra.field_extension import FieldExtension, Frac
from symgrad.algebra.polynomials import ONE, Monomial, Poly, content, factor_list, generators, key, monomial_power, monomial_times, whole

BOXES = 400  # the most intervals into which the range of a symbol is divided
HALF = Fraction(1, 2)
COUNTED = 80  # the largest degree of a polynomial whose real roots are counted


class NotRegular(Exception):
    """The error for a subexpression that may have a pole, a jump or a branch cut in the region."""


class Split(Exception):
    """The error for a real expression whose sign is needed, but unknown; the region has to be split."""

    def __init__(self, expression: Any):
        super().__init__(str(expression))
        self.expression = expression


class Signs(FieldExtension):
    """Fractions and the known facts about their signs.

    `intervals` has the range of each symbol. With `split`, Split is raised for an unknown sign that is needed to expand a root or a
    logarithm; otherwise the root is not expanded. While `regular` is set, NotRegular is raised for a part that is not certainly
    differentiable in the region.
    """

    def __init__(self, effort: Effort, intervals: dict[Any, tuple[Any, Any]], split: bool):
        super().__init__(effort)
        self.intervals, self.split, self.regular = intervals, split, False
        self.signs: dict[Any, int] = {}
        self.turned: set[Any] = set()  # polynomials in complex exponentials that are real, by their keys
        self.weak: set[Any] = set()  # polynomials that are nonnegative, but may be 0

    def real(self, f: Frac) -> bool:
        """Whether a fraction is known to be real."""
        return super().real(f) or not f.den and key(f.num) in self.turned

    def inverse(self, f: Frac) -> Frac:
        """1 / f. Raises ZeroDivisionError for a literal 0."""
        if self.regular and f.num:
            _, m, rest = content(f.num)
            nonzero = all(self.generators[g].kind in ("i", "turn", "sign", "exp") or self.generator_sign(g) for g, _ in m)
            if not nonzero or len(rest) > 1 and not self.sign(Frac(rest), strict=True) \
                    and not all(self.poly_sign(q) and q not in self.weak for q in self.pieces(Frac(rest))[2]):
                raise NotRegular
        return super().inverse(f)

    def pieces(self, f: Frac) -> tuple[Any, Monomial, dict[Any, int]]:
        """A fraction as number * monomial * powers of irreducible polynomials, by their keys."""
        if len(f.num) > 60:
            raise TooLarge
        number: Any = 1
        shared, powers = ONE, dict[Any, int]()
        for p, n in [(key(f.num), 1), *((d, -n) for d, n in f.den.items())]:
            self.effort.spend(len(p) ** 2 if len(p) > 1 else 0)
            c, m, factors = factor_list(p, self.i)
            number, shared = number * Fraction(c) ** n, monomial_times(shared, monomial_power(m, n))
            for q, k in factors:
                powers[q] = powers.get(q, 0) + k * n
        return whole(number), shared, {q: n for q, n in powers.items() if n}

    def sign(self, f: Frac, strict: bool = False, required: bool = False) -> int | None:
        """The sign of a real fraction, None if it is unknown; unless `strict`, a square counts as positive although it may be 0.

        Raises Split for an unknown sign that is `required`.
        """
        if not f.num:
            return 0
        number, shared, powers = self.pieces(f)
        out = 1 if number > 0 else -1
        signs: list[tuple[Poly, int | None, Any]] = [({((g, 1),): 1}, self.generator_sign(g), e) for g, e in shared]
        for p, sign, n in [*signs, *((dict(q), None if strict and q in self.weak else self.poly_sign(q), n) for q, n in powers.items())]:
            if sign is None and (n % 2 or strict):
                if required:
                    raise self.split_error(p)
                return None
            out *= sign if sign is not None and n % 2 == 1 else 1
        return out

    def required_sign(self, f: Frac, strict: bool = False) -> int:
        """The sign of a real fraction; raises Split if it is unknown."""
        return self.sign(f, strict, True)  # type: ignore[return-value]

    def split_error(self, p: Poly) -> Exception:
        """The Split for the sign of a polynomial, with a simpler expression of the same sign."""
        gens = generators(p)
        if not self.real(Frac(p)):
            return TooLarge()
        if key(p) in self.turned:
            return Split(self._turned_expression(p))
        parts = halves(self, p)
        for f in (logarithms(self, p) if len(p) > 1 else None, norm(self, parts) if parts else None):
            if f is not None:
                self.required_sign(f, strict=True)  # raises Split for the sign from which that of p follows
        if len(gens) == 1:
            made = self.generators[min(gens)]
            if made.kind == "log" and len(p) == 1:
                return Split(made.expression.args[0] - 1)
            if made.kind == "exp" and len(p) == 2 and sum(p.values()) == 0 and ONE in p:
                return Split(made.base)
        return Split(self.expression(p))

    def generator_sign(self, g: int) -> int | None:
        """The sign of a generator, None if it is not known, or if the generator is not real."""
        return 1 if self.generators[g].positive else self.signs.get(key({((g, 1),): 1}))

    def interval(self, g: int) -> tuple[Any, Any]:
        """Rational bounds of a real generator; None is infinite."""
        made = self.generators[g]
        if made.kind == "symbol":
            if made.expression is sympy.pi:
                return Fraction(314, 100), Fraction(315, 100)
            return self.intervals.get(made.expression, (0 if made.positive else None, None))
        if made.kind == "exp" and made.positive:
            sign = self.sign(made.arguments[0])
            return (1, None) if sign == 1 else (0, 1) if sign == -1 else (0, None)
        return (0 if made.positive else None), None

    def poly_sign(self, q: Any) -> int | None:
        """The sign of a polynomial of at least two terms, given by its key; None if it is not known."""
        found = self.signs[q] if q in self.signs else self._poly_sign(dict(q))
        if found is not None:
            self.signs[q] = found
        return found

    def _sign_at_vertices(self, p: Poly) -> int | None:
        """The sign of a polynomial that is linear in each of few bounded generators: its extrema are at the corners."""
        ends = {g: self.interval(g) for g in generators(p)}
        if len(ends) > 4 or any(None in pair for pair in ends.values()) or any(e != 1 for m in p for _, e in m):
            return None
        corners = product(*([(g, end) for end in pair] for g, pair in ends.items()))
        values = [sum(c * prod([dict(corner)[g] for g, _ in m]) for m, c in p.items()) for corner in corners]
        return 1 if min(values) >= 0 and any(values) else -1 if max(values) <= 0 and any(values) else None

    def _poly_sign(self, p: Poly) -> int | None:
        gens = generators(p)
        if not self.real(Frac(p)):
            return None
        if key(p) in self.turned:
            return self._sign_between(self._turned_expression(p))
        coefficients = {c > 0 for c in p.values()}
        definite = [all(self.generators[g].positive or e % 2 == 0 for g, e in m) for m in p]
        strict = any(all(self.generators[g].positive for g, _ in m) for m in p)
        if len(coefficients) == 1 and all(definite) and strict:
            return 1 if coefficients.pop() else -1
        if len(gens) == 1 and (found := self._univariate_sign(p, min(gens))) is not None:
            return found
        at_vertices, expression = self._sign_at_vertices(p), self.expression(p)
        if at_vertices is not None or expression.is_positive or expression.is_negative:
            return at_vertices or (1 if expression.is_positive else -1)
        difference = logarithms(self, p)
        if difference is not None:
            return self.sign(difference, strict=True)
        return self._sign_by_parts(p) or self._sign_between(expression)

    def _turned_expression(self, p: Poly) -> Any:
        return sympy.expand(self.expression(p).rewrite(sympy.cos))  # in sines and cosines instead of complex exponentials

    def _sign_by_parts(self, p: Poly) -> int | None:
        """The sign of a + b with square roots in b: that of a and b if it is the same, otherwise that of the larger one by a² - b²."""
        parts = halves(self, p)
        if parts is None:
            return None
        a, b = (self.sign(Frac(part)) for part in parts)
        if a is not None and a == b and any(self.sign(Frac(part), strict=True) for part in parts):
            return a
        sign = self.sign(norm(self, parts), strict=True)
        return a if sign == 1 else b if sign == -1 else None

    def _sign_between(self, expression: Any) -> int | None:
        """The sign of a constant, or of an expression of one bounded symbol."""
        [x, *others] = expression.free_symbols or [None]
        low, high = (0, 0) if x is None else self.intervals.get(x, (None, None)) if not others else (None, None)
        return None if low is None or high is None else sign_between(expression, x, Fraction(low), Fraction(high))

    def _univariate_sign(self, p: Poly, g: int) -> int | None:
        """The sign by counting the roots in the interval."""
        exponents = [dict(m).get(g, 0) for m in p]
        scale = lcm(*(Fraction(e).denominator for e in exponents))
        if max(exponents) * scale > COUNTED:
            return None
        self.effort.spend(int(max(exponents) * scale) ** 2)
        if scale > 1 and not self.generators[g].positive or min(exponents) < 0:
            return None
        poly = sympy.Poly({(int(e * scale),): int(c) for e, c in zip(exponents, p.values())}, sympy.Dummy())
        low, high = (None if end is None else sympy.Rational(Fraction(end).numerator, Fraction(end).denominator) for end in self.interval(g))
        if scale > 1:
            low, high = (end if end in (None, 0, 1) else None for end in (low, high))
            low = sympy.S.Zero if low is None else low
        if poly.count_roots(low, high) > sum(1 for end in (low, high) if end is not None and poly.eval(end) == 0):
            return None
        inside = (low + high) / 2 if low is not None and high is not None else low + 1 if low is not None else high - 1 if high is not None else 0
        return 1 if poly.eval(inside) > 0 else -1


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
    before, after = ({tuple(pair for pair in m if pair[0] != forms.i) for m in p} for p in (q.num, other.num))
    ratio: dict[int, Any] = {}
    for sign, monomials in ((1, after), (-1, before)):  # of the products of the monomials, without i
        for g, e in (pair for m in monomials for pair in m):
            ratio[g] = ratio.get(g, 0) + sign * Fraction(e) / len(before)
    m = tuple(sorted((g, whole(e)) for g, e in ratio.items() if e))
    if all(forms.generators[g].kind == "exp" for g, _ in m):
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
    return groups.pop(()), *groups.values()  # type: ignore[return-value]


def norm(forms: Any, parts: tuple[Poly, Poly]) -> Frac:
    """(a + b)(a - b)."""
    a, b = map(Frac, parts)
    return forms.difference(forms.product([a, a]), forms.product([b, b]))


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
    return forms.difference(*map(forms.product, sides))


def sign_between(e: Any, x: Any, low: Fraction, high: Fraction) -> int | None:
    """The sign of an expression of one symbol, or none, in an open interval by balls, None if it is not constant or not found.

    >>> x = sympy.Symbol("x", real=True)
    >>> sign_between(sympy.sin(x), x, Fraction(0), Fraction(3)), sign_between(sympy.cos(x), x, Fraction(0), Fraction(3))
    (1, None)
    """
    if not e.free_symbols <= {x}:
        return None
    try:
        from symgrad.algebra.quadrature import between  # which needs python-flint

        value, slope = between(e, x), between(sympy.diff(e, x) if x is not None else e, x)
    except (ImportError, NotImplementedError, ValueError, TypeError):
        return None
    def sign_of(v: Any) -> int:
        return 1 if v > 0 else -1 if v < 0 else 0

    found: set[int] = set()
    boxes = [(low, high)]
    for _ in range(BOXES):
        if not boxes:
            return found.pop()
        a, b = boxes.pop()
        sign = sign_of(value(a, b))
        if not sign and (a == low or b == high):  # it may vanish at the end if it is monotone next to it
            rising = sign_of(slope(a, b))
            at, away = (a, rising) if a == low else (b, -rising)
            edge = value(at, at)
            sign = away if rising and (edge >= 0 if away > 0 else edge <= 0) else 0
        if sign:
            found.add(sign)
            if len(found) > 1:
                return None
        elif x is None:
            return None
        else:
            boxes += [(a, (a + b) / 2), ((a + b) / 2, b)]
    return None
