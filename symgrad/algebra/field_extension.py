"""Fractions of polynomials in generators that represent functions: x, then exp(x) and sqrt(1 + x²), then log(1 + exp(x)), and so on.

Only true relations between generators are used (i² = -1, a root to its power is its radicand), so that a fraction that
reduces to 0 is 0 wherever it is defined. The converse does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm, prod
from typing import Any

import mpmath
import sympy

from symgrad.algebra.effort import Effort, TooLarge
from symgrad.algebra.polynomials import (
    Monomial,
    Poly,
    add,
    constant,
    content,
    generators,
    key,
    monomial_power,
    put,
    scale,
    times,
    whole,
)

LONGEST, GUARD = 20_000, 64  # the most bits with which an algebraic number is compared with 0, and more ones for the rounding


@dataclass(frozen=True)
class Frac:
    """A polynomial over powers of polynomials, each given by its key."""

    num: Poly
    den: dict[Any, int] = field(default_factory=dict)


@dataclass
class Generator:
    """A generator: its kind and its expression.

    `kind` is "symbol", "i", "turn" (exp(iπ) to fractional powers), "sign" (exp(iπn) for integer n), "prime", "root" (of `base`), "exp" (of `base`),
    "log" (of `base`), or the name of a function.
    """

    kind: str
    expression: Any
    real: bool = True
    positive: bool = False
    base: Any = None
    arguments: tuple[Frac, ...] = ()


class FieldExtension:
    """The generators of one normal form, and the arithmetic of fractions in them. Raises TooLarge where more work is needed than is left."""

    def __init__(self, effort: Effort):
        self.effort = effort
        self.generators: list[Generator] = []
        self.places: dict[Any, int] = {}
        self.bounded: set[int] = set()
        self.i = self.generator(("i",), Generator("i", sympy.I, real=False))
        self.turn = self.generator(("turn",), Generator("turn", sympy.S.NegativeOne, real=False))
        self.pi = self.generator(("symbol", sympy.pi), Generator("symbol", sympy.pi, positive=True))

    def generator(self, name: Any, made: Generator) -> int:
        """The number of the generator with a name, which is added if it is new."""
        if name not in self.places:
            self.places[name] = len(self.generators)
            self.generators.append(made)
            if made.kind in ("i", "turn", "sign", "prime", "root"):
                self.bounded.add(self.places[name])
        return self.places[name]

    def number(self, c: Any) -> Frac:
        """A rational number."""
        return Frac(constant(c))

    def term(self, g: int, e: Any = 1, c: Any = 1) -> Frac:
        """c times a generator to a power."""
        return self.reduce_exponents({((g, whole(e)),): c}) if e and c else self.number(c)

    def reduce_exponents(self, p: Poly) -> Frac:
        """A polynomial with the exponents of i, roots and similar generators reduced by their relations."""
        if not any(g in self.bounded for m in p for g, _ in m):
            return Frac(p)
        out: Poly = {}
        carried: dict[Monomial, Poly] = {}
        for m, c in p.items():
            kept: dict[int, Any] = {}
            roots, quarters = [], 0
            for g, e in m:
                kind = self.generators[g].kind if g in self.bounded else ""
                if kind in ("turn", "i"):  # exp(iπ/2) is i
                    n = (2 * e).__floor__() if kind == "turn" else e
                    quarters, e = quarters + n, e - Fraction(n, 2) if kind == "turn" else 0
                elif kind == "sign":
                    e %= 2
                elif kind in ("prime", "root"):
                    n = e.__floor__()
                    e -= n
                    c = c * Fraction(self.generators[g].base) ** n if kind == "prime" else c
                    roots += [(g, n)] if n and kind == "root" else []
                if e:
                    kept[g] = whole(Fraction(e))
            kept |= {self.i: 1} if quarters % 2 else {}
            put(carried.setdefault(tuple(sorted(roots)), {}) if roots else out, tuple(sorted(kept.items())),
                whole(Fraction(-c if quarters % 4 >= 2 else c)))
        found = Frac(out)
        for powers, part in carried.items():
            found = self.sum([found, self.product([Frac(part), *(self.power(self.generators[g].base, n) for g, n in powers)])])
        return found

    def sum(self, terms: Sequence[Frac]) -> Frac:
        """The sum of fractions: of those over powers of the same polynomials first, which are few or cancel."""
        alike: dict[Any, list[Frac]] = {}
        for f in terms:
            alike.setdefault(frozenset(f.den), []).append(f)
        return self._over_one(list(map(self._over_one, alike.values())))

    def _over_one(self, terms: Sequence[Frac]) -> Frac:
        """The sum of fractions over their common denominator."""
        terms = [f for f in terms if f.num]
        if len(terms) <= 1:
            return terms[0] if terms else Frac({})
        den: dict[Any, int] = {}
        for f in terms:
            for d, n in f.den.items():
                den[d] = max(den.get(d, 0), n)
        self.effort.spend(sum(len(f.num) for f in terms))
        parts = [self.product([Frac(f.num), *(self.power(Frac(dict(d)), n - f.den.get(d, 0)) for d, n in den.items() if n > f.den.get(d, 0))])
                 for f in terms]
        return self._over(self.sum(parts) if any(part.den for part in parts) else Frac(add(*(part.num for part in parts))), den)

    def _over(self, f: Frac, den: dict[Any, int]) -> Frac:
        if not f.num:
            return Frac({})
        return Frac(f.num, {d: f.den.get(d, 0) + den.get(d, 0) for d in f.den | den})

    def _times(self, f: Frac, g: Frac) -> Frac:
        return self._over(self.reduce_exponents(times(f.num, g.num, self.effort)), {d: f.den.get(d, 0) + g.den.get(d, 0) for d in f.den | g.den})

    def product(self, factors: Iterable[Frac]) -> Frac:
        """The product of fractions; a numerator that is a factor of the other's denominator is cancelled."""
        out = self.number(1)
        for f in factors:
            if not f.num:
                return f
            (a, out), (b, f) = self._cancel(out, f), self._cancel(f, out)
            out = self._times(Frac(a, out.den), Frac(b, f.den))
        return out

    @staticmethod
    def _cancel(f: Frac, g: Frac) -> tuple[Poly, Frac]:
        """The numerator and the denominator of f after cancellation with another fraction."""
        num = f.num
        if g.den and len(num) > 1:
            c, m, rest = content(num)
            if key(rest) in g.den:
                num = {m: c}
        den = f.den
        if den and len(g.num) > 1:
            d = key(content(g.num)[2])
            if d in den:
                den = {k: n - (k == d) for k, n in den.items() if n > (k == d)}
        return num, Frac(f.num, den)

    def inverse(self, f: Frac) -> Frac:
        """1 / f. Raises ZeroDivisionError for a literal 0."""
        if not f.num:
            raise ZeroDivisionError
        c, m, rest = content(f.num)
        above = self.reduce_exponents({monomial_power(m, -1): whole(1 / Fraction(c))})
        for d, n in f.den.items():
            above = self._times(above, self.power(Frac(dict(d)), n))
        return above if len(rest) == 1 else self._over(above, {key(rest): 1})

    def power(self, f: Frac, n: int) -> Frac:
        """A fraction to an integer power."""
        if n < 0:
            return self.power(self.inverse(f), -n)
        if len(f.num) == 1:
            [(m, c)] = f.num.items()
            return self._over(self.reduce_exponents({monomial_power(m, n): whole(Fraction(c) ** n)}), {d: k * n for d, k in f.den.items()})
        if n > 60:
            raise TooLarge
        if n <= 1:
            return f if n else self.number(1)
        half = self.power(f, n // 2)
        square = self._times(half, half)
        return self._times(square, f) if n % 2 else square

    def difference(self, f: Frac, g: Frac) -> Frac:
        """f - g."""
        return self.sum([f, self.minus(g)])

    def minus(self, f: Frac) -> Frac:
        """-f."""
        return Frac(scale(f.num, -1), f.den)

    def is_zero(self, f: Frac) -> bool:
        """Whether a fraction is literally 0, including the relations between roots of unity and roots of integers."""
        if not f.num:
            return True
        if not any(g == self.turn for m in f.num for g, _ in m):
            return False
        parts: dict[Monomial, Poly] = {}
        for m, c in f.num.items():
            numbers = tuple(pair for pair in m if pair[0] in (self.i, self.turn) or self.generators[pair[0]].kind == "prime")
            parts.setdefault(tuple(pair for pair in m if pair not in numbers), {})[numbers] = c
        return all(map(self._is_zero_number, parts.values()))

    def _is_zero_number(self, p: Poly) -> bool:
        """Whether a sum of products of roots of unity and of roots of integers is 0; False also if that is not decided.

        The product of the conjugates of an algebraic integer is an integer, so that one of degree d whose conjugates are at most b is 0 or at least
        b**(1 - d).
        """
        roots: dict[int, int] = {}
        for g, e in {pair for m in p for pair in m}:
            roots[g] = lcm(roots.get(g, 1), Fraction(e).denominator)
        degree = int(sympy.totient(lcm(4, 2 * roots.pop(self.turn, 1)))) * prod(roots.values())
        whole_numbers = lcm(*(Fraction(c).denominator for c in p.values()))
        largest = sum(abs(c) * whole_numbers * prod(self.generators[g].base for g, _ in m if g in roots and g != self.i) for m, c in p.items())
        bits = degree * int(largest).bit_length()
        if bits > LONGEST:
            return False
        context = mpmath.MPContext()
        context.prec = bits + GUARD

        def root(g: int, e: Any) -> Any:
            if g == self.i:
                return context.j**e
            exponent = context.mpf(Fraction(e).numerator) / Fraction(e).denominator
            return context.expjpi(exponent) if g == self.turn else context.mpf(self.generators[g].base) ** exponent

        total = context.fsum([int(c * whole_numbers) * context.fprod([root(*pair) for pair in m]) for m, c in p.items()])
        return bool(abs(total) < context.ldexp(1, -bits))

    def expression(self, p: Poly) -> Any:
        """A polynomial as a SymPy expression."""
        return sympy.Add(*(sympy.Rational(Fraction(c).numerator, Fraction(c).denominator) * self.monomial_expression(m) for m, c in p.items()))

    def monomial_expression(self, m: Monomial) -> Any:
        """A monomial as a SymPy expression."""
        def power(made: Generator, q: Any) -> Any:
            return sympy.exp(made.base * q) if made.kind == "exp" else made.expression**q  # the root of exp(ix) need not be exp(ix/2)

        return sympy.Mul(*(power(self.generators[g], sympy.Rational(Fraction(e).numerator, Fraction(e).denominator)) for g, e in m))

    def real(self, f: Frac) -> bool:
        """Whether a fraction is known to be real."""
        return all(self.generators[g].real for p in (f.num, *map(dict, f.den)) for g in generators(p))
