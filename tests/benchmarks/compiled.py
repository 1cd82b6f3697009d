"""Compiled functions: set-up, the chain of 120 ops, Hessians, high orders, a classifier, and the sensitivities of an ODE; NumPy source and C.

Other compilers, beside them: jax.jit and torch.compile for the chain, CasADi for Hessians, and what their set-up takes.
"""

import functools
import os
import statistics
import time

import numpy as np

import symgrad
from symgrad.program.native import find_compiler
from tests.benchmarks.first import ROUNDS, X, Y, chain, eager_step
from tests.benchmarks.hessians import DENSE, make
from tests.benchmarks.higher import composed, point
from tests.benchmarks.products import Classifier
from tests.benchmarks.table import Row, compare, mean_row, optional, spell, torch_one_thread

CONSTANT = ("quadratic-500", "factorization")  # problems whose Hessian does not depend on the point
CHAIN = {(): (0.02, 0.02), (10,): (0.18, 0.02), (1000,): (0.60, 0.20), (100_000,): (1.40, 0.35)}  # the bars of NumPy source and of C
STEPS, WIDTH = 200, 0.02  # of the ODE


BACKENDS = ("numpy", "c")


def beside(work, other, backend, ours, theirs, bar, timing, rtol):
    """The row of a compiled function, which is called once before; without a compiler C has no figure."""
    if backend == "c" and not find_compiler():
        return Row(work, other, "no compiler", "" if bar is None else f"{bar:.2f}")
    if theirs is not None:
        ours()
    return compare(work, other, ours, theirs, bar, timing, rtol)


def setup_seconds(backend, fresh):
    """The median time of the first call of the chain's gradient; with `fresh` each time with other constants, so that no object is on disk."""
    times = []
    for k in range(11):
        factor = 1.0 + (k + 1) * time.time_ns() * 1e-25 if fresh else 1.0
        f = symgrad.compile(lambda x, y, factor=factor: (chain(symgrad, x * factor if fresh else x, y)).sum(), argnums=(0, 1), backend=backend)
        x, y = (symgrad.full((10,), value) for value in (X, Y))
        start = time.perf_counter()
        f.gradient(x, y)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def setup():
    """The set-up of the chain's gradient, of about 400 steps."""
    work, found = f"set-up of the gradient of {6 * ROUNDS} ops", bool(find_compiler())
    yield Row(f"{work}, numpy", "", spell(setup_seconds("numpy", True)), "15 ms")
    yield Row(f"{work}, c, a new function", "", spell(setup_seconds("c", True)) if found else "no compiler", "600 ms")
    setup_seconds("c", False)
    yield Row(f"{work}, c, from disk", "", spell(setup_seconds("c", False)) if found else "no compiler", "5 ms")


def chains(timing):
    """The chain's gradient beside torch's forward and backward pass."""
    torch = torch_one_thread()
    for shape, bars in CHAIN.items():
        x, y = (symgrad.full(shape, value) for value in (X, Y))
        for backend, bar in zip(BACKENDS, bars):
            f = symgrad.compile(lambda x, y: chain(symgrad, x, y).sum(), argnums=(0, 1), backend=backend)
            yield beside(f"{6 * ROUNDS} ops compiled, {backend}, shape {shape}", "torch eager", backend, functools.partial(f.gradient, x, y),
                         torch and eager_step(torch, shape), bar, timing, 1e-8)


def jax_float64():
    """JAX with float64, or None."""
    jax = optional("jax")
    if jax is not None:
        jax.config.update("jax_enable_x64", True)
    return jax


def jitted(jax, function, place):
    """A function compiled by JAX, at a place."""
    compiled = jax.jit(function)
    return lambda: compiled(place).block_until_ready()


def hessians(timing):
    """The eight problems beside jax.jit, whose compilation does not count."""
    jax = jax_float64()
    for backend, bars in zip(BACKENDS, ((0.40, 1.0), (0.25, 0.6))):
        found = []
        for name in DENSE:
            problem = make(name)
            f, x = problem.of(symgrad, symgrad.tensor)
            theirs = None
            if jax is not None:
                g, place = problem.of(jax.numpy, jax.numpy.asarray)
                theirs = jitted(jax, jax.hessian(g), place)
            found.append(beside(f"hessian compiled, {backend}, {name}", "jax.jit", backend,
                                functools.partial(symgrad.compile(f, backend=backend).hessian, x), theirs, None, timing, 1e-7))
            yield found[-1]
        varying = [row for row in found if not row.work.endswith(CONSTANT)]
        yield mean_row(f"hessian compiled, {backend}, geometric mean of the eight", found, bars[0])
        yield mean_row(f"hessian compiled, {backend}, geometric mean of the six that are not constant", varying, bars[1])


