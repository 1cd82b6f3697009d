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
from symgrad.reference.oracle import slots

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


def certify(evaluate: Callable[[int], tuple[list[Any], bool] | None],
            judge: Callable[[list[Any], bool], float]) -> tuple[list[Any], bool, int] | None:
    """Numbers as balls that are narrow enough, whether the point is at a kink, and the bits; None without an enclosure.

    `evaluate(bits)` gives the balls, None if there are none, and `judge(balls, kink)` the number of bits that are missing, infinite for numbers that
    are not finite: these may be badly known up to some bits, and then do not exist. Raises Undecided where the most bits do not decide, as at a kink
    that is not known to be one.
    """
    bits = FIRST
    while bits <= MOST:
        poll()
        try:
            found = evaluate(bits)
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
    raise Undecided(f"more than {MOST} bits")


def compare(evaluate: Callable[[int], tuple[list[Any], bool] | None]) -> Certified | None:
    """Numbers by two ways, the references and then the others, compared by balls; None if they do not decide, or a number does not exist.

    `evaluate` is as in `certify`. Raises Undecided where the most bits do not decide.
    """
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

    found = certify(evaluate, judge)
    if found is None:
        return None
    numbers, kink, bits = found
    return Certified([(number(a), number(b)) for a, b in zip(numbers, numbers[len(numbers) // 2:])], fewest, wrong, wide, kink, bits)


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


def run_programs(programs: Any, trace: Callable[[int], Any], values: Sequence[Any], bits: int, part: str = "") -> Any:
    """The outputs of the program of a point, and whether it is at a kink; None if there is no program. Raises Undecided for too few bits.

    The `part` "value" has the value as its only output, the part "rules" the numbers by rules. `trace(bits)` traces the program of the point.
    """
    module = enclosed()
    for program in [*programs.found]:
        try:
            out, kink = (getattr(program, part) if part else program).evaluate(values, bits)
        except module.Changed:
            continue
        except (ArithmeticError, ValueError) as error:
            raise error if isinstance(error, Undecided) else Undecided(str(error)) from None
        numbers = out if programs.complex else [_real(x) for x in out]
        return None if any(x is None for x in numbers) else (numbers, kink)
    if programs.refused:
        return None
    try:
        programs.add(*trace(bits))
    except module.Straddles:
        raise
    except (module.NoEnclosure, TypeError, AttributeError, NotImplementedError):
        programs.refused = True
        return None
    except (Undefined, ArithmeticError, ValueError, RuntimeError):
        return None
    return run_programs(programs, trace, values, bits, part)


def _real(x: Any) -> Any:
    """A real ball of a real or complex one; None if it is not real."""
    if hasattr(x, "overlaps") and hasattr(x, "mid_rad_10exp"):
        return x
    return x.real if hasattr(x, "imag") and x.imag.is_zero() else None


def moved(exact: Any, values: Sequence[Any], digits: int, alone: bool = False) -> list[Any] | None:
    """The numbers by the rules at other values of the leaves, numbers of many digits; None where balls do not give them with so many digits.

    With `alone`, only the value.
    """
    if not exact.programs:
        return None
    module, count = enclosed(), len(slots(exact.count, exact.order, exact.full))
    inputs = [module.exact_ball(x) for v in values for x in v.ravel().tolist()]
    bits, goal = max(FIRST, math.ceil(digits * 3.33) + 64), 3.32 * digits - GUARD
    try:
        found = run_programs(exact.programs, exact.trace, [*inputs, *map(module.arb, exact.direction.tolist())], bits,
                             "value" if alone else "rules")
    except Undecided:
        return None
    if found is None or not all(_is_narrow(x, goal) for x in found[0]):
        return None
    return [number(x) for x in found[0][-1 if alone else -count:]]


def _is_narrow(x: Any, bits: float) -> bool:
    """Whether a number is known to some bits, relative to itself or to 1."""
    return x.is_finite() and (x.is_exact() or max(x.rel_accuracy_bits(), -exponent_of(x.rad())) >= bits)


def settled(oracle: Any, order: int, full: int, direction: np.ndarray) -> tuple[list[Any], bool, int] | None:
    """The oracle's numbers with at least fifty digits, those below every float with fewer, whether they are at a kink, and the digits.

    None without an enclosure, or where a number does not exist. Raises Undecided where the most bits do not decide.
    """
    module = enclosed()
    if module is None:
        return None

    def judge(numbers: list[Any], kink: bool) -> float:
        return max(map(_lacking, numbers))

    found = certify(lambda bits: oracle_numbers(oracle, order, full, direction, bits), judge)
    return found and ([number(x) for x in found[0]], found[1], int(found[2] / 3.33))


def _lacking(x: Any) -> float:
    """The bits that are missing to know a number to fifty digits."""
    if not x.is_finite():
        return math.inf
    if x.is_exact():
        return 0
    size = abs(x).abs_lower()
    return max(0, exponent_of(x.rad()) - (SMALLEST if size.is_zero() else max(SMALLEST, exponent_of(size) - 1 - GOAL)))


def oracle_numbers(oracle: Any, order: int, full: int, direction: np.ndarray, bits: int) -> tuple[list[Any], bool] | None:
    """The oracle's numbers as balls, and whether they are at a kink; None if there are none. Raises Undecided for too few bits."""
    module = enclosed()
    programs = oracle.programs.setdefault((order, full), module.Programs())
    with module.ball.precision(bits):
        values = [module.exact_number(step.operation) for step in oracle.steps[:oracle.count]]
    return run_programs(programs, lambda bits: (module.trace_oracle(oracle, values, order, full, direction, bits), None),
                        [*values, *map(module.arb, direction.tolist())], bits)
