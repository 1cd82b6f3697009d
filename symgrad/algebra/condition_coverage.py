"""The conditions of two expressions, their truth values at the points of comparison, and their exact boundaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

import sympy
from sympy.core.relational import Relational

from symgrad.algebra.catalogue import DEFINITIONS
from symgrad.algebra.condition_search import BASES, Coordinates, Search, critical_points, fraction
from symgrad.algebra.effort import Effort
from symgrad.algebra.ranges import Range
from symgrad.algebra.solving import is_continuous, is_possible, solutions
from symgrad.algebra.stochastic import Exact, gaussian
from symgrad.algebra.zero_test import JUMPS, vanishes
from symgrad.sampling.conditions import boundary_points, switching_functions
from symgrad.sampling.domain_reader import Piece

MOST, POINTS, NEARBY = 40, 60, 5  # the most equations, boundary points, and numbers at and near a boundary
EXACT = 40  # the most solutions of equations that are inserted
INTEGERS = 0, 1, -1  # the values of an integer part at whose jumps the expressions are compared
DECIDING = 10_000  # the term pairs for a condition that may be constant
KINKS = (sympy.Abs, sympy.Max, sympy.Min)
STEPS = (sympy.sign, sympy.Heaviside, sympy.floor, sympy.ceiling, sympy.frac, sympy.Mod)
SIDES = 2  # the points that are compared where a condition has a truth value that it has nowhere else


@dataclass(frozen=True)
class Boundary:
    """Where an equality holds exactly: a solution, the ranges of the symbols in it, and the `zero` function whose sign a `condition` decides by."""

    at: Mapping[Any, Any]
    ranges: Mapping[Any, Range]
    zero: Any
    condition: Any = None

    def insert(self, e: Any) -> Any:
        """An expression on the boundary: there, the conditions of this function are those of the number 0."""
        here = {c: sympy.true if isinstance(c, (sympy.Le, sympy.Ge, sympy.Eq)) else sympy.false for c in e.atoms(Relational)
                if c.lhs - c.rhs in (self.zero, -self.zero)} if self.condition is not None else {}
        return e.xreplace(here).xreplace(dict(self.at))


class ConditionCoverage:
    """The conditions of expressions of symbols with ranges, and their truth values at the visited points.

    Jumps and kinks have conditions, too: sign, Heaviside, absolute values and maxima depend on a sign, and floor on the integers that are reached.

    >>> x = sympy.Symbol("x", real=True)
    >>> coverage = ConditionCoverage([sympy.Piecewise((1, sympy.Eq(3 * x, 2)), (0, True))], [x], [Range()])
    >>> next(coverage.points()), coverage.unvisited()
    ([Fraction(2, 3)], Eq(x, 2/3))
    """

    def __init__(self, expressions: Sequence[Any], symbols: Sequence[Any], ranges: Sequence[Range]):
        self.expressions = [e.replace(sympy.KroneckerDelta, DEFINITIONS[sympy.KroneckerDelta]) for e in expressions]
        self.symbols, self.ranges, self.coordinates = symbols, ranges, Coordinates(symbols, ranges)
        of_pieces = [c for e in self.expressions for choice in e.atoms(sympy.Piecewise) for _, c in choice.args]
        relations = [r for e in self.expressions for r in e.atoms(Relational)]
        jumps, kinks = ([c for e in self.expressions for f in e.atoms(*kinds) for u, step in switching_functions(f) if u.is_extended_real
                              for c in ([u >= n for n in INTEGERS] if step else [u > 0, u < 0])] for kinds in (STEPS, KINKS))
        found = dict.fromkeys(c for c in (*of_pieces, *relations, *jumps, *kinks) if c.free_symbols and c.free_symbols <= set(symbols))
        self.kinks = set(kinks).difference(of_pieces, relations, jumps)
        self.solved: dict[Any, list[dict[Any, Any]] | None] = {}
        self.conditions: list[Any] = sorted(found, key=str)
        self.truth_values: dict[Any, set[bool]] = {c: set() for c in self.conditions}
        self.inserted: set[Any] = set()  # conditions all of whose exact boundaries were given
        self.undecided: set[Any] = set()  # conditions that may hold on a boundary where no point could be compared
        self.searches: dict[Any, Search] = {}

    def points(self) -> Iterator[list[Exact]]:
        """Points at and near the boundaries of the conditions, exact ones if the boundaries are known."""
        if not self.symbols:
            return
        bases = [[base[k % len(base)] for k in range(len(self.symbols))] for base in BASES]
        for base in bases:
            at = {s: sympy.Rational(x.numerator, x.denominator) for s, x in zip(self.symbols, base)}
            for u, _ in self._equations():
                for inserted in self._solutions(u) or ():
                    moved = [x.as_real_imag() for s in self.symbols for x in [inserted.get(s, at[s]).xreplace(at)]]
                    if all(x.is_Rational for parts in moved for x in parts):
                        yield [gaussian(*map(fraction, parts)) for parts in moved]
        if not any(r.complex for r in self.ranges):
            for vector in boundary_points(self.expressions, self.symbols, [list(map(float, base)) for base in bases], each=NEARBY, limit=POINTS):
                yield [Fraction(x) for x in vector]

    def _equations(self) -> list[tuple[Any, Any]]:
        """The functions whose zeros are the boundaries of conditions, with the conditions, and those at whose zeros a function jumps."""
        found = {c.lhs - c.rhs: c for e in self.expressions for c in sorted(e.atoms(Relational), key=str) if c in self.truth_values}
        for e in self.expressions:
            for f in sorted(e.atoms(sympy.sign, sympy.Heaviside, sympy.floor, sympy.ceiling, sympy.frac), key=str):
                steps = (0,) if isinstance(f, (sympy.sign, sympy.Heaviside)) else INTEGERS
                found |= {f.args[0] - n: None for n in steps if f.free_symbols <= set(self.symbols) and f.args[0] - n not in found}
        return list(found.items())[:MOST]

    def _solutions(self, u: Any) -> list[dict[Any, Any]] | None:
        """The solutions of u = 0 for symbols; None if they are unknown."""
        if u not in self.solved:
            real = self.coordinates.real(u)
            found = solutions(sympy.Eq(u if real is None else real, 0, evaluate=False), {}, families=True)
            self.solved[u] = None if found is None else [at for at in map(self.coordinates.values, found) if is_possible(at, {})]
        return self.solved[u]

    def ends(self, given: Sequence[Any]) -> Iterator[Boundary]:
        """The irrational ends of the given sets, which the ranges do not contain, if a condition or a jump may depend on them."""
        for s, r in zip(self.symbols, given) if any(e.has(Relational, *JUMPS) for e in self.expressions) else ():
            for end in r.boundary if isinstance(r, sympy.Set) and isinstance(r.boundary, sympy.FiniteSet) else ():
                if not end.is_Rational and r.contains(end) == True:  # noqa: E712  a SymPy condition
                    yield Boundary({s: end}, {o: own for o, own in zip(self.symbols, self.ranges) if o is not s}, s - end)

    def boundaries(self) -> Iterator[Boundary]:
        """The boundaries that are known exactly."""
        for u, condition in self._equations():
            found = self._solutions(u)
            known = found is not None and len(found) <= EXACT
            for at in (found or ())[:EXACT]:
                if any(s.is_integer and not x.is_integer and x.free_symbols & set(self.symbols) for s, x in at.items()):
                    known = False  # for which integers it is an integer is not known
                    continue
                ranges = self._ranges_at(at)
                if ranges is not None:
                    yield Boundary(at, ranges, u, condition)
            if known:
                self.inserted |= {c for c in self.conditions if isinstance(c, Relational) and c.lhs - c.rhs in (u, -u)}
            real = None if condition is None or len(self.truth_values[condition]) == 2 else self.coordinates.real(u)
            for at in map(self.coordinates.values, critical_points(real) if real is not None else ()):
                ranges = self._ranges_at(at)
                if ranges is not None and is_possible(at, {}):
                    yield Boundary(at, ranges, None)

    def _ranges_at(self, at: Mapping[Any, Any]) -> dict[Any, Range] | None:
        """The ranges of the symbols in a solution, None if it is outside them. A family is restricted to the range of its symbol."""
        ranges = {s: r for s, r in zip(self.symbols, self.ranges) if s not in at}
        for s, x in at.items():
            r = self.ranges[self.symbols.index(s)]
            turns = [k for k in x.free_symbols if k not in self.symbols]
            if x.is_number and gaussian(*map(fraction, x.as_real_imag())) not in r:
                return None
            ranges |= {k: Range((Piece(step=1),)) if k.is_integer else Range() for k in turns}
            if len(x.free_symbols) == 1 == len(turns) and not r.complex:
                shift, slope = (fraction(v) for v in (x.xreplace({turns[0]: 0}), sympy.diff(x, turns[0])))
                ends = ((None if end is None else (end - shift) / slope for end in ((p.low, p.high) if slope > 0 else (p.high, p.low)))
                        for p in r.pieces)
                ranges[turns[0]] = Range(tuple(Piece(low, high, step=1) for low, high in ends))
        return None if any(r.empty for r in ranges.values()) else ranges

    def note(self, values: Sequence[Any]) -> None:
        """Record the truth values of the conditions at a point."""
        for c, value in zip(self.conditions, values):
            if isinstance(value, (bool, sympy.logic.boolalg.BooleanAtom)):
                self.truth_values[c].add(bool(value))

    def sides(self) -> Iterator[list[Exact]]:
        """Points at which a condition has a truth value that it had at no point before."""
        for c in self.conditions:
            if len(self.truth_values[c]) < 2:
                yield from islice(self._search(c).points({True, False} - self.truth_values[c]), SIDES)

    def _search(self, c: Any) -> Search:
        if c not in self.searches:
            self.searches[c] = Search(c, self.coordinates)
        return self.searches[c]

    def unvisited(self) -> Any:
        """The first condition that had the same truth value at all points and may have the other one; None if there is none.

        It is that of a kink, at which both sides are the same number, only if there is no other.
        """
        return next((c for c in sorted(self.conditions, key=self.kinks.__contains__)
                     if c in self.undecided or len(self.truth_values[c]) < 2 and not self._is_constant(c)), None)

    def _is_constant(self, c: Any) -> bool:
        """Whether a condition is known to have no other truth value in the ranges than those at the points and on its exact boundaries."""
        ranges = dict(zip(self.symbols, self.ranges))
        choice = sympy.Piecewise((1, c), (0, True))
        for truth in self.truth_values[c] or (False, True):
            if vanishes(choice, sympy.Integer(truth), ranges, Effort(DECIDING)):
                return True
        if c not in self.inserted and (c not in self.kinks or self._solutions(c.lhs - c.rhs) is None):
            return False
        if isinstance(c, (sympy.Eq, sympy.Ne)):
            return True
        u = self.coordinates.real(c.lhs - c.rhs)
        if u is None or not is_continuous(u):
            return False
        found = solutions(sympy.Eq(u, 0, evaluate=False), {}, families=True) or ()
        periods = {(s, sympy.diff(x, k)) for at in found for s, x in at.items() for k in x.free_symbols if k not in u.free_symbols}
        real = {s: Range() for s in u.free_symbols}
        return all(vanishes(u, u.xreplace({s: s + period}), real, Effort(DECIDING)) for s, period in periods) \
            and not self._search(c).may_have({True, False} - self.truth_values[c], bool(periods))
