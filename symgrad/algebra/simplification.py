"""SymPy's own simplifications of expressions, bounded by their sizes: nothing else bounds their time."""

from __future__ import annotations

from collections.abc import Callable
from math import comb, prod
from typing import Any

import sympy
from sympy.core.relational import Relational
from sympy.functions.elementary.hyperbolic import HyperbolicFunction
from sympy.functions.elementary.piecewise import piecewise_simplify
from sympy.functions.elementary.trigonometric import TrigonometricFunction
from sympy.logic.boolalg import BooleanAtom
from sympy.polys.polyerrors import BasePolynomialError

from symgrad.algebra.polynomials import DEGREE

ALGEBRA = 400  # the largest number of operations for SymPy's own methods
PIECES = 6  # the most `Piecewise`s of an expression that are folded into one
SMALL = 30  # operations of an expression that SymPy's `simplify` takes some tenths of a second for
CANCELLED = 60, 200  # the most operations of an expression that is cancelled, and terms of its numerator
EXPANDED, FACTORED = 4000, 80  # the most terms of an expression that is expanded, and of a numerator that is factored
BITS = 400  # of the numbers in an expression that is factored: SymPy looks for primes of their size
LITERAL = 2**10  # a denominator from which on a rational is no number that a formula has by itself

# Exceptions that SymPy raises for expressions it cannot handle; they count as "not decided", which is always a correct answer.
FAILURES = (NotImplementedError, BasePolynomialError, RecursionError, TypeError, ValueError, ArithmeticError, AttributeError, LookupError)


def tractable(e: Any) -> bool:
    """Whether an expression has a moderate size and moderate exponents, so that SymPy's own methods may be tried.

    SymPy converts a power of 1/10**12 to a polynomial of degree 10**12, which exceeds the memory.
    """
    exponents = [x for power in e.atoms(sympy.Pow, sympy.exp) for x in power.as_base_exp()[1].atoms(sympy.Rational)]
    return e.count_ops() <= ALGEBRA and all(abs(x.p) <= DEGREE and x.q <= DEGREE for x in exponents)


def truth(condition: Any, holds: Callable[[Any], bool]) -> bool:
    """The truth value of a condition by those of its relations, as far as these are needed. Raises TypeError for one without relations."""
    while not isinstance(condition, BooleanAtom):
        relation = next((part for part in sympy.preorder_traversal(condition) if isinstance(part, Relational)), None)
        if relation is None:
            raise TypeError(str(condition))
        condition = condition.xreplace({relation: sympy.true if holds(relation) else sympy.false})
    return bool(condition)


def expanded_terms(e: Any) -> tuple[int, int]:
    """Bounds for the numbers of terms of the numerator and the denominator of an expression that is expanded over a common denominator.

    >>> x, y = sympy.symbols("x y")
    >>> expanded_terms((x + y + 1)**2 / (x - 1)), expanded_terms(1 / x + 1 / (y + 1))
    ((6, 2), (3, 2))
    """
    if e.is_Add:
        parts = [expanded_terms(x) for x in e.args]
        below = prod(d for _, d in parts)
        return sum(n * (below // d) for n, d in parts), below
    if e.is_Mul:
        parts = [expanded_terms(x) for x in e.args]
        return prod(n for n, _ in parts), prod(d for _, d in parts)
    if e.is_Pow and e.exp.is_Integer:
        k = abs(int(e.exp))
        above, below = (comb(n + k - 1, k) if n > 1 else 1 for n in expanded_terms(e.base))
        return (above, below) if e.exp > 0 else (below, above)
    return 1, 1


def cancelled(e: Any) -> Any:
    """An expression, or the shorter one over a common denominator if that is quick to find."""
    if e.count_ops() > CANCELLED[0] or not tractable(e) or max(expanded_terms(e)) > CANCELLED[1]:
        return e
    try:
        return min((e, sympy.factor_terms(sympy.cancel(e))), key=lambda e: e.count_ops())
    except FAILURES:
        return e


def shortest_form(e: Any) -> Any:
    """The shortest of an expression and what SymPy makes of it in a few steps. The steps depend on its size, which bounds their time."""
    if not tractable(e) or any(max(abs(x.p), x.q).bit_length() > BITS for x in e.atoms(sympy.Rational)):
        return e
    best = e
    try:
        if sympy.count_ops(e) > SMALL:
            for step in (_folded, sympy.factor_terms, _factored):
                best = min(best, step(best), key=sympy.count_ops)
            if max(expanded_terms(best)) <= EXPANDED:
                best = min(best, sympy.factor_terms(sympy.powsimp(sympy.factor_terms(sympy.together(best)))), key=sympy.count_ops)
        if sympy.count_ops(best) <= SMALL:
            best = min(best, *(step(best) for step in (sympy.factor_terms, _simplified, _factored)), key=sympy.count_ops)
    except FAILURES:
        pass
    return best


def _folded(e: Any) -> Any:
    if not e.has(sympy.Piecewise) or len(e.atoms(sympy.Piecewise)) > PIECES:
        return e
    folded = sympy.piecewise_fold(e)  # whose branches SymPy would factor over Gaussian rationals where they have trigonometric functions
    return folded if e.has(HyperbolicFunction, TrigonometricFunction) or _has_conditions_on_functions(folded) else piecewise_simplify(folded)


def _has_conditions_on_functions(e: Any) -> bool:
    """Whether there is a condition on more than polynomials: there SymPy looks for closed forms of the numbers that it tries."""
    return any(not side.is_polynomial() for relation in e.atoms(Relational) for side in relation.args)


def _factored(e: Any) -> Any:
    """The factors of a short expression; floats are hardly ever common factors, and SymPy takes seconds to look for them."""
    return sympy.factor(e) if not e.has(sympy.Float) and max(expanded_terms(e)) <= FACTORED else e


def _simplified(e: Any) -> Any:
    """What SymPy's `simplify` makes of an expression; of a sum, the terms with hyperbolic functions and the others are simplified apart.

    For both together SymPy's Gröbner bases take minutes.
    """
    if _has_conditions_on_functions(e):
        return e
    hyperbolic = [t for t in sympy.Add.make_args(e) if t.has(HyperbolicFunction)]
    if not hyperbolic or len(hyperbolic) == len(sympy.Add.make_args(e)):
        return sympy.simplify(e)
    part = sympy.Add(*hyperbolic)
    return sympy.simplify(part) + sympy.simplify(e - part)


def shortest_difference(a: Any, b: Any) -> Any:
    """The shortest form of a - b, None for 0. Floats are the decimals that they are written as.

    >>> x = sympy.Symbol("x")
    >>> [shortest_difference(*pair) for pair in ((1.001 * x, x), (x, sympy.Rational(0.1) * x), ((x + 1)**2, x**2 + 2*x + 1))]
    [0.001*x, 0.9*x, None]
    """
    plain = [_as_written(e) for e in (a, b)]
    found = shortest_form(plain[0] - plain[1])
    if found == 0:  # the decimals are the same, but the binary numbers may not be
        return shortest_form(a - b) or None
    if plain == [a, b]:
        return found
    return found.xreplace({x: sympy.Float(float(x)) for x in found.atoms(sympy.Rational) if x.q % 5 == 0 or x.q > LITERAL})


def _as_written(e: Any) -> Any:
    """The expression with floats, and rationals that are floats of many bits, as the rationals that their decimals are."""
    long = {x for x in e.atoms(sympy.Float, sympy.Rational) if x.is_Float or x.q > LITERAL and not x.q & (x.q - 1) and sympy.Rational(float(x)) == x}
    return e.xreplace({x: sympy.Rational(repr(float(x))) for x in long})
