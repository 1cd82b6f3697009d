"""Whether a difference is literally zero: the domain is split into regions with known signs, in each of which normal forms are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import sympy
from sympy.polys.polyerrors import BasePolynomialError

from symgrad.algebra import functions  # noqa: F401  registers the rules
from symgrad.algebra.effort import Effort, TooLarge
from symgrad.algebra.normal import NoNormalForm, Normal
from symgrad.algebra.ranges import Range
from symgrad.algebra.signs import NotRegular, Split
from symgrad.algebra.simplification import EXPANDED, FAILURES, SMALL, expanded_terms, shortest_form, tractable

DEPTH = 9  # the depth of nested splits
REGION = 50  # the work that a region counts by itself

# Functions with jumps inside their domain: an identity on both sides of a boundary need not hold on it.
JUMPS = (sympy.sign, sympy.Heaviside, sympy.Piecewise, sympy.floor, sympy.ceiling, sympy.frac, sympy.Mod, sympy.arg, sympy.atan2, sympy.DiracDelta)

# Functions with simpler derivatives: the derivative of a difference may be literally 0 where the difference itself is not.
INVERSES = (sympy.atan, sympy.asin, sympy.acos, sympy.atan2, sympy.acot, sympy.asec, sympy.acsc, sympy.log, sympy.asinh, sympy.acosh, sympy.atanh,
            sympy.erf, sympy.erfc, sympy.loggamma)

ANGLES = (sympy.atan, sympy.asin, sympy.acos, sympy.atan2, sympy.acot)

End = Fraction | None
ZERO_UP: tuple[End, End] = (Fraction(0), None)


@dataclass(frozen=True)
class Region:
    """Two expressions in a region, which is given by intervals of the symbols and by the signs of real expressions (`facts`)."""

    a: Any
    b: Any
    intervals: Mapping[Any, tuple[End, End]]
    facts: tuple[tuple[Any, int], ...] = ()
    depth: int = 0

    def substitute(self, old: Any, new: Any, intervals: Mapping[Any, tuple[End, End]]) -> Region:
        """The region with an expression substituted for a symbol."""
        rest = {s: ends for s, ends in self.intervals.items() if s is not old}
        return Region(self.a.xreplace({old: new}), self.b.xreplace({old: new}), rest | dict(intervals),
                      tuple((e.xreplace({old: new}), sign) for e, sign in self.facts), self.depth + 1)

    def with_positive_symbols(self) -> Region:
        """The region with a positive symbol substituted for every symbol of one sign."""
        region = self
        for s, (low, high) in self.intervals.items():
            sign = 1 if low is not None and low >= 0 else -1 if high is not None and high <= 0 else 0
            if sign and not s.is_extended_positive:
                p = sympy.Dummy(s.name, positive=True, **({"integer": True} if s.is_integer else {}))
                ends = (low, high) if sign > 0 else (None if high is None else -high, None if low is None else -low)
                region = region.substitute(s, sign * p, {p: ends})
        return region

    def split(self, u: Any) -> tuple[list[Region], Region | None, bool]:
        """The regions where u is positive or negative, the region where it is 0 (None if empty), and whether the latter is known.

        Beside x = edge, the distance is a new positive symbol if that keeps all information about x.
        """
        def beside(sign: int) -> Region:
            return replace(self, facts=(*self.facts, (u, sign)), depth=self.depth + 1)

        for x in sorted(u.free_symbols & set(self.intervals), key=lambda s: (self.intervals[s] != (None, None), s.name)):
            slope = sympy.diff(u, x)
            if not slope.is_Rational or slope == 0:
                continue
            edge, (low, high), parts = sympy.expand(x - u / slope), self.intervals[x], []
            if edge.is_Rational:
                at = Fraction(int(edge.p), int(edge.q))
                above = [] if high is not None and at >= high else [(at if low is None else max(at, low), high)]
                below = [] if low is not None and low >= at else [(low, at if high is None else min(at, high))]
                parts = [replace(self, intervals={**self.intervals, x: ends}, depth=self.depth + 1) for ends in (*above, *below)]
                return parts, self.substitute(x, edge, {}) if above and below else None, True
            p = sympy.Dummy("p", positive=True, **({"integer": True} if x.is_integer else {}))
            for side in (1, -1):
                beyond = edge + side * p
                if (low, high) == (None, None) or high is None and low == 0 and beyond.is_positive:
                    parts.append(self.substitute(x, beyond, {p: ZERO_UP}))
                elif high is None and low == 0 and side == -1 and edge.is_Symbol and self.intervals.get(edge) == ZERO_UP:
                    parts.append(self.substitute(edge, x + p, {p: ZERO_UP}))  # 0 < x < y, in terms of y = x + p
                else:
                    parts.append(beside(side * (1 if slope > 0 else -1)))
            return parts, self.substitute(x, edge, {}), True
        return [beside(1), beside(-1)], None, False


def regions_of(a: Any, b: Any, ranges: Mapping[Any, Range]) -> Iterator[Region]:
    """The products of the pieces of the symbols' ranges, and their closed ends as separate regions."""
    jumps = a.has(*JUMPS) or b.has(*JUMPS)
    parts = [Region(a, b, {})]
    for s, r in ranges.items():
        more = list(parts) if r.complex else []
        for piece in () if r.complex else r.pieces:
            low, high = piece.low, piece.high
            cuts = [low, *sorted(e for e in r.excluded if (low is None or low < e) and (high is None or e < high)), high]
            ends = [end for end, is_open in ((low, piece.open_low), (high, piece.open_high)) if end is not None and not is_open]
            ends = ends[:1] if low is not None and low == high else ends if jumps or piece.step else []
            for region in parts if not piece.empty else ():
                if low is None or low != high:
                    more += [replace(region, intervals={**region.intervals, s: pair}, depth=0) for pair in pairwise(cuts)]
                more += [region.substitute(s, sympy.Rational(end.numerator, end.denominator), {}) for end in ends]
        parts = more
    yield from parts


