"""Whether a difference is literally zero: the domain is split into regions with known signs, in each of which normal forms are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import sympy
from sympy.functions.elementary.hyperbolic import HyperbolicFunction
from sympy.functions.elementary.piecewise import piecewise_simplify

from symgrad.algebra import functions  # noqa: F401  registers the rules
from symgrad.algebra.limits import OutOfTime, clock, limited, stoppable
from symgrad.algebra.normal import NoNormalForm, Normal
from symgrad.algebra.polynomials import DEGREE, TooLarge
from symgrad.algebra.ranges import Range
from symgrad.algebra.signs import NotRegular, Split
from symgrad.algebra.tower import Frac

DEPTH = 9  # the depth of nested splits

# Functions with jumps inside their domain: an identity on both sides of a boundary need not hold on it.
JUMPS = (sympy.sign, sympy.Heaviside, sympy.Piecewise, sympy.floor, sympy.ceiling, sympy.frac, sympy.Mod, sympy.arg, sympy.atan2, sympy.DiracDelta)

# Functions with simpler derivatives: the derivative of a difference may be literally 0 where the difference itself is not.
INVERSES = (sympy.atan, sympy.asin, sympy.acos, sympy.atan2, sympy.acot, sympy.asec, sympy.acsc, sympy.log, sympy.asinh, sympy.acosh, sympy.atanh,
            sympy.erf, sympy.erfc, sympy.loggamma)

ANGLES = (sympy.atan, sympy.asin, sympy.acos, sympy.atan2, sympy.acot)

End = Fraction | None
ZERO_UP: tuple[End, End] = (Fraction(0), None)


@dataclass(frozen=True)
class ZeroRegion:
    """Two expressions in a region, which is given by intervals of the symbols and by the signs of real expressions (`facts`)."""

    a: Any
    b: Any
    intervals: Mapping[Any, tuple[End, End]]
    facts: tuple[tuple[Any, int], ...] = ()
    depth: int = 0

    def substitute(self, old: Any, new: Any, intervals: Mapping[Any, tuple[End, End]], facts: tuple[tuple[Any, int], ...] = ()) -> ZeroRegion:
        """The region with an expression substituted for a symbol."""
        rest = {s: ends for s, ends in self.intervals.items() if s is not old}
        return ZeroRegion(self.a.xreplace({old: new}), self.b.xreplace({old: new}), rest | dict(intervals),
                      tuple((e.xreplace({old: new}), sign) for e, sign in self.facts) + facts, self.depth + 1)

    def with_positive_symbols(self) -> ZeroRegion:
        """The region with a positive symbol substituted for every symbol of one sign."""
        region = self
        for s, (low, high) in self.intervals.items():
            if s.is_extended_positive:
                continue
            integer = {"integer": True} if s.is_integer else {}
            if low is not None and low >= 0:
                p = sympy.Dummy(s.name, positive=True, **integer)
                region = region.substitute(s, p, {p: (low, high)})
            elif high is not None and high <= 0:
                p = sympy.Dummy(s.name, positive=True, **integer)
                region = region.substitute(s, -p, {p: (-high, None if low is None else -low)})
        return region

    def split(self, u: Any) -> tuple[list[ZeroRegion], ZeroRegion | None, bool]:
        """The regions where u is positive or negative, the region where it is 0 (None if empty), and whether the latter is known."""
        symbols = [s for s in u.free_symbols if s in self.intervals]
        if len(u.free_symbols) == 1 == len(symbols):
            [x] = symbols
            poly = sympy.Poly(u, x) if u.is_polynomial(x) else None
            if poly is not None and poly.degree() == 1 and all(c.is_Rational for c in poly.all_coeffs()):
                return self._split_at(x, -poly.eval(0) / poly.LC())
        for x in sorted(symbols, key=lambda s: (self.intervals[s] != (None, None), s.name)):
            slope = sympy.diff(u, x)
            if slope.is_Rational and slope != 0:
                return self._split_along(x, sympy.expand(x - u / slope), u, slope)
        return [self._with(u, 1), self._with(u, -1)], None, False

    def _with(self, u: Any, sign: int) -> ZeroRegion:
        return ZeroRegion(self.a, self.b, self.intervals, (*self.facts, (u, sign)), self.depth + 1)

    def _split_at(self, x: Any, c: Any) -> tuple[list[ZeroRegion], ZeroRegion | None, bool]:
        low, high = self.intervals[x]
        at = Fraction(int(c.p), int(c.q))
        inside = (low is None or low < at) and (high is None or at < high)
        parts = []
        if high is None or at < high:
            parts.append(ZeroRegion(self.a, self.b, {**self.intervals, x: (at if low is None else max(at, low), high)}, self.facts, self.depth + 1))
        if low is None or low < at:
            parts.append(ZeroRegion(self.a, self.b, {**self.intervals, x: (low, at if high is None else min(at, high))}, self.facts, self.depth + 1))
        return parts, self.substitute(x, c, {}) if inside else None, True

    def _split_along(self, x: Any, edge: Any, u: Any, slope: Any) -> tuple[list[ZeroRegion], ZeroRegion | None, bool]:
        """The regions on both sides of x = edge, with the distance as a new positive symbol if that keeps all information about x."""
        low, high = self.intervals[x]
        on_edge = self.substitute(x, edge, {})
        p = sympy.Dummy("p", positive=True, **({"integer": True} if x.is_integer else {}))
        parts = []
        for side in (1, -1):
            beyond = edge + side * p
            if (low, high) == (None, None) or high is None and low == 0 and beyond.is_positive:
                parts.append(self.substitute(x, beyond, {p: ZERO_UP}))
            elif high is None and low == 0 and side == -1 and edge.is_Symbol and self.intervals.get(edge) == ZERO_UP:
                parts.append(self.substitute(edge, x + p, {p: ZERO_UP}))  # 0 < x < y, in terms of y = x + p
            else:
                parts.append(self._with(u, side * (1 if slope > 0 else -1)))
        return parts, on_edge, True


def regions_of(a: Any, b: Any, ranges: Mapping[Any, Range]) -> Iterator[ZeroRegion]:
    """The products of the pieces of the symbols' ranges, and their closed ends as separate regions."""
    jumps = a.has(*JUMPS) or b.has(*JUMPS)
    parts = [ZeroRegion(a, b, {})]
    for s, r in ranges.items():
        if r.complex:
            continue
        more = []
        for region in parts:
            for piece in r.pieces:
                if piece.empty:
                    continue
                low, high = piece.low, piece.high
                if low is not None and low == high:
                    more.append(region.substitute(s, sympy.Rational(low.numerator, low.denominator), {}))
                    continue
                cuts = [low, *sorted(e for e in r.excluded if (low is None or low < e) and (high is None or e < high)), high]
                more += [ZeroRegion(region.a, region.b, {**region.intervals, s: ends}) for ends in pairwise(cuts)]
                ends = [end for end, open_end in ((low, piece.open_low), (high, piece.open_high)) if end is not None and not open_end]
                more += [region.substitute(s, sympy.Rational(end.numerator, end.denominator), {}) for end in ends if jumps or piece.step]
        parts = more
    yield from parts


