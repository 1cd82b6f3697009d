"""Backwards inside of backwards, functions queued for the end of one, and what a user's code can ask about the one that runs."""

import pytest

from symgrad import autograd, tensor
from symgrad.engine import tasks
from symgrad.graph.node import all_threads


def leaf(value):
    return tensor(value, requires_grad=True)


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


def by_hook(action):
    def apply(x):
        y = x * 1
        y.register_hook(lambda g: action() and None)
        return y

    return apply


def by_saved(action):
    def apply(x):
        def unpack(t):
            action()
            return t

        with autograd.graph.saved_tensors_hooks(lambda t: t.clone(), unpack):
            return x.cos()

    return apply


WAYS = pytest.mark.parametrize("way", [acting, by_hook, by_saved], ids=["a Function", "a hook", "an unpack hook"])


@WAYS
def test_the_running_backward(way):
    seen = []

    def look():
        seen.append((tasks.current_graph_task_id(), [tasks.will_engine_execute_node(node) for node in nodes]))
        with autograd.set_multithreading_enabled(False):
            order.extend(tasks.current_graph_task_execution_order())
        with pytest.raises(RuntimeError, match="a grad_fn, not Tensor"):
            tasks.will_engine_execute_node(x)
        with pytest.raises(RuntimeError, match="multithreading"):
            tasks.current_graph_task_execution_order()

    x, z, order = leaf(1.0), leaf(2.0), []
    inner = x * z
    y = way(look)(inner)
    out, other = y.exp(), y.sin()
    nodes = [out.grad_fn, y.grad_fn, inner.grad_fn, other.grad_fn]
    out.backward(retain_graph=True)
    assert seen[0][1] == [True, True, True, False]
    assert [node.name().split(":")[-1] for node in order] == [*(node.name() for node in nodes[:3]), "AccumulateGrad", "AccumulateGrad"]
    autograd.grad(other, x)
    assert seen[1][1] == [False, True, True, True] and seen[1][0] > seen[0][0]
    assert tasks.current_graph_task_id() == -1
    for ask in (tasks.current_graph_task_execution_order, lambda: tasks.will_engine_execute_node(nodes[0])):
        with pytest.raises(RuntimeError, match="no backward is running"):
            ask()


def test_a_leaf_is_not_run_by_grad():
    x = leaf(1.0)
    node = (x * 1).grad_fn.next_functions[0][0]

    def look():
        with pytest.raises(RuntimeError, match="no gradient reaches a leaf"):
            tasks.will_engine_execute_node(node)

    autograd.grad(acting(look)(x), x)
    found = []
    acting(lambda: found.append(tasks.will_engine_execute_node(node)))(x).backward()
    assert found == [True]


def test_a_gradient_has_its_formula_if_its_leaf_gets_its_first_hook_during_the_backward(monkeypatch):
    x = tensor(2.0, requires_grad=True, symbol="x")
    monkeypatch.setattr(all_threads, "hooked", False)
    acting(lambda: x.register_post_accumulate_grad_hook(lambda t: None))(x.sin()).backward()
    assert str(x.grad.expr) == "cos(x)"
