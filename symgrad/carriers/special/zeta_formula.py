"""The derivatives of the zeta function by its first argument as a function of SymPy, which has no name for them."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any

import mpmath
import sympy

from symgrad.carriers.special.zeta_sum import by_sum


class zeta_derivative(sympy.Function):
    """The derivative of ζ(s, a) by s of an order n, as zeta_derivative(s, a, n). That of the order 0 is ζ(s, a) itself, which SymPy's `zeta` is
    too, but without a derivative by s.

    >>> s, a = sympy.symbols("s a", positive=True)
    >>> zeta_derivative(s, a, 1).diff(a)
    -s*zeta_derivative(s + 1, a, 1) - zeta_derivative(s + 1, a, 0)
    """

    nargs = 3

    @classmethod
    def of(cls, s: Any, a: Any, n: int) -> Any:
        """The derivative of an order, which may be 0."""
        return cls(s, a, n) if n else sympy.zeta(s, a)

    def fdiff(self, argindex: int = 1) -> Any:
        """The derivative by s, or by a. DLMF 25.11.17."""
        s, a, n = self.args
        if argindex == 3:
            raise sympy.ArgumentIndexError(self, argindex)
        return self.func(s, a, n + 1) if argindex == 1 else -s * self.func(s + 1, a, n) - (n * self.func(s + 1, a, n - 1) if n else 0)

    def _eval_is_extended_real(self) -> bool | None:
        return True if all(arg.is_positive for arg in self.args[:2]) else None

    def _eval_mpmath(self) -> tuple[Callable[..., Any], Any]:
        return type(self).number, self.args

    @staticmethod
    def number(s: Any, a: Any, n: Any) -> Any:
        """The value at numbers of mpmath s > 1 and a > 0, at its working precision, by the Euler-Maclaurin formula."""
        s, a = mpmath.mpf(s), mpmath.mpf(a)
        if not (s > 1 and a > 0):
            raise ValueError(f"the derivatives of the zeta function have values for s > 1 and a > 0, got {s} and {a}")
        return factorial(int(n)) * by_sum(mpmath.mp, s, a, int(n) + 1, mpmath.mp.prec + 30)[int(n)]

    def _latex(self, printer: Any, exp: Any = None) -> str:
        s, a, n = map(printer._print, self.args)
        text = rf"\zeta^{{\left({n}\right)}}\left({s}, {a}\right)"
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"
