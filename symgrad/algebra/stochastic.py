"""Numbers with measured errors: exact rationals while they are short, otherwise stochastic arithmetic with many digits.

A number is a `Fraction`, a `Gaussian` (a complex number with rational parts) or a `Sample`: a computed number, and the same number computed with
random changes that are much larger than rounding errors. The difference of the two is the error, including cancellation and amplification (J. Vignes,
"A stochastic arithmetic for reliable scientific computation", 1993). If there is no number, an exception is raised: `Undefined` at a pole
and outside a domain, `Undecided` if the error is too large for a decision, so that more digits may help.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from random import Random
from typing import Any, NamedTuple, TypeAlias

import mpmath
import sympy

from symgrad.carriers.digits import Undecided, Undefined

EXACT = -(2**80)  # the exponent of a zero error: below that of any number
LONGEST = 3000  # the most bits of an exact number; a longer one is rounded
LARGEST = 60  # the most bits before the point of the argument of an exponential or a periodic function
NOISE = 24  # the bits by which a random change exceeds the rounding error of one operation


class Gaussian(NamedTuple):
    """A complex number with rational parts and a nonzero imaginary part."""

    real: Fraction
    imag: Fraction


class Sample(NamedTuple):
    """A number of mpmath, and the same number computed with random changes."""

    value: Any
    changed: Any


Exact: TypeAlias = "Fraction | Gaussian"
Number: TypeAlias = "Fraction | Gaussian | Sample"


def gaussian(real: Fraction, imag: Fraction) -> Exact:
    """A complex number, as a `Fraction` if it is real."""
    return Gaussian(real, imag) if imag else real


def _parts(x: Exact) -> tuple[Fraction, Fraction]:
    return (x.real, x.imag) if isinstance(x, Gaussian) else (x, Fraction(0))


def _times(x: Exact, y: Exact) -> Exact:
    (a, b), (c, d) = _parts(x), _parts(y)
    return gaussian(a * c - b * d, a * d + b * c) if b or d else a * c


def _bits(x: Exact) -> int:
    return max(part.numerator.bit_length() + part.denominator.bit_length() for part in _parts(x))


def _root(x: Fraction, n: int) -> Fraction | None:
    """The n-th root of a nonnegative rational number, None if it is irrational."""
    (above, one), (below, other) = (sympy.integer_nthroot(k, n) for k in (x.numerator, x.denominator))
    return Fraction(int(above), int(below)) if one and other else None


class Arithmetic:
    """Arithmetic with measured errors, at a working precision of its own: mpmath's global precision is not changed."""

    def __init__(self, digits: int, largest: int = LARGEST):
        self.context, self.rng, self.largest = mpmath.MPContext(), Random(0), largest
        self.set_digits(digits)

    def set_digits(self, digits: int) -> None:
        """Set the working precision in decimal digits."""
        self.context.dps = digits
        self.bits = self.context.prec

    def magnitude(self, x: Any) -> int:
        """An integer k with |x| < 2**k for a number of mpmath, at most two too large; EXACT for 0."""
        return int(self.context.mag(x)) if x else EXACT

    def error(self, x: Number) -> int:
        """An integer k such that the error is at most 2**k; EXACT for a number without error."""
        return self.magnitude(x.value - x.changed) + 1 if isinstance(x, Sample) else EXACT

    def sample(self, x: Number) -> Sample:
        """Any number as a sample."""
        if isinstance(x, Sample):
            return x
        parts = [self.context.mpf(part.numerator) / part.denominator for part in _parts(x)]
        value = self.context.mpc(*parts) if parts[1] else parts[0]
        short = all(p.denominator & (p.denominator - 1) == 0 and (p.numerator // (p.numerator & -p.numerator or 1)).bit_length() <= self.bits
                    for p in _parts(x))
        return Sample(value, value) if short else self.rounded(value)

    def exact_or_sample(self, x: Exact) -> Number:
        """An exact number, or a sample if it is too long."""
        return x if _bits(x) <= LONGEST else self.sample(x)

    def rounded(self, value: Any, changed: Any = None) -> Sample:
        """A sample of a computed value and of the changed one, which gets a further random change."""
        return Sample(value, self._change(value if changed is None else changed))

    def _change(self, x: Any) -> Any:
        real, imag = (self.context.ldexp(self.rng.randrange(-1, 2, 2) * (self.rng.getrandbits(NOISE) | 1 << NOISE), -self.bits) for _ in "ri")
        return x * (1 + real if isinstance(x, self.context.mpf) else self.context.mpc(1 + real, imag))

    def real(self, x: Number) -> Any:
        """The real part of a real number; raises Undefined for another number."""
        real, imag = self.parts(x)
        if imag != 0 and self.magnitude(self.sample(imag).value) > self.error(imag):
            raise Undefined("not real")
        return real

    def sign(self, x: Number) -> int:
        """The sign of a real number; raises Undecided if 0 is within the error."""
        real = self.real(x)
        if isinstance(real, Sample):
            self.away_from_zero(real)
            real = real.value
        return int(real > 0) - int(real < 0)

    def apart(self, x: Number, y: Number) -> bool:
        """Whether two numbers are certainly different."""
        if not isinstance(x, Sample) and not isinstance(y, Sample):
            return x != y
        difference = self.sum([x, self.product([Fraction(-1), y])])
        return self.magnitude(self.sample(difference).value) > self.error(difference) + 1

    def sum(self, terms: Sequence[Number]) -> Number:
        """The sum of numbers."""
        real = sum((_parts(x)[0] for x in terms if not isinstance(x, Sample)), Fraction(0))
        imag = sum((x.imag for x in terms if isinstance(x, Gaussian)), Fraction(0))
        exact = gaussian(real, imag)
        samples = [x for x in terms if isinstance(x, Sample)]
        return self._combined(samples, exact, 0, operator.add) if samples else self.exact_or_sample(exact)

    def _combined(self, samples: Sequence[Sample], exact: Exact, neutral: int, operation: Callable[[Any, Any], Any]) -> Sample:
        return reduce(lambda x, y: self.rounded(operation(x.value, y.value), operation(x.changed, y.changed)),
                      samples if exact == neutral else [*samples, self.sample(exact)])

    def product(self, factors: Sequence[Number]) -> Number:
        """The product of numbers."""
        exact: Exact = Fraction(1)
        for x in factors:
            exact = exact if isinstance(x, Sample) else _times(exact, x)
        samples = [x for x in factors if isinstance(x, Sample)]
        return self._combined(samples, exact, 1, operator.mul) if samples and exact != 0 else self.exact_or_sample(exact)

    def inverse(self, x: Number) -> Number:
        """1 / x."""
        if not isinstance(x, Sample):
            a, b = _parts(x)
            if x == 0:
                raise Undefined("division by zero")
            return self.exact_or_sample(gaussian(a / (a * a + b * b), -b / (a * a + b * b)))
        self.away_from_zero(x)
        return self.rounded(1 / x.value, 1 / x.changed)

    def away_from_zero(self, x: Sample) -> None:
        """Raise Undecided for a number that may be 0, or that has no correct bit."""
        if self.magnitude(x.value) <= self.error(x) + 2:
            raise Undecided("zero")

    def power(self, base: Number, exponent: Number) -> Number:
        """base ** exponent, the principal value."""
        if isinstance(exponent, Fraction):
            if exponent.denominator == 1:
                return self._whole_power(base, exponent.numerator)
            if isinstance(base, Fraction) and base >= 0:
                root = _root(base, exponent.denominator)
                if root is not None:
                    return self._whole_power(root, exponent.numerator)
            if exponent in (Fraction(1, 2), Fraction(-1, 2)):
                square_root = self.root(base)
                return square_root if exponent > 0 else self.inverse(square_root)
        if base == 0:
            if self.sign(self.parts(exponent)[0]) > 0:
                return Fraction(0)
            raise Undefined("0 to a power")
        return self.exp(self.product([exponent, self.log(base)]))

    def _whole_power(self, base: Number, n: int) -> Number:
        if n < 0:
            return self.inverse(self._whole_power(base, -n))
        if n <= 1:
            return base if n else Fraction(1)
        if not isinstance(base, Sample) and _bits(base) * n <= LONGEST:
            if isinstance(base, Fraction):
                return Fraction(base**n)
            half = self._whole_power(base, n // 2)
            return self.product([half, half, *[base] * (n % 2)])
        base = self.sample(base)
        if (abs(self.magnitude(base.value)) + 1).bit_length() + n.bit_length() > LARGEST and base.value:
            raise Undefined("beyond any number")
        return self.rounded(base.value**n, base.changed**n)

    def root(self, x: Number) -> Number:
        """The principal square root."""
        if isinstance(x, Fraction):
            root = _root(abs(x), 2)
            if root is not None:
                return root if x >= 0 else Gaussian(Fraction(0), root)
        return self._apply(self.context.sqrt, [self.off_branch_cut(x)])

    def off_branch_cut(self, x: Number) -> Sample:
        """A number that is certainly neither 0 nor next to the negative numbers, the branch cut; numbers on the cut are real."""
        x = self.sample(x)
        real, imag = self.parts(x)
        if imag == 0 or self.sample(imag) == (0, 0):
            x = self.sample(real)
        if x == (0, 0):
            raise Undefined("log of zero")
        self.away_from_zero(x)
        if isinstance(x.value, self.context.mpc) and x.value.real < 0 and self.magnitude(x.value.imag) <= self.error(x) + 1:
            raise Undecided("branch cut")
        return x

    def exp(self, x: Number) -> Number:
        """The exponential."""
        return Fraction(1) if x == 0 else self.function(self.context.exp, [x])

    def log(self, x: Number) -> Number:
        """The principal logarithm."""
        return Fraction(0) if x == 1 else self._apply(self.context.log, [self.off_branch_cut(x)])

    def parts(self, x: Number) -> tuple[Number, Number]:
        """The real and the imaginary part."""
        if not isinstance(x, Sample):
            return _parts(x)
        if any(isinstance(v, self.context.mpc) for v in x):
            return Sample(x.value.real, x.changed.real), Sample(x.value.imag, x.changed.imag)
        return x, Fraction(0)

    def function(self, f: Callable[..., Any], xs: Sequence[Number], second: Callable[..., Any] | None = None) -> Number:
        """A function of mpmath at numbers with few bits before the point; `second` computes it in another way.

        Raises Undefined if it has no value or an argument is too large, Undecided if no digit after the point is certain.
        """
        samples = [self.sample(x) for x in xs]
        if any(self.magnitude(x.value) > self.largest for x in samples):
            raise Undefined("beyond any number")
        if any(self.error(x) > -2 for x in samples):
            raise Undecided("size")
        return self._apply(f, samples, second)

    def _apply(self, f: Callable[..., Any], xs: Sequence[Sample], second: Callable[..., Any] | None = None) -> Sample:
        value = self._evaluate(f, [x.value for x in xs])
        if second is None and all(x.value == x.changed for x in xs):
            return self.rounded(value)
        try:
            return self.rounded(value, self._evaluate(second or f, [x.changed for x in xs]))
        except Undefined:
            raise Undecided("the border of the domain") from None

    def _evaluate(self, f: Callable[..., Any], values: Sequence[Any]) -> Any:
        try:
            out = f(*values)
        except (ArithmeticError, ValueError, TypeError, NotImplementedError, MemoryError) as error:
            raise Undefined(str(error)) from None
        except mpmath.libmp.NoConvergence as error:
            raise Undecided(str(error)) from None
        if not isinstance(out, (self.context.mpf, self.context.mpc)):
            out = self.context.convert(out)
        if not self.context.isfinite(out):
            raise Undefined("not finite")
        if isinstance(out, self.context.mpc) and out.imag == 0 and not any(isinstance(x, self.context.mpc) for x in values):
            out = out.real
        return out
