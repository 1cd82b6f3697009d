"""Compiled functions: set-up, the chain of 120 ops, Hessians, high orders, a classifier, and the sensitivities of an ODE; NumPy source and C."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import symgrad
from symgrad.program.backends import has_compiler
from tests.benchmarks.chain import ROUNDS, X, Y, chain, eager_step
from tests.benchmarks.hessians import torch_routes
from tests.benchmarks.higher import composed, nested, point
from tests.benchmarks.problems import DENSE, make
from tests.benchmarks.products import Classifier
from tests.benchmarks.table import Row, Timing, compare, mean_row, optional, spell, torch_one_thread

CONSTANT = ("quadratic-500", "factorization")  # problems whose Hessian does not depend on the point
CHAIN = {(): (0.02, 0.02), (10,): (0.18, 0.02), (1000,): (0.60, 0.20), (100_000,): (1.40, 0.35)}  # the bars of NumPy source and of C
STEPS, WIDTH = 200, 0.02  # of the ODE


def backends() -> tuple[str, ...]:
    """NumPy source, and C where a compiler is found."""
    return ("numpy", "c") if has_compiler() else ("numpy",)


def setup_seconds(backend: str, fresh: bool) -> float:
    """The median time of the first call of the chain's gradient; with `fresh` each time with other constants, so that no object is on disk."""
    times = []
    for k in range(5):
        factor = 1.0 + (k + 1) * time.time_ns() * 1e-25 if fresh else 1.0
        f = symgrad.compile(lambda x, y, factor=factor: (chain(symgrad, x * factor if fresh else x, y)).sum(), argnums=(0, 1), backend=backend)
        x, y = (symgrad.full((10,), value) for value in (X, Y))
        start = time.perf_counter()
        f.gradient(x, y)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def setup() -> Iterator[Row]:
    """The set-up of the chain's gradient, of about 400 steps."""
    work = f"set-up of the gradient of {6 * ROUNDS} ops"
    yield Row(f"{work}, numpy", "", spell(setup_seconds("numpy", True)), "15 ms")
    if "c" in backends():
        yield Row(f"{work}, c, a new function", "", spell(setup_seconds("c", True)), "600 ms")
        setup_seconds("c", False)
        yield Row(f"{work}, c, from disk", "", spell(setup_seconds("c", False)), "5 ms")


def chains(timing: Timing) -> Iterator[Row]:
    """The chain's gradient beside torch's forward and backward pass."""
    torch = torch_one_thread()
    for shape, bars in CHAIN.items():
        x, y = (symgrad.full(shape, value) for value in (X, Y))
        for backend, bar in zip(backends(), bars):
            f = symgrad.compile(lambda x, y: chain(symgrad, x, y).sum(), argnums=(0, 1), backend=backend)
            ours = functools.partial(f.gradient, x, y)
            ours()
            yield compare(f"{6 * ROUNDS} ops compiled, {backend}, shape {shape}", "torch eager", ours, torch and eager_step(torch, shape), bar,
                          timing, 1e-8)


def jitted(jax: Any, problem: Any) -> Callable[[], Any]:
    """JAX's compiled Hessian of a problem."""
    f, x = problem.of(jax.numpy, jax.numpy.asarray)
    hessian = jax.jit(jax.hessian(f))
    return lambda: hessian(x).block_until_ready()


def jax_float64() -> Any:
    """JAX with float64, or None."""
    jax = optional("jax")
    if jax is not None:
        jax.config.update("jax_enable_x64", True)
    return jax


def hessians(timing: Timing) -> Iterator[Row]:
    """The eight problems beside jax.jit, whose compilation does not count."""
    jax, torch = jax_float64(), torch_one_thread()
    for backend, bars in zip(backends(), ((0.40, 1.0), (0.25, 0.6))):
        found: list[Row] = []
        for name in DENSE:
            problem = make(name)
            f, x = problem.of(symgrad, symgrad.tensor)
            compiled = symgrad.compile(f, backend=backend)
            ours = functools.partial(compiled.hessian, x)
            ours()
            if jax is not None:
                found.append(compare(f"hessian compiled, {backend}, {name}", "jax.jit", ours, jitted(jax, problem), None, timing, 1e-7))
            else:
                found.append(compare(f"hessian compiled, {backend}, {name}", "torch, its fastest route", ours,
                                     torch and torch_routes(torch, problem), None, timing, 1e-7))
            yield found[-1]
        varying = [row for row in found if not row.work.endswith(CONSTANT)]
        yield mean_row(f"hessian compiled, {backend}, geometric mean of the eight", found, bars[0])
        yield mean_row(f"hessian compiled, {backend}, geometric mean of the six that are not constant", varying, bars[1])


