"""Domains from user input (a Domain, a pair, a SymPy set, a name, or text such as "-1..1"), as a `Domain` or as exact pieces."""

from __future__ import annotations

import difflib
import math
import numbers
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import sympy

from symgrad.formulas.parsing import ParseError, parse
from symgrad.graph.domains import BOOLEAN, INTEGER, NEGATIVE, NONNEGATIVE, NONZERO, POSITIVE, REAL, Domain, Interval
from symgrad.system.limits import check_length


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
            return self._first_integer(self.low, self.high) is None
        return self.low > self.high or self.low == self.high and (self.open_low or self.open_high)

    def _first_integer(self, low: Fraction, high: Fraction) -> int | None:
        """The smallest number of the lattice between two ends; None if there is none."""
        n = -(-low.numerator // low.denominator)
        n += (self.offset - n) % self.step
        while n <= high:
            if Fraction(n) in self:
                return n
            n += self.step
        return None

    def draw(self, rng: Random, size: str) -> Fraction:
        """A number in the piece: of "moderate" size, of "any" size (over many magnitudes, and close to the ends), or "far" from 0."""
        if self.low is not None and self.low == self.high:
            return self.low
        if self.step:
            return self._draw_integer(rng, size)
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

    def _draw_integer(self, rng: Random, size: str) -> Fraction:
        reach = {"moderate": 8, "any": 30, "far": 200}[size]
        low = self.low if self.low is not None else (self.high - reach if self.high is not None else Fraction(-reach))
        high = min(self.high, low + 2 * reach) if self.high is not None else low + (reach if self.low is not None else 2 * reach)
        x = Fraction(rng.randint(-(-low.numerator // low.denominator), high.numerator // high.denominator))
        if self.step > 1:
            x += (self.offset - x) % self.step
        if x in self:
            return x
        first = self._first_integer(low, high)
        return Fraction(0 if first is None else first)


def _inner(a: Fraction | None, open_a: bool, b: Fraction | None, open_b: bool, inner: Any) -> tuple[Fraction | None, bool]:
    if a is None or b is None:
        return (b, open_b) if a is None else (a, open_a)
    return (a, open_a or open_b) if a == b else (a, open_a) if inner(a, b) == a else (b, open_b)


def _length(rng: Random, size: str) -> Fraction:
    if size == "moderate":
        return Fraction(rng.randint(1, 512), 64)
    exponent = rng.randint(-30, 12) if size == "any" else rng.randint(4, 30)
    return Fraction(rng.randint(513, 1023), 1024) * Fraction(2) ** exponent


NONPOSITIVE = Domain("NONPOSITIVE", (Interval(-math.inf, 0.0),))
UNIT = Domain("UNIT", (Interval(0.0, 1.0),))
NAMED = {"real": REAL, "positive": POSITIVE, "nonnegative": NONNEGATIVE, "negative": NEGATIVE, "nonpositive": NONPOSITIVE, "nonzero": NONZERO,
         "unit": UNIT, "integer": INTEGER, "boolean": BOOLEAN}
EXPECTED = (f"a pair (low, high), a list of pairs, a symgrad Domain, a SymPy set of intervals, numbers or integers, one of {', '.join(NAMED)}, "
            f"or text such as '-1..1', '(0, 1]' or '{{-1, 1}}'")
SIMPLE = (1.0, 0.5, 2.0, -1.0, -0.5, 3.0, 0.25, -0.25, -2.0, 10.0, -10.0, 0.0)


def domain_text(domain: Domain) -> str:
    """The text of a domain, in the notation of `domain_of`.

    >>> domain_text(POSITIVE), domain_text(NONZERO), domain_text(Domain("d", (Interval(-1.0, 1.0),)))
    ('(0, inf)', '(-inf, inf) without 0', '[-1, 1]')
    """
    def part(i: Interval) -> str:
        if i.low == i.high:
            return f"{{{i.low:g}}}"
        return f"{'(' if i.open_low or math.isinf(i.low) else '['}{i.low:g}, {i.high:g}{')' if i.open_high or math.isinf(i.high) else ']'}"

    text = " or ".join(map(part, domain.intervals))
    if domain.excluded:
        text += " without " + ", ".join(f"{x:g}" for x in domain.excluded)
    return text + (", whole numbers" if domain.integer else "")


def text_that_reads(domain: Domain) -> str | None:
    """The text of a domain, None if `domain_of` does not read it as the same domain."""
    try:
        read = domain_of(domain_text(domain))
    except (TypeError, ValueError):
        return None
    same = (read.intervals, read.excluded, read.integer) == (domain.intervals, domain.excluded, domain.integer)
    return domain_text(domain) if same else None


def domains_of(given: Any, names: Sequence[str], default: Sequence[Domain] = ()) -> dict[str, Domain]:
    """A domain for each argument, from a mapping by name or from one domain for all; otherwise the default, or all real numbers.

    Raises TypeError for an unknown argument name or an invalid domain, ValueError for a domain without points.
    """
    out = dict(zip(names, default or [REAL] * len(names)))
    if isinstance(given, Mapping):
        named = {getattr(key, "name", key): value for key, value in given.items()}  # a key may be a symbol
        unknown = [str(name) for name in named if name not in names]
        if unknown:
            raise TypeError(f"domain names {unknown[0]}, but the arguments are {', '.join(names) or 'none'}")
        return {name: domain_of(named[name], name) if name in named else d for name, d in out.items()}
    return out if given is None else {name: domain_of(given, name) for name in names}


def domain_of(given: Any, name: str = "") -> Domain:
    """A domain from any of the accepted forms; error messages contain the argument's name.

    Raises TypeError for another form and ValueError for a domain that excludes every point.

    >>> domain_of("positive"), domain_text(domain_of((0, 1))), domain_text(domain_of("(0, pi/2]"))
    (POSITIVE, '[0, 1]', '(0, 1.5708]')
    """
    if isinstance(given, Domain):
        out = given
    elif isinstance(given, str):
        check_length(given, f"the domain{' of ' * bool(name)}{name}")
        out = NAMED[given.strip().lower()] if given.strip().lower() in NAMED else _from_text(given, name)
    elif isinstance(given, (tuple, list)) and len(given) == 2 and all(
            not isinstance(x, bool) and (isinstance(x, numbers.Real) or isinstance(x, sympy.Expr) and x.is_extended_real and x.is_number)
            for x in given):
        out = _interval(float(given[0]), float(given[1]))
    elif isinstance(given, (tuple, list)) and given and all(isinstance(part, (tuple, list)) for part in given):
        parts = [domain_of(part, name) for part in given]
        out = Domain(" or ".join(part.name for part in parts), tuple(i for part in parts for i in part.intervals))
    elif isinstance(given, sympy.Set):
        out = _from_sympy(given, name)
    else:
        raise _domain_error(given, name)
    if not any(simple_number(Domain("", (i,), out.excluded, out.integer)) is not None for i in out.intervals):
        shown = reprlib.repr(given) if isinstance(given, str) else repr(given)
        raise ValueError(f"the domain {shown}{' of ' * bool(name)}{name} excludes every point; give one with points in it, such as (0, 1) or "
                         f"'positive'")
    return out


def _domain_error(given: Any, name: str, detail: str = "") -> TypeError:
    return TypeError(f"the domain{' of ' * bool(name)}{name} is {reprlib.repr(given)}{detail}; expected {EXPECTED}")


def _interval(low: float, high: float, open_low: bool = False, open_high: bool = False) -> Domain:
    found = (Interval(low, high, open_low, open_high),)
    return Domain(domain_text(Domain("", found)), found)


def _from_text(text: str, name: str) -> Domain:
    """A domain from text; no pattern is matched."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        ends = [_end(part, text, name) for part in inner[1:-1].split(",") if part.strip()]
        if not all(map(math.isfinite, ends)):
            raise _domain_error(text, name, ", which names infinity as a point")
        return Domain(inner, tuple(Interval(x, x) for x in sorted(ends)))
    bracketed = len(inner) > 1 and inner[0] in "[(" and inner[-1] in "])"
    middle = "," if bracketed and "," in inner else ".."
    low, found, high = inner[bracketed:len(inner) - bracketed].partition(middle)
    if not found or "," in low + high:
        near = difflib.get_close_matches(text.strip().lower(), NAMED, 1)
        raise _domain_error(text, name, f" (did you mean {near[0]!r}?)" if near else "")
    return _interval(_end(low, text, name), _end(high, text, name), bracketed and inner[0] == "(", bracketed and inner[-1] == ")")


def _end(text: str, domain: str, name: str) -> float:
    """An end of a domain from text: a constant formula, or inf; it is parsed, not evaluated as Python."""
    if text.strip().lower().lstrip("+-") in ("inf", "infinity", "oo"):
        return -math.inf if text.strip().startswith("-") else math.inf
    try:
        formula = parse(text)
        if not formula.names:
            return float(formula())
    except ParseError:
        pass
    raise _domain_error(domain, name, f", where {reprlib.repr(text.strip())} is not a number")


def _from_sympy(given: Any, name: str) -> Domain:
    pieces, excluded = pieces_of(given, name)
    if len({piece.step for piece in pieces}) > 1:
        raise _domain_error(given, name)
    found = []
    for piece in pieces:  # an end that is not a float is rounded, and included if the rounded end lies in the piece
        low, high = (infinite if end is None else float(end) for end, infinite in ((piece.low, -math.inf), (piece.high, math.inf)))
        opened = [math.isfinite(end) and Fraction(end) not in replace(piece, step=0, offset=0) for end in (low, high)]
        found.append(Interval(low, high, *((piece.open_low, piece.open_high) if low == high else opened)))
    return Domain(str(given), tuple(sorted(found, key=lambda i: i.low)), tuple(map(float, excluded)), any(piece.step for piece in pieces))


def _bound(end: Any, side: int) -> tuple[Fraction | None, bool]:
    """An end of an interval as a fraction; an irrational end is moved into the interval by a small distance."""
    if end in (sympy.oo, -sympy.oo):
        return None, True
    if isinstance(end, (float, sympy.Float)):
        return Fraction(float(end)), False
    if end.is_Rational:
        return Fraction(int(end.p), int(end.q)), False
    return Fraction(str(sympy.N(end, 30))) + side * Fraction(1, 10**25), True


def pieces_of(given: Any, name: str) -> tuple[tuple[Piece, ...], frozenset[Fraction]]:
    """The exact pieces of a SymPy set of real numbers, and the excluded points. Raises TypeError for another set."""
    none: frozenset[Fraction] = frozenset()
    if isinstance(given, sympy.Interval):
        (low, moved_low), (high, moved_high) = _bound(given.start, 1), _bound(given.end, -1)
        return (Piece(low, high, bool(given.left_open) or moved_low, bool(given.right_open) or moved_high),), none
    if isinstance(given, sympy.FiniteSet):
        values = [_bound(x, 0)[0] for x in given]
        return tuple(Piece(x, x) for x in values if x is not None), none
    if given is sympy.S.Integers:
        return (Piece(step=1),), none
    if given in (sympy.S.Naturals, sympy.S.Naturals0) or isinstance(given, sympy.Range) and abs(given.step) == 1:
        return (Piece(_bound(given.inf, 0)[0], _bound(given.sup, 0)[0], step=1),), none
    if isinstance(given, sympy.Union):
        parts = [pieces_of(part, name) for part in given.args]
        return tuple(piece for pieces, _ in parts for piece in pieces), none.union(*(out for _, out in parts))
    if isinstance(given, sympy.Intersection):
        parts = [pieces_of(part, name) for part in given.args]
        pieces = parts[0][0]
        for more, _ in parts[1:]:
            pieces = tuple(p & q for p in pieces for q in more)
        return pieces, none.union(*(out for _, out in parts))
    if isinstance(given, sympy.Complement) and isinstance(given.args[1], sympy.FiniteSet):
        pieces, out = pieces_of(given.args[0], name)
        return pieces, out | {x for x in (_bound(y, 0)[0] for y in given.args[1]) if x is not None}
    if given is sympy.S.EmptySet:
        return (), none
    raise _domain_error(given, name)


def simple_number(domain: Domain) -> float | None:
    """A short number in the domain, None if the domain is empty.

    >>> simple_number(POSITIVE), simple_number(domain_of((20, 30))), simple_number(Domain("none", (Interval(1.0, 0.0),)))
    (1.0, 25.0, None)
    """
    for x in SIMPLE:
        if x in domain:
            return x
    for i in domain.intervals:
        if i.low == math.inf or i.high == -math.inf:
            continue  # infinity is no number
        low, high = max(i.low, -1e308), min(i.high, 1e308)
        middle = low / 2 + high / 2
        if math.isinf(i.high) or math.isinf(i.low):
            middle = low + 1 if math.isinf(i.high) else high - 1
        for x in (middle, float(math.floor(middle)), float(math.ceil(middle)), low, high, float(np.nextafter(low, high)), float(math.ceil(low))):
            if x in domain:
                return x
    return None


def parse_domains(text: str) -> dict[str, Any]:
    """Parse the domains of a command line, such as "x=positive, y=-1..1, z=(0, 1], k={-1, 1}".

    Raises ValueError for other text.

    >>> parse_domains("x=positive, y=-1..1, k={-1, 1}")
    {'x': 'positive', 'y': '-1..1', 'k': '{-1, 1}'}
    """
    check_length(text, "the domains")
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    out: dict[str, Any] = {}
    for part in parts:
        name, sign, spec = part.partition("=")
        name = name.strip()
        if not sign or not name.isidentifier() or not spec.strip():
            raise ValueError(f"{reprlib.repr(part.strip())} is not a domain; write NAME=DOMAIN, as in x=positive,y=-1..1")
        if name in out:
            raise ValueError(f"{reprlib.repr(name)} is given twice")
        out[name] = spec.strip()
    return out
