"""The problems whose second derivatives are timed, each written once over a library `xp` with NumPy's names, with its Hessian by hand in NumPy."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["DENSE", "STRUCTURED", "Problem", "hand_hessian", "make"]

DENSE = ("rosenbrock-10", "rosenbrock-100", "logistic-1000x50", "logistic-10000x100", "quadratic-500", "factorization", "helmholtz-50", "mlp")
STRUCTURED = ("rosenbrock-100", "quadratic-500", "factorization", "logistic-1000x50", "logistic-10000x100")


@dataclass(frozen=True)
class Problem:
    """A scalar function `function(xp, x, *constants)` and the point where its Hessian in x is wanted."""

    name: str
    function: Callable[..., Any]
    point: np.ndarray
    constants: tuple[np.ndarray, ...] = ()

    def of(self, xp, array):
        """The function of x alone and the point in a library whose arrays `array` makes, the constants made beforehand."""
        constants = tuple(array(c) for c in self.constants)
        function = self.function
        return lambda x: function(xp, x, *constants), array(self.point)


def rosenbrock(xp, x):
    return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def logistic(xp, w, features, labels):
    z = xp.matmul(features, w)
    return xp.sum(xp.logaddexp(0.0 * z, z) - labels * z)


def quadratic(xp, x, matrix):
    return xp.matmul(x, xp.matmul(matrix, x))


def factorization(xp, u, v, target):
    return xp.sum((target - xp.matmul(u, v.T)) ** 2)


ROOT, GAS = math.sqrt(2.0), 8.3145 * 300.0


def helmholtz(xp, x, matrix, b):
    bx = xp.matmul(b, x)
    ideal = GAS * xp.sum(x * xp.log(x / (1.0 - bx)))
    mix = xp.matmul(x, xp.matmul(matrix, x))
    return ideal - mix / (math.sqrt(8.0) * bx) * xp.log((1.0 + (1.0 + ROOT) * bx) / (1.0 + (1.0 - ROOT) * bx))


def mlp(xp, x, w1, b1, w2, b2, w3, b3):
    h = xp.tanh(xp.matmul(x, w1) + b1)
    h = xp.tanh(xp.matmul(h, w2) + b2)
    return xp.sum(xp.matmul(h, w3) + b3)


def weights(sizes=(10, 20, 20, 1), seed=3):
    """The matrices and biases of a network, one after the other."""
    rng = np.random.default_rng(seed)
    out = []
    for rows, columns in zip(sizes, sizes[1:]):
        out += [rng.normal(size=(rows, columns)) / np.sqrt(rows), rng.normal(size=columns) * 0.1]
    return tuple(out)


def make(name):
    """The problem of a name such as "logistic-1000x50"; KeyError for one that is unknown."""
    rng = np.random.default_rng(1)
    kind, _, size = name.partition("-")
    if kind == "rosenbrock":
        return Problem(name, rosenbrock, rng.uniform(0.5, 1.5, int(size)))
    if kind == "logistic":
        m, d = map(int, size.split("x"))
        features = rng.normal(size=(m, d))
        return Problem(name, logistic, rng.normal(size=d) * 0.1, (features, (rng.random(m) < 0.5) * 1.0))
    if kind == "quadratic":
        n = int(size)
        return Problem(name, quadratic, rng.normal(size=n), (rng.normal(size=(n, n)),))
    if kind == "factorization":
        return Problem(name, factorization, rng.normal(size=(50, 5)), (rng.normal(size=(40, 5)), rng.normal(size=(50, 40))))
    if kind == "helmholtz":
        n = int(size)
        root = rng.uniform(0.0, 1.0, (n, n))
        return Problem(name, helmholtz, rng.uniform(0.5, 1.5, n) / n, (root + root.T, rng.uniform(0.1, 0.5, n)))
    if kind == "mlp":
        return Problem(name, mlp, rng.normal(size=10), weights())
    raise KeyError(name)


# The Hessians in plain NumPy: what a perfect symbolic engine would run.


def _rosenbrock(x):
    n = x.size
    h = np.zeros((n, n))
    a, b, flat = x[:-1], x[1:], h.ravel()
    diagonal = flat[:: n + 1]
    diagonal[:-1] = 1200.0 * a * a - 400.0 * b + 2.0
    diagonal[1:] += 200.0
    off = -400.0 * a
    flat[1 :: n + 1] = off
    flat[n :: n + 1] = off
    return h


def _logistic(w, features, labels):
    s = 1.0 / (1.0 + np.exp(-(features @ w)))
    return features.T @ ((s * (1.0 - s))[:, None] * features)


def _quadratic(x, matrix):
    return matrix + matrix.T


def _factorization(u, v, target):
    rows, columns = u.shape
    h = np.zeros((rows, columns, rows, columns))
    i = np.arange(rows)
    h[i, :, i, :] = 2.0 * (v.T @ v)
    return h


def _helmholtz(x, matrix, b):
    """With s = b'x, q = x'Ax and r(s) = log((1 + (1 + √2)s) / (1 + (1 - √2)s)) / (√8 s), the energy is GAS Σ xᵢ log(xᵢ / (1 - s)) - q r(s)."""
    s, total, ax = b @ x, x.sum(), matrix @ x
    p, m = 1.0 + ROOT, 1.0 - ROOT
    above, below = 1.0 + p * s, 1.0 + m * s
    log = math.log(above / below)
    first = p / above - m / below
    second = -((p / above) ** 2) + (m / below) ** 2
    r1 = (first / s - log / s**2) / math.sqrt(8.0)
    r2 = (second / s - 2.0 * first / s**2 + 2.0 * log / s**3) / math.sqrt(8.0)
    h = np.outer(b, b * (GAS * total / (1.0 - s) ** 2 - (x @ ax) * r2))
    cross = np.outer(b, GAS / (1.0 - s) - 2.0 * r1 * ax)
    h += cross + cross.T - 2.0 * log / (math.sqrt(8.0) * s) * matrix
    h.ravel()[:: x.size + 1] += GAS / x
    return h


def _mlp(x, w1, b1, w2, b2, w3, b3):
    h1 = np.tanh(x @ w1 + b1)
    h2 = np.tanh(h1 @ w2 + b2)
    d1, d2 = 1.0 - h1 * h1, 1.0 - h2 * h2
    z2 = (w1 * d1) @ w2  # by x, as is w1 for the first layer
    c2 = w3[:, 0] * (-2.0 * h2 * d2)
    c1 = (w2 @ (w3[:, 0] * d2)) * (-2.0 * h1 * d1)
    return (z2 * c2) @ z2.T + (w1 * c1) @ w1.T


HESSIANS = {"rosenbrock": _rosenbrock, "logistic": _logistic, "quadratic": _quadratic, "factorization": _factorization, "helmholtz": _helmholtz,
            "mlp": _mlp}


def hand_hessian(problem):
    """A function without arguments that computes the Hessian of a problem at its point, from the closed form."""
    closed = HESSIANS[problem.name.partition("-")[0]]
    return lambda: closed(problem.point, *problem.constants)
