"""Rigorous enclosures: the library's rules read in ball arithmetic, with enough precision to make the intervals narrow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from symgrad.algebra.limits import clock
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reference.run import Run
from symgrad.reports.numbers import label
from symgrad.types.ulp import ulp_of

__all__ = ["Enclosure", "enclosures"]

FIRST, MOST = 128, 8192  # bits that are tried
NARROW = 90  # certain bits of a narrow enclosure: more than any float has
NOTHING = -1130  # the exponent below which every float is 0


@dataclass(frozen=True)
class Enclosure:
    """An interval that is certain to hold the true number: a value (order 0) or a derivative, by the inputs of these indices.

    `interval` is its midpoint and radius in decimals, rounded outwards; `lower` and `upper` are the floats next to its ends. `value` is the
    library's float, `inside` says whether the interval holds it, and `ulp` how far it is from the midpoint in units of the last place
    (infinitely far where the truth is smaller than any float, and the float is not 0).
    `narrow` says whether the interval is narrower than what two floats differ by; if it is not, `reason` says what may be there.
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
    """The ball carrier. Raises ImportError, naming the extra, where python-flint is not installed."""
    try:
        import flint  # noqa: F401

        from symgrad.carriers import ball  # needs python-flint, which is optional
    except ImportError as error:
        raise ImportError("rigorous enclosures are computed by python-flint, which is not installed; pip install 'symgrad[rigorous]'") from error
    return ball


def enclosures(run: Run, values: Mapping[int, np.ndarray], names: Sequence[str], seconds: float = 10.0) -> list[Enclosure]:
    """Enclosures of the value and of the derivatives whose floats are given, by order; the inputs of the run are taken as exact.

    The precision is doubled until every interval is narrow, up to 8192 bits or until the time is over.

    Raises ImportError without python-flint, and TypeError, AttributeError or NotImplementedError for a rule that no ball can follow.
    """
    ball = carrier()
    end = clock() + seconds
    bits = FIRST
    while True:
        with ball.precision(bits):
            found, doubt = _found(ball, run, max(values))
            if not doubt and all(map(_is_narrow, found.values())) or 2 * bits > MOST or clock() > end:
                return [_enclosure(found.get(index, ball.arb.nan()), index, values[len(index)][index], run.result.value.dtype, names, bits, doubt)
                        for k in values for index in itertools.combinations_with_replacement(range(len(names)), k)]
        bits *= 2


def _found(ball: Any, run: Run, order: int) -> tuple[dict[tuple[int, ...], Any], str]:
    """The balls by index, and what stood in the way of those that are not there."""
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
    return x.is_exact() or x.rel_accuracy_bits() >= NARROW or _below(x, NOTHING)


def _below(x: Any, exponent: int) -> bool:
    return bool(abs(x) < type(x)(2) ** exponent)


def _enclosure(x: Any, index: tuple[int, ...], value: Any, dtype: Any, names: Sequence[str], bits: int, doubt: str) -> Enclosure:
    kind = dtype if np.dtype(dtype).kind == "f" else np.dtype(np.float32)
    arb = type(x)
    value = float(value)
    lower, upper = _outwards(x)
    known = x.is_finite()
    inside = not known and not math.isnan(value) or math.isfinite(value) and bool(x.contains(arb(value)))
    ulp = 0.0 if inside and not x.is_exact() else _distance(x, value, kind) if known else math.inf
    narrow = _is_narrow(x)
    reason = "" if narrow else "a kink, a pole or the border of a branch is too close to be excluded" if known else (
        doubt or "it is not finite, or nothing bounds it")
    return Enclosure(len(index), label(len(index), index, names), x.str(20) if known else "[-inf, inf]", lower, upper, value, inside, ulp, bits,
                     narrow, reason)


def _outwards(x: Any) -> tuple[float, float]:
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
    """How far a float is from the midpoint, in units of the last place of the midpoint."""
    if _below(x, NOTHING):
        return 0.0 if value == 0 else math.inf  # a truth that is 0, for all that can be told, has no last place
    mantissa, exponent = x.mid().man_exp()
    return ulp_of(kind).error(value, mpmath.ldexp(int(mantissa), int(exponent)))
