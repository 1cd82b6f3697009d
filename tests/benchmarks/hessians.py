"""Hessians: dense beside torch's fastest route, and with structure="auto" beside the closed form by hand and beside a gradient.

The problems are written once over a library `xp` with NumPy's names, each with its Hessian by hand in NumPy.
"""

import math
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import symgrad
from tests.benchmarks.table import Row, compare, mean_row, torch_one_thread

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


LARGE, SIZES = 100_000, (25_000, 50_000, 100_000)


def torch_routes(torch, problem):
    """torch's three ways to a Hessian without compilation."""
    f, x = problem.of(torch, torch.from_numpy)
    func = torch.func
    return {"func.jacrev(jacrev)": lambda: func.jacrev(func.jacrev(f))(x), "func.hessian": lambda: func.hessian(f)(x),
            "functional.hessian": lambda: torch.autograd.functional.hessian(f, x, vectorize=True)}


def our_hessian(problem, **options):
    """Our Hessian of a problem as a function without arguments, and the transform with its report."""
    from symgrad.func import hessian

    f, x = problem.of(symgrad, symgrad.tensor)
    transform = hessian(f, **options)
    return lambda: transform(x), transform


def dense(timing):
    """The eight problems, and the geometric mean of the ratios."""
    torch, found = torch_one_thread(), []
    for name in DENSE:
        problem = make(name)
        ours, _ = our_hessian(problem)
        found.append(compare(f"hessian, {name}", "torch, its fastest route", ours, torch and torch_routes(torch, problem), 0.8, timing))
        yield found[-1]
    yield mean_row("hessian, geometric mean of the eight", found, 0.35)


def structured(timing):
    """With structure="auto" beside the closed form in NumPy; the row says what was found and how many products it took."""
    for name in STRUCTURED:
        problem = make(name)
        ours, transform = our_hessian(problem, structure="auto")
        ours()
        report = transform.report
        yield compare(f'hessian, structure="auto", {name}: {report.pattern}, {report.products} products', "closed form in NumPy", ours,
                      hand_hessian(problem), 12.0, timing)


def gradient(x):
    """Our gradient of Rosenbrock's function."""
    (g,) = symgrad.autograd.grad(rosenbrock(symgrad, x), x)
    return g


def large(timing):
    """Rosenbrock's sparse Hessian in a hundred thousand variables: its time in gradients, and its memory by the number of variables."""
    problem = make(f"rosenbrock-{LARGE}")
    x = symgrad.tensor(problem.point, requires_grad=True)
    ours, _ = our_hessian(problem, structure="auto")
    matrix, a, b = ours(), problem.point[:-1], problem.point[1:]
    np.testing.assert_allclose(matrix.diagonal(), np.append(1200.0 * a * a - 400.0 * b + 2.0, 0.0) + np.append(0.0, np.full(LARGE - 1, 200.0)))
    np.testing.assert_allclose(matrix.diagonal(1), -400.0 * a)
    assert matrix.shape == (LARGE, LARGE) and matrix.nnz == 3 * LARGE - 2
    yield compare(f'hessian, structure="auto", rosenbrock-{LARGE}', "our gradient", ours, lambda: gradient(x), 20.0, timing, rtol=None)
    peaks = [peak_memory(n) / n for n in SIZES]
    yield Row(f"memory by variable, the same, n = {SIZES[-1]}", f"n = {SIZES[0]}", f"{peaks[-1] / peaks[0]:.2f}", "1.10",
              f"{peaks[-1]:.0f} bytes", f"{peaks[0]:.0f} bytes")


def peak_memory(n):
    """The most that Rosenbrock's sparse Hessian in n variables holds at once, in bytes."""
    ours, _ = our_hessian(make(f"rosenbrock-{n}"), structure="auto")
    ours()
    tracemalloc.start()
    try:
        ours()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def rows(timing):
    """All rows of Hessians."""
    yield from dense(timing)
    yield from structured(timing)
    yield from large(timing)
