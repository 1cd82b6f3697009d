"""Numeric comparison of derivatives by the rules, with many digits, and by SymPy's formulas, with measured errors."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import mpmath
import sympy
from sympy.matrices.exceptions import NonInvertibleMatrixError

from symgrad.algebra.conditions import fraction
from symgrad.algebra.evaluating import Evaluator
from symgrad.algebra.ladder import DIFFERENT, OPEN, SAME, compare, rungs
from symgrad.algebra.limits import poll
from symgrad.algebra.ranges import points_in, ranges_of
from symgrad.algebra.stochastic import Arithmetic, Exact, Gaussian, gaussian
from symgrad.carriers import precise
from symgrad.proofs.balls import BallProgram, Value
from symgrad.proofs.case import Case, Key
from symgrad.proofs.matrices import fitted, has_matrices, is_inside
from symgrad.proofs.one_sided import Limits
from symgrad.proofs.regions import Region, Switch, constants, zero_switches
from symgrad.proofs.tape import Tape
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reference.sides import EXISTS, JUMP
from symgrad.sampling.points import shrink_values

FIRST, LAST = 70, 400  # the digits of the first and of the last rung
SIMPLIFIED = 3  # the number of refuted statements whose points are simplified
TRIES = 60  # the most evaluations for the simplification of a point
OUTSIDE = 30  # the most points that are drawn for one with a real value
SINGULAR = 6  # the most points without a value of the reference where the limit is compared
Result = tuple[str, Any, Any]  # the verdict at a point, and the numbers by the rule and by SymPy


@dataclass
class NumericResult:
    """The number of points that agreed, and the first other one, with the numbers by the rule (`claim`) and by SymPy (`reference`).

    `simple` is true if the point was simplified, `jump` if the value jumps there, so that there is no derivative, `saturated` if only floats
    take the branch of the rule.
    """

    points: int = 0
    point: Mapping[sympy.Symbol, Any] | None = None
    claim: Any = None
    reference: Any = None
    simple: bool = True
    jump: bool = False
    saturated: bool = False


class NumericComparison:
    """The comparison of a case inside a region, at points, of the derivatives by the rules with the reference expressions on a tape.

    `planned` and `compared` are numbers of points, `outside` that of points where the forward rule has no real value, which are not in the domain,
    and `conventions` has the points at which the function has a kink, with the kind of kink.
    """

    def __init__(self, case: Case, region: Region, tape: Tape, values: Sequence[Any], references: Mapping[Key, Sequence[Any]], order: int,
                 switches: Sequence[Switch] = (), of_rules: Sequence[Switch] = ()):
        self.case, self.region, self.tape, self.values, self.references = case, region, tape, values, references
        self.order, self.switches, self.of_rules = order, switches, of_rules
        self.found = {key: NumericResult() for key in references}
        inner = sorted(set().union(*(sympy.sympify(region(x)).free_symbols for x in case.variables)), key=str)
        self.directions = sorted(set().union(*(e.free_symbols for name, cells in case.symbols.items() if name not in case.names
                                               for e in cells.ravel().tolist())), key=str)
        self.inner: list[sympy.Symbol] = inner
        self.programs: dict[Any, Evaluator] = {}
        self.balls: dict[Any, BallProgram] = {}
        self.ranges = ranges_of(inner, {s: d for s, d in region.domains.items() if s in inner})
        self.rng = Random(0)
        self.moves = [Fraction(self.rng.choice((-1, 1)) * self.rng.randint(1, 9)) for _ in self.directions]
        self.arithmetic = Arithmetic(FIRST)
        self.matrices = has_matrices(case)
        self.planned = self.compared = self.singular = self.outside = self.in_digits = 0
        self.conventions: dict[str, None] = {}

    def compare(self, wanted: int, first: Iterable[Sequence[Exact]] = (), fewest: int = 0) -> dict[Key, NumericResult]:
        """Compare at the `first` points and at others, `wanted` in all and at least the `fewest`; each wrong statement gets a simple point."""
        inside = [inner for inner in first if self.contains(inner) and self._is_short(inner)]
        others = max(wanted - len(inside), fewest)
        for inner in inside:
            self._compare(inner)
        self.planned = len(inside) - self.outside + others
        goal, tries = {key: found.points + others for key, found in self.found.items()}, 0
        for inner in points_in(self.ranges, constants(self.case), self.rng) if others else ():
            tries += 1
            if tries - self.outside > 3 * others + 10 or tries > OUTSIDE * others or all(
                    f.points >= goal[key] or f.point is not None for key, f in self.found.items()):
                break
            self._compare(inner)
        return self.found

    def contains(self, inner: Sequence[Exact]) -> bool:
        return all(x in r for x, r in zip(inner, self.ranges))

    def _is_short(self, inner: Sequence[Exact]) -> bool:
        """Whether no argument is rounded at a point with the digits of the first rung."""
        at = self.at(inner)
        return all(abs(self.region(x).xreplace(at).p) < 10**(FIRST - 10) for x in self.case.variables)

    def at(self, inner: Sequence[Exact]) -> dict[sympy.Symbol, Any]:
        return {s: _rational(x) for s, x in zip(self.inner, inner)}

    def arguments(self, inner: Sequence[Exact]) -> dict[sympy.Symbol, Any]:
        at = self.at(inner)
        return {x: self.region(x).xreplace(at) for x in self.case.variables}

    def _placed(self, inner: Sequence[Exact]) -> Sequence[Exact] | None:
        """The point with its matrices made matrices of their domains; None if they are not, so that rules may be wrong or raise there."""
        if not self.matrices:
            return inner
        at = self.at(inner)
        if self.region.mapping:
            return inner if is_inside(self.case, self.arguments(inner)) else None
        try:
            at = fitted(self.case, at)
        except NonInvertibleMatrixError:
            return None
        return [gaussian(*map(fraction, at[s].as_real_imag())) for s in self.inner] if is_inside(self.case, at) else None

    def _compare(self, free: Sequence[Exact]) -> None:
        poll()
        inner = self._placed(free)
        if inner is None:
            return
        if not self.is_real(inner):
            self.outside += 1
            return
        self.compared += 1
        for key, (verdict, claim, reference) in self._results(inner, tuple(self.found)).items():
            found = self.found[key]
            if verdict == SAME:
                found.points += 1
            elif verdict == DIFFERENT and found.point is None:
                self._refute(key, free, claim, reference)
            elif verdict == JUMP and found.point is None:
                self.found[key] = NumericResult(found.points, self.arguments(inner), simple=False, jump=True)

    def is_real(self, inner: Sequence[Exact]) -> bool:
        values = [] if self.case.complex else self.evaluate("values", self.values, [*inner, *self.moves], FIRST)
        return not any(x is not None and abs(mpmath.im(x)) > mpmath.mpf(2) ** error for x, error in values)

    def _results(self, inner: Sequence[Exact], keys: tuple[Key, ...]) -> dict[Key, Result]:
        """The verdicts at a point: with the reference itself where it is a derivative, and otherwise with its limits from all sides."""
        on = zero_switches(self.switches, self.at(inner))
        if on and self.matrices:
            return {}
        if on:
            return self._by_limits(inner, keys, on)
        out = self._at(inner, keys)
        if self.singular < SINGULAR and not self.matrices and len(inner) <= 3 \
                and any(verdict == OPEN and reference is None for verdict, _, reference in out.values()):
            self.singular += 1
            limits = self._by_limits(inner, keys, [])
            out = {key: limits[key] if result[0] == OPEN and result[2] is None else result for key, result in out.items()}
        return out

    def _by_limits(self, inner: Sequence[Exact], keys: tuple[Key, ...], on: Sequence[Switch]) -> dict[Key, Result]:
        """The verdicts at a kink of a rule: a derivative exists where its limits from all sides agree, and so do those of lower orders."""
        limits = Limits(self, inner)
        claims: dict[Key, list[Any]] = {}
        out: dict[Key, Result] = {}
        for key in sorted(keys, key=lambda key: -key.order):
            kink = limits.kink(key.order)
            found = limits.of(self.references[key]) if not kink else []
            if kink or not all(limit.kind == EXISTS for limit in found):
                kind = kink or "kink" if on else ""
                if kind:
                    self.conventions[f"{_where(self.arguments(inner), on, self.region)} ({kind})"] = None
                jumps = kind == "jump" and key.order == 1 and not any(lattice for _, lattice in on) and not self._is_declared(inner)
                out[key] = JUMP if jumps else OPEN, None, None
                continue
            claims = claims or self.claims(key.order, [*inner, *self.moves], FIRST)
            pairs = [(number(c), limit) for c, limit in zip(claims[key], found, strict=True)]
            wrong = next(((c, limit.value) for c, limit in pairs if not limit.agrees(c)), None)
            out[key] = (DIFFERENT, *wrong) if wrong else (SAME, None, None)
        return out

    def _is_declared(self, inner: Sequence[Exact]) -> bool:
        """Whether the rules select here, too, or the op declares a special point here; one of several arguments declares them by any point."""
        if zero_switches(self.of_rules, self.at(inner)):
            return True
        points = [*self.case.op.docs.special, *self.case.op.docs.kinks]
        x = list(self.arguments(inner).values())
        return any(len(x) > 1 or not isinstance(p[0], (list, tuple)) and Fraction(p[0]) == Fraction(int(x[0].p), int(x[0].q)) for p in points)

    def _refute(self, key: Key, free: Sequence[Exact], claim: Any, reference: Any) -> None:
        refuted = sum(f.point is not None for f in self.found.values())
        if refuted < SIMPLIFIED:
            simple = shrink_values(list(free), lambda point: self._refutes(key, point), TRIES)
            if simple != list(free):
                free, (_, claim, reference) = simple, self._results(self._placed(simple) or (), (key,))[key]
        point = self.arguments(self._placed(free) or ())
        used = set().union(*(self.tape.inputs(e) for e in self.references[key]))
        point |= {s: _rational(x) for s, x in zip(self.directions, self.moves) if s in used}
        self.found[key] = NumericResult(self.found[key].points, point, claim, reference, refuted < SIMPLIFIED)

    def _refutes(self, key: Key, free: Sequence[Exact]) -> bool:
        inner = self._placed(free) if self.contains(free) else None
        return inner is not None and self.is_real(inner) and self._results(inner, (key,)).get(key, (OPEN,))[0] == DIFFERENT

    def _at(self, inner: Sequence[Exact], wanted: tuple[Key, ...]) -> dict[Key, Result]:
        """Whether the rule and the reference agree, for each statement, with the values of an element: by balls, else with many digits."""
        point = [*inner, *self.moves]
        certified = self._program(("rules", *wanted), [e for key in wanted for e in self.references[key]],
                              functools.partial(self._rules, wanted)).compared(point)
        if certified is not None and not certified.kink:
            verdicts = iter([(DIFFERENT if k in certified.wrong else OPEN if k in certified.wide else SAME, b, a)
                             for k, (a, b) in enumerate(certified.pairs)])
            return {key: _result([next(verdicts) for _ in self.references[key]]) for key in wanted}
        self.in_digits += 1
        places = [(key, k) for key in wanted for k in range(len(self.references[key]))]

        def evaluate(digits: int, due: Sequence[int]) -> list[Any]:
            keys = tuple(dict.fromkeys(places[place][0] for place in due))
            references, claims = self.reference_values(keys, point, digits), self.claims(max(key.order for key in keys), point, digits)
            return [None if references[key][k][0] is None else (number(claims[key][k]), references[key][k][0], functools.partial(
                mpmath.ldexp, 1, references[key][k][1] + 3)) for key, k in map(places.__getitem__, due)]

        found = dict(zip(places, compare(evaluate, len(places), rungs(FIRST, LAST))))
        return {key: _result([found[key, k] for k in range(len(self.references[key]))]) for key in wanted}

    def reference_values(self, keys: tuple[Key, ...], point: Sequence[Exact], digits: int) -> dict[Key, list[Any]]:
        """The references of statements at a point of the region and the directions, each with the exponent of its error."""
        values = iter(self.evaluate(keys, [e for key in keys for e in self.references[key]], point, digits))
        return {key: [next(values) for _ in self.references[key]] for key in keys}

    def evaluate(self, name: Any, expressions: Sequence[Any], point: Sequence[Exact], digits: int) -> list[Value | tuple[None, int]]:
        """The values of expressions on the tape at a point of the region and the directions, each with the exponent of its error.

        An unknown number is None. Balls are tried first. `name` is that of the program in the cache.
        """
        found = self._program(name, expressions).at(point, digits)
        if found is not None:
            return list(found)
        if name not in self.programs:
            self.programs[name] = Evaluator(expressions, [*self.inner, *self.directions], self.tape.steps)
        self.arithmetic.set_digits(digits)
        return [self._value(x) for x in self.programs[name].at(point, self.arithmetic)]

    def _program(self, name: Any, expressions: Sequence[Any], rules: Any = None) -> BallProgram:
        if name not in self.balls:
            self.balls[name] = BallProgram(self.tape, expressions, [*self.inner, *self.directions], rules, self.case.complex)
        return self.balls[name]

    def _rules(self, keys: tuple[Key, ...], recorder: RecordingCarrier, filled: Any) -> list[Any]:
        def supply(name: str, shape: tuple[int, ...]) -> Any:
            return filled([sympy.sympify(self.region(s)) for s in self.case.supply(name, shape).ravel().tolist()], shape)

        found = dict(self.case.claims(recorder, supply, max(key.order for key in keys)))
        return [x for key in keys for x in found[key]]

    def _value(self, x: Any) -> Value | tuple[None, int]:
        if isinstance(x, ArithmeticError):
            return None, 0
        return number(self.arithmetic.sample(x).value), self.arithmetic.error(x)

    def claims(self, order: int, point: Sequence[Exact], digits: int, recorder: Any = None) -> dict[Key, list[Any]]:
        at = {s: _rational(x) for s, x in zip([*self.inner, *self.directions], point)}

        def supply(name: str, shape: tuple[int, ...]) -> Any:
            cells = [_digits(sympy.sympify(self.region(s)).xreplace(at), self.case.complex) for s in self.case.supply(name, shape).ravel().tolist()]
            return precise.Digits.fill(cells, shape)

        with precise.working_precision(digits):
            return dict(self.case.claims(recorder or RecordingCarrier(precise, precise.lift_value, self.case.complex), supply, order))


def _result(verdicts: Sequence[tuple[str, Any, Any]]) -> Result:
    different, unknown = ([v for v in verdicts if v[0] == kind] for kind in (DIFFERENT, OPEN))
    return min(different[:1] or unknown, key=lambda v: v[2] is not None, default=(SAME, None, None))


def _where(arguments: Mapping[Any, Any], on: Sequence[Switch], region: Region) -> str:
    """A point of one argument, or the equation of a border of several ones."""
    if len(arguments) == 1 or not on:
        return ", ".join(f"{s} = {x}" for s, x in arguments.items())
    u, lattice = on[0]
    u = u.xreplace(region.back)
    terms = sympy.Add.make_args(u)
    equal = f"{terms[0]} = {-terms[1]}" if len(terms) == 2 else f"{u} = 0"
    return f"{u} is an integer" if lattice else equal


def _rational(x: Exact) -> Any:
    if isinstance(x, Gaussian):
        return _rational(x.real) + sympy.I * _rational(x.imag)
    return sympy.Rational(x.numerator, x.denominator)


def _digits(e: Any, complex: bool) -> Any:
    real, imag = e.as_real_imag()
    if not (real.is_Rational and imag.is_Rational):
        raise TypeError(f"{e} is not a rational number")
    parts = [precise.context.mpf(int(part.p)) / int(part.q) for part in (real, imag)]
    return precise.context.mpc(*parts) if complex else parts[0]


def number(x: Any) -> Any:
    """A number of another mpmath context in the global one."""
    return mpmath.mp.convert(int(x) if isinstance(x, bool) else x)
