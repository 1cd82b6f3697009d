"""The graph and passes through it: order, no recursion, linear work, memory freed by reference counts, paths, and hooks made during one."""

import gc
import sys
import weakref

import numpy as np
import pytest

import symgrad
from symgrad import autograd, tensor
from symgrad.autograd import engine
from symgrad.engine import passes
from symgrad.engine.recording import core
from symgrad.graph.node import all_threads
from symgrad.graph.op import REGISTRY, elementwise
from symgrad.graph.order import upstream

LONG = 100_000


def leaf(value):
    return tensor(value, requires_grad=True)


def chain(x, length):
    y = x
    for _ in range(length):
        y = y + 0.5
    return y


@pytest.fixture
def collector_off():
    """No cyclic collection: what is freed is freed by reference counts."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class TestNodes:
    def test_sequence_numbers_rise(self):
        x = leaf(1.0)
        y = x.sin()
        z = (y * x).exp()
        order = [node.sequence_nr for node in upstream([z.grad_fn])]
        assert order == sorted(order) and len(set(order)) == 4


class TestLength:
    @pytest.mark.sweep
    def test_a_long_chain(self):
        """Forward, backward, freed: without a RecursionError, and with the interpreter's ordinary limit."""
        x = leaf(1.0)
        y = chain(x, LONG)
        assert y.item() == 1.0 + LONG / 2 and LONG > 50 * sys.getrecursionlimit()
        y.backward()
        assert x.grad.item() == 1.0
        del y

    @pytest.mark.sweep
    def test_an_unused_chain_is_freed(self, collector_off):
        x = leaf(1.0)
        y = chain(x, LONG)
        nodes = weakref.ref(y.grad_fn), weakref.ref(y.grad_fn.next_functions[0][0])
        del y
        assert nodes[0]() is None and nodes[1]() is None

    @pytest.mark.parametrize("create_graph", [False, True])
    def test_the_work_is_linear(self, create_graph):
        """Twice the chain, twice the calls of rules: counted, not timed."""
        calls = []
        counted = elementwise("counted", lambda xp, input: xp.sin(input), lambda xp, y, x: calls.append(x.dtype) or xp.cos(x))
        REGISTRY.pop("counted")
        function = core(counted)
        counts = []
        for length in (200, 400, 800):
            calls.clear()
            x = leaf(1.0)
            y = x
            for _ in range(length):
                y = function(y)
            autograd.grad(y, x, create_graph=create_graph)
            counts.append(len(calls))
        assert counts == [200, 400, 800]


class TestMemory:

    def test_backward_frees_saved_values(self, collector_off):
        x = leaf(np.ones(10_000))
        y = x.exp()
        saved = weakref.ref(y._value)
        z = (y * y).sum()
        del y
        z.backward()
        assert saved() is None and z.item() == pytest.approx(10_000 * np.e**2)

    def test_graphs_with_symbols_keep_values_for_formulas(self):
        x = tensor([1.0, 2.0], requires_grad=True, symbol="x")
        y = (x * x).sum()
        y.backward()
        assert x.grad.tolist() == [2.0, 4.0]
        with pytest.raises(RuntimeError, match="a second time"):
            y.backward()
        assert y.grad_fn.args is not None


@pytest.fixture
def first():
    """An op whose derivative by the second argument is zero."""
    yield symgrad.engine.traced.lift(elementwise("first_of_two", lambda xp, input, other: input, 1, 0))
    del REGISTRY["first_of_two"]


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


def acting(action):
    """The identity, whose backward calls `action` first."""

    class Acting(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            action()
            return g

    return Acting.apply


def test_a_gradient_has_its_formula_if_its_leaf_gets_its_first_hook_during_the_backward(monkeypatch):
    x = tensor(2.0, requires_grad=True, symbol="x")
    monkeypatch.setattr(all_threads, "hooked", False)
    acting(lambda: x.register_post_accumulate_grad_hook(lambda t: None))(x.sin()).backward()
    assert str(x.grad.expr) == "cos(x)"
