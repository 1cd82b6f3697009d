"""The decision whether a difference is literally zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy

from symgrad.algebra.cases import literally_zero, regions_of
from symgrad.algebra.limits import OutOfTime, clock, limited, stoppable
from symgrad.algebra.polynomials import DEGREE
from symgrad.algebra.ranges import Range

__all__ = ["FAILURES", "shortest_form", "tractable", "vanishes"]

ALGEBRA = 400  # the largest number of operations for SymPy's own methods


# Exceptions that SymPy raises for expressions it cannot handle; they count as "not decided", which is always a correct answer.
FAILURES = (NotImplementedError, sympy.PolynomialError, RecursionError, TypeError, ValueError, ArithmeticError, AttributeError, LookupError)


def vanishes(a: Any, b: Any, ranges: Mapping[Any, Range], deadline: float) -> bool:
    """Whether a - b reduces to a literal 0 before the deadline, in every region; False also if that is not decided.

    >>> x = sympy.Symbol("x", real=True)
    >>> vanishes(sympy.Max(x, 0), (x + sympy.Abs(x)) / 2, {x: Range()}, float("inf"))
    True
    """
    if a == b:
        return True
    if not isinstance(a, sympy.Expr) or not isinstance(b, sympy.Expr):
        one, other = (sympy.Piecewise((1, e), (0, True)) for e in (a, b))
        return vanishes(one, other, ranges, deadline)
    for split in (False, True):
        try:
            with limited(max(deadline - clock(), 0.01)):
                if all(literally_zero(region, deadline, split) for region in regions_of(a, b, ranges)):
                    return True
        except OutOfTime:
            return False
        except FAILURES:
            continue
    return _by_sympy(a - b, deadline)


def tractable(e: Any) -> bool:
    """Whether an expression has a moderate size and moderate exponents, so that SymPy's own methods may be tried.

    SymPy converts a power of 1/10**12 to a polynomial of degree 10**12, which exceeds the memory.
    """
    exponents = [x for power in e.atoms(sympy.Pow, sympy.exp) for x in power.as_base_exp()[1].atoms(sympy.Rational)]
    return e.count_ops() <= ALGEBRA and all(abs(x.p) <= DEGREE and x.q <= DEGREE for x in exponents)


def shortest_form(e: Any, seconds: float) -> Any:
    """The shortest of an expression and its forms by SymPy within some time."""
    try:
        with limited(seconds):
            return min((e, sympy.factor_terms(e), sympy.simplify(e)), key=sympy.count_ops)
    except (OutOfTime, *FAILURES):
        return e


def _by_sympy(difference: Any, deadline: float) -> bool:
    """By SymPy's own simplifications."""
    if clock() > deadline or not tractable(difference) or not stoppable() and difference.count_ops() > ALGEBRA // 4:
        return False
    try:
        with limited(max(deadline - clock(), 0.01)):
            return any(method(difference) == 0 for method in (sympy.expand, sympy.simplify))
    except (OutOfTime, *FAILURES):
        return False
