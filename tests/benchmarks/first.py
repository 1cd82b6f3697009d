"""First derivatives, op by op: chains of 120 ops beside torch, HIPS autograd and NumPy; the time of the import, and the memory of a graph.

Each of the 20 rounds of a chain is x * y, + y, sin, negation, exp, tanh. Every `*_step(shape)` returns a function without arguments that goes
forward and backward once, with ones as the cotangent, from leaves made beforehand.
"""

import numpy as np

import symgrad
from tests.benchmarks.table import Row, bytes_per_node, compare, import_difference, optional, spell, torch_one_thread

ROUNDS, X, Y = 20, 0.7, 0.3
OPS = 6 * ROUNDS


def chain(m, x, y, rounds=ROUNDS):
    """The chain in a library `m` with NumPy's names."""
    for _ in range(rounds):
        x = m.tanh(m.exp(-m.sin(x * y + y)))
    return x


def eager_step(m, shape):
    """With a library that has torch's names: symgrad, or torch itself."""
    x, y = (m.full(shape, value, dtype=m.float64, requires_grad=True) for value in (X, Y))
    ones = m.ones(shape, dtype=m.float64)

    def step():
        x.grad = y.grad = None
        chain(m, x, y).backward(ones)
        return x.grad, y.grad

    return step


def grad_step(m, shape):
    """The same by `autograd.grad`, which returns the gradients."""
    x, y = (m.full(shape, value, dtype=m.float64, requires_grad=True) for value in (X, Y))
    ones = m.ones(shape, dtype=m.float64)
    return lambda: m.autograd.grad(chain(m, x, y), [x, y], [ones])


def autograd_step(autograd, shape):
    """With HIPS autograd, whose `make_vjp` is the forward pass and gives the backward pass."""
    import autograd.numpy as anp

    both = autograd.make_vjp(lambda both: chain(anp, both[0], both[1]))
    x, y = (np.full(shape, value) if shape else value for value in (X, Y))
    ones = np.ones(shape) if shape else 1.0
    return lambda: tuple(both((x, y))[0](ones))


def numpy_step(shape):
    """By hand in NumPy, as a person writes it: every array that the backward pass reads kept, gradients added up in place."""
    x0, y, ones = (np.full(shape, value)[()] for value in (X, Y, 1.0))

    def step():
        x, kept = x0, []
        for _ in range(ROUNDS):
            b = x * y + y
            e = np.exp(-np.sin(b))
            t = np.tanh(e)
            kept.append((x, b, e, t))
            x = t
        g, y_grad = ones, np.zeros(shape)
        for x, b, e, t in reversed(kept):
            g = g * (1 - t * t)
            g = -(g * e)
            g = g * np.cos(b)
            y_grad += g
            y_grad += g * x
            g = g * y
        return g, y_grad

    return step


def in_place(m, x, c):
    """120 operations in place, on memory of their own."""
    y = x * c
    for _ in range(ROUNDS):
        y.mul_(c)
        y.add_(x)
        y.sin_()
        y.sub_(0.25)
        y.cos_()
        y.neg_()
    return y


def views(m, x, c):
    """120 views, each of the one before."""
    y = x
    for _ in range(ROUNDS):
        y = y.view(2, 5).t().unsqueeze(0)[0].t().view(10)
    return y


def writes(m, x, c):
    """60 writes through views, each of which gives the whole a new node."""
    y = x * c
    for _ in range(ROUNDS):
        y[2:7].mul_(0.5)
        y[0] = 1.0
        y[3:6].add_(c[3:6])
    return y


def mutating_step(m, work):
    """One of the three above at 10 elements, forward and backward, with a library that has torch's names."""
    x, c, ones = m.full((10,), X, dtype=m.float64, requires_grad=True), m.full((10,), Y, dtype=m.float64), m.ones(10, dtype=m.float64)

    def step():
        x.grad = None
        work(m, x, c).backward(ones)
        return (x.grad,)

    return step


def timed(shape, name, theirs, bar, timing, ours=None, by=""):
    """The chain at one shape beside another library, whose step is None where it is not installed; `ours` in place of symgrad's."""
    return compare(f"{OPS} ops{by}, shape {shape}", name, ours or eager_step(symgrad, shape), theirs, bar, timing, 1e-11)


def rows(timing):
    """Every line, measured one after the other."""
    quick = timing.block == 0
    torch, autograd = torch_one_thread(), optional("autograd")
    for shape, bar, by_grad in (((), 0.30, 0.33), ((10,), 0.47, 0.50), ((1000,), 0.92, 0.95)):
        yield timed(shape, "torch eager", torch and eager_step(torch, shape), bar, timing)
        yield timed(shape, "torch eager", torch and grad_step(torch, shape), by_grad, timing, grad_step(symgrad, shape), " by autograd.grad")
        yield timed(shape, "torch eager", torch and eager_step(torch, shape), None, timing, numpy_step(shape), ", NumPy by hand")  # with no graph
    yield timed((100_000,), "NumPy by hand", numpy_step((100_000,)), 1.15, timing)
    yield timed((), "HIPS autograd", autograd and autograd_step(autograd, ()), 0.20, timing)
    for name, work, limit in (("120 ops in place", in_place, 0.60), ("120 views", views, 1.0), ("60 writes through views", writes, 3.0)):
        yield compare(f"{name}, shape (10,)", "torch eager", mutating_step(symgrad, work), torch and mutating_step(torch, work), limit, timing, 1e-12)
    extra, ours, theirs = import_difference(1 if quick else 11)
    yield Row("import symgrad", "import numpy", f"{extra:+.3f} s", "+0.15 s", spell(ours), spell(theirs))
    for shape in ((), (1000,)):
        held = bytes_per_node(symgrad, chain, shape, 5 if quick else 200)
        yield Row(f"memory of a recorded graph, shape {shape}", "the data of its arrays", f"{held:+.0f} bytes/node", "+700 bytes/node", "", "")
