"""Which equations have values that may be infinite, as far as their form tells, so that their product with 0 may be NaN."""

from __future__ import annotations

from typing import Any

import sympy

__all__ = ["Finite"]

EVERYWHERE = (sympy.Add, sympy.Mul, sympy.exp, sympy.sin, sympy.cos, sympy.sinh, sympy.cosh, sympy.tanh, sympy.asin, sympy.acos, sympy.atan,
              sympy.asinh, sympy.Abs, sympy.sign, sympy.Max, sympy.Min, sympy.floor, sympy.ceiling)


class Finite:
    """What is known of the symbols of equations, which are added in order.

    Arguments are finite, and nothing overflows.
    """

    def __init__(self) -> None:
        self.infinite: set[Any] = set()
        self.signs: dict[Any, int] = {}  # 1 for values above a positive number, 0 for others that are not negative

    def add(self, symbol: Any, e: Any) -> None:
        """Add an equation."""
        if not self(e):
            self.infinite.add(symbol)
        if (sign := self.sign(e)) is not None:
            self.signs[symbol] = sign

    def __call__(self, e: Any) -> bool:
        """Whether the values of an expression are finite."""
        if e.is_Atom:
            return e not in self.infinite and e.is_finite is not False
        if isinstance(e, sympy.Piecewise):
            return all(self(value) for value, _ in e.args)
        if e.is_Pow:
            return self(e.base) and bool(e.exp.is_number and e.exp.is_real) and (bool(e.exp.is_nonnegative) or self.sign(e.base) == 1)
        return isinstance(e, EVERYWHERE) and all(map(self, e.args))

    def sign(self, e: Any) -> int | None:
        """1 for an expression above a positive number, 0 for another one that is not negative, else None."""
        if e.is_Number:
            return int(bool(e > 0)) if e.is_finite and e.is_nonnegative else None
        if e.is_Pow and e.exp.is_number and e.exp.is_real:
            base = self.sign(e.base)
            return 0 if base is None and e.exp.is_even else base if e.exp.is_positive else base and 0
        if isinstance(e, (sympy.exp, sympy.Abs)):
            return 0
        if isinstance(e, sympy.cosh):
            return 1
        if isinstance(e, (sympy.Add, sympy.Mul, sympy.Max, sympy.Piecewise)):
            found = [self.sign(part[0] if isinstance(e, sympy.Piecewise) else part) for part in e.args]
            if isinstance(e, sympy.Max):
                return max((sign for sign in found if sign is not None), default=None)
            return None if None in found else (max if e.is_Add else min)(found)  # type: ignore[type-var]
        return self.signs.get(e)
