"""The range of a symbol, and exact points in it: special ones, of every size, on both sides of possible kinks and branch cuts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random
from typing import Any

import sympy

from symgrad.algebra.stochastic import Exact, Gaussian
from symgrad.types.domains import Domain

__all__ = ["Piece", "Range", "points_in", "ranges_of", "simpler", "weight"]

SPECIAL = tuple(Fraction(*x) for x in ((0, 1), (1, 1), (-1, 1), (2, 1), (-2, 1), (1, 2), (-1, 2), (3, 1), (-3, 1), (10, 1), (-10, 1)))
WORDS = ("real", "complex", "positive", "negative", "nonnegative", "nonpositive", "nonzero", "zero", "integer", "even", "odd", "prime", "imaginary",
         "rational", "finite")


@dataclass(frozen=True)
class Piece:
    """The real numbers between two ends (None: infinite), or those with the remainder `offset` modulo `step`."""

    low: Fraction | None = None
    high: Fraction | None = None
    open_low: bool = False
    open_high: bool = False
    step: int = 0
    offset: int = 0

    def __contains__(self, x: Fraction) -> bool:
        if self.low is not None and (x < self.low or self.open_low and x == self.low):
            return False
        if self.high is not None and (x > self.high or self.open_high and x == self.high):
            return False
        return not self.step or x.denominator == 1 and x.numerator % self.step == self.offset

    def __and__(self, other: Piece) -> Piece:
        low, open_low = _inner(self.low, self.open_low, other.low, other.open_low, max)
        high, open_high = _inner(self.high, self.open_high, other.high, other.open_high, min)
        finer = max(self, other, key=lambda piece: piece.step)
        coarser = other if finer is self else self
        if coarser.step and finer.offset % coarser.step != coarser.offset:
            high, low = Fraction(0), Fraction(1)  # the lattices have no common number
        return Piece(low, high, open_low, open_high, finer.step, finer.offset)

    @property
    def empty(self) -> bool:
        """Whether it is empty."""
        if self.low is None or self.high is None:
            return False
        if self.step:
            return self._whole(self.low, self.high) is None
        return self.low > self.high or self.low == self.high and (self.open_low or self.open_high)

    def _whole(self, low: Fraction, high: Fraction) -> int | None:
        """The smallest number of a lattice inside two ends."""
        n = -(-low.numerator // low.denominator)
        n += (self.offset - n) % self.step
        while n <= high:
            if Fraction(n) in self:
                return n
            n += self.step
        return None

    def draw(self, rng: Random, size: str) -> Fraction:
        """A number inside: of "moderate" size, of "any" size (over many magnitudes, and close to the ends), or "far" from 0."""
        if self.low is not None and self.low == self.high:
            return self.low
        if self.step:
            return self._draw_whole(rng, size)
        if self.low is None or self.high is None:
            x = _length(rng, size)
            if self.low is not None:
                return self.low + x
            if self.high is not None:
                return self.high - x
            return x if rng.random() < 0.5 else -x
        part = Fraction(rng.randint(1, 1023), 1024) if size == "moderate" else Fraction(1, 2 ** rng.randint(1, 30))
        part = 1 - part if rng.random() < 0.5 else part
        return self.low + (self.high - self.low) * part

    def _draw_whole(self, rng: Random, size: str) -> Fraction:
        reach = {"moderate": 8, "any": 30, "far": 200}[size]
        low = self.low if self.low is not None else (self.high - reach if self.high is not None else Fraction(-reach))
        high = min(self.high, low + 2 * reach) if self.high is not None else low + (reach if self.low is not None else 2 * reach)
        x = Fraction(rng.randint(-(-low.numerator // low.denominator), high.numerator // high.denominator))
        if self.step > 1:
            x += (self.offset - x) % self.step
        if x in self:
            return x
        first = self._whole(low, high)
        return Fraction(0 if first is None else first)


def _inner(a: Fraction | None, open_a: bool, b: Fraction | None, open_b: bool, inner: Any) -> tuple[Fraction | None, bool]:
    if a is None or b is None:
        return (b, open_b) if a is None else (a, open_a)
    return (a, open_a or open_b) if a == b else (a, open_a) if inner(a, b) == a else (b, open_b)


def _length(rng: Random, size: str) -> Fraction:
    """A positive number of few bits."""
    if size == "moderate":
        return Fraction(rng.randint(1, 512), 64)
    exponent = rng.randint(-30, 12) if size == "any" else rng.randint(4, 30)
    return Fraction(rng.randint(513, 1023), 1024) * Fraction(2) ** exponent


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
        """A number inside."""
        if self.complex:
            return self._draw_complex(rng, size)
        pieces = [piece for piece in self.pieces if not piece.empty]
        for _ in range(20):
            x = rng.choice(pieces).draw(rng, size)
            if x not in self.excluded:
                return x
        return x

    def _draw_complex(self, rng: Random, size: str) -> Exact:
        real, imag = (Piece().draw(rng, size) for _ in range(2))
        shape = rng.choice(["plane", "plane", "plane", "real", "imaginary", "above", "below"])
        if self.imaginary or shape == "imaginary":
            return Gaussian(Fraction(0), imag)
        if shape == "real":
            return real
        if shape != "plane":  # next to the cut along the negative numbers
            return Gaussian(-abs(real), Fraction(1 if shape == "above" else -1, 2**20))
        return Gaussian(real, imag)

    def special(self, constants: Iterable[Fraction]) -> list[Exact]:
        """Special points inside: small whole numbers, the ends, the constants of an expression and their neighbours."""
        ends = [end for piece in self.pieces for end in (piece.low, piece.high) if end is not None]
        near = [c + d for c in [*constants, *self.excluded, *ends] for d in (0, Fraction(1, 2**12), -Fraction(1, 2**12))]
        found: list[Exact] = [x for x in dict.fromkeys([*SPECIAL, *near]) if x in self]
        if self.complex:
            found += [x for x in (Gaussian(Fraction(a), Fraction(b)) for a, b in ((0, 1), (0, -1), (1, 1), (-1, 1), (-1, -1), (2, -3))) if x in self]
        return found


def _bound(end: Any, side: int) -> tuple[Fraction | None, bool]:
    """An end of an interval; an irrational one is moved inside by a small distance."""
    if end in (sympy.oo, -sympy.oo):
        return None, True
    if isinstance(end, (float, sympy.Float)):
        return Fraction(float(end)), False
    if end.is_Rational:
        return Fraction(int(end.p), int(end.q)), False
    return Fraction(str(sympy.N(end, 30))) + side * Fraction(1, 10**25), True


def _pieces(given: Any) -> tuple[tuple[Piece, ...], frozenset[Fraction]]:
    """The pieces of a SymPy set of real numbers, and the excluded points."""
    none: frozenset[Fraction] = frozenset()
    if isinstance(given, sympy.Interval):
        (low, moved_low), (high, moved_high) = _bound(given.start, 1), _bound(given.end, -1)
        return (Piece(low, high, bool(given.left_open) or moved_low, bool(given.right_open) or moved_high),), none
    if isinstance(given, sympy.FiniteSet):
        values = [_bound(x, 0)[0] for x in given]
        return tuple(Piece(x, x) for x in values if x is not None), none
    if given is sympy.S.Integers:
        return (Piece(step=1),), none
    if isinstance(given, sympy.Range) or given in (sympy.S.Naturals, sympy.S.Naturals0):
        if abs(getattr(given, "step", 1)) != 1:
            raise TypeError(f"a range of whole numbers with steps of 1 is expected, got {given}")
        return (Piece(_bound(given.inf, 0)[0], _bound(given.sup, 0)[0], step=1),), none
    if isinstance(given, sympy.Union):
        parts = [_pieces(part) for part in given.args]
        return tuple(piece for pieces, _ in parts for piece in pieces), none.union(*(out for _, out in parts))
    if isinstance(given, sympy.Intersection):
        parts = [_pieces(part) for part in given.args]
        pieces = parts[0][0]
        for more, _ in parts[1:]:
            pieces = tuple(p & q for p in pieces for q in more)
        return pieces, none.union(*(out for _, out in parts))
    if isinstance(given, sympy.Complement) and isinstance(given.args[1], sympy.FiniteSet):
        pieces, out = _pieces(given.args[0])
        return pieces, out | {x for x in (_bound(y, 0)[0] for y in given.args[1]) if x is not None}
    if given is sympy.S.EmptySet:
        return (), none
    raise TypeError(f"a union of intervals, finite sets and whole numbers is expected as the range of a symbol, got {given}")


def _assumed(facts: Any, silent: bool = False) -> Range:
    """The range for assumptions, where `facts` maps each of SymPy's words to its answer; a number without facts (`silent`) is complex, not real."""
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


