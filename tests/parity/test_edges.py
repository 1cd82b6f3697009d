"""The edges of nodes (`next_functions`, and what hooks of nodes get) are torch's: a Python number has one only where torch makes a tensor of it."""

import warnings

import numpy as np
import pytest
import torch

import symgrad

CALLS = {
    "pow": lambda t, x, y, b: x ** 2.3, "rpow": lambda t, x, y, b: 1.7 ** x, "pow of two": lambda t, x, y, b: x ** y,
    "rsub": lambda t, x, y, b: 2.3 - x,
    "sub": lambda t, x, y, b: x - 2.3, "mul": lambda t, x, y, b: x * 2.3, "add": lambda t, x, y, b: 1 / 3 + x, "div": lambda t, x, y, b: x / 2.3,
    "remainder": lambda t, x, y, b: x % 1.7, "fmod": lambda t, x, y, b: t.fmod(x, 1.7), "where": lambda t, x, y, b: t.where(b, x, y),
    "where number": lambda t, x, y, b: t.where(b, 2.3, x), "masked_fill": lambda t, x, y, b: x.masked_fill(b, 2.3),
    "masked_fill tensor": lambda t, x, y, b: x.masked_fill(b, y[0]), "index_fill": lambda t, x, y, b: x.index_fill(0, t.tensor([1]), 2.3),
    "scatter": lambda t, x, y, b: x.scatter(0, t.tensor([1]), 2.3), "written": lambda t, x, y, b: x.clone().pow_(2.3),
}


def read(t, name):
    x, y = (t.tensor(v, dtype=t.float64, requires_grad=True) for v in ([2.3, 3.1], [1.7, 0.6]))
    out = CALLS[name](t, x, y, t.tensor([True, False]))
    seen = []
    out.grad_fn.register_hook(lambda inputs, outputs: seen.append([None if g is None else g.detach().numpy().copy() for g in inputs]))
    edges = [(None if node is None else node.name(), place) for node, place in out.grad_fn.next_functions]
    out.sum().backward(retain_graph=True)
    return out.grad_fn.name(), edges, seen


@pytest.mark.parametrize("name", CALLS)
def test_edges_are_those_of_torch(name):
    (ours, our_edges, seen), (theirs, their_edges, expected) = read(symgrad, name), read(torch, name)
    assert ours == theirs and our_edges == their_edges
    for a, b in zip(seen[0], expected[0], strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_the_gradient_of_an_identity_is_a_copy_of_the_cotangent():
    for t in (symgrad, torch):
        x, g = (t.tensor(v, dtype=t.float64, requires_grad=True) for v in (2.3, 1.7))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if t is torch else "error")  # torch warns once a process
            x.backward(g, create_graph=True)
        node = x.grad.grad_fn
        assert node.name() == "torch::autograd::CopyBackwards" and node.next_functions[0] == (None, 0)
        assert node.next_functions[1][0].variable is g
        assert t.autograd.grad(x.grad * 3, g)[0].item() == 3
        x.grad = None
    (found,) = symgrad.autograd.grad(x1 := symgrad.tensor(2.3, requires_grad=True), x1, symgrad.tensor(1.7, requires_grad=True), create_graph=True)
    assert found.grad_fn.name() == "torch::autograd::CopyBackwards" and not found.is_leaf  # torch returns the cotangent itself
