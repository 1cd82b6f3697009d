"""The range of a symbol, and exact points in it: special points, and points of every size, on both sides of possible kinks and branch cuts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isinf
from random import Random
from typing import Any

import sympy

from symgrad.algebra.stochastic import Exact, Gaussian
from symgrad.graph.domains import Domain
from symgrad.sampling.domain_reader import Piece, domain_of, pieces_of

SPECIAL = tuple(Fraction(*x) for x in ((0, 1), (1, 1), (-1, 1), (2, 1), (-2, 1), (1, 2), (-1, 2), (3, 1), (-3, 1), (10, 1), (-10, 1)))
WORDS = ("real", "complex", "positive", "negative", "nonnegative", "nonpositive", "nonzero", "zero", "integer", "even", "odd", "prime", "imaginary",
         "rational", "finite")


@dataclass(frozen=True)
class Range:
    """The possible values of a symbol: real pieces, or the complex plane (or its imaginary axis), without some points."""

    pieces: tuple[Piece, ...] = (Piece(),)
    excluded: frozenset[Fraction] = frozenset()
    complex: bool = False
    imaginary: bool = False

    def __contains__(self, x: Exact) -> bool:
        if isinstance(x, Gaussian):
            return self.complex and (not self.imaginary or x.real == 0)
        if x in self.excluded or self.imaginary and x:
            return False
        return self.complex or any(x in piece for piece in self.pieces)

    @property
    def empty(self) -> bool:
        """Whether it is empty."""
        return not self.complex and all(p.empty or p.low is not None and p.low == p.high and p.low in self.excluded for p in self.pieces)

    @cached_property
    def assumptions(self) -> dict[str, bool]:
        """The SymPy assumptions of a symbol with this range."""
        nonzero = {"zero": False} if Fraction(0) in self.excluded else {}
        if self.complex:
            return {"imaginary": True} if self.imaginary else {"complex": True} | nonzero
        out = {"real": True}
        if all(piece.step for piece in self.pieces):
            steps = {(piece.step, piece.offset) for piece in self.pieces}
            out |= {"even": True} if steps == {(2, 0)} else {"odd": True} if steps == {(2, 1)} else {"integer": True}
        zero = Fraction(0) in self
        if all(piece.low is not None and piece.low >= 0 for piece in self.pieces):
            out |= {"nonnegative": True} if zero else {"positive": True}
        elif all(piece.high is not None and piece.high <= 0 for piece in self.pieces):
            out |= {"nonpositive": True} if zero else {"negative": True}
        elif not zero:
            out |= {"zero": False}
        return out

    def draw(self, rng: Random, size: str) -> Exact:
        """A number in the range."""
        if not self.complex:
            pieces = [piece for piece in self.pieces if not piece.empty]
            numbers = (rng.choice(pieces).draw(rng, size) for _ in range(20))
            return next((x for x in numbers if x not in self.excluded), pieces[0].low or Fraction(0))
        real, imag = (Piece().draw(rng, size) for _ in range(2))
        shape = rng.choice(["plane", "plane", "plane", "real", "imaginary", "above", "below"])
        if self.imaginary or shape == "imaginary":
            return Gaussian(Fraction(0), imag)
        if shape == "real":
            return real
        # Above and below are next to the branch cut along the negative numbers.
        return Gaussian(real, imag) if shape == "plane" else Gaussian(-abs(real), Fraction(1 if shape == "above" else -1, 2**20))

    def special(self, constants: Iterable[Fraction]) -> list[Exact]:
        """Special points in the range: small integers, the ends, the constants of an expression and their neighbours."""
        ends = [end for piece in self.pieces for end in (piece.low, piece.high) if end is not None]
        known = [*SPECIAL[:3], *constants, *self.excluded, *ends]
        near = [c + d for c in known[3:] for d in (Fraction(1, 2**12), -Fraction(1, 2**12))]
        found: list[Exact] = [x for x in dict.fromkeys([*known, *SPECIAL, *near]) if x in self]
        if self.complex:
            found += [x for x in (Gaussian(Fraction(a), Fraction(b)) for a, b in ((0, 1), (0, -1), (1, 1), (-1, 1), (-1, -1), (2, -3))) if x in self]
        return found


def _range_of_facts(facts: Any, silent: bool = False) -> Range:
    """The range of a symbol with assumptions; `facts` maps SymPy's words to True, False or None. Without facts a `silent` symbol is complex."""
    excluded = frozenset({Fraction(0)}) if facts("zero") is False else frozenset()
    if facts("imaginary"):
        return Range(excluded=excluded, complex=True, imaginary=True)
    if (facts("complex") or silent) and not facts("extended_real") or facts("extended_real") is False:
        return Range(excluded=excluded, complex=True)
    if facts("prime"):
        return Range(tuple(Piece(Fraction(p), Fraction(p)) for p in (2, 3, 5, 7, 11, 13, 29, 101)))
    zero = Fraction(0)
    if facts("zero"):
        return Range((Piece(zero, zero),))
    step, offset = (2, 0) if facts("even") else (2, 1) if facts("odd") else (1, 0) if facts("integer") else (0, 0)
    low = zero if facts("extended_nonnegative") else None
    high = zero if facts("extended_nonpositive") else None
    return Range((Piece(low, high, bool(facts("extended_positive")), bool(facts("extended_negative")), step, offset),), excluded)


