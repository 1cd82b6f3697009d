"""Hessians: dense beside torch's fastest route, and with structure="auto" beside the closed form by hand and beside a gradient."""

import tracemalloc

import numpy as np

import symgrad
from tests.benchmarks.problems import DENSE, STRUCTURED, hand_hessian, make, rosenbrock
from tests.benchmarks.table import Row, compare, mean_row, torch_one_thread

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
