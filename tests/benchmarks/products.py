"""The product of a Hessian with a vector in the weights of a classifier, 784-64-10 with tanh, batch 128, cross entropy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import symgrad
from tests.benchmarks.problems import weights
from tests.benchmarks.table import Row, Timing, compare, torch_one_thread

SIZES, BATCH = (784, 64, 10), 128


class Classifier:
    """The loss as a function of the weights with a library that has torch's names, the weights, and a direction."""

    def __init__(self, m: Any, array: Callable[[np.ndarray], Any]):
        rng = np.random.default_rng(0)
        self.m, self.images, self.labels = m, array(rng.normal(size=(BATCH, SIZES[0]))), array(rng.integers(0, SIZES[-1], BATCH))
        given = weights(SIZES)
        self.direction = tuple(array(rng.normal(size=a.shape)) for a in given)
        self.plain = tuple(array(a) for a in given)
        self.weights = tuple(array(a).requires_grad_() for a in given)

    def loss(self, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        m = self.m
        return m.nn.functional.cross_entropy(m.matmul(m.tanh(m.matmul(self.images, w1) + b1), w2) + b2, self.labels)

    def gradient(self) -> Any:
        """By one backward pass."""
        return self.m.autograd.grad(self.loss(*self.weights), self.weights)

    def double_backward(self) -> Any:
        """By the backward pass of a recorded gradient."""
        gradient = self.m.autograd.grad(self.loss(*self.weights), self.weights, create_graph=True)
        return self.m.autograd.grad(gradient, self.weights, self.direction)


def routes(torch: Any) -> dict[str, Callable[[], Any]]:
    """Every way torch offers."""
    c, functional = Classifier(torch, torch.tensor), torch.autograd.functional
    gradient = torch.func.grad(c.loss, argnums=(0, 1, 2, 3))
    return {"double backward": c.double_backward, "jvp of grad": lambda: torch.func.jvp(gradient, c.plain, c.direction)[1],
            "functional.hvp": lambda: functional.hvp(c.loss, c.plain, c.direction)[1],
            "functional.vhp": lambda: functional.vhp(c.loss, c.plain, c.direction)[1]}


def rows(timing: Timing) -> Iterator[Row]:
    """Beside our own gradient, and beside torch's fastest route."""
    from symgrad.func import hvp

    torch, ours = torch_one_thread(), Classifier(symgrad, symgrad.tensor)

    def step() -> Any:
        return hvp(ours.loss, ours.plain, ours.direction)

    work = "hvp in the weights, 784-64-10, batch 128"
    yield compare(work, "our gradient", step, ours.gradient, 2.0, timing, rtol=None)
    yield compare(work, "torch, its fastest route", step, torch and routes(torch), 0.9, timing)
