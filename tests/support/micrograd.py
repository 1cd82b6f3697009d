"""A scalar model of differentiation, as naive as it can be: the oracle of the random programs.

A `Scalar` carries its value, its gradient and its Hessian with respect to the inputs, as plain lists of floats, moved forward by
the chain rule alone. It shares no code, no rule and no formula with the library.
"""

import math


class Scalar:
    """A float with its first and second derivatives by n inputs."""

    def __init__(self, value, gradient, hessian):
        self.value, self.gradient, self.hessian = value, gradient, hessian

    @staticmethod
    def inputs(values):
        """The inputs themselves: input i has the i-th unit vector for its gradient."""
        n = len(values)
        return [Scalar(v, [float(j == i) for j in range(n)], [[0.0] * n for _ in range(n)]) for i, v in enumerate(values)]

    def constant(self, value):
        """A number that depends on no input."""
        n = len(self.gradient)
        return Scalar(value, [0.0] * n, [[0.0] * n for _ in range(n)])

    def through(self, f, f1, f2):
        """f(self), from the value and the first two derivatives of f there."""
        g, h, n = self.gradient, self.hessian, range(len(self.gradient))
        return Scalar(f, [f1 * g[i] for i in n], [[f1 * h[i][j] + f2 * g[i] * g[j] for j in n] for i in n])

    def __add__(self, other):
        n = range(len(self.gradient))
        return Scalar(self.value + other.value, [self.gradient[i] + other.gradient[i] for i in n],
                      [[self.hessian[i][j] + other.hessian[i][j] for j in n] for i in n])

    def __mul__(self, other):
        a, b, n = self, other, range(len(self.gradient))
        return Scalar(a.value * b.value, [a.gradient[i] * b.value + a.value * b.gradient[i] for i in n],
                      [[a.hessian[i][j] * b.value + a.gradient[i] * b.gradient[j] + a.gradient[j] * b.gradient[i] + a.value * b.hessian[i][j]
                        for j in n] for i in n])

    def __neg__(self):
        return self.through(-self.value, -1.0, 0.0)

    def __sub__(self, other):
        return self + -other

    def __truediv__(self, other):
        v = other.value
        return self * other.through(1 / v, -1 / v**2, 2 / v**3)

    def power(self, n):
        """The n-th power for a whole number n of at least 2."""
        return self.through(self.value**n, n * self.value ** (n - 1), n * (n - 1) * self.value ** (n - 2))

    def exp(self):
        y = math.exp(self.value)
        return self.through(y, y, y)

    def log(self):
        return self.through(math.log(self.value), 1 / self.value, -1 / self.value**2)

    def sin(self):
        return self.through(math.sin(self.value), math.cos(self.value), -math.sin(self.value))

    def cos(self):
        return self.through(math.cos(self.value), -math.sin(self.value), -math.cos(self.value))

    def tanh(self):
        y = math.tanh(self.value)
        return self.through(y, 1 - y * y, -2 * y * (1 - y * y))

    def sqrt(self):
        y = math.sqrt(self.value)
        return self.through(y, 0.5 / y, -0.25 / y**3)

    def sigmoid(self):
        y = 1 / (1 + math.exp(-self.value))
        return self.through(y, y * (1 - y), y * (1 - y) * (1 - 2 * y))

    def atan(self):
        d = 1 + self.value**2
        return self.through(math.atan(self.value), 1 / d, -2 * self.value / d**2)

    def abs(self):
        return self.through(abs(self.value), math.copysign(1.0, self.value) if self.value else 0.0, 0.0)

    def relu(self):
        return self.through(max(self.value, 0.0), float(self.value > 0), 0.0)

    def maximum(self, other):
        """The larger; a tie is shared equally."""
        if self.value == other.value:
            return (self + other) * self.constant(0.5)
        return self if self.value > other.value else other
