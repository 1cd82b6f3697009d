"""Limits of a number from the sides of a point: of each side three numbers are known, at distances whose exponents are evenly spaced.

The order of convergence and the limit follow from the three (Aitken). Limits of this kind are measured and not proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import mpmath

from symgrad.reports.base import number

SLOWEST = mpmath.mpf(2) ** -2  # the convergence from one distance to the next, at least
SETTLED = mpmath.mpf(2) ** -100  # the relative change of numbers that do not depend on the distance
EXISTS, ONE_SIDED, KINK, INFINITE, JUMP, NONE, UNDECIDED = "exists", "one-sided", "kink", "infinite", "jump", "none", "undecided"


class Limit(NamedTuple):
    """What a number is at a point: its kind; the number where it exists, on one side at least; its error; and the limits of all sides.

    Numbers that differ by less than the relative part `equal`, or by the error, are the same.
    """

    kind: str
    value: Any = mpmath.nan
    error: Any = 0
    sides: tuple[Any, ...] = ()
    equal: Any = 0

    @property
    def text(self) -> str:
        shown = sorted({number(float(side)) for side in self.sides if side is not None})
        return {EXISTS: number(float(self.value)), ONE_SIDED: f"{number(float(self.value))} on the one side where the function is defined",
                KINK: f"{' and '.join(shown)} from different sides", INFINITE: "infinite", JUMP: "none, since the value jumps",
                NONE: "none, since the function has no finite value beside the point"}.get(self.kind, "not decided")

    def agrees(self, claimed: Any) -> bool:
        """Whether a number is the limit, up to its error."""
        if not mpmath.isfinite(claimed):
            return self.kind == INFINITE and mpmath.isinf(claimed) and mpmath.sign(claimed) == mpmath.sign(self.value)
        return bool(abs(claimed - self.value) <= self.equal * abs(self.value) + 4 * self.error)


def limit_of(sides: Sequence[Sequence[Any]], all_sides: int, equal: Any) -> Limit:
    """The common limit of some of `all_sides`, from the three numbers of each."""
    if not sides:
        return Limit(NONE)
    found = [_of_side(*numbers) for numbers in sides]
    decided = [side for side in found if side is not None]
    shown = tuple(None if side is None else side[0] for side in found)
    if len(decided) < len(found):
        return Limit(UNDECIDED, sides=shown)
    values, error = [value for value, _ in decided], max(error for _, error in decided)
    if any(map(mpmath.isinf, values)):
        return Limit(INFINITE if len(set(values)) == 1 else KINK, values[0], 0, shown, equal)
    farthest = max(values, key=lambda x: abs(x - values[0]))
    if abs(farthest - values[0]) > equal * max(map(abs, values)) + 4 * error:
        return Limit(KINK, sides=shown)
    return Limit(EXISTS if len(sides) == all_sides else ONE_SIDED, (values[0] + farthest) / 2, error, shown, equal)


def _of_side(a: Any, b: Any, c: Any) -> tuple[Any, Any] | None:
    """The limit of a side with its error, perhaps infinite; None if the numbers do not converge at a measured order."""
    first, second = a - b, b - c
    if max(abs(first), abs(second)) <= abs(c) * SETTLED:
        return c, max(abs(first), abs(second))
    if abs(second) <= SLOWEST * abs(first):
        rest = second**2 / (first - second)
        return c - rest if abs(c) > 4 * abs(rest) else mpmath.mpf(0), abs(rest)
    if abs(c) > abs(b) > abs(a) and 2 * abs(second) > abs(first) and mpmath.sign(c) == mpmath.sign(b):
        return mpmath.sign(c) * mpmath.inf, mpmath.mpf(0)
    return None
