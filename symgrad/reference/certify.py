"""Certain comparisons: a computation in ball arithmetic is repeated with twice the bits until the balls decide it.

Two balls that are disjoint are different numbers, and two that overlap and are narrow agree to as many digits as they are narrow. Without
python-flint nothing is certified, and everything is computed with many digits.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from mpmath.libmp import from_man_exp

from symgrad.algebra.limits import poll
from symgrad.carriers.digits import Undecided, Undefined

SHOWN = 50.0  # the most digits of agreement that are reported
GOAL = 167  # the bits of them
NEGLIGIBLE = -1130  # the binary exponent below which every float is 0
SMALLEST = -1330  # the exponent of 1e-400, which is smaller than any product of two floats
FIRST, MOST = 256, 16384  # bits
GUARD = 50  # bits that may be lost in numbers of many digits
INFINITE = 1024  # the bits up to which a number that is not finite may still be one that is badly known


@dataclass(frozen=True)
class Certified:
    """A certain comparison: the pairs of numbers, the digits to which they agree, the places of those that differ and of those that are not decided
    beside them, and whether the point is at a kink, where nothing is compared.
    """

    pairs: list[tuple[Any, Any]]
    digits: float
    wrong: set[int]
    wide: set[int]
    kink: bool
    bits: int


def enclosed() -> Any:
    """The module of programs in ball arithmetic; None without python-flint."""
    try:
        import flint  # noqa: F401  on first use, since it takes time
    except ImportError:
        return None
    return importlib.import_module("symgrad.reference.enclosed")


class Balls:
    """A computation in ball arithmetic at some values of its inputs: exact numbers, or balls.

    `programs` are those of its signature, one for each combination of branches; None without python-flint. `trace(inputs, bits)` traces that of the
    point, and gives the recorder of its rules.
    """

    def __init__(self, programs: Any, trace: Callable[[list[Any], int], Any], values: Sequence[Any]):
        self.programs, self.trace, self.values = programs, trace, values

    def run(self, bits: int, part: str = "") -> tuple[list[Any], bool] | None:
        """The numbers, and whether the point is at a kink; None if there is no program. Raises Undecided for too few bits.

        The `part` "value" has the value as its only number, the part "rules" the numbers by rules.
        """
        module, programs = enclosed(), self.programs
        if not programs:
            return None
        with module.ball.precision(bits):
            inputs = list(map(module.exact_number, self.values))
        for attempt in (0, 1):
            for program in [*programs.found]:
                try:
                    out, kink = (getattr(program, part) if part else program).evaluate(inputs, bits)
                except module.Changed:
                    continue
                except (ArithmeticError, ValueError) as error:
                    raise error if isinstance(error, Undecided) else Undecided(str(error)) from None
                numbers = out if programs.complex else [_real(x) for x in out]
                return None if any(x is None for x in numbers) else (numbers, kink)
            if programs.refused or attempt:
                return None
            try:
                programs.add(*self.trace(inputs, bits))
            except module.Straddles:
                raise
            except (module.NoEnclosure, TypeError, AttributeError, NotImplementedError):
                programs.refused = True
            except (Undefined, ArithmeticError, ValueError, RuntimeError):
                return None
        return None

    def certify(self, judge: Callable[[list[Any], bool], float]) -> tuple[list[Any], bool, int] | None:
        """Numbers that are narrow enough, whether the point is at a kink, and the bits; None without an enclosure.

        `judge(balls, kink)` gives the number of bits that are missing, infinite for numbers that are not finite: these may be badly known up to some
        bits, and then do not exist. Raises Undecided where the most bits do not decide, as at a kink that is not known to be one.
        """
        bits = FIRST
        while bits <= MOST and self.programs:
            poll()
            try:
                found = self.run(bits)
            except enclosed().Straddles:
                bits *= 4
                continue
            except Undecided:  # by a function of a matrix
                return None
            missing = math.inf if found is None else judge(*found)
            if missing <= 0:
                return *found, bits  # type: ignore[misc]
            if missing == math.inf:
                if found is None or bits >= INFINITE:
                    return None
                bits = INFINITE
                continue
            needed, bits = bits + missing, 2 * bits
            while bits < min(needed, MOST):
                bits *= 2
        if self.programs:
            raise Undecided(f"more than {MOST} bits")
        return None

    def compared(self) -> Certified | None:
        """Numbers by two ways, the references and then the others; None if balls do not decide, or a number does not exist. Raises Undecided."""
        fewest, wrong, wide = SHOWN, set[int](), set[int]()

        def judge(numbers: list[Any], kink: bool) -> float:
            nonlocal fewest, wrong, wide
            if kink:
                return 0
            if not all(x.is_finite() for x in numbers):
                return math.inf
            missing, fewest, wrong, wide = 0.0, SHOWN, set(), set()
            for k, (a, b) in enumerate(zip(numbers, numbers[len(numbers) // 2:])):
                lacking, agreeing = _compare_balls(a, b)
                missing, fewest = max(missing, lacking), min(fewest, agreeing)
                if lacking:
                    (wrong if lacking < 0 else wide).add(k)
            return 0 if wrong else missing

        found = self.certify(judge)
        if found is None:
            return None
        numbers, kink, bits = found
        return Certified([(number(a), number(b)) for a, b in zip(numbers, numbers[len(numbers) // 2:])], fewest, wrong, wide, kink, bits)

    def settled(self) -> tuple[list[Any], bool, int] | None:
        """Numbers with at least fifty digits, those below every float with fewer, whether they are at a kink, and the digits.

        None without an enclosure, or where a number does not exist. Raises Undecided where the most bits do not decide.
        """
        found = self.certify(lambda numbers, kink: max(map(_lacking, numbers)))
        return found and ([number(x) for x in found[0]], found[1], int(found[2] / 3.33))

    def known(self, digits: int, part: str = "") -> list[Any] | None:
        try:
            found = self.run(max(FIRST, math.ceil(digits * 3.33) + 64), part)
        except Undecided:
            return None
        return [number(x) for x in found[0]] if found and all(_is_narrow(x, 3.32 * digits - GUARD) for x in found[0]) else None


def of_oracle(oracle: Any, order: int, full: int, direction: np.ndarray) -> Balls:
    """The oracle's numbers."""
    module = enclosed()
    programs = module and oracle.programs.setdefault((order, full), module.Programs())
    values = [step.operation for step in oracle.steps[:oracle.count]]
    return Balls(programs, lambda inputs, bits: (module.trace_oracle(oracle, inputs, order, full, bits), None), [*values, *direction.tolist()])


