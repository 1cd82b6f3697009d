"""The real value of an expression at a point, with many digits.

>>> import sympy
>>> x = sympy.Symbol("x")
>>> float(accurate_value(1 - sympy.cos(x), [x])([1e-9]))
5e-19
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import mpmath
import sympy

from symgrad.algebra.catalogue import has_number
from symgrad.algebra.evaluating import STEPS, Evaluator, Unknown
from symgrad.algebra.ladder import rungs, settle
from symgrad.algebra.stable_functions import DEFINITIONS, elementary
from symgrad.algebra.stochastic import Arithmetic, Gaussian, Sample
from symgrad.carriers.digits import Undecided, Undefined, context, cosh, exponential, sech, sinh, with_bounded_arguments, working_precision

__all__ = ["Real", "Unknown", "accurate_value", "value"]

MEASURED = 65  # the digits with which special functions are tried with measured errors
FLOATS = 1100  # the most bits before the point of the arguments, which are those of floats and their multiples
LEADING = 3  # the bits of numbers of digits: constants such as those of the gamma function are kept for each precision, so there are few
LARGE = 10**7  # a power with a larger exponent has no correct digits
GROWING = (sympy.exp, sympy.sinh, sympy.cosh, sympy.tanh, sympy.sech, sympy.csch, sympy.coth, *DEFINITIONS)


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


def _loses_digits(e: Any) -> bool:
    """Whether an expression may lose as many digits as its `GROWING` functions have: not if they are factors of it, with other arguments."""
    if not e.has(*GROWING):
        return False
    e = sympy.factor_terms(e) if e.is_Add else e
    if e.is_Mul or e.is_Pow and e.exp.is_Number:
        return any(map(_loses_digits, e.args))
    return not isinstance(e, GROWING) or any(arg.has(*GROWING) for arg in e.args)


def _is_exact(e: Any) -> bool:
    """Whether an expression is an argument, a number, or a whole multiple of an argument, which are not rounded."""
    return e.is_Atom or e.is_Mul and len(e.args) == 2 and e.args[0].is_Integer and e.args[1].is_Symbol


def _spans_sizes(e: Any) -> bool:
    """Whether numbers as far apart as the arguments may meet within a term: not in a product of sums and of functions of exact numbers."""
    if _is_exact(e):
        return False
    if e.is_Mul or e.is_Pow and e.exp.is_Number:
        return any(map(_spans_sizes, e.args))
    return not ((e.is_Add or type(e) in FUNCTIONS or has_number(e)) and all(map(_is_exact, e.args)))


class _Measured(Evaluator):
    """An expression as a real function of numbers with measured errors, whose intermediate values are real."""

    def __init__(self, expression: Any, symbols: Sequence[Any]):
        super().__init__([expression], symbols)
        self.arithmetic = Arithmetic(MEASURED, FLOATS)

    def check_result(self, x: Any) -> Any:
        """The result of a step. Raises Undefined for a complex number."""
        if isinstance(x, Gaussian) or isinstance(x, Sample) and any(hasattr(part, "_mpc_") for part in x):
            raise Undefined("no real value")
        return x

    def __call__(self, xs: Sequence[Any], right: int, most: int) -> Any:
        """The value at numbers with `right` certain digits, computed with at most so many; None if it is not found."""
        point = [_fraction(x) for x in xs]
        for digits in rungs(MEASURED, most):
            self.arithmetic.set_digits(digits)
            (found,) = self.at(point, self.arithmetic)
            if isinstance(found, ArithmeticError):
                if isinstance(found, Undecided):
                    continue
                return None
            y = self.arithmetic.sample(found).value
            if not isinstance(found, Sample) or y and self.arithmetic.error(found) < self.arithmetic.magnitude(y) - 4 * right:
                return context.convert(y)
        return None


def _fraction(x: Any) -> Fraction:
    """The exact value of a float or of a number of mpmath."""
    return Fraction(*map(int, mpmath.libmp.to_rational(context.convert(x)._mpf_)))


def accurate_value(expr: Any, symbols: Sequence[Any]) -> Callable[..., Any]:
    """Like `value`, with enough digits for `right` correct ones (25 by default); NaN if there is no value.

    Special functions are slow with the many digits that the sizes of the arguments may need; where measured errors show that few digits suffice,
    these are the value.
    """
    plain = elementary(expr)
    evaluate, grows, spans = Real(plain, symbols), _loses_digits(expr), any(map(_spans_sizes, sympy.Add.make_args(plain)))
    measured = _Measured(plain, symbols) if any(map(has_number, plain.atoms(sympy.Function))) else None

    def at(xs: Sequence[Any], right: int = 25) -> Any:
        sizes = [abs(math.log10(abs(x))) for x in xs if spans and x and abs(x) < math.inf]
        largest = max((abs(float(x)) for x in xs), default=0.0) if grows else 0.0
        first = right + 25 + int(6 * max(sizes, default=0) + min(largest, 2000.0))  # plus the powers of ten that the computation may span
        most = max(8000, 4 * first)
        if measured is not None:
            found = measured(xs, right, first) if first > MEASURED and all(map(math.isfinite, xs)) else None
            if found is not None:
                return found
            shift = first.bit_length() - LEADING
            first, most = -(-first >> shift) << shift, max(2000, 4 * first)

        def computed(digits: int, places: Sequence[int]) -> list[Any]:
            with working_precision(digits):
                return [evaluate(*xs)]

        (found,) = settle(computed, 1, rungs(first, most), right)
        return context.nan if found is None else context.convert(found)

    return at
