"""Siskind and Pearlmutter's perturbation confusion: derivatives inside derivatives, in every nesting of the modes of `symgrad.func`.

Dual numbers with one ε for all derivatives are run beside them, to show the wrong answers they give.
"""

import itertools
import math
from dataclasses import dataclass

import symgrad
from symgrad import func

MODES = {
    "grad": func.grad,
    "vjp": lambda f: lambda x: func.vjp(f, x)[1](1.0)[0],
    "jacrev": func.jacrev,
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (1.0,))[1],
    "linearize": lambda f: lambda x: func.linearize(f, x)[1](1.0),
    "jacfwd": func.jacfwd,
}


@dataclass
class Confused:
    """A dual number x + x'ε, with the same ε for every derivative."""

    value: float
    slope: float = 0.0

    def __add__(self, other):
        other = dual(other)
        return Confused(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other):
        other = dual(other)
        return Confused(self.value * other.value, self.slope * other.value + self.value * other.slope)

    def exp(self):
        """exp(x + x'ε) = exp(x) + exp(x) x'ε."""
        return Confused(math.exp(self.value), math.exp(self.value) * self.slope)


def dual(x):
    """A number as a dual number without ε."""
    return x if isinstance(x, Confused) else Confused(x)


def confused(f):
    """The derivative that those give: the coefficient of ε in f(x + ε)."""
    return lambda x: dual(f(dual(x) + Confused(0.0, 1.0))).slope


# Each example takes the derivatives it nests, outermost first. `number` makes what they are taken at.


def added(d, e, number):
    """d/dx [x · d/dy (x + y) at y = 1] at x = 1: the inner derivative is 1, so that x is left, whose derivative is 1."""
    return d(lambda x: x * e(lambda y: x + y)(number(1.0)))(number(1.0))


def multiplied(d, e, number):
    """d/dx [x · d/dy (x · y) at y = 2] at x = 1: the inner derivative is x, so that x² is left, whose derivative is 2."""
    return d(lambda x: x * e(lambda y: x * y)(number(2.0)))(number(1.0))


def thrice(d, e, f, number):
    """d/dx [x · d/dy (y · d/dz (x + y + z))], all at 1: 1."""
    return d(lambda x: x * e(lambda y: y * f(lambda z: x + y + z)(number(1.0)))(number(1.0)))(number(1.0))


def shifted(d, e, number):
    """D(Dh)(0) for h = exp, where (Df)(x) is the derivative of f(x + u) by u at 0: 1."""
    def derivative(by, f):
        return lambda x: by(lambda u: f(u + x))(number(0.0))
    return derivative(d, derivative(e, lambda x: x.exp()))(number(0.0))


EXAMPLES = [
    ("d/dx [x d/dy (x + y)] at x = y = 1", added, 2, 1.0, 2.0),
    ("d/dx [x d/dy (x y)] at x = 1, y = 2", multiplied, 2, 2.0, 3.0),
    ("d/dx [x d/dy (y d/dz (x + y + z))] at x = y = z = 1", thrice, 3, 1.0, 3.0),
    ("D(D exp)(0), where Df(x) = d/du f(x + u) at u = 0", shifted, 2, 1.0, 0.0),
]


def main():
    """Print each example's answers in a table, and assert them in every nesting of the modes."""
    print("| example | true | one ε for all | nestings of modes | symgrad in all of them |")
    for formula, example, depth, true, wrong in EXAMPLES:
        assert example(*[confused] * depth, float) == wrong
        nestings = list(itertools.product(MODES, repeat=depth))
        found = {example(*(MODES[mode] for mode in nesting), symgrad.tensor).item() for nesting in nestings}
        assert found == {true}
        print(f"| {formula} | {true:.0f} | {wrong:.0f} | {len(nestings)} | {found.pop():.0f} |")


if __name__ == "__main__":
    main()