def orders(timing):
    """Nested gradients of orders 1 to 6 at a thousand elements, beside jax.jit."""
    jax, x = jax_float64(), point(symgrad, (1000,)).detach()
    for backend, bar in zip(BACKENDS, (2.0, 1.0)):
        for order in range(1, 7):
            theirs = jax and jitted(jax, composed(jax.grad, jax.numpy, order), jax.numpy.asarray(x.numpy()))
            f = symgrad.compile(composed(symgrad.func.grad, symgrad, order), backend=backend)
            yield beside(f"nested grad compiled, {backend}, order {order}, shape (1000,)", "jax.jit", backend, functools.partial(f, x), theirs, bar,
                         timing, 1e-6)


def classifier(timing):
    """The gradient of the classifier, and the product of its Hessian with a direction, beside torch eager."""
    torch, ours = torch_one_thread(), Classifier(symgrad, symgrad.tensor)
    other = Classifier(torch, torch.tensor) if torch else None
    for backend, bars in zip(BACKENDS, ((1.3, 0.95), (1.0, 0.9))):
        f = symgrad.compile(ours.loss, argnums=(0, 1, 2, 3), backend=backend)
        yield beside(f"gradient of a classifier compiled, {backend}", "torch eager", backend, functools.partial(f.gradient, *ours.plain),
                     other and other.gradient, bars[0], timing, 1e-7)
        yield beside(f"hvp of a classifier compiled, {backend}", "torch eager", backend, functools.partial(f.hvp, ours.plain, ours.direction),
                     other and other.double_backward, bars[1], timing, 1e-7)


def oscillator(m, theta):
    """The square of the end point of Van der Pol's oscillator, by a Python loop of Runge-Kutta steps of fourth order."""
    x, v = theta[0], theta[1]

    def rate(x, v):
        return v, theta[2] * (1 - x * x) * v - x

    for _ in range(STEPS):
        a, b = rate(x, v)
        c, d = rate(x + WIDTH / 2 * a, v + WIDTH / 2 * b)
        e, f = rate(x + WIDTH / 2 * c, v + WIDTH / 2 * d)
        g, h = rate(x + WIDTH * e, v + WIDTH * f)
        x, v = x + WIDTH / 6 * (a + 2 * c + 2 * e + g), v + WIDTH / 6 * (b + 2 * d + 2 * f + h)
    return x * x + v * v


def sensitivities(timing):
    """The Hessian of the oscillator's end by start and parameter, beside torch's double backward."""
    torch, place = torch_one_thread(), [1.0, 0.5, 1.3]
    x = symgrad.tensor(place)
    for backend, bar in zip(BACKENDS, (0.05, 0.02)):
        f = symgrad.compile(functools.partial(oscillator, symgrad), backend=backend)
        theirs = torch and functools.partial(torch.autograd.functional.hessian, functools.partial(oscillator, torch),
                                             torch.tensor(place, dtype=torch.float64))
        yield beside(f"second order sensitivity, {STEPS} RK4 steps compiled, {backend}", "torch eager", backend, functools.partial(f.hessian, x),
                     theirs, bar, timing, 1e-7)


def rows(timing):
    """All rows of compiled functions."""
    yield from setup()
    for part in (chains, hessians, orders, classifier, sensitivities):
        yield from part(timing)


LEFT_OUT = "left out"  # of a quick run, for torch compiles half a minute
SLOW = ("quadratic-500", "logistic-10000x100")  # problems for which CasADi's set-up takes a second or, for the first, 45 seconds


def jitted_gradient(shape):
    """The chain's gradient compiled by JAX; None where it is not installed."""
    jax = jax_float64()
    if jax is None:
        return None
    compiled = jax.jit(jax.grad(lambda x, y: chain(jax.numpy, x, y).sum(), (0, 1)))
    x, y = (jax.numpy.full(shape, value) for value in (X, Y))
    return lambda: jax.block_until_ready(compiled(x, y))