def orders(timing: Timing) -> Iterator[Row]:
    """Nested gradients of orders 1 to 6 at a thousand elements, beside jax.jit."""
    jax, torch = jax_float64(), torch_one_thread()
    x = point(symgrad, (1000,)).detach()
    for backend, bar in zip(backends(), (2.0, 1.0)):
        for order in range(1, 7):
            f = symgrad.compile(composed(symgrad.func.grad, symgrad, order), backend=backend)
            ours = functools.partial(f, x)
            ours()
            work = f"nested grad compiled, {backend}, order {order}, shape (1000,)"
            if jax is not None:
                theirs, array = jax.jit(composed(jax.grad, jax.numpy, order)), jax.numpy.asarray(x.numpy())
                yield compare(work, "jax.jit", ours, lambda theirs=theirs, array=array: theirs(array).block_until_ready(), bar, timing, 1e-6)
            else:
                yield compare(work, "torch autograd.grad", ours, torch and functools.partial(nested, torch, point(torch, (1000,)), order), None,
                              timing, 1e-6)


def classifier(timing: Timing) -> Iterator[Row]:
    """The gradient of the classifier, and the product of its Hessian with a direction, beside torch eager."""
    torch, ours = torch_one_thread(), Classifier(symgrad, symgrad.tensor)
    other = Classifier(torch, torch.tensor) if torch else None
    for backend, bars in zip(backends(), ((1.3, 0.95), (1.0, 0.9))):
        f = symgrad.compile(ours.loss, argnums=(0, 1, 2, 3), backend=backend)
        gradient, product = functools.partial(f.gradient, *ours.plain), functools.partial(f.hvp, ours.plain, ours.direction)
        gradient(), product()
        yield compare(f"gradient of a classifier compiled, {backend}", "torch eager", gradient, other and other.gradient, bars[0], timing, 1e-7)
        yield compare(f"hvp of a classifier compiled, {backend}", "torch eager", product, other and other.double_backward, bars[1], timing, 1e-7)


def oscillator(m: Any, theta: Any) -> Any:
    """The square of the end point of Van der Pol's oscillator, by a Python loop of Runge-Kutta steps of fourth order."""
    x, v = theta[0], theta[1]

    def rate(x: Any, v: Any) -> Any:
        return v, theta[2] * (1 - x * x) * v - x

    for _ in range(STEPS):
        a, b = rate(x, v)
        c, d = rate(x + WIDTH / 2 * a, v + WIDTH / 2 * b)
        e, f = rate(x + WIDTH / 2 * c, v + WIDTH / 2 * d)
        g, h = rate(x + WIDTH * e, v + WIDTH * f)
        x, v = x + WIDTH / 6 * (a + 2 * c + 2 * e + g), v + WIDTH / 6 * (b + 2 * d + 2 * f + h)
    return x * x + v * v


def sensitivities(timing: Timing) -> Iterator[Row]:
    """The Hessian of the oscillator's end by start and parameter, beside torch's double backward."""
    torch, place = torch_one_thread(), [1.0, 0.5, 1.3]
    x = symgrad.tensor(place)
    for backend, bar in zip(backends(), (0.05, 0.02)):
        f = symgrad.compile(functools.partial(oscillator, symgrad), backend=backend)
        ours = functools.partial(f.hessian, x)
        ours()
        theirs = torch and functools.partial(torch.autograd.functional.hessian, functools.partial(oscillator, torch),
                                             torch.tensor(place, dtype=torch.float64))
        yield compare(f"second order sensitivity, {STEPS} RK4 steps compiled, {backend}", "torch eager", ours, theirs, bar, timing, 1e-7)


def rows(timing: Timing) -> Iterator[Row]:
    """All rows of compiled functions."""
    yield from setup()
    for part in (chains, hessians, orders, classifier, sensitivities):
        yield from part(timing)


