"""Dangel et al.'s collapsed Taylor mode: a Laplacian from 1 + D + 1 vectors at every node, where Taylor mode has 1 + 2D.

A probe in the middle of a network, an op that returns what it is given, counts the vectors that pass it on the way to the Laplacian.
"""

import numpy as np

import symgrad
from symgrad import func
from symgrad.carriers.batched import Batched, new_level
from symgrad.carriers.dual import Dual
from symgrad.engine.tensor import wrap

WIDTH = 20
passed = []  # how many vectors each call of the probe was given


def vectors(x):
    """The vectors in a value: all members of a batch, and a dual value with its tangent."""
    return vectors(x.value) + vectors(x.tangent) if type(x) is Dual else len(x.data) if type(x) is Batched else 1


def seen(x):
    """The same value, counted."""
    passed.append(vectors(x))
    return x


probe = symgrad.linear("probe", lambda xp, x: seen(x), lambda xp, g, shape: seen(g))


def network(x, a, b, c):
    """f(x) = c · tanh(B tanh(Ax))."""
    return symgrad.dot(c, symgrad.tanh(symgrad.mv(b, probe(symgrad.tanh(symgrad.mv(a, x))))))


def by_hand(x, a, b, c):
    """∆f in NumPy, from tanh' = 1 - tanh² and tanh'' = -2 tanh tanh'."""
    y = np.tanh(a @ x)
    z = np.tanh(b @ y)
    dy, dz = 1.0 - y**2, 1.0 - z**2
    return c @ (-2.0 * z * dz * np.sum((b * dy @ a) ** 2, 1) + dz * (b @ (-2.0 * y * dy * np.sum(a**2, 1))))


def one_by_one(f, x):
    """The diagonal of the Hessian from D products with it."""
    return sum(func.hvp(f, x, e)[d].item() for d, e in enumerate(np.eye(len(x))))


def nested(f, x):
    """The trace of the Hessian, all of it at once."""
    return func.hessian(f)(x).numpy().trace()


def taylor(f, x):
    """The second coefficients along all directions, propagated together with one value, and added up in the end."""
    directions = Batched(np.eye(len(x)), new_level())
    _, (_, second) = func.jet(f, (x,), ([wrap(directions), np.zeros(len(x))],))
    return second._value.data.sum()


def collapsed(f, x):
    """The sum of the second coefficients, propagated in their place."""
    return func.laplacian(f)(x).item()


METHODS = {one_by_one: lambda d: 4 * d, nested: lambda d: 2 + 2 * d, taylor: lambda d: 1 + 2 * d, collapsed: lambda d: 1 + d + 1}


def problem(d):
    """A point of dimension d, and the weights of a network there."""
    rng = np.random.default_rng(d)
    return (rng.normal(size=d), rng.normal(size=(WIDTH, d)) / np.sqrt(d), rng.normal(size=(WIDTH, WIDTH)) / np.sqrt(WIDTH),
            rng.normal(size=WIDTH))


def measure(method, d):
    """The vectors that pass the probe, and the relative error of the Laplacian."""
    x, *weights = problem(d)
    passed.clear()
    return method(lambda x: network(x, *weights), x) / by_hand(x, *weights) - 1.0, sum(passed)


def main():
    """Print the vectors that pass the probe as a table, and assert them and the Laplacians."""
    print("| D | nested, one by one | nested, at once | Taylor | collapsed | collapsed / Taylor |")
    for d in (1, 3, 10, 50):
        row = []
        for method, expected in METHODS.items():
            error, count = measure(method, d)
            assert abs(error) < 1e-13
            assert count == expected(d)
            row.append(count)
        print(f"| {d} | {' | '.join(map(str, row))} | {row[3] / row[2]:.2f} |")
    print("| any | 4D | 2 + 2D | 1 + 2D | 1 + D + 1 | (2 + D) / (1 + 2D) |")


if __name__ == "__main__":
    main()