def literally_zero(region: Region, effort: Effort, split: bool) -> bool:
    """Whether the two expressions have the same normal form everywhere in a region; False also if that is not decided.

    Raises TooLarge once the effort is spent.
    """
    effort.spend(REGION)
    if region.depth > DEPTH:
        return False
    region = region.with_positive_symbols()
    if region.a == region.b:
        return True
    try:
        forms = Normal(effort, dict(region.intervals), split, region.facts)
        terms = [forms.of(x) for x in sympy.Add.make_args(region.a)] + [forms.minus(forms.of(x)) for x in sympy.Add.make_args(region.b)]
        if forms.is_zero(forms.sum(terms)):
            return True
        a, b = forms.of(region.a), forms.of(region.b)
        if any(forms.generators[g].kind == "root" for f in (a, b) for m in f.num for g, _ in m) and forms.is_real(a) and forms.is_real(b) \
                and forms.sign(a) == forms.sign(b) is not None and forms.same(forms.power(a, 2), forms.power(b, 2)):
            return True  # numbers of the same sign are equal if their squares are, which contain fewer roots
        return _constantly_zero(region, effort)
    except Split as split_at:
        unknown_sign = split_at.expression
        parts, edge, known = region.split(unknown_sign)
    except ZeroDivisionError:
        return True  # the region is empty
    except (TooLarge, NoNormalForm, RecursionError, NotImplementedError, BasePolynomialError):
        return False
    jumps = region.a.has(*JUMPS) or region.b.has(*JUMPS)
    if not known and jumps and not _is_undefined_at(region, unknown_sign, effort):
        return False
    return all(literally_zero(part, effort, split) for part in (*parts, *([edge] if edge is not None else [])))


def _is_undefined_at(region: Region, u: Any, effort: Effort) -> bool:
    """Whether one of the two expressions has a pole or the logarithm of 0 where u is 0: where a multiple of u is in a denominator."""
    powers = {power.base for e in (region.a, region.b) for power in e.atoms(sympy.Pow) if power.exp.is_negative}
    bases = powers | {f.args[0] for e in (region.a, region.b) for f in e.atoms(sympy.log)}
    for v in sorted({v.args[0] if isinstance(v, sympy.Abs) else v for base in bases for v in sympy.Mul.make_args(base)}, key=str):
        try:
            forms = Normal(effort, {}, False)
            _, shared, factors = forms.pieces(forms.product([forms.of(v), forms.inverse(forms.of(u))]))
        except (Split, ZeroDivisionError, NoNormalForm, NotImplementedError, BasePolynomialError):
            continue
        if all(n > 0 for n in factors.values()) and all(e > 0 or forms.generators[g].kind in ("i", "turn", "exp") for g, e in shared):
            return True
    return False


def _constantly_zero(region: Region, effort: Effort) -> bool:
    """Whether the difference is differentiable everywhere in the region, its derivatives are literally 0, and so is its value at a point."""
    difference = region.a - region.b
    symbols = difference.free_symbols
    if not symbols and difference.has(*ANGLES):
        return _is_zero_number(region.a, region.b, effort)
    if not difference.has(*INVERSES) or region.facts or not symbols <= set(region.intervals) or any(s.is_integer for s in symbols):
        return False  # the set where the facts hold may be disconnected
    try:
        forms = Normal(effort, dict(region.intervals), True, region.facts)
        forms.regular = True
        forms.of(region.a), forms.of(region.b)
        forms.regular = False
        if not all(forms.is_zero(forms.of(sympy.diff(difference, x))) for x in symbols):
            return False
    except (Split, NotRegular, ZeroDivisionError, NoNormalForm):
        return False
    return any(_is_zero_number(region.a.xreplace(point), region.b.xreplace(point), effort) for point in _simple_points(region))


