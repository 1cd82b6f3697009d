"""The values of the rules in many digits, compared with those of SymPy's formulas, whose errors are measured."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from random import Random
from typing import Any

import mpmath
import sympy

from symgrad.algebra.evaluating import Evaluator
from symgrad.algebra.ladder import DIFFERENT, OPEN, SAME, compared, rungs
from symgrad.algebra.limits import clock
from symgrad.algebra.ranges import points_in, ranges_of
from symgrad.algebra.stochastic import Arithmetic, Exact, Gaussian
from symgrad.carriers import precise
from symgrad.proofs.case import Case, Key
from symgrad.proofs.regions import Region, Switch, constants, is_border
from symgrad.reference.recorder import RecordingCarrier
from symgrad.sampling.shrink import shrunk

__all__ = ["Found", "Numbers"]

FIRST, LAST = 70, 400  # digits of the ladder
SIMPLIFIED = 3  # refuted statements whose points are made simple
TRIES = 60  # to make one point simple


@dataclass
class Found:
    """How many points agreed, and the first at which they did not, with the claim and the truth there; `simple` where it was made so."""

    points: int = 0
    point: Mapping[sympy.Symbol, Any] | None = None
    claim: Any = None
    truth: Any = None
    simple: bool = True


class Numbers:
    """The claims and the truths of a case inside a region, at points."""

    def __init__(self, case: Case, region: Region, truths: Mapping[Key, Sequence[Any]], order: int, switches: Sequence[Switch] = (), seed: int = 0):
        self.case, self.region, self.truths, self.order, self.switches = case, region, truths, order, switches
        self.found = {key: Found() for key in truths}
        inner = sorted(set().union(*(sympy.sympify(region(x)).free_symbols for x in case.variables)), key=str)
        self.directions = sorted(set().union(*(e.free_symbols for name, cells in case.symbols.items() if name not in case.names
                                               for e in cells.ravel().tolist())), key=str)
        self.inner: list[sympy.Symbol] = inner
        self.programs: dict[tuple[Key, ...], Evaluator] = {}
        self.ranges = ranges_of(inner, {s: d for s, d in region.domains.items() if s in inner})
        self.rng = Random(seed)
        self.moves = [Fraction(self.rng.choice((-1, 1)) * self.rng.randint(1, 9)) for _ in self.directions]
        self.arithmetic = Arithmetic(FIRST)

    def compare(self, wanted: int, asked: Iterable[Sequence[Exact]] = (), seconds: float = inf) -> dict[Key, Found]:
        """Compare at the points asked for, as long as there is time, and at so many others; each wrong statement gets a simple point where it is."""
        end = clock() + seconds
        for inner in itertools.takewhile(lambda _: clock() < end, asked):
            if all(x in r for x, r in zip(inner, self.ranges)) and self._is_short(inner):
                self._compare(inner)
        tries = 0
        for inner in points_in(self.ranges, constants(self.case), self.rng):
            tries += 1
            if tries > 3 * wanted + 10 or all(f.points >= wanted or f.point is not None for f in self.found.values()):
                break
            self._compare(inner)
        return self.found

    def _is_short(self, inner: Sequence[Exact]) -> bool:
        """Whether no argument at a point is rounded to the first number of digits."""
        at = {s: _rational(x) for s, x in zip(self.inner, inner)}
        return all(abs(self.region(x).xreplace(at).p) < 10**(FIRST - 10) for x in self.case.variables)

    def _compare(self, inner: Sequence[Exact]) -> None:
        for key, (verdict, claim, truth) in self._at(inner).items():
            found = self.found[key]
            if verdict == SAME:
                found.points += 1
            elif verdict == DIFFERENT and found.point is None and self._counts(key, inner):
                self._refute(key, inner, claim, truth)

    def _refute(self, key: Key, inner: Sequence[Exact], claim: Any, truth: Any) -> None:
        """Note a point at which one statement is wrong, made simple; with the directions in which it is."""
        refuted = sum(f.point is not None for f in self.found.values())
        if refuted < SIMPLIFIED:
            simple = shrunk(list(inner), lambda point: self._refutes(key, point), TRIES)
            if simple != list(inner):
                inner, (_, claim, truth) = simple, self._at(simple, [key])[key]
        at = {s: _rational(x) for s, x in zip(self.inner, inner)}
        point = {x: self.region(x).xreplace(at) for x in self.case.variables}
        used = set().union(*(e.free_symbols for e in self.truths[key]))
        point |= {s: _rational(x) for s, x in zip(self.directions, self.moves) if s in used}
        self.found[key] = Found(self.found[key].points, point, claim, truth, refuted < SIMPLIFIED)

    def _refutes(self, key: Key, inner: Sequence[Exact]) -> bool:
        if not all(x in r for x, r in zip(inner, self.ranges)):
            return False
        return self._at(inner, [key])[key][0] == DIFFERENT and self._counts(key, inner)

    def _counts(self, key: Key, inner: Sequence[Exact]) -> bool:
        """Whether a difference is no convention: the forward does not switch at the point, or the two differ on one side of it as well."""
        if not self.case.complex and not is_border(self.switches, {s: _rational(x) for s, x in zip(self.inner, inner)}):
            return True
        for step in (Fraction(1, 2**40), Fraction(-3, 2**42)):
            moved: list[Any] = []
            for k, x in enumerate(inner):
                size = step * Fraction(7 + k, 8)
                moved.append(Gaussian(x.real + size, x.imag) if isinstance(x, Gaussian) else x + size * (abs(x) or 1))
            if all(x in r for x, r in zip(moved, self.ranges)) and self._at(moved, [key])[key][0] == DIFFERENT:
                return True
        return False

    def _at(self, inner: Sequence[Exact], keys: Sequence[Key] | None = None) -> dict[Key, tuple[str, Any, Any]]:
        """Whether claim and truth are the same, for each statement, with the values of an element that shows it."""
        point = [*inner, *self.moves]
        wanted = tuple(self.found if keys is None else keys)
        out: dict[Key, tuple[str, Any, Any]] = {}
        before: dict[Key, list[Any]] = {}
        for digits in rungs(FIRST, LAST):
            truths, claims = self._truths(wanted, point, digits), self._claims(max(key.order for key in wanted), point, digits)
            with precise.working(digits):
                for key in [k for k in wanted if k not in out or out[k][0] == OPEN]:
                    pairs = [(_number(c), *self._value(t)) for c, t in zip(claims[key], truths[key], strict=True)]
                    out[key] = _judged(pairs, before.get(key))
                    before[key] = pairs
            if all(verdict != OPEN for verdict, *_ in out.values()):
                break
        return out

    def _truths(self, keys: tuple[Key, ...], point: Sequence[Exact], digits: int) -> dict[Key, list[Any]]:
        if keys not in self.programs:
            self.programs[keys] = Evaluator([e for key in keys for e in self.truths[key]], [*self.inner, *self.directions])
        self.arithmetic.set_digits(digits)
        values = iter(self.programs[keys].at(point, self.arithmetic))
        return {key: [next(values) for _ in self.truths[key]] for key in keys}

    def _value(self, x: Any) -> tuple[Any, int]:
        """A number with its error's exponent, None for what is not known."""
        if isinstance(x, ArithmeticError):
            return None, 0
        return _number(self.arithmetic.sample(x).value), self.arithmetic.error(x)

    def _claims(self, order: int, point: Sequence[Exact], digits: int) -> dict[Key, list[Any]]:
        at = {s: _rational(x) for s, x in zip([*self.inner, *self.directions], point)}

        def supply(name: str, shape: tuple[int, ...]) -> Any:
            cells = [_digits(sympy.sympify(self.region(s)).xreplace(at), self.case.complex) for s in self.case.supply(name, shape).ravel().tolist()]
            return precise.Digits.fill(cells, shape)

        with precise.working(digits):
            return dict(self.case.claims(RecordingCarrier(precise, precise.lift_value, self.case.complex), supply, order))


