"""Orthogonal polynomials and their derivatives of every order, by the recurrence of three terms (DLMF 18.9)."""

from __future__ import annotations

from typing import Any

__all__ = ["FAMILIES", "ROWS"]

# the first polynomial as a + b x, and (c, d, e, f) of the recurrence f pₙ₊₁ = (c + d x) pₙ - e pₙ₋₁
FAMILIES: dict[str, tuple[tuple[int, int], Any]] = {
    "chebyshev_polynomial_t": ((0, 1), lambda n: (0, 2, 1, 1)), "chebyshev_polynomial_u": ((0, 2), lambda n: (0, 2, 1, 1)),
    "chebyshev_polynomial_v": ((-1, 2), lambda n: (0, 2, 1, 1)), "chebyshev_polynomial_w": ((1, 2), lambda n: (0, 2, 1, 1)),
    "hermite_polynomial_h": ((0, 2), lambda n: (0, 2, 2 * n, 1)), "hermite_polynomial_he": ((0, 1), lambda n: (0, 1, n, 1)),
    "legendre_polynomial_p": ((0, 1), lambda n: (0, 2 * n + 1, n, n + 1)), "laguerre_polynomial_l": ((1, -1), lambda n: (2 * n + 1, -1, n, n + 1)),
}
RECURRENCES = tuple(FAMILIES.values())


def _polynomial(library: Any, x: Any, family: int, degree: int, order: int) -> Any:
    """The derivative of an order, together with the lower ones, of the polynomial of a degree; the numbers may be of any carrier."""
    (a, b), recurrence = RECURRENCES[family]
    zero = x * 0
    below, here = [zero + 1] + [zero] * order, [a + b * x] + [zero + b] * (order > 0) + [zero] * (order - 1)
    for n in range(1, degree):
        c, d, e, f = recurrence(n)
        line = c + d * x
        above = [(line * here[k] + (k * d * here[k - 1] if k else 0) - e * below[k]) / f if f != 1 else
                 line * here[k] + (k * d * here[k - 1] if k else 0) - e * below[k] for k in range(order + 1)]
        below, here = here, above
    return here[order] if degree > 0 else below[order] if degree == 0 else zero


def _formula(sp: Any, x: Any, family: int, degree: int, order: int) -> Any:
    symbol = sp.Symbol("x")
    return sp.expand(_polynomial(sp, symbol, family, degree, order)).subs(symbol, x)


# name: arrays, digits, formula, balls, arity
ROWS: dict[str, tuple[Any, ...]] = {
    "orthogonal_polynomial": (_polynomial, _polynomial, _formula, lambda x, *given: _polynomial(None, x, *given)),
}
