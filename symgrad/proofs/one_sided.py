"""Derivatives by definition at a kink of a rule's program: the limits of SymPy's derivatives from several sides.

Where a function is continuous and the limits of its derivative from all sides are the same, they are the derivative, whatever the text of the program
says.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import mpmath

from symgrad.algebra.stochastic import Exact, Gaussian
from symgrad.proofs.regions import zero_switches
from symgrad.reference.sides import EXISTS, JUMP, KINK, UNDECIDED, Limit, limit_of
from symgrad.system.restoring import workdps

STEPS = Fraction(1, 2**120), Fraction(1, 2**180), Fraction(1, 2**240)  # the distances
DIGITS = 260
NEARBY = Fraction(1, 2**30)
SLOPES = Fraction(1), Fraction(3, 4), Fraction(5, 8)  # of the coordinates along a direction: no two are equal, so that ties are left
EQUAL = mpmath.mpf(2) ** -100


class Limits:
    """The limits at one point of a `NumericComparison`."""

    def __init__(self, comparison: Any, inner: Sequence[Exact]):
        self.comparison, self.inner = comparison, inner
        turns = (1, 1j) if any(r.complex for r in comparison.ranges) else (1,)
        self.sides = [(side, turn) for side in _sides(len(inner)) for turn in turns if comparison.contains(self._moved((side, turn), STEPS[0]))]
        self.known: dict[Any, Limit] = {}
        self.kinks: dict[int, str] = {}

    def _moved(self, side: tuple[Sequence[Fraction], complex], step: Fraction) -> list[Exact]:
        """The point at a distance to a side, which for complex numbers is turned by a quarter, too."""
        distances, turn = side
        return [x + step * d if turn == 1 and isinstance(x, Fraction) else Gaussian(x.real + (turn == 1) * step * d, x.imag + (turn != 1) * step * d)
                for x, d in zip(self.inner, distances)]

    def of(self, expressions: Sequence[Any]) -> list[Limit]:
        new = [e for e in dict.fromkeys(expressions) if e not in self.known]
        rows = [[self._values(new, self._moved(side, step)) for step in STEPS] for side in self.sides] if new else []
        for k, e in enumerate(new):
            sides = [[values[k] for values in row] for row in rows]
            with workdps(mpmath.mp, DIGITS):
                self.known[e] = Limit(UNDECIDED) if any(None in side for side in sides) else limit_of(sides, len(sides), EQUAL)
        return [self.known[e] for e in expressions]

    def _values(self, expressions: Sequence[Any], inner: Sequence[Any]) -> list[Any]:
        c = self.comparison
        found = c.evaluate(tuple(expressions), expressions, [*inner, *c.moves], DIGITS)
        out = []
        for value, error in found:
            out.append(None if value is None or value and error > mpmath.mag(value) - 200 else value)
        return out

    def kink(self, order: int) -> str:
        """The kind of kink below an order: "jump" if the value has no limit, "kink" if a lower derivative has none; empty if there is none.

        Where a border runs along a coordinate, the value is continuous on the border, too, or the derivative on it is one of its own.
        """
        if order not in self.kinks:
            c = self.comparison
            if order == 1:
                nearby = [[*self.inner[:k], x + NEARBY, *self.inner[k + 1:]] for k, x in enumerate(self.inner) if isinstance(x, Fraction)]
                on = [x for x in nearby if 1 < len(x) <= 3 and c.contains(x) and zero_switches(c.switches, c.at(x))]
                self.kinks[1] = next(filter(None, [self._jump(), *(Limits(c, x)._jump() for x in on)]), "")
            else:
                below = self.of([e for key, es in c.references.items() if key.order == order - 1 for e in es])
                smooth = all(limit.kind == EXISTS for limit in below)
                self.kinks[order] = self.kink(order - 1) or ("" if smooth else "kink")
        return self.kinks[order]

    def _jump(self) -> str:
        """"jump" if the value is not its limit, "kink" if that is not known, else empty."""
        c = self.comparison
        found = self.of(c.values)
        here = [value for value, _ in c.evaluate("values", c.values, [*self.inner, *c.moves], DIGITS)]
        finite = [limit.kind in (EXISTS, KINK) and all(map(mpmath.isfinite, limit.sides)) for limit in found]
        if any(known and (limit.kind == KINK or x is not None and not limit.agrees(x)) for known, limit, x in zip(finite, found, here)):
            return JUMP
        return "" if all(finite) and None not in here else "kink"


def _sides(n: int) -> list[Sequence[Fraction]]:
    """Directions in n coordinates, each with its opposite."""
    if n <= 3:
        return [[s * d for s, d in zip(signs, SLOPES)] for signs in itertools.product((1, -1), repeat=n)]
    rng = Random(0)
    found = [[Fraction(rng.choice((1, -1)) * rng.randint(64, 128), 128) for _ in range(n)] for _ in range(2)]
    return [[s * d for d in side] for side in found for s in (1, -1)]
