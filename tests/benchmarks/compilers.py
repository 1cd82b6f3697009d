"""Other compilers beside compiled functions: jax.jit and torch.compile for the chain of 120 ops, CasADi for Hessians; and what their set-up takes."""

import functools
import os
import time

import numpy as np

import symgrad
from tests.benchmarks.compiled import BACKENDS, CHAIN, beside, jax_float64
from tests.benchmarks.first import ROUNDS, X, Y, chain
from tests.benchmarks.hessians import DENSE, make
from tests.benchmarks.table import Row, optional, spell, torch_one_thread

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


def chains(timing):
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


def hessians(timing):
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


def rows(timing):
    """All rows of other compilers."""
    yield from chains(timing)
    yield from hessians(timing)
