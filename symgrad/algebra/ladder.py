"""The ladder of precision: a computation is repeated with more and more digits until its result is certain.

**Error estimate.** The error of a number is estimated by its change from one rung to the next, which has twice the digits. Where a computation
measures its error (`symgrad.algebra.stochastic`), that is taken.

**Stopping rule.** A number is settled at the first rung where it differs from the one before by at most one part in 10^`right`. Two numbers
with too few digits may agree and be wrong: (1 + x) - 1 is 0 for every tiny x. So a number below `NOTHING`, which no float times a float
reaches, is settled by two such rungs, of which the second has at least `SMALL` digits; and a ladder starts with more digits than the
computation spans powers of ten, or, where that is not known, its second rung has 400: from that no number between 1e-300 and 1e300 hides (`WIDE`).
NaN and infinity are settled at once: there is no number.

**Two computations of one number** agree if they do to `AGREED` digits, or if their difference shrinks with the digits: then it is what rounding
leaves of larger terms. They differ if the difference stays the same from one rung to the next and is larger than a bound for the rounding.

**The last rung.** What is not settled there is None, and what neither agrees nor differs is `OPEN`; no other answer is given.

**Condition.** By how many relative errors of the inputs a number moves; no algorithm on floats can do better than this many rounding errors.
It is measured by moving every input by up to one part in 10²⁰, in random directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.carriers import precise

__all__ = ["AGREED", "DIFFERENT", "DIGITS", "MOST", "NOTHING", "OPEN", "RIGHT", "SAME", "WIDE", "agreeing", "compared", "condition", "movement",
           "rungs", "settle", "shifted"]

DIGITS, MOST = 65, 3000  # of the first and of the last rung, where nothing else is known: fifty digits and a guard
WIDE = (DIGITS, 400, 1600, MOST)
RIGHT = 30  # digits of a settled number
AGREED = 48  # equal digits of two computations of one number
SMALL = 400
NOTHING = mpmath.mpf("1e-400")
SHRUNK, STAYS = mpmath.mpf("1e-30"), mpmath.mpf("1e-6")
MOVES = 3
STEP = mpmath.mpf(10) ** -20
SAME, DIFFERENT, OPEN = "same", "different", "open"


def rungs(first: int = DIGITS, most: int = MOST) -> Iterator[int]:
    """The digits of each rung: twice those of the one before, up to `most`.

    >>> list(rungs(65, 400))
    [65, 130, 260, 400]
    """
    while first < most:
        yield first
        first *= 2
    yield most


def settle(evaluate: Callable[[int, Sequence[int]], Sequence[Any]], count: int = 1, ladder: Iterable[int] = WIDE, right: int = RIGHT,
           confirmed: Callable[[int, Any], bool] | None = None) -> list[Any]:
    """Numbers with as many digits as certainty takes, None for those that the last rung of a ladder does not settle.

    `evaluate(digits, places)` computes the numbers of some places from 0 to count - 1 with so many digits; an int is exact. `confirmed(place,
    number)` may say that a number is known to be right, for instance because a computation with other errors gives it.

    >>> def one_plus(digits, places):
    ...     with precise.working_precision(digits):
    ...         return [(1 + precise.context.mpf("1e-200")) - 1 for _ in places]
    >>> print(mpmath.nstr(settle(one_plus)[0]))
    1.0e-200
    """
    out: list[Any] = [None] * count
    due, before = list(range(count)), dict[int, Any]()
    for digits in ladder:
        now = dict(zip(due, evaluate(digits, due)))
        due = []
        for place, x in now.items():
            earlier = before.get(place)
            if isinstance(x, int) or not mpmath.isfinite(x) or confirmed is not None and abs(x) >= NOTHING and confirmed(place, x):
                out[place] = x
            elif abs(x) < NOTHING:
                if digits >= SMALL and earlier is not None and abs(earlier) < NOTHING:
                    out[place] = x if _close(x, earlier, right) else mpmath.mpf(0)
            elif earlier is not None and _close(x, earlier, right):
                out[place] = x
            if out[place] is None:
                due.append(place)
                before[place] = x
        if not due:
            break
    return out


def _close(a: Any, b: Any, right: int) -> bool:
    return bool(abs(a - b) <= abs(a) * mpmath.mpf(10) ** -right)


def agreeing(a: Any, b: Any) -> float:
    """How many decimal digits of two real numbers are the same, infinitely many for equal ones; 0 where one of them is not finite or not real.

    >>> agreeing(1, 1.001) < 3.1, agreeing(2, 2), agreeing(1, mpmath.nan)
    (True, inf, 0.0)
    """
    a, b = mpmath.mpmathify(a), mpmath.mpmathify(b)
    if not all(isinstance(x, mpmath.mpf) and mpmath.isfinite(x) for x in (a, b)):
        return 0.0
    difference = abs(a - b)
    return max(0.0, float(-mpmath.log10(difference / max(abs(a), abs(b))))) if difference else math.inf


def compared(a: Any, b: Any, earlier: tuple[Any, Any] | None, noise: Callable[[], Any], agreed: float = AGREED) -> str:
    """Whether two computations of a number give the same: SAME, DIFFERENT, or OPEN if more digits are needed.

    `earlier` are the two numbers of the rung before, None for the first rung; `noise()` is a bound for the effect of rounding on a or b. The
    reference b is finite; an a that is not, on two rungs, is different.

    >>> compared(1, 1, None, lambda: 0), compared(1, 2, None, lambda: 0), compared(1, 2, (1, 2), lambda: 0.1), compared(1, 2, (1, 2), lambda: 5)
    ('same', 'open', 'different', 'open')
    """
    if not mpmath.isfinite(a):
        return OPEN if earlier is None or mpmath.isfinite(earlier[0]) else DIFFERENT
    difference = abs(a - b)
    if difference <= mpmath.mpf(10) ** -agreed * max(abs(a), abs(b)):
        return SAME
    if earlier is None or not all(map(mpmath.isfinite, earlier)):
        return OPEN
    before = abs(earlier[0] - earlier[1])
    if difference <= before * SHRUNK:
        return SAME
    return DIFFERENT if abs(difference - before) <= difference * STAYS and difference > noise() else OPEN


def shifted(rng: np.random.Generator) -> Callable[[Any], Any]:
    """A move of arrays of the precise carrier by up to one part in 10²⁰ for each number, up or down; a 0 moves as if it were 1."""
    def shift(values: Any) -> Any:
        parts = precise.lift_value(np.asarray(rng.uniform(0.5, 1.0, values.shape) * rng.choice([-1, 1], values.shape)))
        return values + parts * precise.context.convert(STEP) * precise.where(precise.eq(values, 0), 1, values)

    return shift


def movement(numbers: Sequence[Any], again: Callable[[], Sequence[Any]], moves: int = MOVES) -> list[Any]:
    """By how much numbers move when every input moves by its own size: `again()` computes them at inputs moved by `shifted`.

    A move to where a number has no value does not count.
    """
    out: list[Any] = [mpmath.mpf(0)] * len(numbers)
    for _ in range(moves):
        for k, (x, y) in enumerate(zip(numbers, again())):
            if not mpmath.isnan(y - x):
                out[k] = max(out[k], abs(y - x) / STEP)
    return out


def condition(number: Any, moved: Any) -> float:
    """The condition of a number that moves by so much with its inputs: at least 1, infinite for a 0 that moves.

    >>> condition(2.0, 100.0), condition(2.0, 0.0), condition(0.0, 1.0)
    (50.0, 1.0, inf)
    """
    return 1.0 if not moved else math.inf if not number else max(1.0, float(moved / abs(number)))
