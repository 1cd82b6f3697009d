"""The real value of an expression at a point, with many digits."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import mpmath
import sympy

from symgrad.algebra.evaluating import STEPS, Evaluator, Unknown
from symgrad.algebra.stable_functions import elementary
from symgrad.algebra.stochastic import Arithmetic, Gaussian, Sample
from symgrad.carriers.digits import Undecided, Undefined, context, cosh, exponential, sech, sinh, with_bounded_arguments, working_precision

__all__ = ["Real", "Unknown", "accurate_value", "value"]

FIRST, MOST = 65, 9000  # the digits of the first and the most of the last precision
NEGLIGIBLE = -1330  # the bits below which a number is smaller than any product of two floats
FLOATS = 1100  # the most bits before the point of the arguments, which are those of floats and their multiples
LARGE = 10**7  # a power with a larger exponent has no correct digits


class _Numbers:
    """Arithmetic of many-digit numbers without measured errors, for the steps of an `Evaluator`."""

    context = context
    rounded = staticmethod(context.convert)

    @property
    def bits(self) -> int:
        """The working precision."""
        return int(context.prec)

    @staticmethod
    def exact_or_sample(x: Any) -> Any:
        """A rational number."""
        return context.mpc(*map(_Numbers.exact_or_sample, x)) if isinstance(x, Gaussian) else context.mpf(x.numerator) / x.denominator

    @staticmethod
    def function(f: Callable[..., Any], xs: Sequence[Any], second: Any = None) -> Any:
        """A function of mpmath at numbers."""
        try:
            return context.convert(f(*xs))
        except (NotImplementedError, mpmath.libmp.NoConvergence) as error:
            raise Undefined(str(error)) from None


NUMBERS = _Numbers()


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    sympy.Add: lambda *xs: context.fsum(xs), sympy.Mul: lambda *xs: context.fprod(xs), sympy.log: context.log,
    sympy.Pow: lambda a, b: context.nan if a == 0 and b < 0 or abs(b) > LARGE else a**b,
    sympy.exp: exponential, sympy.cosh: cosh, sympy.sinh: sinh, sympy.sech: sech,
    **{getattr(sympy, name): with_bounded_arguments(getattr(context, name)) for name in "sin cos tan tanh atan asinh".split()},
    **{getattr(sympy, name): getattr(context, name) for name in "asin acos acosh atanh atan2 erf erfc re im arg floor sign".split()},
    sympy.ceiling: context.ceil, sympy.conjugate: context.conj, sympy.Abs: abs, sympy.Max: max,
    sympy.Min: min, sympy.Heaviside: lambda x, at_zero=0.5: context.mpf(at_zero if x == 0 else x > 0),
    sympy.DiracDelta: lambda x, order=0: context.zero if x else context.nan,
    sympy.Eq: operator.eq, sympy.Ne: operator.ne, sympy.Lt: operator.lt, sympy.Le: operator.le, sympy.Gt: operator.gt, sympy.Ge: operator.ge,
}


class Real(Evaluator):
    """An expression as a real function of numbers, at the working precision of `symgrad.carriers.digits`.

    All intermediate values must be real, as in code for floats, unless `complex` is true.
    """

    table: ClassVar[dict[Any, Callable[..., Any]]] = STEPS | {kind: (lambda a, *xs, f=f: f(*xs)) for kind, f in FUNCTIONS.items()}

    def __init__(self, expression: Any, symbols: Sequence[Any], complex: bool = False):
        super().__init__([expression], symbols)
        self.complex = complex

    def check_result(self, x: Any) -> Any:
        """The result of a step. Raises Undefined for NaN, and for a complex number unless `complex` is true."""
        if not self.complex and hasattr(x, "_mpc_") or not isinstance(x, bool) and context.isnan(x):
            raise Undefined("no real value")
        return x

    def __call__(self, *xs: Any) -> Any:
        """The value at numbers; NaN if there is none."""
        (found,) = self.at([context.make_mpf(x._mpf_) if hasattr(x, "_mpf_") else context.convert(x) for x in xs], NUMBERS)
        return context.nan if isinstance(found, ArithmeticError) or found.imag else found.real


def value(expr: Any, symbols: Sequence[Any] = ()) -> Callable[[Sequence[Any]], Any]:
    """The function that evaluates an expression of symbols at the working precision; NaN if it has no real value.

    Raises Unknown for a function that cannot be evaluated.
    """
    evaluate = Real(elementary(expr), symbols)
    return lambda xs: evaluate(*xs)


class _Measured(Evaluator):
    """An expression as a real function of numbers with measured errors, whose intermediate values are real."""

    def check_result(self, x: Any) -> Any:
        """The result of a step. Raises Undefined for a complex number."""
        if isinstance(x, Gaussian) or isinstance(x, Sample) and any(hasattr(part, "_mpc_") for part in x):
            raise Undefined("no real value")
        return x


def accurate_value(expr: Any, symbols: Sequence[Any]) -> Callable[..., Any]:
    """Like `value`, with enough digits for `right` correct ones (25 by default), by the measured errors; NaN if there is no value."""
    plain = elementary(expr)
    evaluate, measured, arithmetic = Real(plain, symbols), _Measured([plain], symbols), Arithmetic(FIRST, FLOATS)

    def at(xs: Sequence[Any], right: int = 25) -> Any:
        known, digits = context.nan, FIRST
        while all(map(math.isfinite, xs)):
            if digits > MOST:
                return known
            arithmetic.set_digits(digits)
            (found,) = measured.at([Fraction(*map(int, mpmath.libmp.to_rational(context.convert(x)._mpf_))) for x in xs], arithmetic)
            digits *= 2
            if isinstance(found, Undecided):
                continue
            if isinstance(found, ArithmeticError):
                break
            y = arithmetic.sample(found).value
            if not isinstance(found, Sample) or y and arithmetic.error(found) < arithmetic.magnitude(y) - 4 * right:
                return context.convert(y)
            known = context.zero if arithmetic.error(found) < NEGLIGIBLE else context.nan
        with working_precision(FIRST):
            return evaluate(*xs)  # which may be infinite

    return at