def _given(symbol: sympy.Symbol, given: Any) -> Range:
    """The range that a user gives."""
    if isinstance(given, Range):
        return given
    if isinstance(given, Domain):
        if given.name == "COMPLEX":
            return Range(complex=True)
        pieces = tuple(Piece(_bound(sympy.Float(i.low) if abs(i.low) != float("inf") else sympy.oo, 0)[0],
                             _bound(sympy.Float(i.high) if abs(i.high) != float("inf") else sympy.oo, 0)[0],
                             i.open_low, i.open_high, int(given.integer)) for i in given.intervals)
        return Range(pieces, frozenset(Fraction(x) for x in given.excluded))
    if isinstance(given, sympy.Set):
        if given is sympy.S.Complexes:
            return Range(complex=True)
        return Range(*_pieces(given))
    words = given.replace(",", " ").split() if isinstance(given, str) else [w for w, holds in given.items() if holds] \
        if isinstance(given, Mapping) else list(given) if isinstance(given, (list, tuple, set, frozenset)) else None
    if words is None or not all(word in WORDS for word in words):
        raise TypeError(f"the assumption on {symbol} must be a symgrad Domain, a SymPy set or words out of {', '.join(WORDS)}, got {given!r}")
    default = {} if "complex" in words or "imaginary" in words else {"real": True}
    return _assumed(sympy.Symbol("x", **default | dict.fromkeys(words, True))._assumptions.get)


