"""Functions of single many-digit numbers: those of mpmath, extended to arguments for which mpmath would need too much time or memory.

All computations use `context`, an mpmath context of this package, so that the precision of other users of mpmath does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mpmath

from symgrad.system.restoring import workdps, workprec

HUGE = 100_000  # the most bits before the point; larger numbers would exhaust the memory
context = mpmath.MPContext()
context.dps = 60


class Undefined(ArithmeticError):
    """The error for a missing number: outside a domain, at a pole, or too large to be stored."""


class TooLarge(Undefined):
    """The error for a number that is too large to be stored."""


class Undecided(Undefined):
    """The error for too few digits: to distinguish two numbers, or one from 0 after cancellation, or to choose a side of a jump or a branch cut."""


@contextmanager
def working_precision(digits: int) -> Iterator[None]:
    """A context manager that sets the number of decimal digits, in this package and in mpmath's own functions."""
    if context.dps == mpmath.mp.dps == digits:  # as in most calls, which are nested
        yield
        return
    with workdps(context, digits), workdps(mpmath.mp, digits):
        yield


@contextmanager
def precision_restored() -> Iterator[None]:
    """Restore the precision of this package and that of mpmath, whose functions leave it changed if they are interrupted as they end."""
    with workprec(context, context.prec), workprec(mpmath.mp, mpmath.mp.prec):
        yield


def with_bounded_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with infinity in place of arguments beyond 2**100_000, whose integer part would exhaust the memory."""
    def call(*xs: Any) -> Any:
        return function(*[context.inf * context.sign(x) if x and context.mag(x) > HUGE else x for x in xs])

    return call


def _is_large(x: Any) -> bool:
    """Whether a number is a large integer, for which mpmath would compute e**x by repeated multiplication; e**-x is negligible for it."""
    return bool(context.isint(x) and context.mag(x) > 30)


@with_bounded_arguments
def exponential(x: Any) -> Any:
    """e**x; the exponent is shifted by one half if it is a large integer."""
    return context.exp(context.fadd(x, 0.5, exact=True)) / context.exp(0.5) if _is_large(x) else context.exp(x)


@with_bounded_arguments
def cosh(x: Any) -> Any:
    """The hyperbolic cosine."""
    return exponential(abs(x)) / 2 if _is_large(x) else context.cosh(x)


@with_bounded_arguments
def sinh(x: Any) -> Any:
    """The hyperbolic sine."""
    return context.sign(x) * exponential(abs(x)) / 2 if _is_large(x) else context.sinh(x)


@with_bounded_arguments
def sech(x: Any) -> Any:
    """1 / cosh."""
    return 2 * exponential(-abs(x)) if _is_large(x) else context.sech(x)
