"""The flat pullbacks, written from partial derivatives: they are what the rules of the ops compute and record."""

import contextlib

import numpy as np
import pytest

import symgrad
from symgrad.carriers import numeric
from symgrad.engine import generated_pullbacks
from symgrad.engine.saved import traced_args
from symgrad.engine.traced import traced
from symgrad.graph.node import node_class
from symgrad.graph.op import REGISTRY
from symgrad.graph.order import upstream

OPS = [op for op in REGISTRY.values() if generated_pullbacks._cotangents(op) is not None and op.differentiable]
VALUES = {"float64": np.float64(0.4), "array": np.linspace(0.2, 0.9, 6).reshape(2, 3)}


def recorded(op, value):
    """A node of the op whose arguments are leaves, and a cotangent."""
    xs = [symgrad.tensor(value * (1 + 0.1 * i) + i, requires_grad=True) for i in range(op.arity)]
    node = node_class(op, broadcasts=False)(tuple(x._value for x in xs), tuple(x._node for x in xs), op.forward(numeric, *[x._value for x in xs]), 1)
    return node, 1.5 * value


def pulled(node, g, numbers):
    """The cotangents by the flat pullback."""
    single, rule, _ = generated_pullbacks.write_rules(type(node), numbers)
    return (rule(node, g),) if single else rule(node, g, node.parents)


def outline(t):
    """The ops, values and edges of the graph of a tensor."""
    nodes = upstream([t._node])
    places = {node: i for i, node in enumerate(nodes)}
    return [(type(node).__name__, np.asarray(node.value).tobytes(), [places.get(p) for p in node.parents]) for node in nodes]


@pytest.mark.sampled(63)
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_numbers_are_those_of_the_rule(op, value):
    node, g = recorded(op, value)
    for ours, theirs in zip(pulled(node, g, True), op.vjp(numeric, g, node.value, node.args, node.parents), strict=True):
        assert ours is theirs is None or np.array_equal(ours, theirs, equal_nan=True)


@pytest.mark.sampled(63)
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_tensors_have_the_graph_that_the_rule_records(op, value):
    node, g = recorded(op, value)
    weight = symgrad.tensor(g, requires_grad=True)
    for ours, theirs in zip(pulled(node, weight, False), op.vjp(traced, weight, *traced_args(node), node.parents), strict=True):
        assert ours is theirs is None or outline(ours) == outline(theirs)


def test_most_elementwise_ops_are_flat():
    assert {"add", "sub", "mul", "div", "neg", "exp", "log", "sin", "cos", "tanh", "sqrt", "square", "sigmoid"} <= {op.name for op in OPS}


def test_python_numbers_divide_by_zero_as_arrays_do():
    x = symgrad.tensor(1.0, requires_grad=True)
    (x / 0.0).backward()
    assert x.grad.item() == np.inf


@pytest.mark.parametrize("asked", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
def test_grad_computes_products_only_for_what_is_asked(asked, monkeypatch):
    a, b, c = (symgrad.tensor(np.full((3, 3), v), requires_grad=True) for v in (0.2, 0.3, 0.4))
    y = symgrad.addmm(a, b, c)
    products = []
    monkeypatch.setattr(numeric, "mm", lambda x, z: products.append(1) or x @ z)
    symgrad.autograd.grad(y, [(a, b, c)[i] for i in asked], symgrad.ones(3, 3))
    assert len(products) == len({1, 2} & {*asked})


def test_a_part_that_leads_to_no_asked_input_is_neither_pulled_nor_freed():
    x, w = (symgrad.tensor(v, requires_grad=True) for v in (0.3, 0.5))
    part = w.exp()
    symgrad.autograd.grad(x.sin() + part, x)
    (found,) = symgrad.autograd.grad(part, w)
    assert found.item() == np.exp(0.5)
    with contextlib.suppress(RuntimeError):
        symgrad.autograd.grad(part, w)
        pytest.fail("the part was freed by its own pullback")


@pytest.mark.parametrize("function", [lambda x: x + x, symgrad.sin, lambda x: (x + x) - (x + x) * 1.0 + symgrad.sin(x)])
def test_a_cotangent_whose_base_was_written_keeps_its_graph(function):
    x, weights = symgrad.tensor([1.0, 2.0, 3.0], requires_grad=True), symgrad.ones(4, requires_grad=True)
    base = weights * 2
    cotangent = base[:3]
    base.mul_(3.0)
    (found,) = symgrad.autograd.grad(function(x), x, cotangent, create_graph=True)
    (slopes,) = symgrad.autograd.grad(function(x).sum(), x)
    np.testing.assert_allclose(found.detach(), 6 * slopes, rtol=1e-14)
    np.testing.assert_allclose(symgrad.autograd.grad(found.sum(), weights)[0], [*6 * slopes, 0], rtol=1e-14)
