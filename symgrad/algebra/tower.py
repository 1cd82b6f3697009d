"""Fractions of polynomials in generators that represent functions: x, then exp(x) and sqrt(1 + x²), then log(1 + exp(x)), and so on.

Only true relations between generators are used (i² = -1, a root to its power is its radicand), so that a fraction that
reduces to 0 is 0 wherever it is defined. The converse does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import Any

import sympy

from symgrad.algebra.polynomials import (
    Monomial,
    Poly,
    TooLarge,
    add,
    constant,
    content,
    generators,
    key,
    monomial_power,
    scale,
    times,
    whole,
)

LARGEST_PRIME = 50  # the bound of the primes whose square roots are expressed by roots of unity


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


class Tower:
    """The generators of one normal form, and the arithmetic of fractions in them; TooLarge is raised after the deadline."""

    def __init__(self, deadline: float):
        self.deadline = deadline
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
            roots = []
            for g, e in sorted(m, reverse=True):  # a turn before i
                kind = self.generators[g].kind if g in self.bounded else ""
                if kind == "turn":
                    e %= 2
                    if e >= 1:
                        e, c = e - 1, -c
                    if e >= Fraction(1, 2):
                        e -= Fraction(1, 2)
                        kept[self.i] = kept.get(self.i, 0) + 1
                elif kind == "i":
                    e = kept.pop(self.i, 0) + e
                    c = -c if e % 4 >= 2 else c
                    e %= 2
                elif kind == "sign":
                    e %= 2
                elif kind == "prime":
                    n = e.__floor__()
                    c, e = c * Fraction(self.generators[g].base) ** n, e - n
                elif kind == "root":
                    n = e.__floor__()
                    e -= n
                    if n:
                        roots.append((g, n))
                if e:
                    kept[g] = whole(Fraction(e))
            part = carried.setdefault(tuple(sorted(roots)), {}) if roots else out
            monomial = tuple(sorted(kept.items()))
            total = part.get(monomial, 0) + whole(Fraction(c))
            if total:
                part[monomial] = total
            else:
                part.pop(monomial, None)
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
        parts = []
        for f in terms:
            missing = {d: n - f.den.get(d, 0) for d, n in den.items() if n > f.den.get(d, 0)}
            num = Frac(f.num)
            for d, n in missing.items():
                for _ in range(n):
                    num = self._times(num, Frac(dict(d)))
            parts.append(num)
        return self._over(self.sum(parts) if any(part.den for part in parts) else Frac(add(*(part.num for part in parts))), den)

    def _over(self, f: Frac, den: dict[Any, int]) -> Frac:
        if not f.num:
            return Frac({})
        total = dict(f.den)
        for d, n in den.items():
            total[d] = total.get(d, 0) + n
        return Frac(f.num, total)

    def _times(self, f: Frac, g: Frac) -> Frac:
        return self._over(self.reduce_exponents(times(f.num, g.num, self.deadline)), {d: f.den.get(d, 0) + g.den.get(d, 0) for d in f.den | g.den})

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
            for _ in range(n):
                above = self._times(above, Frac(dict(d)))
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
        out, square = self.number(1), f
        while n:
            if n & 1:
                out = self._times(out, square)
            n >>= 1
            if n:
                square = self._times(square, square)
        return out

    def minus(self, f: Frac) -> Frac:
        """-f."""
        return Frac(scale(f.num, -1), f.den)

    def is_zero(self, f: Frac) -> bool:
        """Whether a fraction is literally 0, including the relations between roots of unity."""
        if not f.num:
            return True
        if not any(g == self.turn for m in f.num for g, _ in m):
            return False
        return all(_cyclotomic_zero(p) for p in self._by_roots_of_unity(f.num))

    def _by_roots_of_unity(self, p: Poly) -> list[tuple[int, dict[int, Any]]]:
        """A polynomial in terms of one root of unity w = exp(iπ/n), for each monomial of the other generators: n, and the powers of w.

        i and the square roots of small primes are sums of roots of unity, too: for 2, w + 1/w with n = 4, and for odd p, Gauss's sum.
        """
        def root(g: int, e: Any) -> int:
            prime = self.generators[g].base if self.generators[g].kind == "prime" and e == Fraction(1, 2) else 0
            return prime if 0 < prime < LARGEST_PRIME else 0

        pairs = {pair for m in p for pair in m}
        primes = {root(*pair) for pair in pairs} - {0}
        n = lcm(2, *(Fraction(e).denominator for g, e in pairs if g == self.turn), *(4 if q == 2 else 2 * q for q in primes))
        parts: dict[Monomial, dict[int, Any]] = {}
        for m, c in p.items():
            powers = {0: Fraction(c)}
            rest = []
            for g, e in m:
                if g in (self.turn, self.i):
                    powers = _shift(powers, int(e * n if g == self.turn else n // 2), n)
                elif root(g, e):
                    powers = _multiply(powers, _square_root(root(g, e), n), n)
                else:
                    rest.append((g, e))
            part = parts.setdefault(tuple(rest), {})
            for k, d in powers.items():
                part[k] = part.get(k, 0) + d
        return [(n, part) for part in parts.values()]

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


def _shift(powers: dict[int, Any], by: int, n: int) -> dict[int, Any]:
    return {(k + by) % (2 * n): c for k, c in powers.items()}


def _multiply(a: dict[int, Any], b: dict[int, Any], n: int) -> dict[int, Any]:
    out: dict[int, Any] = {}
    for j, c in b.items():
        for k, d in _shift(a, j, n).items():
            out[k] = out.get(k, 0) + c * d
    return out


def _square_root(p: int, n: int) -> dict[int, Any]:
    """The square root of a prime in powers of w = exp(iπ/n): Gauss's sum of (a/p) exp(2πia/p) is the root of p, or i times it."""
    if p == 2:
        return {n // 4: 1, 2 * n - n // 4: 1}
    turn = 0 if p % 4 == 1 else -n // 2
    return {(2 * n * a // p + turn) % (2 * n): 1 if pow(a, (p - 1) // 2, p) == 1 else -1 for a in range(1, p)}


def _cyclotomic_zero(part: tuple[int, dict[int, Any]]) -> bool:
    """Whether a sum of powers of exp(iπ/n) is 0: by the remainder of a division by its minimal polynomial."""
    n, powers = part
    w = sympy.Dummy()
    polynomial = sympy.Poly({(k,): sympy.Rational(c.numerator, c.denominator) for k, c in powers.items() if c} or {(0,): 0}, w)
    return bool(polynomial.rem(sympy.cyclotomic_poly(2 * n, w, polys=True)).is_zero)
