"""Orthogonal polynomials and their derivatives of every order, by the recurrence of three terms (DLMF 18.9).

In doubles it loses n^1.5 roundings next to the ends of the interval and all digits next to zeros, so it is computed in long doubles, and next to
zeros in fractions, which are exact. Up to the degree 30 values and three derivatives are so within 2 ULP.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from symgrad.carriers.special.pieces import with_many_digits

# the first polynomial as a + b x, and (c, d, e, f) of the recurrence f pₙ₊₁ = (c + d x) pₙ - e pₙ₋₁
FAMILIES: dict[str, tuple[tuple[int, int], Any]] = {
    "chebyshev_polynomial_t": ((0, 1), lambda n: (0, 2, 1, 1)), "chebyshev_polynomial_u": ((0, 2), lambda n: (0, 2, 1, 1)),
    "chebyshev_polynomial_v": ((-1, 2), lambda n: (0, 2, 1, 1)), "chebyshev_polynomial_w": ((1, 2), lambda n: (0, 2, 1, 1)),
    "hermite_polynomial_h": ((0, 2), lambda n: (0, 2, 2 * n, 1)), "hermite_polynomial_he": ((0, 1), lambda n: (0, 1, n, 1)),
    "legendre_polynomial_p": ((0, 1), lambda n: (0, 2 * n + 1, n, n + 1)), "laguerre_polynomial_l": ((1, -1), lambda n: (2 * n + 1, -1, n, n + 1)),
    "shifted_chebyshev_polynomial_t": ((-1, 2), lambda n: (-2, 4, 1, 1)), "shifted_chebyshev_polynomial_u": ((-2, 4), lambda n: (-2, 4, 1, 1)),
    "shifted_chebyshev_polynomial_v": ((-3, 4), lambda n: (-2, 4, 1, 1)), "shifted_chebyshev_polynomial_w": ((-1, 4), lambda n: (-2, 4, 1, 1)),
}  # those of 2x - 1 have a recurrence of their own, because 2x - 1 is rounded
RECURRENCES = tuple(FAMILIES.values())
VANISHING = 2.0**-9  # of a term, times the degree: where a long double has no more digits to lose, next to a zero


def _terms(x: Any, family: int, degree: int, order: int) -> tuple[tuple[Any, ...], int]:
    """The terms whose sum, divided by the number returned with them, is the derivative of an order of a polynomial; numbers of any carrier."""
    (a, b), recurrence = RECURRENCES[family]
    zero = x * 0
    below, here = [zero + 1] + [zero] * order, [a + b * x] + [zero + b] * (order > 0) + [zero] * (order - 1)
    for n in range(1, degree):
        c, d, e, f = recurrence(n)
        line = c + d * x
        if n == degree - 1:
            return (line * here[order], order * d * here[order - 1] if order else zero, -e * below[order]), f
        above = [line * here[k] + (k * d * here[k - 1] if k else 0) - e * below[k] for k in range(order + 1)]
        below, here = here, above if f == 1 else [p / f for p in above]
    return (here[order] if degree > 0 else below[order] if degree == 0 else zero,), 1


def _polynomial(library: Any, x: Any, family: int, degree: int, order: int) -> Any:
    """The derivative of an order of the polynomial of a degree; the numbers may be of any carrier."""
    (first, *rest), f = _terms(x, family, degree, order)
    y = sum(rest, first)
    return y / f if f != 1 else y


def _of_arrays(special: Any, x: Any, family: int, degree: int, order: int) -> Any:
    given = np.asarray(x)
    if given.dtype != np.float64 or degree < 2 or order >= degree:
        wide = given.astype(np.float64) if given.dtype.kind == "f" else given
        return np.asarray(_polynomial(None, wide, family, degree, order)).astype(given.dtype)[()]

    def exact(mp: Any, x: Any) -> float:
        return float(_polynomial(None, Fraction(float(x)), family, degree, order))

    terms, f = _terms(given.astype(np.longdouble), family, degree, order)
    y = terms[0] + terms[1] + terms[2]
    small = np.abs(y) < VANISHING * degree * np.maximum(np.abs(terms[0]), np.abs(terms[2]))
    return with_many_digits(y if f == 1 else y / f, small, given, exact).astype(np.float64)[()]


def _formula(sp: Any, x: Any, family: int, degree: int, order: int) -> Any:
    _, polynomial = sp.ring("x", sp.QQ)  # whose terms are collected at every step
    return sp.sympify(_polynomial(sp, polynomial, family, degree, order).as_expr(x))


# name: arrays, digits, formula, balls, arity
ROWS: dict[str, tuple[Any, ...]] = {
    "orthogonal_polynomial": (_of_arrays, _polynomial, _formula, lambda x, *given: _polynomial(None, x, *given)),
}