def _range_of(symbol: sympy.Symbol, given: Any) -> Range:
    """The range that a user gives."""
    if isinstance(given, Range):
        return given
    if isinstance(given, Domain):
        if given.name == "COMPLEX":
            return Range(complex=True)
        ends = [[None if isinf(end) else Fraction(end) for end in (i.low, i.high)] for i in given.intervals]
        pieces = tuple(Piece(low, high, i.open_low, i.open_high, int(given.integer)) for i, (low, high) in zip(given.intervals, ends))
        return Range(pieces, frozenset(Fraction(x) for x in given.excluded))
    if isinstance(given, sympy.Set):
        return Range(complex=True) if given is sympy.S.Complexes else Range(*pieces_of(given, symbol.name))
    words = given.replace(",", " ").split() if isinstance(given, str) else [w for w, holds in given.items() if holds] \
        if isinstance(given, Mapping) else [given] if not isinstance(given, (list, tuple, set, frozenset)) else given
    if not all(word in WORDS for word in words):
        try:
            return _range_of(symbol, domain_of(given, symbol.name))
        except TypeError as error:
            raise TypeError(f"{error}, or words out of {', '.join(WORDS)}") from None
    default = {} if "complex" in words or "imaginary" in words else {"real": True}
    return _range_of_facts(sympy.Symbol("x", **default | dict.fromkeys(words, True))._assumptions.get)


def intersection(own: Range, given: Range) -> Range:
    """The numbers in both of two ranges."""
    excluded = own.excluded | given.excluded
    if own.complex and given.complex:
        return Range(excluded=excluded, complex=True, imaginary=own.imaginary or given.imaginary)
    if own.complex or given.complex:
        real = given if own.complex else own
        if own.imaginary or given.imaginary:
            real = Range(tuple(p & Piece(Fraction(0), Fraction(0)) for p in real.pieces))
        return Range(real.pieces, real.excluded | excluded)
    return Range(tuple(p & q for p in own.pieces for q in given.pieces), excluded)


def ranges_of(symbols: Sequence[sympy.Symbol], assumptions: Mapping[Any, Any] | None) -> list[Range]:
    """The range of each symbol, by its own assumptions and the given ones; real if there are none.

    Raises TypeError for an assumption other than a Domain, a SymPy set or known words, and for a key that is not a symbol.
    """
    given = dict(assumptions or {})
    for key in given:
        if not isinstance(key, sympy.Symbol):
            raise TypeError(f"assumptions map SymPy symbols to a symgrad Domain, a SymPy set or words, got the key {key!r}")
    out = [_range_of_facts(lambda word, symbol=symbol: getattr(symbol, f"is_{word}"), symbol in given) for symbol in symbols]
    return [intersection(own, _range_of(symbol, given[symbol])) if symbol in given else own for symbol, own in zip(symbols, out)]


def points_in(ranges: Sequence[Range], constants: Sequence[Fraction], rng: Random) -> Iterator[list[Exact]]:
    """An infinite sequence of exact points in the product of ranges: in turn moderate, special, of any size, and with ties."""
    special = [r.special(constants) for r in ranges]
    if not ranges:
        yield []
        return
    longest = max(map(len, special))
    for i in range(10**6):
        kind = ("moderate", "special", "any", "special", "moderate", "special", "far", "special")[i % 8]
        if kind == "special" and (k := i // 2) < longest:
            # The same special value for all symbols, then special values combined with others.
            alike = len(ranges) == 1 or i % 4 == 1
            values = [s[k % len(s)] if s and (alike or rng.random() < 0.5) else r.draw(rng, "moderate") for s, r in zip(special, ranges)]
            yield values
        elif kind == "special" and len(ranges) > 1:
            tied: Any = ranges[0].draw(rng, "moderate")
            signs = [rng.choice([1, 1, -1]) for _ in ranges]
            values = [tied if sign > 0 or isinstance(tied, Gaussian) else -tied for sign in signs]
            yield [x if x in r else r.draw(rng, "any") for x, r in zip(values, ranges)]
        else:
            yield [r.draw(rng, "any" if kind == "special" else kind) for r in ranges]
