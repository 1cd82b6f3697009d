"""Polynomials with rational exponents, and fractions of them over factored denominators.

A monomial is a tuple of pairs (generator, exponent) in the order of the generators, and a polynomial is a dict from monomials to rational
coefficients. Exponents may be negative or fractional: for a positive x, x**(-1/2) is a monomial, too. This module is independent of the
meaning of generators.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from math import gcd, lcm
from typing import Any, TypeAlias

import sympy

from symgrad.algebra.effort import Effort, TooLarge

Rational: TypeAlias = "int | Fraction"
Monomial: TypeAlias = "tuple[tuple[int, Any], ...]"
Poly: TypeAlias = "dict[Monomial, Any]"

ONE: Monomial = ()
DEGREE = 400  # the largest degree of a polynomial that is factored; for enormous degrees SymPy exhausts the memory or crashes
TERMS = 4000  # the most terms of a polynomial
FACTORED, GAUSSIAN = 20_000, 2000  # the most terms times degrees of a polynomial that is factored, over the integers and with i


def constant(c: Any) -> Poly:
    """A number as a polynomial."""
    return {ONE: c} if c else {}


def monomial_times(a: Monomial, b: Monomial) -> Monomial:
    """The product of two monomials."""
    if not a or not b:
        return a or b
    exponents: dict[int, Any] = dict(a)
    for g, e in b:
        total = exponents.get(g, 0) + e
        if total:
            exponents[g] = total
        else:
            del exponents[g]
    return tuple(sorted(exponents.items()))


def monomial_power(a: Monomial, n: Any) -> Monomial:
    """A monomial to a rational power, which must be allowed for its generators."""
    return tuple((g, whole(e * n)) for g, e in a)


def whole(x: Any) -> Any:
    """A rational number, as an int if it is an integer."""
    return x.numerator if x.denominator == 1 else x


def put(p: Poly, m: Monomial, c: Any) -> None:
    """Add a term to a polynomial, in place."""
    total = p.get(m, 0) + c
    if total:
        p[m] = total
    else:
        p.pop(m, None)


def add(*polys: Poly) -> Poly:
    """The sum."""
    out = dict(polys[0])
    for p in polys[1:]:
        for m, c in p.items():
            put(out, m, c)
    return out


def scale(p: Poly, c: Any, m: Monomial = ONE) -> Poly:
    """A polynomial times a term."""
    if not c:
        return {}
    return {monomial_times(n, m): d * c for n, d in p.items()} if m else {n: d * c for n, d in p.items()}


def times(a: Poly, b: Poly, effort: Effort) -> Poly:
    """The product. Raises TooLarge if it needs more term pairs than are left, or has too many terms."""
    effort.spend(len(a) * len(b))
    if len(a) > len(b):
        a, b = b, a
    if len(a) == 1:
        [(m, c)] = a.items()
        return scale(b, c, m)
    out: Poly = {}
    for m, c in a.items():
        if len(out) > TERMS:
            raise TooLarge
        for n, d in b.items():
            put(out, monomial_times(m, n), c * d)
    return out


def generators(p: Poly) -> set[int]:
    """The generators in a polynomial."""
    return {g for m in p for g, _ in m}


def content(p: Poly) -> tuple[Any, Monomial, Poly]:
    """A polynomial as number * monomial * rest, where the rest has integer coefficients without common factors and a positive first one.

    >>> content({((0, 2),): 4, ((0, 1),): -6})
    (-2, ((0, 1),), {((0, 1),): -2, (): 3})
    """
    coefficients = list(p.values())
    common = Fraction(gcd(*(c.numerator for c in coefficients)), lcm(*(c.denominator for c in coefficients)))
    exponents: dict[int, list[Any]] = {}
    for m in p:
        for g, n in m:
            exponents.setdefault(g, []).append(n)
    lowest = {g: min(ns) if len(ns) == len(p) else min(0, *ns) for g, ns in exponents.items()}
    shared = tuple(sorted((g, n) for g, n in lowest.items() if n))
    down = monomial_power(shared, -1)
    rest = {monomial_times(m, down): whole(Fraction(c) / common) for m, c in p.items()}
    if rest[min(rest)] < 0:
        common, rest = -common, {m: -c for m, c in rest.items()}
    return whole(common), shared, rest


def key(p: Poly) -> tuple[Any, ...]:
    """A polynomial as a hashable key."""
    return tuple(sorted(p.items()))


@cache
def _flint() -> Any:
    """The module flint; None where it is not installed."""
    try:
        import flint
    except ImportError:
        return None
    return flint


def _irreducible(p: Poly, i: int | None, most: int) -> tuple[int, Monomial, list[tuple[Poly, int]]]:
    """A polynomial with integer coefficients as number * unit * powers of factors, over the Gaussian integers if the generator i is given.

    Raises TooLarge for a negative exponent, for a polynomial that is too large, and for a leading coefficient that is neither real nor imaginary.
    """
    gens = sorted(generators(p) - {i})
    scale = [lcm(*(Fraction(e).denominator for m in p for h, e in m if h == g)) for g in gens]
    if not gens or any(not 0 <= e * s <= DEGREE for g, s in zip(gens, scale) for m in p for h, e in m if h == g):
        raise TooLarge
    domain = sympy.ZZ if i is None else sympy.ZZ_I
    terms: dict[tuple[int, ...], Any] = {}
    for m, c in p.items():
        exponents = dict(m)
        place = tuple(int(exponents.get(g, 0) * s) for g, s in zip(gens, scale))
        terms[place] = terms.get(place, domain.zero) + (domain(int(c)) if i is None else domain(0, int(c)) if i in exponents else domain(int(c), 0))
    if len(p) * sum(max(powers) for powers in zip(*terms)) > most:
        raise TooLarge
    names, flint = [f"g{k}" for k in range(len(gens))], _flint() if i is None else None
    if flint is not None:  # it is faster than SymPy
        lead, found = flint.fmpz_mpoly_ctx.get(names, "lex").from_dict({place: int(c) for place, c in terms.items()}).factor()
    else:
        lead, found = sympy.polys.rings.ring(names, domain)[0].from_dict(terms).factor_list()

    def plain(q: Any) -> Poly:
        out: Poly = {}
        for place, c in q.to_dict().items() if hasattr(q, "to_dict") else q.terms():
            m = tuple((g, whole(Fraction(int(e), s))) for g, s, e in zip(gens, scale, place) if e)
            for d, unit in ((c, ONE),) if i is None else ((c.x, ONE), (c.y, ((i, 1),))):
                out |= {tuple(sorted((*m, *unit))): int(d)} if d else {}
        return out

    factors = [(plain(q), int(n)) for q, n in found]
    if i is None:
        return int(lead), ONE, factors
    if lead.x and lead.y:
        raise TooLarge
    return int(lead.x or lead.y), ((i, 1),) if lead.y else ONE, factors


@lru_cache(4096)
def factor_list(p: Any, imaginary: int | None = None) -> tuple[Any, Monomial, list[tuple[Any, int]]]:
    """A polynomial, given by its key, as number * monomial * powers of irreducible factors; `imaginary` is the generator that stands for i.

    Raises TooLarge for a polynomial that is too large to be factored.
    """
    number, shared, rest = content(dict(p))
    if len(rest) == 1:
        return number, shared, []
    try:
        sign, unit, parts = _irreducible(rest, imaginary, GAUSSIAN) if imaginary in generators(rest) else _irreducible(rest, None, FACTORED)
    except TooLarge:
        if imaginary not in generators(rest):
            raise
        sign, unit, parts = _irreducible(rest, None, FACTORED)
    shared = monomial_times(shared, unit)
    number *= sign
    found = []
    for part, n in parts:
        c, m, f = content(part)
        number *= c**n
        shared = monomial_times(shared, monomial_power(m, n))
        if len(f) > 1:
            found.append((key(f), n))
    return number, shared, sorted(found, key=lambda pair: (len(pair[0]), pair[0]))
