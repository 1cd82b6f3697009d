"""A classifier, 784-64-10 with tanh, batch 128, cross entropy: a training step, and the product of the Hessian in the weights with a vector."""


import numpy as np

import symgrad
from tests.benchmarks.hessians import weights
from tests.benchmarks.table import compare, torch_one_thread

SIZES, BATCH, RATE = (784, 64, 10), 128, 1e-9  # so small that the loss stays the same


class Classifier:
    """The loss as a function of the weights with a library that has torch's names, the weights, and a direction."""

    def __init__(self, m, array):
        rng = np.random.default_rng(0)
        self.m, self.images, self.labels = m, array(rng.normal(size=(BATCH, SIZES[0]))), array(rng.integers(0, SIZES[-1], BATCH))
        given = weights(SIZES)
        self.direction = tuple(array(rng.normal(size=a.shape)) for a in given)
        self.plain = tuple(array(a) for a in given)
        self.weights = tuple(array(a).requires_grad_() for a in given)

    def loss(self, w1, b1, w2, b2):
        m = self.m
        return m.nn.functional.cross_entropy(m.matmul(m.tanh(m.matmul(self.images, w1) + b1), w2) + b2, self.labels)

    def gradient(self):
        """By one backward pass."""
        return self.m.autograd.grad(self.loss(*self.weights), self.weights)

    def double_backward(self):
        """By the backward pass of a recorded gradient."""
        gradient = self.m.autograd.grad(self.loss(*self.weights), self.weights, create_graph=True)
        return self.m.autograd.grad(gradient, self.weights, self.direction)


def training_step(m):
    """One step of gradient descent on the classifier as a module, by a library's optimizer; it returns the gradients."""
    net = m.nn.Sequential(m.nn.Linear(SIZES[0], SIZES[1]), m.nn.Tanh(), m.nn.Linear(*SIZES[1:])).to(m.float64)
    given = Classifier(m, m.tensor)
    optimizer = m.optim.SGD(net.parameters(), lr=RATE)
    with m.no_grad():
        for p, value in zip(net.parameters(), given.plain):
            p.copy_(value.T if value.ndim == 2 else value)

    def step():
        optimizer.zero_grad()
        m.nn.functional.cross_entropy(net(given.images), given.labels).backward()
        optimizer.step()
        return [p.grad for p in net.parameters()]

    return step


class ByHand:
    """The same in NumPy as a person writes it."""

    def __init__(self, given):
        self.images, self.labels = np.array(given.images), np.array(given.labels)
        self.weights, self.direction = ([np.array(a) for a in some] for some in (given.plain, given.direction))

    def forward(self):
        """The hidden layer, and the derivative of the loss by the scores: the probabilities less the truth, over the batch; and both once more."""
        w1, b1, w2, b2 = self.weights
        t = np.tanh(self.images @ w1 + b1)
        z = t @ w2 + b2
        e = np.exp(z - z.max(1, keepdims=True))
        p = e / e.sum(1, keepdims=True)
        r = p.copy()
        r[np.arange(BATCH), self.labels] -= 1
        r /= BATCH
        return t, p, r

    def gradients(self):
        """The gradients of the four weights."""
        t, _, r = self.forward()
        h = (r @ self.weights[2].T) * (1 - t * t)
        return self.images.T @ h, h.sum(0), t.T @ r, r.sum(0)

    def training_step(self):
        """One step of gradient descent; the gradients as `nn.Linear` has its weights."""
        found = self.gradients()
        for w, g in zip(self.weights, found):
            w -= RATE * g
        return [g.T for g in found]

    def product(self):
        """The product of the Hessian with the direction: the derivative of every line of `gradients` along it."""
        (_, _, w2, _), (v1, c1, v2, c2) = self.weights, self.direction
        t, p, r = self.forward()
        d = 1 - t * t
        u = d * (self.images @ v1 + c1)  # of t
        s = u @ w2 + t @ v2 + c2  # of the scores
        q = p * (s - (p * s).sum(1, keepdims=True)) / BATCH  # of r
        a = r @ w2.T
        k = (q @ w2.T + r @ v2.T) * d - 2 * a * t * u
        return self.images.T @ k, k.sum(0), u.T @ r + t.T @ q, q.sum(0)


def routes(torch):
    """Every way torch offers."""
    c, functional = Classifier(torch, torch.tensor), torch.autograd.functional
    gradient = torch.func.grad(c.loss, argnums=(0, 1, 2, 3))
    return {"double backward": c.double_backward, "jvp of grad": lambda: torch.func.jvp(gradient, c.plain, c.direction)[1],
            "functional.hvp": lambda: functional.hvp(c.loss, c.plain, c.direction)[1],
            "functional.vhp": lambda: functional.vhp(c.loss, c.plain, c.direction)[1]}


def rows(timing):
    """Beside our own gradient, and beside torch's fastest route."""
    from symgrad.func import hvp

    torch, ours = torch_one_thread(), Classifier(symgrad, symgrad.tensor)

    def step():
        return hvp(ours.loss, ours.plain, ours.direction)

    work = "training step, 784-64-10, batch 128"
    theirs = torch and training_step(torch)
    yield compare(work, "torch eager", training_step(symgrad), theirs, 1.3, timing, 1e-6)
    yield compare(f"{work}, NumPy by hand", "torch eager", ByHand(ours).training_step, theirs, None, timing, 1e-6)
    work = "hvp in the weights, 784-64-10, batch 128"
    other = Classifier(torch, torch.tensor).double_backward if torch else None
    yield compare(f"{work}, by double backward", "torch eager, the same", ours.double_backward, other, 1.1, timing)
    yield compare(f"{work}, NumPy by hand", "torch eager, the same", ByHand(ours).product, other, None, timing)
    yield compare(work, "our gradient", step, ours.gradient, 2.0, timing, rtol=None)
    yield compare(work, "torch, its fastest route", step, torch and routes(torch), 0.9, timing)
