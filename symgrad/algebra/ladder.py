"""The ladder of precision: a computation is repeated with more and more digits until its result is certain.

**Error estimate.** The error of a number is estimated by its change from one rung to the next, which has twice the digits. A computation that
measures its error (`symgrad.algebra.stochastic`) needs no estimate.

**Stopping rule.** A number is settled at the first rung where it differs from the one before by at most one part in 10^`right`. Two numbers
with too few digits may agree and be wrong: (1 + x) - 1 is 0 for every tiny x. So a number below `NEGLIGIBLE`, which is smaller than any product
of two floats, is settled by two such rungs, of which the second has at least `SMALL` digits. A ladder starts with more digits than the
number of powers of ten that the computation spans; if that is unknown, its second rung has 400 digits, which suffices for numbers between 1e-300
and 1e300 (`WIDE`). NaN and infinity are settled at once.

**Two computations of one number** agree if they do to `AGREED` digits, or if their difference shrinks with more digits: then it is a rounding
error of larger terms. They differ if the difference stays the same from one rung to the next and is larger than a bound for the rounding.

**The last rung.** A number that is not settled there is None, and a comparison that neither agrees nor differs is `OPEN`.

**Condition number.** The ratio of a number's relative change to that of the inputs; no algorithm on floats can have a smaller error than this
many rounding errors. It is measured by moving every input by up to one part in 10²⁰, in random directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.carriers import precise

DIGITS, MOST = 65, 3000  # the digits of the first and of the last rung by default: fifty digits and a guard
WIDE = (DIGITS, 400, 1600, MOST)
RIGHT = 30  # the correct digits of a settled number
AGREED = 48  # equal digits of two computations of one number
SMALL = 400
NEGLIGIBLE = mpmath.mpf("1e-400")
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
    """Numbers with certain digits, None for those that the last rung of a ladder does not settle.

    `evaluate(digits, places)` computes the numbers of some places from 0 to count - 1 with that many digits; an int is exact. The optional
    `confirmed(place, number)` returns whether a number is known to be right, for instance from a computation with other errors.

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
            if isinstance(x, int) or not mpmath.isfinite(x) or confirmed is not None and abs(x) >= NEGLIGIBLE and confirmed(place, x):
                out[place] = x
            elif abs(x) < NEGLIGIBLE:
                if digits >= SMALL and earlier is not None and abs(earlier) < NEGLIGIBLE:
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


def agreeing_digits(a: Any, b: Any) -> float:
    """The number of equal decimal digits of two real numbers, infinite for equal numbers; 0 if one of them is not finite or not real.

    >>> agreeing_digits(1, 1.001) < 3.1, agreeing_digits(2, 2), agreeing_digits(1, mpmath.nan)
    (True, inf, 0.0)
    """
    a, b = mpmath.mpmathify(a), mpmath.mpmathify(b)
    if not all(isinstance(x, mpmath.mpf) and mpmath.isfinite(x) for x in (a, b)):
        return 0.0
    difference = abs(a - b)
    return max(0.0, float(-mpmath.log10(difference / max(abs(a), abs(b))))) if difference else math.inf


def compare_numbers(a: Any, b: Any, earlier: tuple[Any, Any] | None, noise: Callable[[], Any], agreed: float = AGREED) -> str:
    """The comparison of two computations of a number: SAME, DIFFERENT, or OPEN if more digits are needed.

    `earlier` are the two numbers of the rung before, None for the first rung; `noise()` is a bound for the effect of rounding on a or b. The
    reference b is finite; if a is not finite on two rungs, they are different.

    >>> compare_numbers(1, 1, None, lambda: 0), compare_numbers(1, 2, None, lambda: 0)
    ('same', 'open')
    >>> compare_numbers(1, 2, (1, 2), lambda: 0.1), compare_numbers(1, 2, (1, 2), lambda: 5)
    ('different', 'open')
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


def random_shift(rng: np.random.Generator) -> Callable[[Any], Any]:
    """A function that moves each number in an array of the precise carrier by up to one part in 10²⁰, up or down; a 0 moves like a 1."""
    def shift(values: Any) -> Any:
        parts = precise.lift_value(np.asarray(rng.uniform(0.5, 1.0, values.shape) * rng.choice([-1, 1], values.shape)))
        return values + parts * precise.context.convert(STEP) * precise.where(precise.eq(values, 0), 1, values)

    return shift


def movement(numbers: Sequence[Any], recompute: Callable[[], Sequence[Any]], moves: int = MOVES) -> list[Any]:
    """For each number its size times its condition number; `recompute()` returns the numbers at inputs moved by `random_shift`.

    A move to a point where a number has no value does not count.
    """
    out: list[Any] = [mpmath.mpf(0)] * len(numbers)
    for _ in range(moves):
        for k, (x, y) in enumerate(zip(numbers, recompute())):
            if not mpmath.isnan(y - x):
                out[k] = max(out[k], abs(y - x) / STEP)
    return out


def condition(number: Any, moved: Any) -> float:
    """The condition number of a number, from its `movement`: at least 1, infinite for a 0 that moves.

    >>> condition(2.0, 100.0), condition(2.0, 0.0), condition(0.0, 1.0)
    (50.0, 1.0, inf)
    """
    return 1.0 if not moved else math.inf if not number else max(1.0, float(moved / abs(number)))
