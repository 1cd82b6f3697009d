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


def both(function, *values):
    """The gradients by `backward`, and by `grad`, which takes the general loop."""
    xs = [leaf(v) for v in values]
    y = function(*xs)
    y.backward(symgrad.ones_like(y.detach()))
    again = [leaf(v) for v in values]
    z = function(*again)
    found = symgrad.autograd.grad(z, again, symgrad.ones_like(z.detach()))
    return [x.grad.tolist() for x in xs], [g.tolist() for g in found]


FUNCTIONS = {
    "a chain": lambda x, y: (x.sin().exp() * 2).sum() + 0 * y.sum(),
    "leaves beside the path": lambda x, y: ((x.exp() * y).tanh() * y).sum(),
    "one leaf beside and at the end": lambda x, y: (x.exp() * x + y).log() * x,
    "two paths that join": lambda x, y: (x.exp() * x.sin() * y).cos() * y,
    "a broadcast leaf": lambda x, y: (x[None].exp() * y).sum(0) + y.sum(),
    "a selection": lambda x, y: symgrad.where(x > 1, x.log(), y) * y,
    "a selection of infinite slopes": lambda x, y: symgrad.where(x > 1.5, (x - 1).sqrt(), y),
    "the same leaf twice": lambda x, y: x * x + y,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_backward_and_grad_agree(name):
    first, second = both(FUNCTIONS[name], [1.0, 2.0, 3.0], [0.5, -1.0, 2.0])
    assert first == second


def test_a_zero_derivative_beside_the_path(first):
    """It is replaced by the derivative that comes later, and it is zero if there is none."""
    x, y = leaf([0.5, 1.0]), leaf([2.0, 3.0])
    first(x.sin() * x.cos(), x).backward(symgrad.ones(2))
    assert np.allclose(x.grad.tolist(), np.cos([1.0, 2.0]))
    first(x.detach().requires_grad_() * x.sin(), y).sum().backward()
    assert y.grad.tolist() == [0.0, 0.0]


def test_several_outputs_of_leaves():
    """Pieces of one tensor, of which one may occur twice."""
    x = leaf(np.arange(6.0))
    first, second = x.split(3)
    symgrad.autograd.backward([first, second], [symgrad.ones(3), 2 * symgrad.ones(3)])
    assert x.grad.tolist() == [1.0] * 3 + [2.0] * 3
    x.grad = None
    first, second = x.split(3)
    symgrad.autograd.backward([second, second], [symgrad.ones(3), 2 * symgrad.ones(3)])
    assert x.grad.tolist() == [0.0] * 3 + [3.0] * 3


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


@pytest.mark.parametrize("inner", [False, True], ids=["of a leaf", "of a result"])
def test_a_function_without_a_gradient_is_called_once_and_its_leaf_has_none(inner):
    calls = []

    class Cut(symgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            calls.append(g.tolist())

    x = symgrad.tensor([1.0, 2.0], requires_grad=True)
    Cut.apply(x * 3 if inner else x).sum().backward()
    assert x.grad is None and calls == [[1.0, 1.0]]
