"""Numbers with their first and second derivatives, moved forward by the chain rule alone: the truth of functions of vectors and of random programs.

They share no code, no rule and no formula with the library. A `Jet` has many digits, a `Scalar` is a float.
"""

import math

import mpmath
from mpmath import mpf


class Jet:
    """A number with its gradient and the upper triangle of its Hessian by n variables."""

    __slots__ = ("first", "second", "value")
    number = mpf

    def __init__(self, value, first, second):
        self.value, self.first, self.second = value, first, second

    @classmethod
    def inputs(cls, numbers):
        """The variables at a point: the i-th has the i-th unit vector for its gradient."""
        n = len(numbers)
        return [cls(cls.number(x), [cls.number(int(i == k)) for k in range(n)], {(k, m): cls.number(0) for k in range(n) for m in range(k, n)})
                for i, x in enumerate(numbers)]

    def of(self, value, slope, curvature):
        """A function of this number that has there a value, a slope and a second derivative."""
        return type(self)(value, [slope * a for a in self.first],
                          {(i, j): slope * a + curvature * self.first[i] * self.first[j] for (i, j), a in self.second.items()})

    def constant(self, value):
        """A number that depends on no variable."""
        zero = self.number(0)
        return type(self)(self.number(value), [zero] * len(self.first), dict.fromkeys(self.second, zero))

    def _lift(self, other):
        return other if isinstance(other, Jet) else self.constant(other)

    def __add__(self, other):
        other = self._lift(other)
        return type(self)(self.value + other.value, [a + b for a, b in zip(self.first, other.first)],
                          {key: a + other.second[key] for key, a in self.second.items()})

    def __mul__(self, other):
        other = self._lift(other)
        a, b = self, other
        return type(self)(a.value * b.value, [a.value * db + b.value * da for da, db in zip(a.first, b.first)],
                          {(i, j): a.value * b.second[i, j] + b.value * a.second[i, j] + a.first[i] * b.first[j] + a.first[j] * b.first[i]
                           for i, j in a.second})

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -self._lift(other)

    def __rsub__(self, other):
        return -self + other

    def __truediv__(self, other):
        return self * self._lift(other) ** -1

    def __rtruediv__(self, other):
        return self**-1 * other

    def __pow__(self, p):
        x, p = self.value, self.number(p)
        return self.of(x**p, p * x ** (p - 1) if p else p, p * (p - 1) * x ** (p - 2) if p * (p - 1) else self.number(0))

    def __abs__(self):
        return self * (1 if self.value > 0 else -1 if self.value < 0 else 0)

    def __gt__(self, other):
        return self.value > (other.value if isinstance(other, Jet) else other)

    def __lt__(self, other):
        return self.value < (other.value if isinstance(other, Jet) else other)

    def sqrt(self):
        return self ** (self.number(1) / 2)

    def exp(self):
        y = mpmath.exp(self.value)
        return self.of(y, y, y)

    def log(self):
        x = self.value
        return self.of(mpmath.log(x), 1 / x, -1 / (x * x))

    def lgamma(self):
        return self.of(*(mpmath.loggamma(self.value), mpmath.psi(0, self.value), mpmath.psi(1, self.value)))


jets = Jet.inputs


class Scalar(Jet):
    """A float with its gradient and its Hessian."""

    __slots__ = ()
    number = float

    @property
    def gradient(self):
        return self.first

    @property
    def hessian(self):
        n = range(len(self.first))
        return [[self.second[min(i, j), max(i, j)] for j in n] for i in n]

    def exp(self):
        y = math.exp(self.value)
        return self.of(y, y, y)

    def log(self):
        return self.of(math.log(self.value), 1 / self.value, -1 / self.value**2)

    def sin(self):
        return self.of(math.sin(self.value), math.cos(self.value), -math.sin(self.value))

    def cos(self):
        return self.of(math.cos(self.value), -math.sin(self.value), -math.cos(self.value))

    def tanh(self):
        y = math.tanh(self.value)
        return self.of(y, 1 - y * y, -2 * y * (1 - y * y))

    def sigmoid(self):
        y = 1 / (1 + math.exp(-self.value))
        return self.of(y, y * (1 - y), y * (1 - y) * (1 - 2 * y))

    def atan(self):
        d = 1 + self.value**2
        return self.of(math.atan(self.value), 1 / d, -2 * self.value / d**2)

    def relu(self):
        return self * (self.value > 0)

    def maximum(self, other):
        """The larger; a tie is shared equally."""
        if self.value == other.value:
            return (self + other) * 0.5
        return self if self.value > other.value else other
