"""The graph: torch's node names, edges and order; no recursion, linear work, and memory freed by reference counts alone."""

import gc
import sys
import weakref

import numpy as np
import pytest

import symgrad
from symgrad import autograd, tensor
from symgrad.engine.recording import core
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
    def test_node_names_match_torch(self):
        x, a = leaf([1.0, 2.0]), leaf([[1.0, 2.0], [3.0, 4.0]])
        expected = {"AddBackward0": x + 1, "SubBackward0": x - 1, "MulBackward0": x * x, "DivBackward0": x / 2, "PowBackward0": x**2,
                    "NegBackward0": -x,
                    "ExpBackward0": x.exp(), "TanhBackward0": x.tanh(), "SinBackward0": x.sin(), "LogBackward0": x.log(), "SumBackward0": x.sum(),
                    "MeanBackward0": x.mean(), "ReluBackward0": x.relu(), "SigmoidBackward0": x.sigmoid(), "MmBackward0": a @ a, "MvBackward0": a @ x,
                    "DotBackward0": x @ x, "ViewBackward0": a.reshape(4), "TBackward0": a.t(), "CatBackward0": symgrad.cat([x, x]),
                    "StackBackward0": symgrad.stack([x, x]), "UnsqueezeBackward0": x.unsqueeze(0), "ExpandBackward0": x.expand(3, 2),
                    "CloneBackward0": x.clone(), "WhereBackward0": symgrad.where(x > 1, x, x), "ProdBackward0": x.prod()}
        for name, y in expected.items():
            assert y.grad_fn.name() == name == type(y.grad_fn).__name__
            assert repr(y.grad_fn).startswith(f"<{name} object at 0x")

    def test_edges(self):
        x, z = leaf(1.0), leaf(2.0)
        m = x * z
        y = m + x
        assert y.grad_fn.next_functions == ((m.grad_fn, 0), (m.grad_fn.next_functions[0][0], 0))
        accumulate = m.grad_fn.next_functions[0][0]
        assert accumulate.name() == "torch::autograd::AccumulateGrad" and accumulate.variable is x and accumulate.next_functions == ()
        assert m.grad_fn.next_functions[1][0].variable is z
        assert (x + 3.0).grad_fn.next_functions[1] == (None, 0) and (x + tensor(3.0)).grad_fn.next_functions[1] == (None, 0)

    def test_sequence_numbers_rise(self):
        x = leaf(1.0)
        y = x.sin()
        z = (y * x).exp()
        order = [node.sequence_nr for node in upstream([z.grad_fn])]
        assert order == sorted(order) and len(set(order)) == 4

    def test_grad_fn_of_a_leaf_is_none(self):
        x = leaf(1.0)
        assert x.is_leaf and x.grad_fn is None and x.requires_grad
        y = tensor(1.0)
        assert y.is_leaf and y.grad_fn is None and not y.requires_grad
        assert (y * 2).is_leaf and not (x * 2).is_leaf

    def test_constants_record_nothing(self):
        x = tensor([1.0, 2.0])
        assert (x.sin() * x + 1).sum()._node is None
        assert (leaf(1.0).detach() * 2)._node is None
        assert (leaf([1.0]) > 0)._node is None and leaf([1.0]).argmax(0)._node is None


class TestLength:
    def test_a_long_chain(self):
        """Forward, backward, freed: without a RecursionError, and with the interpreter's ordinary limit."""
        x = leaf(1.0)
        y = chain(x, LONG)
        assert y.item() == 1.0 + LONG / 2 and LONG > 50 * sys.getrecursionlimit()
        y.backward()
        assert x.grad.item() == 1.0
        del y

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

    def test_a_node_with_many_paths_is_pulled_back_once(self):
        """y = y + y, 60 times: 2^60 paths, 60 nodes."""
        x = leaf(1.0)
        y = x
        for _ in range(60):
            y = y + y
        (g,) = autograd.grad(y, x, create_graph=True)
        assert g.item() == 2.0**60
        assert len(upstream([y.grad_fn])) == 61


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


def test_a_view_created_under_no_grad_is_unused_in_the_graph():
    """It requires grad, as its base does, but no cotangent is its own: what torch says of it, word for word."""
    x = leaf([1.0, 2.0])
    for base in (x, x.sin()):
        with symgrad.no_grad():
            view = base.unsqueeze(-1)
        assert view.requires_grad
        with pytest.raises(RuntimeError, match="The differentiated Tensor at index 0 appears to not have been used in the graph"):
            autograd.grad((view * view).sum(), view)
        (zeros,) = autograd.grad((view * view).sum(), view, create_graph=True, materialize_grads=True)
        assert zeros.tolist() == [[0.0], [0.0]] and zeros.requires_grad
        (view * view).sum().backward(inputs=[view])
        assert view.grad is None


def test_division_in_place_by_a_number_does_not_recompute_its_value():
    """Its derivative by the dividend reads a number alone, for which nothing else was kept."""
    x = leaf([1.0, 2.0])
    y = x * 3.0
    y.div_(-2.0)
    view = y.view(2, 1)
    with symgrad.no_grad():
        view.fill_(7.0)
    (y / 1.5).sum().backward()
    assert x.grad.tolist() == [-1.0, -1.0]


@pytest.mark.parametrize("index", [..., (), slice(None), slice(0, 3), (..., slice(None)), (slice(0, 3, 1), slice(0, 2))])
def test_setitem_with_a_full_index_records_no_view(index):
    """Of which torch makes no view: the node is that of `fill_` or `copy_`, and a refusal speaks of the leaf."""
    x = leaf(np.ones((3, 2)))
    y, z = x * 2, x * 2
    y[index], z[index] = tensor(5.0), x * 3
    assert [t.grad_fn.name() for t in (y, z)] == ["FillBackward3", "torch::autograd::CopyBackwards"]
    with pytest.raises(RuntimeError, match="^a leaf Variable that requires grad is being used in an in-place operation."):
        x[index] = 1.0
    y[0] = 1.0
    assert y.grad_fn.name() == "torch::autograd::CopySlices" and y._version == 2
