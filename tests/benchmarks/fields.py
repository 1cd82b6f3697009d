"""Differential operators on small tanh networks: the loss of a physics-informed network with its weight gradient, and the Laplacian of a batch."""


import numpy as np

import symgrad
from tests.benchmarks.hessians import weights
from tests.benchmarks.table import compare, torch_one_thread

BATCH = 100


def network(m, x, w):
    """Two hidden tanh layers, with a library that has torch's names."""
    h = m.tanh(m.matmul(x, w[0]) + w[1])
    h = m.tanh(m.matmul(h, w[2]) + w[3])
    return m.matmul(h, w[4]) + w[5]


# The Poisson problem u'' = -π² sin(πx): mean (u'' + π² sin(πx))² at 100 points, and its gradient. The last bias has no part in u''.


def poisson(array):
    """Points, weights and source."""
    x = np.random.default_rng(0).uniform(-1, 1, (BATCH, 1))
    return array(x), [array(w) for w in weights((1, 20, 20, 1))], array(np.pi**2 * np.sin(np.pi * x))


def poisson_by_grad(m, array):
    """By gradients of gradients."""
    x, w, source = poisson(lambda a: array(a).requires_grad_())
    source = source.detach()

    def step():
        u = network(m, x, w)
        (u_x,) = m.autograd.grad(u.sum(), x, create_graph=True)
        (u_xx,) = m.autograd.grad(u_x.sum(), x, create_graph=True)
        loss = ((u_xx + source) ** 2).mean()
        return loss, *m.autograd.grad(loss, w[:5])

    return step


def poisson_by_jvp(m, jvp, array):
    """By tangents of tangents, and one gradient."""
    x, w, source = poisson(array)
    w = [each.requires_grad_() for each in w]
    ones = array(np.ones((BATCH, 1)))

    def step():
        def u_x(x):
            return jvp(lambda z: network(m, z, w), (x,), (ones,))[1]

        loss = ((jvp(u_x, (x,), (ones,))[1] + source) ** 2).mean()
        return loss, *m.autograd.grad(loss, w[:5])

    return step


def poisson_by_jet(m):
    """By the second Taylor coefficient along the line, and one gradient."""
    x, w, source = poisson(m.tensor)
    w = [each.requires_grad_() for each in w]
    line = m.ones((BATCH, 1)), m.zeros((BATCH, 1))

    def step():
        _, (_, u_xx) = m.func.jet(lambda z: network(m, z, w), (x,), (line,))
        loss = ((u_xx + source) ** 2).mean()
        return loss, *m.autograd.grad(loss, w[:5])

    return step


def poisson_by_vmap(torch):
    """By torch.func alone: a second derivative at each point, mapped over the points."""
    x, w, source = poisson(torch.from_numpy)
    grad, vmap = torch.func.grad, torch.func.vmap

    def loss(w):
        u_xx = vmap(grad(grad(lambda z: network(torch, z[None], w)[0])))(x[:, 0])
        return ((u_xx[:, None] + source) ** 2).mean()

    both = torch.func.grad_and_value(loss)

    def step():
        gradient, value = both(w)
        return value, *gradient[:5]

    return step


# The Laplacian of a 10-20-20-1 network at each of 100 points


def laplacian_routes(torch):
    """Every way torch offers to the Laplacian of a batch, none through a loop where it can be mapped."""
    func, places, units = torch.func, torch.from_numpy(points()), torch.eye(10, dtype=torch.float64)[:, None, :].expand(10, BATCH, 10)
    w = [torch.from_numpy(a) for a in weights()]

    def one(z):
        return network(torch, z, w)[0]

    def values(z):
        return network(torch, z, w)[:, 0]

    gradient = func.grad(lambda z: network(torch, z, w).sum())  # of all points at once, for they are independent

    def trace(hessian):
        return func.vmap(lambda z: torch.trace(hessian(z)))(places)

    def forward_over_reverse():
        return torch.einsum("ibi->b", func.vmap(lambda v: func.jvp(gradient, (places,), (v,))[1])(units))

    def reverse_over_reverse():
        return torch.einsum("ibi->b", func.vmap(func.vjp(gradient, places)[1])(units)[0])

    def forward_over_forward():
        def second(v):
            return func.jvp(lambda y: func.jvp(values, (y,), (v,))[1], (places,), (v,))[1]

        return func.vmap(second)(units).sum(0)

    def double_backward():
        x = places.clone().requires_grad_()
        (g,) = torch.autograd.grad(network(torch, x, w).sum(), x, create_graph=True)
        (columns,) = torch.autograd.grad(g, x, units, is_grads_batched=True)
        return torch.einsum("ibi->b", columns)

    return {"double backward, batched": double_backward, "vmap(trace of hessian)": lambda: trace(func.hessian(one)),
            "vmap(trace of jacrev(jacrev))": lambda: trace(func.jacrev(func.jacrev(one))), "jvp of grad": forward_over_reverse,
            "vjp of grad": reverse_over_reverse, "jvp of jvp": forward_over_forward}


def points():
    """A hundred points in ten dimensions."""
    return np.random.default_rng(0).normal(size=(BATCH, 10))


def rows(timing):
    """The physics-informed loss beside torch's fastest route."""
    torch = torch_one_thread()
    routes = torch and {"grad of grad": poisson_by_grad(torch, torch.tensor), "vmap": poisson_by_vmap(torch),
                        "jvp of jvp": poisson_by_jvp(torch, torch.func.jvp, torch.tensor)}
    yield compare("u_xx loss and its weight gradient, 1-20-20-1, 100 points", "torch, its fastest route", poisson_by_jet(symgrad), routes, 0.6,
                  timing)
