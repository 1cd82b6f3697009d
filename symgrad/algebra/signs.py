"""Signs of normal forms that follow from assumptions, from intervals, and from the facts of a region."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import lcm, prod
from typing import Any

import sympy

from symgrad.algebra.factors import halves, logarithms, norm, real_expression, sign_between
from symgrad.algebra.limits import clock
from symgrad.algebra.polynomials import ONE, Monomial, Poly, TooLarge, content, factor_list, generators, key, monomial_power, monomial_times
from symgrad.algebra.tower import Frac, Tower


class NotRegular(Exception):
    """The error for a subexpression that may have a pole, a jump or a branch cut in the region."""


class Split(Exception):
    """The error for a real expression whose sign is needed, but unknown; the region has to be split."""

    def __init__(self, expression: Any):
        super().__init__(str(expression))
        self.expression = expression


class Signs(Tower):
    """Fractions and the known facts about their signs.

    `intervals` has the range of each symbol. With `split`, Split is raised for an unknown sign that is needed to expand a root or a
    logarithm; otherwise the root is not expanded. While `regular` is set, NotRegular is raised for a part that is not certainly
    differentiable in the region.
    """

    def __init__(self, deadline: float, intervals: dict[Any, tuple[Any, Any]], split: bool):
        super().__init__(deadline)
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
            if not nonzero or len(rest) > 1 and not self.sign(Frac(rest), strict=True):
                if not all(self.poly_sign(q) and q not in self.weak for q in self.pieces(Frac(rest))[2]):
                    raise NotRegular
        return super().inverse(f)

    def pieces(self, f: Frac) -> tuple[Any, Monomial, dict[Any, int]]:
        """A fraction as number * monomial * powers of irreducible polynomials, by their keys."""
        if len(f.num) > 60 or clock() > self.deadline:
            raise TooLarge
        number, shared, factors = factor_list(f.num, self.i)
        powers = {key(q): n for q, n in factors}
        for d, n in f.den.items():
            c, m, below = factor_list(dict(d), self.i)
            number /= Fraction(c) ** n
            shared = monomial_times(shared, monomial_power(m, -n))
            for q, k in below:
                powers[key(q)] = powers.get(key(q), 0) - k * n
        return number, shared, {q: n for q, n in powers.items() if n}

    def sign(self, f: Frac, strict: bool = False) -> int | None:
        """The sign of a real fraction, None if it is unknown; unless `strict`, a square counts as positive although it may be 0."""
        if not f.num:
            return 0
        number, shared, powers = self.pieces(f)
        out = 1 if number > 0 else -1
        if strict and not self.weak.isdisjoint(powers):
            return None
        for sign, n in [(self.generator_sign(g), e) for g, e in shared] + [(self.poly_sign(q), n) for q, n in powers.items()]:
            if sign is None:
                if n % 2 or strict:
                    return None
            else:
                out *= sign if n % 2 == 1 else 1
        return out

    def required_sign(self, f: Frac, strict: bool = False) -> int:
        """The sign of a real fraction; raises Split if it is unknown."""
        found = self.sign(f, strict)
        if found is not None:
            return found
        _, shared, powers = self.pieces(f)
        for g, e in shared:
            if self.generator_sign(g) is None and (e % 2 or strict):
                raise self.split_error({((g, 1),): 1})
        raise next(self.split_error(dict(q)) for q, n in powers.items()
                   if (n % 2 or strict) and (self.poly_sign(q) is None or strict and q in self.weak))

    def split_error(self, p: Poly) -> Exception:
        """The Split for the sign of a polynomial, with a simpler expression of the same sign."""
        gens = generators(p)
        if not self.real(Frac(p)):
            return TooLarge()
        if key(p) in self.turned:
            return Split(real_expression(self.expression(p)))
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
        made = self.generators[g]
        if made.positive:
            return 1
        known = self.signs.get(key({((g, 1),): 1}))
        if known is None and made.kind == "log":
            low, high = self._reach(made.base) if isinstance(made.base, dict) else (None, None)
            known = 1 if low is not None and low >= 1 else -1 if high is not None and high <= 1 else None
        return known

    def _reach(self, p: Poly) -> tuple[Any, Any]:
        """Bounds of a generator, or of a sum of positive terms that contains a number >= 1."""
        if len(p) == 1:
            [(m, c)] = p.items()
            if c == 1 and len(m) == 1 and m[0][1] == 1:
                return self.interval(m[0][0])
        if all(c > 0 for c in p.values()) and p.get(ONE, 0) >= 1 and all(self.generators[g].positive for g in generators(p)):
            return p[ONE], None
        return None, None

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
        if q not in self.signs:
            found = self._poly_sign(dict(q))
            if found is None:
                return None
            self.signs[q] = found
        return self.signs[q]

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
            return self._sign_between(real_expression(self.expression(p)))
        coefficients = {c > 0 for c in p.values()}
        definite = [all(self.generators[g].positive or e % 2 == 0 for g, e in m) for m in p]
        strict = any(all(self.generators[g].positive for g, _ in m) for m in p)
        if len(coefficients) == 1 and all(definite) and strict:
            return 1 if coefficients.pop() else -1
        if len(gens) == 1 and (found := self._univariate_sign(p, min(gens))) is not None:
            return found
        at_vertices = self._sign_at_vertices(p)
        if at_vertices is not None:
            return at_vertices
        expression = self.expression(p)
        if expression.is_positive or expression.is_negative:
            return 1 if expression.is_positive else -1
        difference = logarithms(self, p)
        if difference is not None:
            return self.sign(difference, strict=True)
        return self._sign_by_parts(p) or self._sign_between(expression)

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
        if scale > 1 and not self.generators[g].positive or min(exponents) < 0:
            return None
        x = sympy.Dummy()
        poly = sympy.Poly(sum(int(c) * x ** int(e * scale) for e, c in zip(exponents, p.values())), x)
        low, high = (None if end is None else sympy.Rational(Fraction(end).numerator, Fraction(end).denominator) for end in self.interval(g))
        if scale > 1:
            low, high = (end if end in (None, 0, 1) else None for end in (low, high))
            low = sympy.S.Zero if low is None else low
        roots = poly.count_roots(low, high) - sum(1 for end in (low, high) if end is not None and poly.eval(end) == 0)
        if roots:
            return None
        inside = (low + high) / 2 if low is not None and high is not None else low + 1 if low is not None else high - 1 if high is not None else 0
        return 1 if poly.eval(inside) > 0 else -1
