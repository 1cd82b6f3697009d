"""The symbolic side: a check of a real function, formulas of long graphs, identities settled, and code made from formulas."""

import statistics
import time

import numpy as np

import symgrad
from tests.benchmarks.problems import make
from tests.benchmarks.table import Row, compare, spell

LONG = 10_000  # nodes


def median_seconds(step, timing):
    """The median time of one call, of a few: each takes seconds."""
    times = []
    for _ in range(1 if timing.block == 0 else 3):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def checked(timing):
    """Griewank's Helmholtz energy with ten components."""
    function, point = make("helmholtz-10").of(symgrad, symgrad.tensor)
    size = 3 if timing.block == 0 else 10
    if size == 3:
        function, point = make("helmholtz-3").of(symgrad, symgrad.tensor)

    def step():
        assert symgrad.check(function, point.tolist(), order=2, progress=False).ok

    found = median_seconds(step, timing)
    return Row("check of the Helmholtz energy, n = 10, order 2", "seconds", f"{found:.2f}", "5.00", spell(found))


def gradient_of_a_chain(nodes):
    """The gradient of a chain of so many operations, y ← x sin y."""
    x = symgrad.tensor(0.3, requires_grad=True, symbol="x")
    y = x
    for _ in range(nodes // 2):
        y = symgrad.sin(y) * x
    (gradient,) = symgrad.autograd.grad(y, x)
    return gradient


def let_form(timing):
    """The let-form of the gradient of a long chain, and of one twice as long."""
    nodes = LONG // 50 if timing.block == 0 else LONG
    gradient_of_a_chain(10).assignments()
    once, twice = (median_seconds(gradient_of_a_chain(n).assignments, timing) for n in (nodes, 2 * nodes))
    yield Row("let-form of the gradient of 10,000 nodes", "seconds", f"{once:.2f}", "2.00", spell(once))
    yield Row("the same by node, 20,000 nodes", "10,000 nodes", f"{twice / once / 2:.2f}", "1.30", spell(twice), spell(once))


def identities(timing):
    """The time in which 95 of 100 statements of the corpus are settled."""
    from tests.support.identities import GENERAL

    times = []
    for case in [*GENERAL[0], *GENERAL[1]][::20 if timing.block == 0 else 1]:
        start = time.perf_counter()
        symgrad.identical(case.a, case.b, case.assumptions)
        times.append(time.perf_counter() - start)
    found = float(np.quantile(times, 0.95))
    return Row("identical, 95% of the corpus within", "seconds", f"{found:.2f}", "0.20", spell(found))


def generated(timing):
    """Code made by `op_from_sympy` beside NumPy by hand, at 100,000 elements."""
    from tests.support.formulas_by_hand import generated_against_hand

    for name, (ours, by_hand) in generated_against_hand().items():
        yield compare(f"op_from_sympy, {name}, 100,000 elements", "NumPy by hand", ours, by_hand, 1.5, timing)


def rows(timing):
    """All rows of the symbolic side."""
    yield checked(timing)
    yield from let_form(timing)
    yield identities(timing)
    yield from generated(timing)