def _judged(pairs: Sequence[tuple[Any, Any, int]], before: Sequence[tuple[Any, Any, int]] | None) -> tuple[str, Any, Any]:
    """One statement at one point, from its claims, its truths and the exponents of their errors; `before` are those with fewer digits."""
    out: tuple[str, Any, Any] = SAME, None, None
    for k, (claim, truth, error) in enumerate(pairs):
        if truth is None:
            return OPEN, None, None
        earlier = None if before is None or before[k][1] is None else before[k][:2]
        verdict = compared(claim, truth, earlier, lambda error=error: mpmath.mpf(2) ** (error + 3))  # type: ignore[misc]
        if verdict == DIFFERENT:
            return DIFFERENT, claim, truth
        out = out if verdict == SAME else (OPEN, claim, truth)
    return out


def _rational(x: Exact) -> Any:
    if isinstance(x, Gaussian):
        return _rational(x.real) + sympy.I * _rational(x.imag)
    return sympy.Rational(x.numerator, x.denominator)


def _digits(e: Any, complex: bool) -> Any:
    """A rational number, real or complex, as the precise carrier has it."""
    real, imag = e.as_real_imag()
    if not (real.is_Rational and imag.is_Rational):
        raise TypeError(f"{e} is not a rational number")
    parts = [precise.context.mpf(int(part.p)) / int(part.q) for part in (real, imag)]
    return precise.context.mpc(*parts) if complex else parts[0]


def _number(x: Any) -> Any:
    """A number of another context as mpmath's."""
    return mpmath.mp.convert(int(x) if isinstance(x, bool) else x)