def is_regular(e: Any, ranges: Mapping[Any, Range], effort: Effort) -> bool:
    """Whether an expression is certainly differentiable inside the ranges, so that it has no pole, jump or branch cut there.

    >>> x = sympy.Symbol("x", real=True)
    >>> is_regular(sympy.atan(x) / (1 + x**2), {x: Range()}, Effort(1000)), is_regular(1 / x, {x: Range()}, Effort(1000))
    (True, False)
    """
    try:
        for region in regions_of(e, e, ranges):
            region = region.with_positive_symbols()
            forms = Normal(effort, dict(region.intervals), True)
            forms.regular = True
            forms.of(region.a)
    except (Split, NotRegular, ZeroDivisionError, TooLarge, NoNormalForm, *FAILURES):
        return False
    return True


def _is_zero_number(a: Any, b: Any, effort: Effort) -> bool:
    """Whether two numbers are equal: literally, or real numbers with the same exp(a), or with the same exp(i a) and a difference below 1."""
    forms = Normal(effort, {}, True)
    try:
        parts = forms.of(a), forms.of(b)
        if forms.same(*parts) or not all(map(forms.real, parts)):
            return forms.same(*parts)
        turned = [forms.exp(forms.product([forms.imaginary(), f])) for f in parts]
        return forms.same(*map(forms.exp, parts)) or forms.same(*turned) and bool(abs((a - b).evalf(20)) < 1)
    except (Split, ZeroDivisionError, NoNormalForm, TypeError):
        return False


def _simple_points(region: Region) -> Iterator[dict[Any, Any]]:
    """A few points in the interior of a region."""
    for values in ((0, 1, -1), (1, -1), (Fraction(1, 2), Fraction(-1, 2)), (2, -2), ()):
        point: dict[Any, Any] = {}
        for x, (low, high) in region.intervals.items():
            nearest = low.__floor__() + 1 if low is not None else high.__ceil__() - 1 if high is not None else 0
            inside = [v for v in (*values, nearest) if (low is None or low < v) and (high is None or v < high)]
            if inside:
                point[x] = sympy.Rational(*Fraction(inside[0]).as_integer_ratio())
        if len(point) == len(region.intervals):
            yield point


PAIRS = 50_000  # the term pairs of a zero test by default


def vanishes(a: Any, b: Any, ranges: Mapping[Any, Range], effort: Effort | None = None) -> bool:
    """Whether a - b reduces to a literal 0 with an effort, in every region; False also if that is not decided."""
    if a == b:
        return True
    if not isinstance(a, sympy.Expr) or not isinstance(b, sympy.Expr):
        one, other = (sympy.Piecewise((1, e), (0, True)) for e in (a, b))
        return vanishes(one, other, ranges, effort)
    effort = Effort(PAIRS) if effort is None else effort
    for split in (False, True):
        try:
            part = effort if split else effort.part(effort.left / 2)
            if all(literally_zero(region, part, split) for region in regions_of(a, b, ranges)):
                return True
        except (TooLarge, *FAILURES):
            continue
    return _by_sympy(a - b)


def simpler_differences(a: Any, b: Any) -> list[Any]:
    """The difference of two expressions as it is, expanded, and in normal form, where these exist.

    >>> x = sympy.Symbol("x", real=True)
    >>> simpler_differences(sympy.cosh(x), sympy.sinh(x))[1:]
    [exp(-x)]
    """
    if not isinstance(a, sympy.Expr) or not isinstance(b, sympy.Expr):
        return []
    found = [a - b]
    if not a.has(*JUMPS) and not b.has(*JUMPS):
        try:
            if tractable(found[0]) and expanded_terms(found[0])[0] <= EXPANDED:
                found.append(sympy.expand(found[0]))
            forms = Normal(Effort(PAIRS / 10), {}, False)
            found.append(forms.to_sympy(forms.sum([forms.of(x) for x in sympy.Add.make_args(found[0])])))
        except (TooLarge, NoNormalForm, Split, *FAILURES):
            pass
    return list(dict.fromkeys(found))


def _by_sympy(difference: Any) -> bool:
    """By SymPy's own simplifications, which are not right at the jumps of a function."""
    if difference.has(*JUMPS) or not tractable(difference):
        return False
    try:
        return expanded_terms(difference)[0] <= EXPANDED and sympy.expand(difference) == 0 \
            or difference.count_ops() <= SMALL and bool(shortest_form(difference) == 0)
    except FAILURES:
        return False
