"""Functions of single many-digit numbers: those of mpmath, where arguments may be so large that mpmath would need too much time or memory.

All of them compute in `context`, an mpmath context of the package: the precision of other users of mpmath does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mpmath

__all__ = ["HUGE", "TooLarge", "Undecided", "Undefined", "bounded", "context", "cosh", "exponential", "sech", "sinh", "working_precision"]

HUGE = 100_000  # bits before the point; more would fill the memory
context = mpmath.MPContext()
context.dps = 60


class Undefined(ArithmeticError):
    """There is no number: outside a domain, at a pole, or beyond what can be stored."""


class TooLarge(Undefined):
    """The number is too large to be stored."""


class Undecided(Undefined):
    """The digits do not suffice: to tell two numbers apart, or one from 0 after cancellation, or to choose a side of a jump or a branch cut."""


@contextmanager
def working_precision(digits: int) -> Iterator[None]:
    """A context with so many decimal digits, in this package and in mpmath's own functions."""
    with context.workdps(digits), mpmath.workdps(digits):
        yield


def bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with arguments beyond 2**100_000 replaced by infinity, since their integer part would exceed the memory."""
    def call(*xs: Any) -> Any:
        return function(*[context.inf * context.sign(x) if x and context.mag(x) > HUGE else x for x in xs])

    return call


def _is_large(x: Any) -> bool:
    """Whether a number is an integer so large that e**-x is negligible beside e**x; mpmath would compute e**x by repeated multiplication."""
    return bool(context.isint(x) and context.mag(x) > 30)


@bounded
def exponential(x: Any) -> Any:
    """e**x; a large integer is shifted by one half."""
    return context.exp(context.fadd(x, 0.5, exact=True)) / context.exp(0.5) if _is_large(x) else context.exp(x)


@bounded
def cosh(x: Any) -> Any:
    """The hyperbolic cosine."""
    return exponential(abs(x)) / 2 if _is_large(x) else context.cosh(x)


@bounded
def sinh(x: Any) -> Any:
    """The hyperbolic sine."""
    return context.sign(x) * exponential(abs(x)) / 2 if _is_large(x) else context.sinh(x)


@bounded
def sech(x: Any) -> Any:
    """1 / cosh."""
    return 2 * exponential(-abs(x)) if _is_large(x) else context.sech(x)
