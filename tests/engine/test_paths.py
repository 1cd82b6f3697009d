"""Backward along one path, without a heap: where it ends, and what it hands over to the general loop."""

import numpy as np
import pytest

import symgrad
from symgrad import tensor
from symgrad.autograd import engine
from symgrad.engine import passes
from symgrad.graph.op import REGISTRY, elementwise


@pytest.fixture
def first():
    """An op whose derivative by the second argument is zero."""
    yield symgrad.engine.traced.lift(elementwise("first_of_two", lambda xp, input, other: input, 1, 0))
    del REGISTRY["first_of_two"]


def leaf(value):
    return tensor(value, requires_grad=True)


def test_a_zero_derivative_beside_the_path(first):
    """It is replaced by the derivative that comes later, and it is zero if there is none."""
    x, y = leaf([0.5, 1.0]), leaf([2.0, 3.0])
    first(x.sin() * x.cos(), x).backward(symgrad.ones(2))
    assert np.allclose(x.grad.tolist(), np.cos([1.0, 2.0]))
    first(x.detach().requires_grad_() * x.sin(), y).sum().backward()
    assert y.grad.tolist() == [0.0, 0.0]


def test_the_path_is_taken(monkeypatch):
    """So that the tests above are of it; after a hook was registered the general loop runs."""
    taken = []
    monkeypatch.setattr(engine, "along_paths", lambda *args: taken.append(args) or passes.along_paths(*args))
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    assert len(taken) == 1
    x.register_hook(lambda g: 10 * g).remove()
    (x * x).sum().backward()
    assert len(taken) == 1 and x.grad.tolist() == [4.0, 8.0]
