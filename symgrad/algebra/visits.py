"""The conditions of two expressions, their truth values at the points of comparison, and solutions of an equality, as points on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import sympy
from sympy.core.relational import Relational

from symgrad.algebra.deciding import FAILURES
from symgrad.algebra.limits import OutOfTime, limited
from symgrad.algebra.ranges import Range
from symgrad.sampling.conditions import boundaries, boundary_points

BASES = (Fraction(3, 2), Fraction(5, 2), Fraction(-3, 4), Fraction(4)), (Fraction(12), Fraction(3), Fraction(-2), Fraction(1, 2))
MOST, POINTS, NEARBY = 16, 60, 5  # the most conditions, boundary points, and numbers at and near a boundary
SECONDS = 0.5  # the time to decide that a condition is constant


class Visits:
    """The conditions of expressions of symbols with ranges, and their truth values at the visited points.

    >>> x = sympy.Symbol("x", real=True)
    >>> visits = Visits([sympy.Piecewise((1, sympy.Eq(3 * x, 2)), (0, True))], [x], [Range()])
    >>> next(visits.points()), visits.unvisited()
    ([Fraction(2, 3)], Eq(x, 2/3))
    """

    def __init__(self, expressions: Sequence[Any], symbols: Sequence[Any], ranges: Sequence[Range]):
        self.expressions, self.symbols, self.ranges = expressions, symbols, ranges
        of_pieces = [c for e in expressions for choice in e.atoms(sympy.Piecewise) for _, c in choice.args]
        found = dict.fromkeys(c for c in (*of_pieces, *(r for e in expressions for r in e.atoms(Relational)))
                              if c.free_symbols and c.free_symbols <= set(symbols))
        self.conditions: list[Any] = sorted(found, key=str)[:MOST] if not any(r.complex for r in ranges) else []
        self.truth_values: dict[Any, set[bool]] = {c: set() for c in self.conditions}

    def points(self) -> Iterator[list[Fraction]]:
        """Points at and near the boundaries of the conditions, exact ones if the boundaries are known."""
        if any(r.complex for r in self.ranges) or not self.symbols:
            return
        for base in self._bases():
            at = {s: sympy.Rational(x.numerator, x.denominator) for s, x in zip(self.symbols, base)}
            for c in self.conditions:
                for inserted in self._solutions(c) or ():
                    moved = [inserted.get(s, at[s]).xreplace(at) for s in self.symbols]
                    if all(x.is_Rational for x in moved):
                        yield [Fraction(int(x.p), int(x.q)) for x in moved]
        bases = [list(map(float, base)) for base in self._bases()]
        for vector in boundary_points(self.expressions, self.symbols, bases, each=NEARBY, limit=POINTS):
            yield [Fraction(x) for x in vector]

    def _bases(self) -> list[list[Fraction]]:
        return [[base[k % len(base)] for k in range(len(self.symbols))] for base in BASES]

    def _solutions(self, c: Any) -> list[dict[Any, Any]] | None:
        return solutions(c, {}) if isinstance(c, (sympy.Eq, sympy.Ne)) else []

    def note(self, values: Sequence[Any]) -> None:
        """Record the truth values of the conditions at a point."""
        for c, value in zip(self.conditions, values):
            if isinstance(value, bool):
                self.truth_values[c].add(value)

    def unvisited(self) -> Any:
        """The first condition that had the same truth value at all points and may have the other one; None if there is none."""
        return next((c for c in self.conditions if len(self.truth_values[c]) < 2 and not self._is_constant(c)), None)

    def _is_constant(self, c: Any) -> bool:
        """Whether a condition is known to have one truth value in the ranges."""
        if isinstance(c, (sympy.Eq, sympy.Ne)):
            found = self._solutions(c)
            inside = (all(not x.is_Rational or Fraction(int(x.p), int(x.q)) in self.ranges[self.symbols.index(s)] for s, x in at.items())
                      for at in found or ())
            return found is not None and not any(inside)
        if isinstance(c, Relational):
            found_places = [(k, x) for base in self._bases() for k, x in boundaries([c], self.symbols, base, poles=False)]
            return not any(Fraction(x) in self.ranges[k] for k, x in found_places)
        try:
            with limited(SECONDS):
                inside = c.as_set()
        except (OutOfTime, *FAILURES):
            return False
        [k] = [k for k, s in enumerate(self.symbols) if s in c.free_symbols]
        return inside in (sympy.S.EmptySet, sympy.S.Reals) or all(_misses(inside, piece) for piece in self.ranges[k].pieces)


def _misses(inside: Any, piece: Any) -> bool:
    """Whether a set is disjoint from a piece, or contains it."""
    low, high = (end if bound is None else sympy.Rational(bound.numerator, bound.denominator)
                 for bound, end in ((piece.low, -sympy.oo), (piece.high, sympy.oo)))
    interval = sympy.Interval(low, high, piece.open_low, piece.open_high)
    return sympy.Intersection(inside, interval) is sympy.S.EmptySet or interval.is_subset(inside) is True


PATIENCE = 1.0  # for one condition


def solutions(condition: Any, inside: Mapping[Any, Any]) -> list[dict[Any, Any]] | None:
    """The solutions of an equality: expressions for one or more symbols, whose ranges are `inside`; None if they are unknown.

    >>> x, y = sympy.symbols("x y", real=True)
    >>> solutions(sympy.Eq(x**2, 4 * y**2), {}), solutions(sympy.Eq(x**2 + 1, x), {}), solutions(sympy.Eq(x**3 + x, 3), {})
    ([{x: 2*y}, {x: -2*y}], [], None)
    """
    u = condition.lhs - condition.rhs
    if u.is_zero is False:
        return []
    try:
        with limited(PATIENCE):
            u = sympy.together(u).as_numer_denom()[0]
            factors = [f for f, _ in sympy.factor_list(u)[1]] if u.is_polynomial(*u.free_symbols) else [u]
            found = [_of_factor(f, inside) for f in factors]
    except (OutOfTime, *FAILURES):
        return None
    if None in found:
        return None
    return sorted((at for part in found for at in part if _possible(at, inside)), key=lambda at: str(at)[::-1])  # type: ignore[union-attr]


def _of_factor(f: Any, inside: Mapping[Any, Any]) -> list[dict[Any, Any]] | None:
    if f.is_zero is False:
        return []
    f = f.as_independent(*f.free_symbols, as_Add=False)[1]
    f = f.base if f.is_Pow and f.exp.is_positive else f
    symbols = sorted(f.free_symbols, key=lambda s: (_is_bounded(s, inside), str(s)))
    for s in symbols:
        slope = sympy.diff(f, s)
        if slope.is_number and slope.is_nonzero:
            return [{s: sympy.expand(s - f / slope)}]
    if len(symbols) == 1:
        [s] = symbols
        if f.is_polynomial(s):
            roots = sympy.real_roots(sympy.Poly(f, s))
            return None if any(r.has(sympy.CRootOf) for r in roots) else [{s: r} for r in dict.fromkeys(roots)]
        found = sympy.solveset(f, s, sympy.S.Reals)
        return [{s: r} for r in found] if isinstance(found, sympy.FiniteSet) or found is sympy.S.EmptySet else None
    return _of_squares(f, symbols)


def _of_squares(f: Any, symbols: Sequence[Any]) -> list[dict[Any, Any]] | None:
    """The solutions of f = 0 for a sum of nonnegative terms: all terms are 0."""
    terms = [t.as_independent(*symbols)[1] for t in sympy.Add.make_args(f)]
    if len(terms) < 2 or not all(t.is_nonnegative for t in sympy.Add.make_args(f)):
        return None
    return list(sympy.solve([t.base if t.is_Pow and t.exp.is_positive else t for t in terms], symbols, dict=True))


def _is_bounded(s: Any, inside: Mapping[Any, Any]) -> bool:
    return s.is_extended_nonnegative or s.is_extended_nonpositive or s in inside


def _possible(at: Mapping[Any, Any], inside: Mapping[Any, Any]) -> bool:
    """Whether the numbers among the solutions lie in the ranges of their symbols."""
    for s, x in at.items():
        facts = (s.is_extended_positive, x.is_extended_nonpositive), (s.is_extended_negative, x.is_extended_nonnegative), (s.is_zero is False, x == 0)
        if any(a and b for a, b in facts) or x.is_number and s in inside and float(x) not in inside[s]:
            return False
    return True
