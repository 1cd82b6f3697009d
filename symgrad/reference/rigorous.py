"""Rigorous enclosures: the library's rules evaluated in ball arithmetic, with enough precision for narrow intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from symgrad.algebra.limits import poll
from symgrad.dtypes.ulp import ulp_of
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reference.run import Run
from symgrad.reports.base import label

FIRST, MOST = 128, 8192  # the lowest and the highest precision in bits
NARROW = 90  # the least number of certain bits of a narrow enclosure: more than any float has
NEGLIGIBLE = -1130  # the binary exponent below which every float is 0


@dataclass(frozen=True)
class Enclosure:
    """An interval that certainly contains the exact number: a value (order 0) or a derivative; `where` is its name.

    `interval` is its midpoint and radius in decimals, rounded outwards; `lower` and `upper` are the floats next to its ends. `value` is the
    library's float, `inside` is true if the interval contains it, and `ulp` is its distance from the midpoint in units in the last place
    (infinite if the exact number is smaller than any float and the float is not 0). `narrow` is true if the interval is narrower than the
    distance of two floats; otherwise `reason` is a possible cause.
    """

    order: int
    where: str
    interval: str
    lower: float
    upper: float
    value: float
    inside: bool
    ulp: float
    bits: int
    narrow: bool
    reason: str = ""


def carrier() -> Any:
    """The ball carrier. Raises ImportError without python-flint."""
    try:
        import flint  # noqa: F401

        from symgrad.carriers import ball
    except ImportError as error:
        raise ImportError("rigorous enclosures are computed by python-flint, which cannot be imported; pip install python-flint") from error
    return ball


def enclosures(run: Run, values: Mapping[int, np.ndarray], names: Sequence[str], most: int = MOST) -> list[Enclosure]:
    """Enclosures of the value and of the derivatives whose floats are given in `values` by order; the inputs of the run are exact.

    The precision is doubled until every interval is narrow, up to `most` bits.

    Raises ImportError without python-flint, and TypeError, AttributeError or NotImplementedError for a rule without a form for balls.
    """
    ball = carrier()
    bits = FIRST
    while True:
        poll()
        with ball.precision(bits):
            found, obstacle = _balls_of(ball, run, max(values))
            if not obstacle and all(map(_is_narrow, found.values())) or 2 * bits > most:
                return [_enclosure(found.get(index, ball.arb.nan()), index, values[len(index)][index], run.result.value.dtype, names, bits, obstacle)
                        for k in values for index in itertools.combinations_with_replacement(range(len(names)), k)]
        bits *= 2


def _balls_of(ball: Any, run: Run, order: int) -> tuple[dict[tuple[int, ...], Any], str]:
    """The balls by index, and the reason why some are missing."""
    found = {}
    try:
        for index, box, place in run.read(RecordingCarrier(ball, ball.lift_value), [leaf.value for leaf in run.leaves], order):
            found[index] = box.value.ravel()[place].item()
    except ball.Undecided as error:
        return found, str(error)
    return found, ""


def _is_narrow(x: Any) -> bool:
    if not x.is_finite():
        return False
    return x.is_exact() or x.rel_accuracy_bits() >= NARROW or _below(x, NEGLIGIBLE)


def _below(x: Any, exponent: int) -> bool:
    return bool(abs(x) < type(x)(2) ** exponent)


def _enclosure(x: Any, index: tuple[int, ...], value: Any, dtype: Any, names: Sequence[str], bits: int, obstacle: str) -> Enclosure:
    kind = dtype if np.dtype(dtype).kind == "f" else np.dtype(np.float32)
    arb = type(x)
    value = float(value)
    lower, upper = _enclosing_floats(x)
    known = x.is_finite()
    inside = not known and not math.isnan(value) or math.isfinite(value) and bool(x.contains(arb(value)))
    ulp = 0.0 if inside and not x.is_exact() else _distance(x, value, kind) if known else math.inf
    narrow = _is_narrow(x)
    reason = "" if narrow else "a kink, a pole or the border of a branch is too close to be excluded" if known else (
        obstacle or "it is not finite, or nothing bounds it")
    return Enclosure(len(index), label(len(index), index, names), x.str(20) if known else "[-inf, inf]", lower, upper, value, inside, ulp, bits,
                     narrow, reason)


def _enclosing_floats(x: Any) -> tuple[float, float]:
    """The nearest floats on either side of a ball."""
    if not x.is_finite():
        return -math.inf, math.inf
    arb = type(x)
    lower, upper = x.lower(), x.upper()
    low, high = float(lower), float(upper)
    while low == math.inf or low != -math.inf and arb(low) > lower:
        low = math.nextafter(low, -math.inf)
    while high == -math.inf or high != math.inf and arb(high) < upper:
        high = math.nextafter(high, math.inf)
    return low, high


def _distance(x: Any, value: float, kind: Any) -> float:
    if _below(x, NEGLIGIBLE):
        return 0.0 if value == 0 else math.inf
    mantissa, exponent = x.mid().man_exp()
    return ulp_of(kind).error(value, mpmath.ldexp(int(mantissa), int(exponent)))