def literally_zero(region: ZeroRegion, deadline: float, split: bool) -> bool:
    """Whether the two expressions have the same normal form everywhere in a region; False also if that is not decided."""
    if region.depth > DEPTH or clock() > deadline:
        return False
    region = region.with_positive_symbols()
    if region.a == region.b:
        return True
    try:
        forms = Normal(deadline, dict(region.intervals), split, region.facts)
        terms = [forms.of(x) for x in sympy.Add.make_args(region.a)] + [forms.minus(forms.of(x)) for x in sympy.Add.make_args(region.b)]
        return forms.is_zero(forms.sum(terms)) or _same_squares(forms, forms.of(region.a), forms.of(region.b)) or _constantly_zero(region, deadline)
    except Split as unknown_sign:
        parts, edge, known = region.split(unknown_sign.expression)
    except ZeroDivisionError:
        return True  # the region is empty
    except (TooLarge, NoNormalForm, RecursionError, NotImplementedError, sympy.PolynomialError):
        return False
    jumps = region.a.has(*JUMPS) or region.b.has(*JUMPS)
    if not known and jumps:
        return False
    return all(literally_zero(part, deadline, split) for part in (*parts, *([edge] if edge is not None else [])))


def _same_squares(forms: Normal, a: Frac, b: Frac) -> bool:
    """Whether two numbers of the same sign have the same square, which contains fewer roots."""
    if not any(forms.generators[g].kind == "root" for f in (a, b) for m in f.num for g, _ in m) or not (forms.is_real(a) and forms.is_real(b)):
        return False
    return forms.sign(a) == forms.sign(b) is not None and forms.same(forms.power(a, 2), forms.power(b, 2))


