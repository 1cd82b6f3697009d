"""The ladder of precision: a computation is repeated with more and more digits until its result is certain.

A number is settled at the first rung where it differs from that of the rung before, with half of the digits, by at most one part in 10^`RIGHT`. With
too few digits two numbers may agree and be wrong: (1 + x) - 1 is 0 for every tiny x. So a number below `NEGLIGIBLE`, which is smaller than any
product of two floats, is settled by two such rungs, of which the second has at least `SMALL` digits, and the second rung of `WIDE` has so many. NaN
and infinity are settled at once.

Two computations of one number agree if they do to `AGREED` digits, or if their difference shrinks with more digits: then it is a rounding error of
larger terms. They differ if the difference stays the same from one rung to the next and is larger than a bound for the rounding.

The condition number is the ratio of a number's relative change to that of the inputs; no algorithm on floats can have a smaller error than this many
rounding errors. It is measured by moving every input by up to one part in 10²⁰, in random directions.
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
    """The digits of each rung: twice those of the one before, up to `most`."""
    while first < most:
        yield first
        first *= 2
    yield most


def settled(evaluate: Callable[[int, Sequence[int]], Sequence[Any]], count: int = 1, ladder: Iterable[int] = WIDE) -> list[Any]:
    """Numbers with `RIGHT` certain digits, None for those that the last rung of a ladder does not settle.

    `evaluate(digits, places)` computes the numbers of some places from 0 to count - 1 with that many digits; an int is exact.
    """
    out: list[Any] = [None] * count
    due, before = list(range(count)), dict[int, Any]()
    for digits in ladder:
        for place, x in zip(due, evaluate(digits, due)):
            earlier, before[place] = before.get(place), x
            is_close = earlier is not None and abs(x - earlier) <= abs(x) * mpmath.mpf(10) ** -RIGHT
            if isinstance(x, int) or not mpmath.isfinite(x) or is_close and abs(x) >= NEGLIGIBLE:
                out[place] = x
            elif max(map(abs, (x, mpmath.inf if earlier is None else earlier))) < NEGLIGIBLE and digits >= SMALL:
                out[place] = x if is_close else mpmath.mpf(0)
        due = [place for place in due if out[place] is None]
        if not due:
            break
    return out


def agreeing_digits(a: Any, b: Any) -> float:
    """The number of equal decimal digits of two real numbers, infinite for equal numbers; 0 if one of them is not finite or not real."""
    a, b = mpmath.mpmathify(a), mpmath.mpmathify(b)
    if not all(isinstance(x, mpmath.mpf) and mpmath.isfinite(x) for x in (a, b)):
        return 0.0
    difference = abs(a - b)
    return max(0.0, float(-mpmath.log10(difference / max(abs(a), abs(b))))) if difference else math.inf


def compare(evaluate: Callable[[int, Sequence[int]], Sequence[tuple[Any, Any, Callable[[], Any]] | None]], count: int,
            ladder: Iterable[int]) -> list[tuple[str, Any, Any]]:
    """The comparison of several numbers by two ways with more and more digits: for each SAME, DIFFERENT or OPEN, and both numbers.

    `evaluate(digits, places)` gives the numbers a and b of some places, where b is a finite reference, and `noise`, which returns a bound for the
    effect of rounding on them; None, twice, where there is no number. If a is not finite on two rungs, they differ. The comparison ends with the
    first difference.
    """
    def verdict(a: Any, b: Any, noise: Callable[[], Any], earlier: tuple[Any, Any] | None) -> str:
        if not mpmath.isfinite(a):
            return OPEN if earlier is None or mpmath.isfinite(earlier[0]) else DIFFERENT
        difference = abs(a - b)
        if difference <= mpmath.mpf(10) ** -AGREED * max(abs(a), abs(b)):
            return SAME
        if earlier is None or not all(map(mpmath.isfinite, earlier)):
            return OPEN
        before = abs(earlier[0] - earlier[1])
        if difference <= before * SHRUNK:
            return SAME
        return DIFFERENT if abs(difference - before) <= difference * STAYS and difference > noise() else OPEN

    out: list[tuple[str, Any, Any]] = [(OPEN, None, None)] * count
    due, before = list(range(count)), dict[int, Any]()
    for digits in ladder:
        left = []
        for place, found in zip(due, evaluate(digits, due), strict=True):
            twice, earlier, before[place] = place in before, before.get(place), found and found[:2]
            out[place] = (OPEN, None, None) if found is None else (verdict(*found, earlier), *found[:2])
            if out[place][0] == OPEN and not (twice and found is None is earlier):
                left.append(place)
        due = left
        if not due or any(found[0] == DIFFERENT for found in out):
            break
    return out


def random_shift(rng: np.random.Generator) -> Callable[[Any], Any]:
    """A function that moves each number in an array of the precise carrier by up to one part in 10²⁰, up or down; a 0 moves like a 1."""
    def shift(values: Any) -> Any:
        parts = precise.lift_value(np.asarray(rng.uniform(0.5, 1.0, values.shape) * rng.choice([-1, 1], values.shape)))
        return values + parts * precise.context.convert(STEP) * precise.where(precise.eq(values, 0), 1, values)

    return shift


def absolute_condition(numbers: Sequence[Any], recompute: Callable[[], Sequence[Any]], moves: int = MOVES) -> list[Any]:
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
    """The condition number of a number, from its `absolute_condition`: at least 1, infinite for a 0 that moves."""
    return 1.0 if not moved else math.inf if not number else max(1.0, float(moved / abs(number)))
