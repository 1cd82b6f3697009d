"""Numbers with a bound on their error: exact rationals while they are short, then many-digit floats with an error bound.

A number is a `Fraction`, a `Gaussian` (a complex number with rational parts) or a `Ball`: an mpmath number and a power of two that bounds
its distance from the true value. Where there is no number an exception is raised: `Undefined` at a pole and outside a domain,
`Undecided` where the error is too large to decide, so that more digits may help.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import mpmath

__all__ = ["EXACT", "Arithmetic", "Ball", "Exact", "Gaussian", "Number", "Undecided", "Undefined", "fraction"]

EXACT = -(2**80)  # the exponent of a zero error: below that of any number
LONGEST = 3000  # bits of an exact number; a longer one becomes a ball
LARGEST = 60  # bits before the point of the argument of an exponential or a periodic function


class Undefined(ArithmeticError):
    """There is no value: at a pole, outside the domain, or for a number too large to store."""


class Undecided(ArithmeticError):
    """The digits do not suffice: a jump or a branch cut lies within the error, or all digits have cancelled."""


class Gaussian(NamedTuple):
    """A complex number with rational parts, the imaginary one not 0."""

    real: Fraction
    imag: Fraction


class Ball(NamedTuple):
    """A number whose distance from the true one is at most 2**`error`."""

    value: Any
    error: int


Exact: TypeAlias = "Fraction | Gaussian"
Number: TypeAlias = "Fraction | Gaussian | Ball"


def fraction(x: Any) -> Exact:
    """A rational number, real or complex, as an exact one.

    >>> fraction(0.5), fraction(2j)
    (Fraction(1, 2), Gaussian(real=Fraction(0, 1), imag=Fraction(2, 1)))
    """
    return _gaussian(Fraction(x.real), Fraction(x.imag)) if isinstance(x, complex) else Fraction(x)


def _gaussian(real: Fraction, imag: Fraction) -> Exact:
    return Gaussian(real, imag) if imag else real


def _parts(x: Exact) -> tuple[Fraction, Fraction]:
    return (x.real, x.imag) if isinstance(x, Gaussian) else (x, Fraction(0))


def _times(x: Exact, y: Exact) -> Exact:
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x * y
    (a, b), (c, d) = _parts(x), _parts(y)
    return _gaussian(a * c - b * d, a * d + b * c)


def _inverse(x: Exact) -> Exact:
    a, b = _parts(x)
    size = a * a + b * b
    if not size:
        raise Undefined("division by zero")
    return _gaussian(a / size, -b / size)


def _bits(x: Exact) -> int:
    return max(part.numerator.bit_length() + part.denominator.bit_length() for part in _parts(x))


def _root(x: Fraction, n: int) -> Fraction | None:
    """The n-th root of a rational that is not negative, None where it is not rational."""
    found = []
    for k in (x.numerator, x.denominator):
        r = math.isqrt(k) if n == 2 else round(k ** (1 / n)) if k < 2**900 else 0
        if r**n != k:
            return None
        found.append(r)
    return Fraction(*found)


class Arithmetic:
    """Arithmetic with errors, at a working precision of its own: mpmath's global precision is not changed.

    >>> two = Arithmetic(50)
    >>> root = two.power(Fraction(2), Fraction(1, 2))
    >>> square = two.product([root, root])
    >>> two.apart(square, Fraction(2)), two.apart(square, Fraction(2) + Fraction(1, 10**40))
    (False, True)
    """

    def __init__(self, digits: int):
        self.context = mpmath.MPContext()
        self.set_digits(digits)

    def set_digits(self, digits: int) -> None:
        """Set the working precision in decimal digits."""
        self.context.dps = digits
        self.balls: dict[Fraction, Ball] = {}
        self.bits = self.context.prec

    # ------------------------------------------------------------------ conversions

    def magnitude(self, x: Any) -> int:
        """The k with |x| < 2**k, at most two too large; EXACT for 0."""
        if isinstance(x, self.context.mpf):
            _, mantissa, exponent, bits = x._mpf_
            if not mantissa and exponent:
                raise Undefined("not finite")
            return exponent + bits if mantissa else EXACT
        return max(self.magnitude(x.real), self.magnitude(x.imag)) + 1

    def size(self, x: Number) -> int:
        """The k with |x| < 2**k, the error included."""
        x = self.ball(x)
        return max(self.magnitude(x.value), x.error) + 1

    def ball(self, x: Number) -> Ball:
        """Any number as a ball."""
        if isinstance(x, Ball):
            return x
        if isinstance(x, Gaussian):
            real, imag = self.ball(x.real), self.ball(x.imag)
            return Ball(self.context.mpc(real.value, imag.value), max(real.error, imag.error) + 1 if max(real.error, imag.error) > EXACT else EXACT)
        found = self.balls.get(x)
        if found is not None:
            return found
        value = self.context.mpf(x.numerator) / x.denominator
        whole = x.denominator & (x.denominator - 1) == 0 and x.numerator.bit_length() <= self.bits
        if len(self.balls) > 50:
            self.balls.clear()
        found = self.balls[x] = Ball(value, EXACT if whole else self.magnitude(value) - self.bits + 1)
        return found

    def value(self, x: Number) -> Any:
        """The nearest mpmath number."""
        return self.ball(x).value

    def kept(self, x: Exact) -> Number:
        """An exact number, or a ball if it is too long."""
        return x if _bits(x) <= LONGEST else self.ball(x)

    def rounded(self, value: Any, error: int = EXACT, loss: int = 6) -> Ball:
        """A computed value: real if its imaginary part is exactly 0, with a bound for the rounding of a function that loses few bits."""
        return Ball(value, max(error, self.magnitude(value) - self.bits + loss) + 1)

    def real(self, x: Number) -> Fraction | Ball:
        """A number that must be real; raises Undefined for one that is not."""
        if isinstance(x, Gaussian):
            raise Undefined("not real")
        if isinstance(x, Ball) and isinstance(x.value, self.context.mpc):
            if self.magnitude(x.value.imag) > x.error:
                raise Undefined("not real")
            return Ball(x.value.real, x.error)
        return x

    def sign(self, x: Number) -> int:
        """The sign of a real number; raises Undecided if 0 is within the error."""
        x = self.real(x)
        if isinstance(x, Fraction):
            return (x > 0) - (x < 0)
        if self.magnitude(x.value) <= x.error + 1:
            raise Undecided("sign")
        return 1 if x.value > 0 else -1

    def apart(self, x: Number, y: Number) -> bool:
        """Whether two numbers are certainly different."""
        if not isinstance(x, Ball) and not isinstance(y, Ball):
            return x != y
        difference = self.sum([x, self.product([Fraction(-1), y])])
        return isinstance(difference, Ball) and self.magnitude(difference.value) > difference.error + 1

    # ------------------------------------------------------------------ arithmetic

    def sum(self, terms: Sequence[Number]) -> Number:
        """The sum of numbers."""
        exact: Exact = Fraction(0)
        balls: list[Ball] = []
        for x in terms:
            if isinstance(x, Ball):
                balls.append(x)
            elif isinstance(x, Fraction) and isinstance(exact, Fraction):
                exact += x
            else:
                (a, b), (c, d) = _parts(exact), _parts(x)
                exact = _gaussian(a + c, b + d)
        if not balls:
            return self.kept(exact)
        if exact != 0:
            balls.append(self.ball(exact))
        value, error = balls[0]
        for x in balls[1:]:
            value = value + x.value
            error = max(error, x.error, self.magnitude(value) - self.bits)
        return Ball(value, error + len(balls).bit_length() + 1)

    def product(self, factors: Sequence[Number]) -> Number:
        """The product of numbers."""
        exact: Exact = Fraction(1)
        balls: list[Ball] = []
        for x in factors:
            if isinstance(x, Ball):
                balls.append(x)
            else:
                exact = _times(exact, x)
        if exact == 0 or not balls:
            return self.kept(exact)
        if exact != 1:
            balls.append(self.ball(exact))
        return reduce(self._times, balls)

    def _times(self, x: Ball, y: Ball) -> Ball:
        value = x.value * y.value
        error = max(self.magnitude(x.value) + y.error, self.magnitude(y.value) + x.error, x.error + y.error, self.magnitude(value) - self.bits)
        return Ball(value, error + 3)

    def inverse(self, x: Number) -> Number:
        """1 / x."""
        if not isinstance(x, Ball):
            return self.kept(_inverse(x))
        self.away_from_zero(x)
        value = 1 / x.value
        return self.rounded(value, 2 * self.magnitude(value) + x.error + 3, 2)

    def away_from_zero(self, x: Ball) -> None:
        """Raise Undecided for a ball that may be 0, or has no correct bit."""
        if self.magnitude(x.value) <= x.error + 2:
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
        if not isinstance(base, Ball):
            if _bits(base) * n <= LONGEST:
                if isinstance(base, Fraction):
                    return Fraction(base**n)
                out: Exact = base
                for _ in range(n - 1):
                    out = _times(out, base)
                return out
            base = self.ball(base)
        value = base.value**n
        largest = max(self.magnitude(base.value), base.error) + 1
        if largest.bit_length() + n.bit_length() > LARGEST:
            raise Undefined("beyond any number")
        error = (n - 1) * largest + base.error if base.error > EXACT else EXACT
        return self.rounded(value, error + n.bit_length() + 1, n.bit_length() + 4)

    def root(self, x: Number) -> Number:
        """The principal square root."""
        if isinstance(x, Fraction):
            root = _root(abs(x), 2)
            if root is not None:
                return root if x >= 0 else Gaussian(Fraction(0), root)
        x = self.cut(x)
        value = self.context.sqrt(x.value)
        return self.rounded(value, x.error - self.magnitude(x.value) + self.magnitude(value) + 3, 2)

    def cut(self, x: Number) -> Ball:
        """A ball that does not lie over 0 nor over the negative numbers; one exactly on them is real."""
        x = self.ball(x)
        if isinstance(x.value, self.context.mpc) and x.value.imag == 0 and x.error <= EXACT:
            x = Ball(x.value.real, x.error)
        if x.value == 0 and x.error <= EXACT:
            raise Undefined("log of zero")
        self.away_from_zero(x)
        if isinstance(x.value, self.context.mpc) and x.value.real < 0 and self.magnitude(x.value.imag) <= x.error + 1:
            raise Undecided("branch cut")
        return x

    def exp(self, x: Number) -> Number:
        """The exponential."""
        if x == 0:
            return Fraction(1)
        x = self.bounded(x)
        value = self.context.exp(x.value)
        return self.rounded(value, self.magnitude(value) + x.error + 2)

    def log(self, x: Number) -> Number:
        """The principal logarithm."""
        if x == 1:
            return Fraction(0)
        x = self.cut(x)
        return self.rounded(self.context.log(x.value), x.error - self.magnitude(x.value) + 4)

    def bounded(self, x: Number) -> Ball:
        """A ball with few bits before the point; raises Undefined if it is too large, Undecided if no digit after it is certain."""
        x = self.ball(x)
        if self.magnitude(x.value) > LARGEST:
            raise Undefined("beyond any number")
        if x.error > -2:
            raise Undecided("size")
        return x

    def parts(self, x: Number) -> tuple[Number, Number]:
        """The real and the imaginary part."""
        if not isinstance(x, Ball):
            return _parts(x)
        if isinstance(x.value, self.context.mpc):
            return Ball(x.value.real, x.error), Ball(x.value.imag, x.error)
        return x, Fraction(0)

    def function(self, f: Callable[..., Any], xs: Sequence[Number], slope: int | None = None, loss: int = 12) -> Number:
        """A function of mpmath at numbers: `slope` bounds the logarithm of its derivative (real arguments); without it the derivative is measured."""
        balls = [self.bounded(x) for x in xs]
        values = [x.value for x in balls]
        value = self._called(f, values)
        error = EXACT
        for i, x in enumerate(balls):
            if x.error <= EXACT:
                continue
            if slope is not None and not isinstance(x.value, self.context.mpc):
                error = max(error, slope + x.error)
                continue
            step = max(x.error, self.magnitude(x.value) - self.bits // 2)
            moved = self._called(f, [*values[:i], x.value + self.context.ldexp(1, step), *values[i + 1:]])
            error = max(error, self.magnitude(moved - value) - step + x.error + 3)
        return self.rounded(value, error, loss)

    def _called(self, f: Callable[..., Any], values: Sequence[Any]) -> Any:
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