def _constantly_zero(region: ZeroRegion, deadline: float) -> bool:
    """Whether the difference is differentiable everywhere in the region, its derivatives are literally 0, and so is its value at a point."""
    difference = region.a - region.b
    symbols = difference.free_symbols
    if not symbols and difference.has(*ANGLES):
        return _turned_zero(region, deadline)
    if not difference.has(*INVERSES) or region.facts or not symbols <= set(region.intervals) or any(s.is_integer for s in symbols):
        return False  # the set where the facts hold may be disconnected
    try:
        forms = Normal(deadline, dict(region.intervals), True, region.facts)
        forms.regular = True
        forms.of(region.a), forms.of(region.b)
        forms.regular = False
        if not all(forms.is_zero(forms.of(sympy.diff(difference, x))) for x in symbols):
            return False
    except (Split, NotRegular, ZeroDivisionError, NoNormalForm):
        return False
    return any(_zero_at(region, point, deadline) for point in _simple_points(region))


def _turned_zero(region: ZeroRegion, deadline: float) -> bool:
    """Whether two real constants a and b have the same exp(i a) = exp(i b) and differ by less than 1."""
    forms = Normal(deadline, {}, True)
    try:
        a, b = forms.of(region.a), forms.of(region.b)
        turned = [forms.exp(forms.product([forms.imaginary(), f])) for f in (a, b)]
        return forms.real(a) and forms.real(b) and forms.same(*turned) and bool(abs((region.a - region.b).evalf(20)) < 1)
    except (Split, ZeroDivisionError, NoNormalForm, TypeError):
        return False


def _simple_points(region: ZeroRegion) -> Iterator[dict[Any, Any]]:
    """A few points in the interior of a region."""
    def next_to(low: End, high: End) -> Fraction:
        return Fraction(low.__floor__() + 1) if low is not None else Fraction(high.__ceil__() - 1) if high is not None else Fraction(0)

    for values in ((0, 1, -1), (1, -1), (Fraction(1, 2), Fraction(-1, 2)), (2, -2), ()):
        point = {x: next((v for v in (*values, next_to(low, high)) if (low is None or low < v) and (high is None or v < high)), None)
                 for x, (low, high) in region.intervals.items()}
        if None not in point.values():
            yield {x: sympy.Rational(Fraction(v).numerator, Fraction(v).denominator) for x, v in point.items() if v is not None}


def _zero_at(region: ZeroRegion, point: dict[Any, Any], deadline: float) -> bool:
    forms = Normal(deadline, {}, True)
    try:
        a, b = (forms.of(e.xreplace(point)) for e in (region.a, region.b))
        return forms.same(a, b) or forms.real(a) and forms.real(b) and forms.same(forms.exp(a), forms.exp(b)) \
            or _turned_zero(ZeroRegion(region.a.xreplace(point), region.b.xreplace(point), {}), deadline)
    except (Split, ZeroDivisionError, NoNormalForm):
        return False


ALGEBRA = 400  # the largest number of operations for SymPy's own methods
SMALL = 30  # operations of an expression that SymPy's `simplify` takes some tenths of a second for
LITERAL = 2**10  # a denominator from which on a rational is no number that a formula has by itself


# Exceptions that SymPy raises for expressions it cannot handle; they count as "not decided", which is always a correct answer.
FAILURES = (NotImplementedError, sympy.PolynomialError, RecursionError, TypeError, ValueError, ArithmeticError, AttributeError, LookupError)


def vanishes(a: Any, b: Any, ranges: Mapping[Any, Range], deadline: float) -> bool:
    """Whether a - b reduces to a literal 0 before the deadline, in every region; False also if that is not decided.

    >>> x = sympy.Symbol("x", real=True)
    >>> vanishes(sympy.Max(x, 0), (x + sympy.Abs(x)) / 2, {x: Range()}, float("inf"))
    True
    """
    if a == b:
        return True
    if not isinstance(a, sympy.Expr) or not isinstance(b, sympy.Expr):
        one, other = (sympy.Piecewise((1, e), (0, True)) for e in (a, b))
        return vanishes(one, other, ranges, deadline)
    for split in (False, True):
        try:
            with limited(max(deadline - clock(), 0.01)):
                if all(literally_zero(region, deadline, split) for region in regions_of(a, b, ranges)):
                    return True
        except OutOfTime:
            return False
        except FAILURES:
            continue
    return _by_sympy(a - b, deadline)


