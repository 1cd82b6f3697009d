"""Polynomials with rational exponents, and fractions of them over factored denominators.

A monomial is a tuple of pairs (generator, exponent) in the order of the generators, and a polynomial is a dict from monomials to rational
coefficients. Exponents may be negative or fractional: for a positive x, x**(-1/2) is a monomial, too. This module is independent of the
meaning of generators.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import gcd, lcm
from typing import Any, TypeAlias

import sympy

from symgrad.algebra.limits import clock

Rational: TypeAlias = "int | Fraction"
Monomial: TypeAlias = "tuple[tuple[int, Any], ...]"
Poly: TypeAlias = "dict[Monomial, Any]"

ONE: Monomial = ()
DEGREE = 400  # the largest degree of a polynomial that is factored; for enormous degrees SymPy exhausts the memory or crashes
TERMS = 4000  # the most terms of a polynomial


class TooLarge(Exception):
    """The error for a normal form with too many terms, or that takes too long."""


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


def add(*polys: Poly) -> Poly:
    """The sum."""
    out = dict(polys[0])
    for p in polys[1:]:
        for m, c in p.items():
            total = out.get(m, 0) + c
            if total:
                out[m] = total
            else:
                del out[m]
    return out


def scale(p: Poly, c: Any, m: Monomial = ONE) -> Poly:
    """A polynomial times a term."""
    if not c:
        return {}
    return {monomial_times(n, m): d * c for n, d in p.items()} if m else {n: d * c for n, d in p.items()}


def times(a: Poly, b: Poly, deadline: float) -> Poly:
    """The product; raises TooLarge once the deadline is over."""
    if len(a) > len(b):
        a, b = b, a
    if len(a) == 1:
        [(m, c)] = a.items()
        return scale(b, c, m)
    out: Poly = {}
    for m, c in a.items():
        if clock() > deadline or len(out) > TERMS:
            raise TooLarge
        for n, d in b.items():
            product = monomial_times(m, n)
            total = out.get(product, 0) + c * d
            if total:
                out[product] = total
            else:
                out.pop(product, None)
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
    lowest: dict[int, Any] = {}
    for g in generators(p):
        least = min(dict(m).get(g, 0) for m in p)
        if least:
            lowest[g] = least
    shared = tuple(sorted(lowest.items()))
    down = monomial_power(shared, -1)
    rest = {monomial_times(m, down): whole(Fraction(c) / common) for m, c in p.items()}
    if rest[min(rest)] < 0:
        common, rest = -common, {m: -c for m, c in rest.items()}
    return whole(common), shared, rest


def key(p: Poly) -> tuple[Any, ...]:
    """A polynomial as a hashable key."""
    return tuple(sorted(p.items()))


@cache
def _ring(n: int) -> Any:
    return sympy.polys.rings.ring([f"g{i}" for i in range(n)], sympy.ZZ)[0] if n else None


def _to_ring(polys: Sequence[Poly]) -> tuple[Any, list[Any], list[int], list[int]]:
    """Polynomials without negative exponents in a ring of SymPy, with the generators, and the factors that make their exponents integers."""
    gens = sorted(set().union(*(generators(p) for p in polys)))
    scale = [lcm(*(e.denominator for p in polys for m in p for h, e in m if h == g)) for g in gens]
    ring = _ring(len(gens))
    out = []
    if any(abs(e) * s > DEGREE for g, s in zip(gens, scale) for p in polys for m in p for h, e in m if h == g):
        raise TooLarge
    for p in polys:
        terms = {}
        for m, c in p.items():
            exponents = dict(m)
            terms[tuple(int(exponents.get(g, 0) * s) for g, s in zip(gens, scale))] = sympy.ZZ(int(c))
        out.append(ring.from_dict(terms))
    return ring, out, gens, scale


def _from_ring(p: Any, gens: Sequence[int], scale: Sequence[int]) -> Poly:
    return {tuple((g, whole(Fraction(int(e), s))) for g, s, e in zip(gens, scale, m) if e): int(c) for m, c in p.terms()}


def _over_gaussian(p: Poly, i: int) -> tuple[Any, Monomial, list[tuple[Poly, int]]] | None:
    """The factors of a polynomial that contains i over the Gaussian integers; None if the leading coefficient is neither real nor imaginary."""
    gens = sorted(generators(p) - {i})
    scale = [lcm(*(Fraction(e).denominator for m in p for h, e in m if h == g)) for g in gens]
    if not gens or any(abs(e) * s > DEGREE or e < 0 for g, s in zip(gens, scale) for m in p for h, e in m if h == g):
        return None
    domain = sympy.ZZ_I
    terms: dict[Any, Any] = {}
    for m, c in p.items():
        exponents = dict(m)
        place = tuple(int(exponents.get(g, 0) * s) for g, s in zip(gens, scale))
        terms[place] = terms.get(place, domain.zero) + domain(*((0, int(c)) if exponents.get(i) else (int(c), 0)))
    lead, parts = sympy.polys.rings.ring([f"g{g}" for g in gens], domain)[0].from_dict(terms).factor_list()
    if lead.x and lead.y:
        return None

    def plain(q: Any) -> Poly:
        out: Poly = {}
        for place, c in q.terms():
            m = tuple((g, whole(Fraction(int(e), s))) for g, s, e in zip(gens, scale, place) if e)
            out |= {tuple(sorted((*m, *unit))): int(d) for d, unit in ((c.x, ()), (c.y, ((i, 1),))) if d}
        return out

    return int(lead.x or lead.y), ((i, 1),) if lead.y else ONE, [(plain(q), int(n)) for q, n in parts]


def factor_list(p: Poly, imaginary: int | None = None) -> tuple[Any, Monomial, list[tuple[Poly, int]]]:
    """A polynomial as number * monomial * powers of irreducible factors; `imaginary` is the generator that stands for i.

    >>> factor_list({((0, 2),): 2, (): -2})
    (-2, (), [({((0, 1),): -1, (): 1}, 1), ({((0, 1),): 1, (): 1}, 1)])
    """
    number, shared, rest = content(p)
    if len(rest) == 1:
        return number, shared, []
    gaussian = _over_gaussian(rest, imaginary) if imaginary is not None and any(g == imaginary for m in rest for g, _ in m) else None
    if gaussian is not None:
        sign, unit, parts = gaussian
        shared = monomial_times(shared, unit)
    else:
        _, [q], gens, scale = _to_ring([rest])
        sign, factors = q.factor_list()
        parts = [(_from_ring(part, gens, scale), n) for part, n in factors]
    number *= int(sign)
    found = []
    for part, n in parts:
        c, m, f = content(part)
        number *= c**n
        shared = monomial_times(shared, monomial_power(m, n))
        if len(f) > 1:
            found.append((f, int(n)))
    return number, shared, sorted(found, key=lambda pair: (len(pair[0]), key(pair[0])))
