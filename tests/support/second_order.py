"""Numbers of many digits with their first and second derivatives: true values of functions of vectors, written as formulas."""


import mpmath
from mpmath import mpf


class Jet:
    """A number with its gradient and the upper triangle of its Hessian by n variables."""

    __slots__ = ("first", "second", "value")

    def __init__(self, value, first, second):
        self.value, self.first, self.second = value, first, second

    def of(self, value, slope, curvature):
        """A function of this number that has there a value, a slope and a second derivative."""
        return Jet(value, [slope * a for a in self.first],
                   {(i, j): slope * a + curvature * self.first[i] * self.first[j] for (i, j), a in self.second.items()})

    def _lift(self, other):
        return other if isinstance(other, Jet) else Jet(mpf(other), [mpf(0)] * len(self.first), dict.fromkeys(self.second, mpf(0)))

    def __add__(self, other):
        other = self._lift(other)
        return Jet(self.value + other.value, [a + b for a, b in zip(self.first, other.first)],
                   {key: a + other.second[key] for key, a in self.second.items()})

    def __mul__(self, other):
        other = self._lift(other)
        a, b = self, other
        return Jet(a.value * b.value, [a.value * db + b.value * da for da, db in zip(a.first, b.first)],
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
        x, p = self.value, mpf(p)
        return self.of(x**p, p * x ** (p - 1) if p else mpf(0), p * (p - 1) * x ** (p - 2) if p * (p - 1) else mpf(0))

    def __abs__(self):
        return self * (1 if self.value > 0 else -1 if self.value < 0 else 0)

    def __gt__(self, other):
        return self.value > (other.value if isinstance(other, Jet) else other)

    def __lt__(self, other):
        return self.value < (other.value if isinstance(other, Jet) else other)

    def sqrt(self):
        return self ** (mpf(1) / 2)

    def exp(self):
        y = mpmath.exp(self.value)
        return self.of(y, y, y)

    def log(self):
        x = self.value
        return self.of(mpmath.log(x), 1 / x, -1 / (x * x))

    def lgamma(self):
        return self.of(*(mpmath.loggamma(self.value), mpmath.psi(0, self.value), mpmath.psi(1, self.value)))


def jets(numbers):
    """The variables at a point."""
    n = len(numbers)
    return [Jet(mpf(x), [mpf(int(i == k)) for k in range(n)], {(k, m): mpf(0) for k in range(n) for m in range(k, n)})
            for i, x in enumerate(numbers)]