def _compare_balls(a: Any, b: Any) -> tuple[float, float]:
    """The number of bits that are missing to compare two balls, -1 for different ones, and the digits to which the numbers agree, if known."""
    apart = abs(a - b)
    width = apart.abs_upper()
    if width.is_zero():
        return 0, math.inf
    size = abs(a).max(abs(b)).abs_lower()
    if not apart.contains(0):
        return -1, max(0.0, float(-mpmath.log10(number(apart) / number(abs(a).max(abs(b))))))
    wide = exponent_of(width)
    if wide < NEGLIGIBLE:
        return 0, math.inf
    goal = NEGLIGIBLE if size.is_zero() else max(NEGLIGIBLE, exponent_of(size) - 1 - GOAL)
    return (wide - goal, math.inf) if wide > goal else (0, SHOWN)


def exponent_of(x: Any) -> int:
    """The exponent of the power of two above a positive number without a radius."""
    mantissa, exponent = x.mid().man_exp()
    return int(mantissa).bit_length() + int(exponent)


def number(x: Any) -> Any:
    """The midpoint of a ball as a number of mpmath."""
    if not x.is_finite():
        return mpmath.nan
    if not hasattr(x, "mid_rad_10exp"):
        return mpmath.mp.make_mpc((number(x.real)._mpf_, number(x.imag)._mpf_))
    mantissa, exponent = x.mid().man_exp()
    return mpmath.mp.make_mpf(from_man_exp(int(mantissa), int(exponent)))


def _real(x: Any) -> Any:
    if hasattr(x, "overlaps") and hasattr(x, "mid_rad_10exp"):
        return x
    return x.real if hasattr(x, "imag") and x.imag.is_zero() else None


def _is_narrow(x: Any, bits: float) -> bool:
    """Whether a number is known to some bits, relative to itself or to 1."""
    return x.is_finite() and (x.is_exact() or max(x.rel_accuracy_bits(), -exponent_of(x.rad())) >= bits)


def _lacking(x: Any) -> float:
    if not x.is_finite():
        return math.inf
    if x.is_exact():
        return 0
    size = abs(x).abs_lower()
    return max(0, exponent_of(x.rad()) - (SMALLEST if size.is_zero() else max(SMALLEST, exponent_of(size) - 1 - GOAL)))
