"""The real value of an expression at a point, with many digits.

>>> import sympy
>>> x = sympy.Symbol("x")
>>> float(accurate_value(1 - sympy.cos(x), [x])([1e-9]))
5e-19
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import mpmath
import sympy

from symgrad.algebra.catalogue import has_number
from symgrad.algebra.evaluating import STEPS, Evaluator, Unknown
from symgrad.algebra.ladder import rungs
from symgrad.algebra.stable_functions import elementary
from symgrad.algebra.stochastic import Arithmetic, Gaussian, Sample
from symgrad.carriers.digits import Undecided, Undefined, context, cosh, exponential, sech, sinh, with_bounded_arguments, working_precision

__all__ = ["Real", "Unknown", "accurate_value", "value"]

FIRST, MOST, SPECIAL = 65, 8000, 2000  # the digits with which an accurate value is tried first, and the most, also of special functions
FLOATS = 1100  # the most bits before the point of the arguments, which are those of floats and their multiples
SMALLEST = -1330  # the exponent of 1e-400, which is smaller than any product of two floats
LARGE = 10**7  # a power with a larger exponent has no correct digits


class _Numbers:
    """Arithmetic of many-digit numbers without measured errors, for the steps of an `Evaluator`."""

    context = context

    @property
    def bits(self) -> int:
        """The working precision."""
        return int(context.prec)

    @staticmethod
    def exact_or_sample(x: Any) -> Any:
        """A rational number."""
        return context.mpc(*map(_Numbers.exact_or_sample, x)) if isinstance(x, Gaussian) else context.mpf(x.numerator) / x.denominator

    @staticmethod
    def rounded(x: Any) -> Any:
        """A number that SymPy computed."""
        return context.convert(x)

    @staticmethod
    def function(f: Callable[..., Any], xs: Sequence[Any], second: Any = None) -> Any:
        """A function of mpmath at numbers."""
        try:
            return context.convert(f(*xs))
        except (NotImplementedError, mpmath.libmp.NoConvergence) as error:
            raise Undefined(str(error)) from None


NUMBERS = _Numbers()


def _power(a: Any, b: Any) -> Any:
    if a == 0 and b < 0 or abs(b) > LARGE:
        return context.nan
    return a**b


def _heaviside(x: Any, at_zero: Any = 0.5) -> Any:
    return context.mpf(at_zero if x == 0 else x > 0)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    sympy.Add: lambda *xs: context.fsum(xs), sympy.Mul: lambda *xs: context.fprod(xs), sympy.Pow: _power, sympy.log: context.log,
    sympy.exp: exponential, sympy.cosh: cosh, sympy.sinh: sinh, sympy.sech: sech,
    **{getattr(sympy, name): with_bounded_arguments(getattr(context, name)) for name in "sin cos tan tanh atan asinh".split()},
    **{getattr(sympy, name): getattr(context, name) for name in "asin acos acosh atanh atan2 erf erfc re im arg floor sign".split()},
    sympy.ceiling: context.ceil, sympy.conjugate: context.conj, sympy.Abs: abs, sympy.Max: max,
    sympy.Min: min, sympy.Heaviside: _heaviside, sympy.DiracDelta: lambda x, order=0: context.zero if x else context.nan,
    sympy.Eq: operator.eq, sympy.Ne: operator.ne, sympy.Lt: operator.lt, sympy.Le: operator.le, sympy.Gt: operator.gt, sympy.Ge: operator.ge,
}


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, *xs: function(*xs)


class Real(Evaluator):
    """An expression as a real function of numbers, at the working precision of `symgrad.carriers.digits`.

    All intermediate values must be real, as in code for floats, unless `complex` is true.
    """

    table: ClassVar[dict[Any, Callable[..., Any]]] = STEPS | {kind: _plain(f) for kind, f in FUNCTIONS.items()}

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
    """Like `value`, with enough digits for `right` correct ones (25 by default); NaN if there is no value.

    The digits are doubled until the measured error is small enough, or the value is known to be below every product of floats: then it is 0.
    """
    plain = elementary(expr)
    evaluate, arithmetic, beyond = _Measured([plain], symbols), Arithmetic(FIRST, FLOATS), Real(plain, symbols)
    most = SPECIAL if any(map(has_number, plain.atoms(sympy.Function))) else MOST

    def at(xs: Sequence[Any], right: int = 25) -> Any:
        if not all(map(context.isfinite, map(context.convert, xs))):
            return context.nan
        point = [Fraction(*map(int, mpmath.libmp.to_rational(context.convert(x)._mpf_))) for x in xs]
        for digits in rungs(FIRST, most):
            arithmetic.set_digits(digits)
            (found,) = evaluate.at(point, arithmetic)
            if isinstance(found, Undecided):
                continue
            if isinstance(found, ArithmeticError):  # an infinite value, or a convention, as for the angle of 0
                with working_precision(FIRST):
                    return beyond(*xs)
            y = arithmetic.sample(found).value
            size, error = arithmetic.magnitude(y), arithmetic.error(found)
            if not isinstance(found, Sample) or error < size - 4 * right:
                return context.convert(y)
            if max(size, error) < SMALLEST:
                return context.zero
        return context.nan

    return at