def tractable(e: Any) -> bool:
    """Whether an expression has a moderate size and moderate exponents, so that SymPy's own methods may be tried.

    SymPy converts a power of 1/10**12 to a polynomial of degree 10**12, which exceeds the memory.
    """
    exponents = [x for power in e.atoms(sympy.Pow, sympy.exp) for x in power.as_base_exp()[1].atoms(sympy.Rational)]
    return e.count_ops() <= ALGEBRA and all(abs(x.p) <= DEGREE and x.q <= DEGREE for x in exponents)


def shortest_form(e: Any, seconds: float = 2.0) -> Any:
    """The shortest of an expression and what SymPy makes of it in a few steps. The steps depend on its size, which bounds their time."""
    if not tractable(e):
        return e
    best = e
    try:
        with limited(seconds):
            if sympy.count_ops(e) > SMALL:
                for step in (_folded, sympy.factor_terms, sympy.factor, _together):
                    best = min(best, step(best), key=sympy.count_ops)
            if sympy.count_ops(best) <= SMALL:
                best = min(best, *(step(best) for step in (sympy.factor_terms, _simplified, sympy.factor)), key=sympy.count_ops)
    except (OutOfTime, *FAILURES):
        pass
    return best


def _folded(e: Any) -> Any:
    return piecewise_simplify(sympy.piecewise_fold(e)) if e.has(sympy.Piecewise) else e


def _simplified(e: Any) -> Any:
    """What SymPy's `simplify` makes of an expression; of a sum, the terms with hyperbolic functions and the others are simplified apart.

    For both together SymPy's Gröbner bases take minutes.
    """
    hyperbolic = [t for t in sympy.Add.make_args(e) if t.has(HyperbolicFunction)]
    if not hyperbolic or len(hyperbolic) == len(sympy.Add.make_args(e)):
        return sympy.simplify(e)
    part = sympy.Add(*hyperbolic)
    return sympy.simplify(part) + sympy.simplify(e - part)


def _together(e: Any) -> Any:
    return sympy.factor_terms(sympy.powsimp(sympy.factor_terms(sympy.together(e))))


def shortest_difference(a: Any, b: Any, seconds: float = 2.0) -> Any:
    """The shortest form of a - b, None for 0. Floats are the decimals that they are written as.

    >>> x = sympy.Symbol("x")
    >>> [shortest_difference(*pair) for pair in ((1.001 * x, x), (x, sympy.Rational(0.1) * x), ((x + 1)**2, x**2 + 2*x + 1))]
    [0.001*x, 0.9*x, None]
    """
    plain = [_as_written(e) for e in (a, b)]
    found = shortest_form(plain[0] - plain[1], seconds)
    if found == 0:  # the decimals are the same, but the binary numbers may not be
        return shortest_form(a - b, seconds) or None
    if plain == [a, b]:
        return found
    return found.xreplace({x: sympy.Float(float(x)) for x in found.atoms(sympy.Rational) if x.q % 5 == 0 or x.q > LITERAL})


def _as_written(e: Any) -> Any:
    """The expression with floats, and rationals that are floats of many bits, as the rationals that their decimals are."""
    long = {x for x in e.atoms(sympy.Float, sympy.Rational) if x.is_Float or x.q > LITERAL and not x.q & (x.q - 1) and sympy.Rational(float(x)) == x}
    return e.xreplace({x: sympy.Rational(repr(float(x))) for x in long})


def _by_sympy(difference: Any, deadline: float) -> bool:
    """By SymPy's own simplifications."""
    if clock() > deadline or not tractable(difference) or not stoppable() and difference.count_ops() > ALGEBRA // 4:
        return False
    try:
        with limited(max(deadline - clock(), 0.01)):
            return any(method(difference) == 0 for method in (sympy.expand, sympy.simplify))
    except (OutOfTime, *FAILURES):
        return False
