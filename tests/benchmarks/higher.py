"""Derivatives of high order of exp(sin x tanh x²): nested gradients, and all orders at once by Taylor coefficients; and a Laplacian by those."""

import functools
import math

import numpy as np

import symgrad
from tests.benchmarks import fields
from tests.benchmarks.table import compare, torch_one_thread

ORDERS, SHAPES = range(1, 7), ((), (1000,))


def function(m, x):
    """exp(sin x tanh x²) with a library that has torch's names."""
    return m.exp(m.sin(x) * m.tanh(x**2))


def nested(m, x, order):
    """The derivative of an order, each the gradient of the sum of the one before; nothing is recorded for one more."""
    y = function(m, x)
    for k in range(1, order + 1):
        (y,) = m.autograd.grad(y.sum(), x, create_graph=k < order)
    return y


def by_hand(x, order):
    """The same in NumPy as a person writes it: the Taylor coefficients of every function of the formula, up to an order, one after the other."""
    def product(a, b, k):
        return sum(a[i] * b[k - i] for i in range(k + 1))

    s, c, u = [np.sin(x)], [np.cos(x)], (x * x, 2 * x, 1.0)
    t = [np.tanh(u[0])]
    d, p = [1 - t[0] * t[0]], [s[0] * t[0]]
    e = [np.exp(p[0])]
    for k in range(1, order + 1):
        s.append(c[k - 1] / k)
        c.append(-s[k - 1] / k)
        t.append(sum(j * u[j] * d[k - j] for j in (1, 2) if j <= k) / k)
        d.append(-product(t, t, k))
        p.append(product(s, t, k))
        e.append(sum(j * p[j] * e[k - j] for j in range(1, k + 1)) / k)
    return e[order] * math.factorial(order)


def composed(grad, m, order):
    """The same as a function, by a library's transform of functions."""
    def above(f):
        return grad(lambda x: f(x).sum())

    f = functools.partial(function, m)
    for _ in range(order):
        f = above(f)
    return f


def point(m, shape):
    """Where: 0.7, or a thousand places on both sides of 0."""
    places = np.random.default_rng(0).uniform(-2, 2, shape).tolist() if shape else 0.7
    return m.tensor(places, dtype=m.float64, requires_grad=True)


def rows(timing):
    """Gradients of gradients of orders 1 to 6 at both shapes: by `autograd.grad` with `create_graph`, by hand, and by composed transforms."""
    torch = torch_one_thread()
    for shape, bar in zip(SHAPES, (0.60, 1.10)):
        for order in ORDERS:
            theirs = torch and functools.partial(nested, torch, point(torch, shape), order)
            ours, array = functools.partial(nested, symgrad, point(symgrad, shape), order), point(symgrad, shape).detach()
            yield compare(f"autograd.grad, create_graph, order {order}, shape {shape}", "torch autograd.grad", ours, theirs, bar, timing)
            if order in (1, ORDERS[-1]):
                hand = functools.partial(by_hand, array.numpy()[()], order)
                yield compare(f"Taylor coefficients, NumPy by hand, order {order}, shape {shape}", "torch autograd.grad", hand, theirs, None, timing)
            ours = functools.partial(composed(symgrad.func.grad, symgrad, order), array)
            yield compare(f"nested grad, order {order}, shape {shape}", "torch autograd.grad", ours, theirs, 0.5, timing)


ORDER, BARS = 6, {(): 0.03, (1000,): 0.08}


def our_laplacian():
    """The Laplacian of the network at every point, by one forward pass."""
    from symgrad.func import calculus

    w = [symgrad.tensor(a) for a in fields.weights()]
    points = symgrad.tensor(fields.points())
    transform = calculus.laplacian(lambda z: fields.network(symgrad, z, w)[:, 0], dim=-1)
    return lambda: transform(points)


def our_jet(shape):
    """The derivatives of the first orders at a point, of which the last is compared."""
    from symgrad.func import taylor

    x = point(symgrad, shape).detach()
    one, zero = symgrad.ones_like(x), symgrad.zeros_like(x)
    series = [one] + [zero] * (ORDER - 1)
    return lambda: taylor.jet(lambda z: function(symgrad, z), (x,), (series,))[1][-1]


def jets(timing):
    """The Laplacian beside torch's fastest route, and the jet beside torch's nested gradients."""
    torch = torch_one_thread()
    yield compare("Laplacian, 10-20-20-1, 100 points", "torch, its fastest route", our_laplacian(), torch and fields.laplacian_routes(torch), 0.15,
                  timing)
    for shape, bar in BARS.items():
        theirs = torch and functools.partial(nested, torch, point(torch, shape), ORDER)
        yield compare(f"jet, order {ORDER}, shape {shape}", "torch autograd.grad, nested", our_jet(shape), theirs, bar, timing)
