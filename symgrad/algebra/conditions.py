"""The conditions of two expressions: their truth values at the points of comparison, points on their other sides, and their exact boundaries.

On the other side of a condition are the points at and between the zeros and extrema of the function whose sign decides, also in narrow regions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import cycle, islice, pairwise, product
from typing import Any

import mpmath
import sympy
from sympy.core.relational import Relational

from symgrad.algebra.catalogue import DEFINITIONS
from symgrad.algebra.effort import Effort
from symgrad.algebra.evaluating import Evaluator, Unknown
from symgrad.algebra.ranges import Range
from symgrad.algebra.simplification import FAILURES
from symgrad.algebra.solving import common_solutions, is_complex, is_continuous, is_possible, solutions
from symgrad.algebra.stochastic import Arithmetic, Exact, gaussian
from symgrad.algebra.zero_test import JUMPS, vanishes
from symgrad.sampling.conditions import boundary_points, switching_functions, zeros
from symgrad.sampling.domain_reader import Piece
from symgrad.system.restoring import workdps

BASES = (Fraction(3, 2), Fraction(5, 2), Fraction(-3, 4), Fraction(4)), (Fraction(12), Fraction(3), Fraction(-2), Fraction(1, 2))
DIGITS = 60
TURNS, INTEGER_TURNS = 2, 500  # the largest number of a solution in a family, and of one next to which there is to be an integer
JOINT, CANDIDATES = 40, 10_000  # the most critical points of several coordinates, and points at which a condition is evaluated
GRID = [k / 4 for k in range(-80, 81)]
LATTICES = (sympy.floor, sympy.ceiling, sympy.frac, sympy.Mod)

MOST, POINTS, NEARBY = 40, 60, 5  # the most equations, boundary points, and numbers at and near a boundary
EXACT = 40  # the most solutions of equations that are inserted
INTEGERS = 0, 1, -1  # the values of an integer part at whose jumps the expressions are compared
DECIDING = 10_000  # the term pairs for a condition that may be constant
KINKS = (sympy.Abs, sympy.Max, sympy.Min)
STEPS = (sympy.sign, sympy.Heaviside, *LATTICES)
SIDES = 2  # the points that are compared where a condition has a truth value that it has nowhere else


class Coordinates:
    """The real coordinates of symbols: real symbols without the restriction to integers, and two for each complex symbol."""

    def __init__(self, symbols: Sequence[Any], ranges: Sequence[Range]):
        self.symbols, self.ranges = symbols, ranges
        self.of: dict[Any, tuple[Any, ...]] = {}
        for s in symbols:
            facts = {"positive": True} if s.is_positive else {"negative": True} if s.is_negative else {}
            self.of[s] = tuple(sympy.Dummy(f"{part} {s}", real=True) for part in ("re", "im")) if is_complex(s) else \
                (sympy.Dummy(s.name, real=True, **facts) if s.is_integer else s,)
        self.all = [c for parts in self.of.values() for c in parts]
        self.inserted = {s: parts[0] + sympy.I * parts[1] if len(parts) > 1 else parts[0] for s, parts in self.of.items()}

    def real(self, u: Any) -> Any:
        """A real expression in terms of the coordinates, None for one that may not be real."""
        if not any(map(is_complex, u.free_symbols)):
            return u.xreplace(self.inserted)
        if not u.is_extended_real:
            return None
        u = u.xreplace(self.inserted)
        for kind, form in ((sympy.Abs, lambda a, b: sympy.sqrt(a**2 + b**2)), (sympy.arg, lambda a, b: sympy.atan2(b, a))):
            u = u.replace(kind, lambda v, form=form: form(*v.as_real_imag()))
        return u.expand(complex=True)

    def values(self, at: Mapping[Any, Any]) -> dict[Any, Any]:
        """The values of symbols at a solution for coordinates or symbols."""
        used = set(at).union(*(x.free_symbols for x in at.values()))
        back = {parts[0]: s for s, parts in self.of.items() if len(parts) == 1}
        return {s: at[s] if s in at else e.xreplace(dict(at)).xreplace(back) for s, e in self.inserted.items()
                if s in at or not set(self.of[s]).isdisjoint(at if len(self.of[s]) == 1 else used)} if at else {}

    def points(self, at: Mapping[Any, Fraction]) -> Iterator[list[Exact]]:
        """The points of some coordinates in the ranges, where an integer is next to each other number."""
        parts: list[list[Exact]] = []
        for s, r in zip(self.symbols, self.ranges):
            numbers = [at[c] for c in self.of[s]]
            nearest = (numbers[0].__floor__(), numbers[0].__ceil__()) if s.is_integer else ()
            own: list[Exact] = [*map(Fraction, dict.fromkeys(nearest))] if nearest else [gaussian(*numbers, *[Fraction(0)] * (len(numbers) < 2))]
            parts.append([x for x in own if x in r])
        yield from map(list, product(*parts))


def candidates(condition: Any, coordinates: Coordinates) -> Iterator[dict[Any, Fraction]]:
    """Values of the coordinates on all sides of the functions in a condition: along each coordinate, and where all slopes are 0."""
    found = (coordinates.real(c.lhs - c.rhs) for c in sorted(condition.atoms(Relational), key=str))
    counted = {c for s, parts in coordinates.of.items() if s.is_integer for c in parts}
    bases = [dict(zip(coordinates.all, cycle(base))) for base in BASES]
    for u in found:
        symbols = [] if u is None else sorted(u.free_symbols, key=str)
        for base in bases if len(symbols) > 1 else bases[:1]:
            at = {c: sympy.Rational(x.numerator, x.denominator) for c, x in base.items()}
            for s in symbols:
                line = u.xreplace({c: x for c, x in at.items() if c is not s})
                yield from (base | {s: x} for x in _numbers_along(line, s, s in counted))
        for solution in critical_points(u) if len(symbols) > 1 else ():
            turns = sorted(set().union(*(x.free_symbols for x in solution.values())).difference(symbols), key=str)
            for numbers in islice(product(*[(0, 1, -1)] * len(turns)), JOINT):
                values = {s: x.xreplace(dict(zip(turns, map(sympy.Integer, numbers)))) for s, x in solution.items()}
                if all(x.is_number for x in values.values()):
                    yield from (base | {s: fraction(x) for s, x in values.items()} for base in bases)


def critical_points(u: Any) -> list[dict[Any, Any]]:
    """The solutions at which all slopes of a function are 0, as far as they are known."""
    try:
        return [] if u.has(*LATTICES) else common_solutions([sympy.diff(u, s) for s in sorted(u.free_symbols, key=str)]) or []
    except FAILURES:
        return []


def _numbers_along(line: Any, s: Any, counted: bool) -> list[Fraction]:
    """The zeros and extrema of a function of one symbol, numbers between two of them, and beyond all."""
    found: set[Fraction] = set()
    kinks = [p.base for p in line.atoms(sympy.Pow) if p.exp.is_Rational and not p.exp.is_Integer] + [f.args[0] for f in line.atoms(sympy.Abs)]
    for f in [line] if line.has(*LATTICES) else [line, sympy.diff(line, s), *kinks]:  # at a kink may be an extremum without a slope of 0
        known = solutions(sympy.Eq(f, 0, evaluate=False), {}, families=True) if s in f.free_symbols else []
        if known is None:
            found |= {fraction(x) for x in _refined(f, s)}
            continue
        most = INTEGER_TURNS if counted and f is line else TURNS
        for root in (at[s] for at in known):
            turns = root.free_symbols
            slope = fraction(sympy.Add(*(sympy.diff(root, k) for k in turns)))
            first = fraction(root.xreplace(dict.fromkeys(turns, sympy.S.Zero)))
            found |= {first + k * slope for k in (range(-most, most + 1) if turns else (0,))}
    numbers = sorted(found)
    between = [(a + b) / 2 for a, b in pairwise(numbers)] if not counted else []
    return sorted([*numbers, *between, *([numbers[0] - 1, numbers[-1] + 1] if numbers else [])], key=abs)


def _refined(f: Any, s: Any) -> Iterator[Any]:
    """The zeros of a function that are found on a grid, by mpmath where NumPy cannot compute it, with many digits."""
    function: Any

    def sign(x: float) -> int:
        try:
            y = function(mpmath.mpf(x))
            return int(mpmath.sign(y)) if isinstance(y, mpmath.mpf) else 0
        except (ArithmeticError, ValueError, mpmath.libmp.NoConvergence):
            return 0

    try:
        function = sympy.lambdify(s, f, "mpmath")
        for start in zeros(f, s) or [(a, b) for (a, one), (b, other) in pairwise([(x, sign(x)) for x in GRID]) if one * other < 0]:
            with workdps(mpmath.mp, DIGITS):
                try:
                    root = mpmath.findroot(function, start, **({"solver": "illinois"} if isinstance(start, tuple) else {}))
                except (ValueError, ArithmeticError):
                    root = start
                if isinstance(root, mpmath.mpf | float) and mpmath.isfinite(root):
                    yield sympy.Float(root, DIGITS)
    except (*FAILURES, NameError):
        return


def fraction(x: Any) -> Fraction:
    """A real number, to many more digits than the ends of the ranges have."""
    rational = sympy.Rational(x if x.is_Rational else sympy.N(x, DIGITS))
    return Fraction(int(rational.p), int(rational.q))


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
        self.searches: dict[Any, tuple[list[dict[Any, Fraction]], bool]] = {}

    def points(self) -> Iterator[list[Exact]]:
        """Points at and near the boundaries of the conditions, exact ones if the boundaries are known."""
        if not self.symbols:
            return
        bases = [dict(zip(self.symbols, cycle(base))) for base in BASES]
        for base in bases:
            at = {s: sympy.Rational(x.numerator, x.denominator) for s, x in base.items()}
            for u, _ in self._equations():
                for inserted in self._solutions(u) or ():
                    moved = [x.as_real_imag() for s in self.symbols for x in [inserted.get(s, at[s]).xreplace(at)]]
                    if all(x.is_Rational for parts in moved for x in parts):
                        yield [gaussian(*map(fraction, parts)) for parts in moved]
        if not any(r.complex for r in self.ranges):
            floats = [list(map(float, base.values())) for base in bases]
            for vector in boundary_points(self.expressions, self.symbols, floats, each=NEARBY, limit=POINTS):
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
                if not end.is_Rational and r.contains(end) is sympy.true:
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
                yield from islice(self._points_beyond(c), SIDES)

    def _search(self, c: Any) -> tuple[list[dict[Any, Fraction]], bool]:
        """The candidates for the truth values of a condition, and whether these are all."""
        if c not in self.searches:
            found: list[dict[Any, Fraction]] = []
            try:
                found += islice(candidates(c, self.coordinates), CANDIDATES)
                self.searches[c] = found, True
            except FAILURES:
                self.searches[c] = found, False
        return self.searches[c]

    def _points_beyond(self, c: Any, between: bool = False) -> Iterator[list[Exact]]:
        """Points in the ranges at which a condition has a truth value that it had at no point, or points of coordinates `between` integers."""
        condition, symbols = (c.xreplace(self.coordinates.inserted), self.coordinates.all) if between else (c, self.symbols)
        try:
            program, arithmetic = Evaluator([condition], symbols), Arithmetic(DIGITS)
        except Unknown:
            return
        for at in self._search(c)[0]:
            inside = self.coordinates.points(at)
            points: Any = [[at[c] for c in symbols]] * any(True for _ in inside) if between else inside
            for point in points:
                [truth] = program.at(point, arithmetic)
                if isinstance(truth, bool) and truth not in self.truth_values[c]:
                    yield point

    def unvisited(self) -> Any:
        """The first condition that had the same truth value at all points and may have the other one; None if there is none.

        It is that of a kink, at which both sides are the same number, only if there is no other.
        """
        return next((c for c in sorted(self.conditions, key=self.kinks.__contains__)
                     if c in self.undecided or len(self.truth_values[c]) < 2 and not self._is_constant(c)), None)

    def _is_constant(self, c: Any) -> bool:
        """Whether a condition is known to have no other truth value in the ranges than those at the points and on its exact boundaries."""
        ranges, choice = dict(zip(self.symbols, self.ranges)), sympy.Piecewise((1, c), (0, True))
        if any(vanishes(choice, sympy.Integer(truth), ranges, Effort(DECIDING)) for truth in self.truth_values[c] or (False, True)):
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
        return all(vanishes(u, u.xreplace({s: s + period}), dict.fromkeys(u.free_symbols, Range()), Effort(DECIDING)) for s, period in periods) \
            and self._search(c)[1] and not any(True for _ in self._points_beyond(c, bool(periods)))