def _both(own: Range, given: Range) -> Range:
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

    Raises TypeError for an assumption that is neither a Domain, a SymPy set nor known words, or whose key is no symbol.

    >>> x = sympy.Symbol("x", real=True)
    >>> ranges_of([x], {x: "positive"})[0].assumptions
    {'real': True, 'positive': True}
    """
    given = dict(assumptions or {})
    for key in given:
        if not isinstance(key, sympy.Symbol):
            raise TypeError(f"assumptions map SymPy symbols to a symgrad Domain, a SymPy set or words, got the key {key!r}")
    out = []
    for symbol in symbols:
        own = _assumed(lambda word, symbol=symbol: getattr(symbol, f"is_{word}"), symbol in given)
        out.append(_both(own, _given(symbol, given[symbol])) if symbol in given else own)
    return out


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
            # The same special value everywhere, then special values combined with others.
            values = [s[k % len(s)] if s and (i % 4 == 1 or rng.random() < 0.5) else r.draw(rng, "moderate") for s, r in zip(special, ranges)]
            yield values
        elif kind == "special" and len(ranges) > 1:
            tied: Any = ranges[0].draw(rng, "moderate")
            signs = [rng.choice([1, 1, -1]) for _ in ranges]
            values = [tied if sign > 0 or isinstance(tied, Gaussian) else -tied for sign in signs]
            yield [x if x in r else r.draw(rng, "any") for x, r in zip(values, ranges)]
        else:
            yield [r.draw(rng, "any" if kind == "special" else kind) for r in ranges]


# ---------------------------------------------------------------------- simple points


def _simplicity(x: Exact) -> tuple[int, Fraction, bool]:
    """A sort key: integers before others, small before large, positive before negative, real before complex."""
    if isinstance(x, Gaussian):
        first, second = _simplicity(x.real), _simplicity(x.imag)
        return first[0] + second[0] + 8, first[1] + second[1], first[2] or second[2]
    return 0 if x.denominator == 1 and abs(x) < 100 else x.denominator.bit_length() + x.numerator.bit_length(), abs(x), x < 0


def weight(point: Sequence[Exact]) -> tuple[int, Fraction, int]:
    """A key for how far from simple a point is."""
    parts = [_simplicity(x) for x in point]
    return sum(p[0] for p in parts), sum((p[1] for p in parts), Fraction(0)), sum(p[2] for p in parts)


def _near(x: Exact) -> list[Exact]:
    if isinstance(x, Gaussian):
        return [*(Fraction(k) for k in (0, 1, -1, 2)), *(Gaussian(Fraction(a), Fraction(b)) for a, b in ((0, 1), (0, -1), (1, 1), (-1, 1), (-1, -1))),
                x.real, Gaussian(Fraction(0), x.imag)]
    whole = [Fraction(k) for k in (0, 1, -1, 2, -2, 3, -3, 5, -5, 10, -10, 100, -100)]
    return [*whole, Fraction(1, 2), Fraction(-1, 2), Fraction(int(x)), Fraction(round(x)), Fraction(round(x * 10), 10), x.limit_denominator(8),
            Fraction(int(x / 2))]


def simpler(point: Sequence[Exact]) -> Iterator[list[Exact]]:
    """Simpler candidates for a point: all coordinates the same, then one by one."""
    for k in (0, 1, -1, 2, -2):
        yield [Fraction(k)] * len(point)
    for i, x in enumerate(point):
        for y in sorted(set(_near(x)), key=_simplicity):
            yield [*point[:i], y, *point[i + 1:]]
