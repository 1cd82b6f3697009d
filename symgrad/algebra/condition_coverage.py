"""The conditions of two expressions, their truth values at the points of comparison, and their exact boundaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy
from sympy.core.relational import Relational

from symgrad.algebra.effort import Effort
from symgrad.algebra.ranges import Range
from symgrad.algebra.solving import is_continuous, solutions
from symgrad.algebra.zero_test import JUMPS, vanishes
from symgrad.sampling.conditions import boundary_points
from symgrad.sampling.domain_reader import Piece

BASES = (Fraction(3, 2), Fraction(5, 2), Fraction(-3, 4), Fraction(4)), (Fraction(12), Fraction(3), Fraction(-2), Fraction(1, 2))
MOST, POINTS, NEARBY = 16, 60, 5  # the most conditions, boundary points, and numbers at and near a boundary
EXACT = 40  # the most solutions of equations that are inserted
INTEGERS = 0, 1, -1  # the values of an integer part at whose jumps the expressions are compared
DIGITS = 60
DECIDING = 10_000  # the term pairs for a condition that may be constant


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

    >>> x = sympy.Symbol("x", real=True)
    >>> coverage = ConditionCoverage([sympy.Piecewise((1, sympy.Eq(3 * x, 2)), (0, True))], [x], [Range()])
    >>> next(coverage.points()), coverage.unvisited()
    ([Fraction(2, 3)], Eq(x, 2/3))
    """

    def __init__(self, expressions: Sequence[Any], symbols: Sequence[Any], ranges: Sequence[Range]):
        self.expressions, self.symbols, self.ranges = expressions, symbols, ranges
        of_pieces = [c for e in expressions for choice in e.atoms(sympy.Piecewise) for _, c in choice.args]
        found = dict.fromkeys(c for c in (*of_pieces, *(r for e in expressions for r in e.atoms(Relational)))
                              if c.free_symbols and c.free_symbols <= set(symbols))
        self.solved: dict[Any, list[dict[Any, Any]] | None] = {}
        self.conditions: list[Any] = sorted(found, key=str)[:MOST] if not any(r.complex for r in ranges) else []
        self.truth_values: dict[Any, set[bool]] = {c: set() for c in self.conditions}
        self.inserted: set[Any] = set()  # conditions all of whose exact boundaries were given
        self.undecided: set[Any] = set()  # conditions that may hold on a boundary where no point could be compared

    def points(self) -> Iterator[list[Fraction]]:
        """Points at and near the boundaries of the conditions, exact ones if the boundaries are known."""
        if any(r.complex for r in self.ranges) or not self.symbols:
            return
        for base in self._bases():
            at = {s: sympy.Rational(x.numerator, x.denominator) for s, x in zip(self.symbols, base)}
            for u, _ in self._equations():
                for inserted in self._solutions(u) or ():
                    moved = [inserted.get(s, at[s]).xreplace(at) for s in self.symbols]
                    if all(x.is_Rational for x in moved):
                        yield [Fraction(int(x.p), int(x.q)) for x in moved]
        bases = [list(map(float, base)) for base in self._bases()]
        for vector in boundary_points(self.expressions, self.symbols, bases, each=NEARBY, limit=POINTS):
            yield [Fraction(x) for x in vector]

    def _bases(self) -> list[list[Fraction]]:
        return [[base[k % len(base)] for k in range(len(self.symbols))] for base in BASES]

    def _equations(self) -> list[tuple[Any, Any]]:
        """The functions whose zeros are the boundaries of conditions, with the conditions, and those at whose zeros a function jumps."""
        found = {c.lhs - c.rhs: c for c in self.conditions if isinstance(c, Relational)}
        for e in self.expressions if self.conditions or not any(r.complex for r in self.ranges) else ():
            for f in sorted(e.atoms(sympy.sign, sympy.Heaviside, sympy.floor, sympy.ceiling, sympy.frac), key=str):
                steps = (0,) if isinstance(f, (sympy.sign, sympy.Heaviside)) else INTEGERS
                found |= {f.args[0] - n: None for n in steps if f.free_symbols <= set(self.symbols) and f.args[0] - n not in found}
        return list(found.items())[:MOST]

    def _solutions(self, u: Any) -> list[dict[Any, Any]] | None:
        if u not in self.solved:
            self.solved[u] = solutions(sympy.Eq(u, 0, evaluate=False), {}, families=True)
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
            for at in (found or ())[:EXACT]:
                ranges = self._ranges_at(at)
                if ranges is not None:
                    yield Boundary(at, ranges, u, condition)
            if found is not None and len(found) <= EXACT:
                self.inserted |= {c for c in self.conditions if isinstance(c, Relational) and c.lhs - c.rhs in (u, -u)}

    def _ranges_at(self, at: Mapping[Any, Any]) -> dict[Any, Range] | None:
        """The ranges of the symbols in a solution, None if it is outside them. A family is restricted to the range of its symbol."""
        ranges = {s: r for s, r in zip(self.symbols, self.ranges) if s not in at}
        for s, x in at.items():
            r = self.ranges[self.symbols.index(s)]
            turns = [k for k in x.free_symbols if k not in self.symbols]
            if x.is_number and (not x.is_real or _fraction(x) not in r):
                return None
            if len(x.free_symbols) == 1 == len(turns):
                shift, slope = (_fraction(v) for v in (x.xreplace({turns[0]: 0}), sympy.diff(x, turns[0])))
                ends = ((None if end is None else (end - shift) / slope for end in ((p.low, p.high) if slope > 0 else (p.high, p.low)))
                        for p in r.pieces)
                ranges[turns[0]] = Range(tuple(Piece(low, high, step=1) for low, high in ends))
        return None if any(r.empty for r in ranges.values()) else ranges

    def note(self, values: Sequence[Any]) -> None:
        """Record the truth values of the conditions at a point."""
        for c, value in zip(self.conditions, values):
            if isinstance(value, bool):
                self.truth_values[c].add(value)

    def unvisited(self) -> Any:
        """The first condition that had the same truth value at all points and may have the other one; None if there is none."""
        return next((c for c in self.conditions if c in self.undecided or len(self.truth_values[c]) < 2 and not self._is_constant(c)), None)

    def _is_constant(self, c: Any) -> bool:
        """Whether a condition is known to have no other truth value in the ranges than those at the points and on its exact boundaries."""
        ranges = dict(zip(self.symbols, self.ranges))
        choice = sympy.Piecewise((1, c), (0, True))
        for truth in self.truth_values[c] or (False, True):
            if vanishes(choice, sympy.Integer(truth), ranges, Effort(DECIDING)):
                return True
        if c not in self.inserted:
            return False
        return isinstance(c, (sympy.Eq, sympy.Ne)) or is_continuous(c.lhs - c.rhs)


def _fraction(x: Any) -> Fraction:
    """A real number, to many more digits than the ends of the ranges have."""
    rational = sympy.Rational(x if x.is_Rational else sympy.N(x, DIGITS))
    return Fraction(int(rational.p), int(rational.q))
