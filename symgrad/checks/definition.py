"""Derivatives by definition: limits of difference quotients of the function's own program, where a formula of a derivative is 0/0 or a branch ends.

A derivative is the limit of nested quotients, of which the inner steps are powers of the outer one: with steps t, t³ and t⁶. They are taken for
t = 2⁻⁶⁰, 2⁻⁹⁰ and 2⁻¹²⁰ times the scale of the point, from all sides, with digits enough for steps that cancel.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy

from symgrad.algebra.limits import poll
from symgrad.carriers.digits import Undefined
from symgrad.reference.sides import EXISTS, JUMP, UNDECIDED, Limit, limit_of
from symgrad.reports.base import label
from symgrad.system.restoring import workdps

LEVELS = 60, 90, 120  # the bits of the outer step t
POWERS = 1, 3, 6  # the steps of nested quotients, from the outermost to the innermost, as powers of t
CANCELLING = 3  # the steps have so many times the digits, since a program such as (1 - cos(x))/x² cancels
GUARD = 200  # the bits of a quotient beyond the first
NOISE = 60  # of these, bits that the rounding of a long program may change
EQUAL = mpmath.mpf(2) ** -34  # limits from two sides that differ by less are the same
SHOWN = 6  # derivatives that a verdict names
BIG = 10**4  # the largest number of evaluations of a program for the second derivatives at a point


def exceptions(limits: dict[tuple[int, ...], Limit], names: Sequence[str], order: int) -> str:
    """What the verdict about a point says of derivatives that do not exist there, by their indices, and of those that could not be decided."""
    missing = {label(len(index), index, names): limit.text for index, limit in limits.items() if limit.kind != UNDECIDED}
    undecided = [label(len(index), index, names) for index, limit in limits.items() if limit.kind == UNDECIDED]
    many, out = len(missing) > 1, ""
    if missing:
        above = order > min(len(index) for index, limit in limits.items() if limit.kind != UNDECIDED)
        out = (f"; at the given point {_listed([f'{name} (it is {text})' for name, text in missing.items()])} "
               f"{'are conventions' if many else 'is a convention'}" + f", and so are {'their' if many else 'its'} derivatives" * above)
    return out + f"; at the given point {_listed(undecided)} could not be decided" * bool(undecided)


def _listed(names: Sequence[str]) -> str:
    return ", ".join([*names[:SHOWN], *["..."] * (len(names) > SHOWN)])


class Definition:
    """The derivatives of a program at a point; `program(vector)` is its oracle there, and at the floats next to the point."""

    def __init__(self, point: np.ndarray, program: Callable[[np.ndarray], Any]):
        self.vector, self.point = point, [Fraction(float(x)) for x in point]
        least = min([abs(x) for x in self.point if x], default=Fraction(1))
        self.scales = [_power_of_two(min(abs(x) or least, Fraction(1))) for x in self.point]
        self.program = program
        self.programs: dict[tuple[int, ...], Any] = {}
        self.values: dict[Any, Any] = {}
        self.found: dict[tuple[int, ...], Limit] = {}

    def derivatives(self, order: int) -> Iterator[tuple[tuple[int, ...], Limit]]:
        """The derivatives of the orders from 1 with their indices; those above the first where the ones below exist."""
        n = len(self.point)
        for k in range(1, order + 1):
            if k > 1 and n**k * 12 * len(LEVELS) > BIG:
                break
            for index in itertools.product(range(n), repeat=k):
                lower = self.found.get(index[:-1])
                if lower is None or lower.kind == EXISTS:
                    poll()
                    self.found[index] = self.limit(index)
                    yield index, self.found[index]

    def limit(self, index: tuple[int, ...]) -> Limit:
        """The derivative with these indices, the first of which is differentiated first."""
        sides = []
        for signs in itertools.product((1, -1), repeat=len(index)):
            quotients = [self._quotient(index, signs, level) for level in LEVELS]
            if None not in quotients:
                sides.append(quotients)
                if len(index) == 1 and mpmath.isinf(limit_of([quotients], 1, EQUAL).value) and self._jumps(index[0], signs[0]):
                    return Limit(JUMP)
        return limit_of(sides, 2 ** len(index), EQUAL)

    def _quotient(self, index: tuple[int, ...], signs: Sequence[int], level: int) -> Any:
        """The nested difference quotient, or None where the program has no value."""
        k = len(index)
        steps = [sign * self.scales[i] / 2 ** (level * power) for i, sign, power in zip(index, signs, POWERS[k - 1::-1])]
        bits = GUARD + CANCELLING * sum(_bits(step) for step in steps) + max(map(_bits, self.scales))
        digits = int(bits * 0.30103) + 10
        with workdps(mpmath.mp, digits):
            total, size = mpmath.mpf(0), mpmath.mpf(0)
            for chosen in itertools.product((0, 1), repeat=k):
                value = self._value(index, [step if c else 0 for step, c in zip(steps, chosen)], digits)
                if value is None:
                    return None
                total += (-1) ** (k - sum(chosen)) * value
                size = max(size, abs(value))
            if abs(total) <= size * mpmath.mpf(2) ** (NOISE - bits):
                return mpmath.mpf(0)
            for step in steps:
                total = total * step.denominator / step.numerator
            return total

    def _value(self, index: Sequence[int], steps: Sequence[Any], digits: int) -> Any:
        shift = [Fraction(0)] * len(self.point)
        for i, step in zip(index, steps):
            shift[i] += step
        key = digits, tuple(shift)
        if key not in self.values:
            self.values[key] = self._evaluate(shift, digits)
        return self.values[key]

    def _evaluate(self, shift: Sequence[Fraction], digits: int) -> Any:
        signs = tuple((h > 0) - (h < 0) for h in shift)
        if signs not in self.programs:
            side = np.array(signs, float)
            self.programs[signs] = self.program(np.where(side == 0, self.vector, np.nextafter(self.vector, np.copysign(np.inf, side))))
        oracle = self.programs[signs]
        if oracle is None:
            return None
        try:
            value = oracle.at([sympy.Rational(x.numerator, x.denominator) for x in map(sum, zip(self.point, shift))]).evaluate(digits).value
        except (Undefined, ArithmeticError, ValueError, TypeError, NotImplementedError):
            return None
        return mpmath.mpf(value) if mpmath.isfinite(value) else None

    def _jumps(self, i: int, sign: int) -> bool:
        """Whether the value next to the point does not approach the value at the point."""
        gaps = []
        for level in (LEVELS[0], LEVELS[-1]):
            ends = [self._value([i], [h], 60) for h in (sign * self.scales[i] / 2**level, 0)]
            if None in ends:
                return False
            gaps.append(abs(ends[0] - ends[1]))
        return bool(gaps[1] > gaps[0] / 2)


def _power_of_two(x: Fraction) -> Fraction:
    power = x.numerator.bit_length() - x.denominator.bit_length()
    found = Fraction(2) ** power
    return found if found <= x else found / 2


def _bits(x: Fraction) -> int:
    return abs(x.denominator.bit_length() - abs(x.numerator).bit_length())