def torch_gradient(shape):
    """The chain's gradient compiled by torch; None where it is not installed."""
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    torch = torch_one_thread()
    if torch is None:
        return None
    torch._dynamo.reset()
    compiled = torch.compile(functools.partial(chain, torch), dynamic=False)
    x, y = (torch.full(shape, value, dtype=torch.float64, requires_grad=True) for value in (X, Y))
    ones = torch.ones(shape, dtype=torch.float64)
    return lambda: torch.autograd.grad(compiled(x, y), [x, y], [ones])


def first_call(make_step):
    """The time to make a step and to run it once."""
    start = time.perf_counter()
    step = make_step()
    if step is None:
        return "not installed"
    step()
    return spell(time.perf_counter() - start)


def other_chains(timing):
    """The chain's gradient beside what JAX makes of it."""
    work = f"set-up of the gradient of {6 * ROUNDS} ops"
    yield Row(f"{work}, jax.jit", "", first_call(lambda: jitted_gradient((10,))), "")
    yield Row(f"{work}, torch.compile", "", first_call(lambda: torch_gradient((10,))) if timing.block else LEFT_OUT, "")
    for shape in CHAIN:
        x, y = (symgrad.full(shape, value) for value in (X, Y))
        for backend in BACKENDS:
            f = symgrad.compile(lambda x, y: chain(symgrad, x, y).sum(), argnums=(0, 1), backend=backend)
            theirs = jitted_gradient(shape)
            if theirs:
                theirs()
            yield beside(f"{6 * ROUNDS} ops compiled, {backend}, shape {shape}", "jax.jit", backend, functools.partial(f.gradient, x, y), theirs,
                         None, timing, 1e-8)
            if shape == (10,) and timing.block:
                yield beside(f"{6 * ROUNDS} ops compiled, {backend}, shape {shape}", "torch.compile", backend, functools.partial(f.gradient, x, y),
                             torch_gradient(shape), None, timing, 1e-8)
            elif shape == (10,):
                yield Row(f"{6 * ROUNDS} ops compiled, {backend}, shape {shape}", "torch.compile", LEFT_OUT, "")


class Casadi:
    """CasADi's functions under NumPy's names; a vector is a matrix of one column."""

    def __init__(self, casadi):
        self.casadi, self.exp, self.log, self.tanh = casadi, casadi.exp, casadi.log, casadi.tanh

    def sum(self, x):
        return self.casadi.sum1(self.casadi.sum2(x))

    def matmul(self, a, b):
        if a.shape[1] == 1 and a.shape[0] == b.shape[0]:
            a, b = b.T, a
        return self.casadi.mtimes(a, b)

    def logaddexp(self, a, b):
        return self.casadi.fmax(a, b) + self.casadi.log1p(self.casadi.exp(-self.casadi.fabs(a - b)))


def casadi_hessian(name):
    """The Hessian of a problem in CasADi, in its order of the elements of a matrix, columns first; None where it is not installed."""
    casadi, problem = optional("casadi"), make(name)
    if casadi is None:
        return None
    point = problem.point
    x = casadi.MX.sym("x", *point.shape)
    hessian, _ = casadi.hessian(problem.function(Casadi(casadi), x, *map(casadi.DM, problem.constants)), x)
    compiled = casadi.Function("hessian", [x], [hessian])
    return lambda: compiled(point)


def other_hessians(timing):
    """Hessians beside CasADi's virtual machine, which computes and returns their nonzeros only."""
    for name in DENSE:
        if name in SLOW:
            continue
        theirs = casadi_hessian(name)
        yield Row(f"set-up of the hessian of {name}, CasADi", "", first_call(lambda name=name: casadi_hessian(name)), "")
        order = np.arange(make(name).point.size).reshape(make(name).point.shape).ravel(order="F")
        for backend in BACKENDS:
            f, x = make(name).of(symgrad, symgrad.tensor)
            ours = functools.partial(symgrad.compile(f, backend=backend).hessian, x)
            if theirs is not None:
                size = order.size
                np.testing.assert_allclose(ours().numpy().reshape(size, size)[np.ix_(order, order)], np.array(theirs()), rtol=1e-7, atol=1e-7)
            yield beside(f"hessian compiled, {backend}, {name}", "CasADi", backend, ours, theirs, None, timing, None)


def others(timing):
    """All rows of other compilers."""
    yield from other_chains(timing)
    yield from other_hessians(timing)
