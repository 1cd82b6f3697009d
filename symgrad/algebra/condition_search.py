"""Points on all sides of a condition: at and between the zeros and extrema of the function whose sign decides, which may be narrow regions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, pairwise, product
from typing import Any

import mpmath
import sympy
from sympy.core.relational import Relational

from symgrad.algebra.evaluating import Evaluator, Unknown
from symgrad.algebra.ranges import Range
from symgrad.algebra.simplification import FAILURES
from symgrad.algebra.solving import common_solutions, is_complex, solutions
from symgrad.algebra.stochastic import Arithmetic, Exact, gaussian
from symgrad.sampling.conditions import zeros
from symgrad.system.restoring import workdps

BASES = (Fraction(3, 2), Fraction(5, 2), Fraction(-3, 4), Fraction(4)), (Fraction(12), Fraction(3), Fraction(-2), Fraction(1, 2))
DIGITS = 60
TURNS, INTEGER_TURNS = 2, 500  # the largest number of a solution in a family, and of one next to which there is to be an integer
JOINT, CANDIDATES = 40, 10_000  # the most critical points of several coordinates, and points at which a condition is evaluated
GRID = [k / 4 for k in range(-80, 81)]
STEPS = (sympy.floor, sympy.ceiling, sympy.frac, sympy.Mod)


class Coordinates:
    """The real coordinates of symbols: real symbols without the restriction to integers, and two for each complex symbol."""

    def __init__(self, symbols: Sequence[Any], ranges: Sequence[Range]):
        self.symbols, self.ranges = symbols, ranges
        self.of: dict[Any, tuple[Any, ...]] = {}
        for s in symbols:
            facts = {"positive": True} if s.is_positive else {"negative": True} if s.is_negative else {}
            self.of[s] = tuple(sympy.Dummy(f"{part} {s}", real=True) for part in ("re", "im")) if is_complex(s) else \
                (sympy.Dummy(s.name, real=True, **facts) if s.is_integer else s,)
        self.inserted = {s: parts[0] + sympy.I * parts[1] if len(parts) > 1 else parts[0] for s, parts in self.of.items()}

    def real(self, u: Any) -> Any:
        """A real expression in terms of the coordinates, None for one that may not be real."""
        if not any(is_complex(s) for s in u.free_symbols):
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

    def bases(self) -> list[dict[Any, Fraction]]:
        """Two values of all coordinates."""
        coordinates = [c for parts in self.of.values() for c in parts]
        return [{c: base[k % len(base)] for k, c in enumerate(coordinates)} for base in BASES]


def candidates(condition: Any, coordinates: Coordinates) -> Iterator[dict[Any, Fraction]]:
    """Values of the coordinates on all sides of the functions in a condition: along each coordinate, and where all slopes are 0."""
    found = (coordinates.real(c.lhs - c.rhs) for c in sorted(condition.atoms(Relational), key=str))
    functions = [u for u in found if u is not None and u.free_symbols]
    bases = coordinates.bases()
    for u in functions:
        symbols = sorted(u.free_symbols, key=str)
        for base in bases if len(symbols) > 1 else bases[:1]:
            at = {c: sympy.Rational(x.numerator, x.denominator) for c, x in base.items()}
            for s in symbols:
                line = u.xreplace({c: x for c, x in at.items() if c is not s})
                yield from (base | {s: x} for x in _numbers_along(line, s, _is_counted(s, coordinates)))
        if len(symbols) > 1:
            for values in _critical_numbers(u, symbols):
                yield from (base | values for base in bases)


def _is_counted(c: Any, coordinates: Coordinates) -> bool:
    return any(s.is_integer and c in parts for s, parts in coordinates.of.items())


def critical_points(u: Any) -> list[dict[Any, Any]]:
    """The solutions at which all slopes of a function are 0, as far as they are known."""
    try:
        return [] if u.has(*STEPS) else common_solutions([sympy.diff(u, s) for s in sorted(u.free_symbols, key=str)]) or []
    except FAILURES:
        return []


def _critical_numbers(u: Any, symbols: Sequence[Any]) -> Iterator[dict[Any, Fraction]]:
    for at in critical_points(u):
        turns = sorted(set().union(*(x.free_symbols for x in at.values())).difference(symbols), key=str)
        for numbers in islice(product(*[(0, 1, -1)] * len(turns)), JOINT):
            values = {s: x.xreplace(dict(zip(turns, map(sympy.Integer, numbers)))) for s, x in at.items()}
            if all(x.is_number for x in values.values()):
                yield {s: fraction(x) for s, x in values.items()}


def _numbers_along(line: Any, s: Any, counted: bool) -> list[Fraction]:
    """The zeros and extrema of a function of one symbol, numbers between two of them, and beyond all."""
    found: set[Fraction] = set()
    for f in [line] if line.has(*STEPS) else [line, sympy.diff(line, s), *_kinks(line, s)]:
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


def _kinks(line: Any, s: Any) -> list[Any]:
    """The functions at whose zeros another one may have an extremum without a slope of 0."""
    roots = [p.base for p in line.atoms(sympy.Pow) if p.exp.is_Rational and not p.exp.is_Integer]
    return [u for u in (*roots, *(f.args[0] for f in line.atoms(sympy.Abs))) if s in u.free_symbols]


def _refined(f: Any, s: Any) -> Iterator[Any]:
    """The zeros of a function that are found on a grid, with many digits."""
    try:
        function = sympy.lambdify(s, f, "mpmath")
        for start in zeros(f, s) or _changes(function):
            with workdps(mpmath.mp, DIGITS):
                try:
                    root = mpmath.findroot(function, start, **({"solver": "illinois"} if isinstance(start, tuple) else {}))
                except (ValueError, ArithmeticError):
                    root = start
                if isinstance(root, mpmath.mpf | float) and mpmath.isfinite(root):
                    yield sympy.Float(root, DIGITS)
    except (*FAILURES, NameError):
        return


def _changes(function: Any) -> Iterator[tuple[float, float]]:
    """The intervals of a grid in which a function changes its sign that NumPy cannot compute."""
    signs = []
    for x in GRID:
        try:
            y = function(mpmath.mpf(x))
            signs.append((x, mpmath.sign(y) if isinstance(y, mpmath.mpf) else 0))
        except (ArithmeticError, ValueError, mpmath.libmp.NoConvergence):
            signs.append((x, 0))
    return ((a, b) for (a, one), (b, other) in pairwise(signs) if one * other < 0)


def fraction(x: Any) -> Fraction:
    """A real number, to many more digits than the ends of the ranges have."""
    rational = sympy.Rational(x if x.is_Rational else sympy.N(x, DIGITS))
    return Fraction(int(rational.p), int(rational.q))


class Search:
    """A condition at the candidates for its truth values."""

    def __init__(self, condition: Any, coordinates: Coordinates):
        self.condition, self.coordinates, self.complete = condition, coordinates, True
        self.candidates: list[dict[Any, Fraction]] = []
        try:
            self.candidates += islice(candidates(condition, coordinates), CANDIDATES)
        except FAILURES:
            self.complete = False

    def points(self, missing: set[bool]) -> Iterator[list[Exact]]:
        """Points in the ranges at which it has a truth value."""
        points = (point for at in self.candidates for point in self.coordinates.points(at))
        yield from self._with_truth(self.condition, self.coordinates.symbols, points, missing)

    def may_have(self, missing: set[bool], between: bool) -> bool:
        """Whether it may have a truth value in the ranges, also `between` integers: not if the candidates are all that is to be visited."""
        found: Iterator[Any] = self.points(missing)
        if between:
            real = self.condition.xreplace(self.coordinates.inserted)
            coordinates = [c for parts in self.coordinates.of.values() for c in parts]
            points = ([at[c] for c in coordinates] for at in self.candidates if any(True for _ in self.coordinates.points(at)))
            found = self._with_truth(real, coordinates, points, missing)
        return not self.complete or any(True for _ in found)

    def _with_truth(self, c: Any, symbols: Sequence[Any], points: Iterator[Any], missing: set[bool]) -> Iterator[list[Exact]]:
        try:
            program, arithmetic = Evaluator([c], symbols), Arithmetic(DIGITS)
        except Unknown:
            return
        for point in points:
            [truth] = program.at(point, arithmetic)
            if isinstance(truth, bool) and truth in missing:
                yield point
