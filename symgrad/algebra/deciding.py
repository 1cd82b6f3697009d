"""The decision whether a difference is literally zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy
from sympy.functions.elementary.hyperbolic import HyperbolicFunction
from sympy.functions.elementary.piecewise import piecewise_simplify

from symgrad.algebra.cases import literally_zero, regions_of
from symgrad.algebra.limits import OutOfTime, clock, limited, stoppable
from symgrad.algebra.polynomials import DEGREE
from symgrad.algebra.ranges import Range

__all__ = ["FAILURES", "shortest_difference", "shortest_form", "tractable", "vanishes"]

ALGEBRA = 400  # the largest number of operations for SymPy's own methods
SMALL = 30  # operations of an expression that SymPy's `simplify` takes some tenths of a second for
LITERAL = 2**10  # a denominator from which on a rational is no number that a formula has by itself


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


def shortest_form(e: Any, seconds: float = 2.0) -> Any:
    """The shortest of an expression and what SymPy makes of it in a few steps. The steps depend on its size, which bounds their time."""
    if not tractable(e):
        return e
    best = e
    try:
        with limited(seconds):
            if sympy.count_ops(e) > SMALL:
                for step in (_folded, sympy.factor_terms, sympy.factor, _together):
                    best = min(best, step(best), key=sympy.count_ops)
            if sympy.count_ops(best) <= SMALL:
                best = min(best, *(step(best) for step in (sympy.factor_terms, _simplified, sympy.factor)), key=sympy.count_ops)
    except (OutOfTime, *FAILURES):
        pass
    return best


def _folded(e: Any) -> Any:
    return piecewise_simplify(sympy.piecewise_fold(e)) if e.has(sympy.Piecewise) else e


def _simplified(e: Any) -> Any:
    """What SymPy's `simplify` makes of an expression; of a sum, the terms with hyperbolic functions and the others are simplified apart.

    For both together SymPy's Gröbner bases take minutes.
    """
    hyperbolic = [t for t in sympy.Add.make_args(e) if t.has(HyperbolicFunction)]
    if not hyperbolic or len(hyperbolic) == len(sympy.Add.make_args(e)):
        return sympy.simplify(e)
    part = sympy.Add(*hyperbolic)
    return sympy.simplify(part) + sympy.simplify(e - part)


def _together(e: Any) -> Any:
    return sympy.factor_terms(sympy.powsimp(sympy.factor_terms(sympy.together(e))))


def shortest_difference(a: Any, b: Any, seconds: float = 2.0) -> Any:
    """The shortest form of a - b, None for 0. Floats are the decimals that they are written as.

    >>> x = sympy.Symbol("x")
    >>> [shortest_difference(*pair) for pair in ((1.001 * x, x), (x, sympy.Rational(0.1) * x), ((x + 1)**2, x**2 + 2*x + 1))]
    [0.001*x, 0.9*x, None]
    """
    plain = [_as_written(e) for e in (a, b)]
    found = shortest_form(plain[0] - plain[1], seconds)
    if found == 0:  # the decimals are the same, but the binary numbers may not be
        return shortest_form(a - b, seconds) or None
    if plain == [a, b]:
        return found
    return found.xreplace({x: sympy.Float(float(x)) for x in found.atoms(sympy.Rational) if x.q % 5 == 0 or x.q > LITERAL})


def _as_written(e: Any) -> Any:
    """The expression with floats, and rationals that are floats of many bits, as the rationals that their decimals are."""
    long = {x for x in e.atoms(sympy.Float, sympy.Rational) if x.is_Float or x.q > LITERAL and not x.q & (x.q - 1) and sympy.Rational(float(x)) == x}
    return e.xreplace({x: sympy.Rational(repr(float(x))) for x in long})


def _by_sympy(difference: Any, deadline: float) -> bool:
    """By SymPy's own simplifications."""
    if clock() > deadline or not tractable(difference) or not stoppable() and difference.count_ops() > ALGEBRA // 4:
        return False
    try:
        with limited(max(deadline - clock(), 0.01)):
            return any(method(difference) == 0 for method in (sympy.expand, sympy.simplify))
    except (OutOfTime, *FAILURES):
        return False
