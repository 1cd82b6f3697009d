"""Hooks: lifetime, threads, and the cost of absent hooks."""

import gc
import weakref

import numpy as np
import pytest

import symgrad
from symgrad import tensor
from symgrad.autograd import grad
from symgrad.engine.hooks import UNDEFINED
from tests.support.functions import function_of, leaf


def test_formulas_of_gradients_ignore_hooks():
    """A hook may be any code; the formula is that of the mathematical derivative, and the number is the hook's."""
    x = tensor(2.0, requires_grad=True, symbol="x")
    y = x * x
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    (3 * y).backward()
    assert seen == [3.0] and str(x.grad.expr) == "6*x" and x.grad.item() == 12.0


def test_an_undefined_gradient_adds_nothing():
    """What a Function answers with None is no zero: what comes by another way is not touched, also in place."""
    array, scalar, t = np.ones(2), np.float64(3.0), symgrad.ones(2)
    for value, total in ((array, UNDEFINED + array), (array, array + UNDEFINED), (scalar, UNDEFINED + scalar), (scalar, scalar + UNDEFINED),
                         (t, UNDEFINED + t)):
        assert total is not value or value is scalar
        np.testing.assert_array_equal(np.asarray(total), np.asarray(value))


def test_hooks_on_other_tensors_do_not_change_a_graph():
    """A derivative that is zero adds nothing to another, whether there are hooks or not."""
    other, x = leaf(1.0), leaf(2.0)

    def graph():
        (first,) = grad(x ** 3 + x.floor() + x.floor().sin(), x, create_graph=True)
        return first.grad_fn.name(), grad(first, x)[0].item()

    before = graph()
    handle = other.register_hook(lambda g: g)
    assert graph() == before == ("MulBackward0", 12.0)
    handle.remove()


def _hook_tensor(x, y):
    y.register_hook(lambda g: y)


def _hook_leaf(x, y):
    x.register_hook(lambda g: x)


def _hook_accumulated(x, y):
    x.register_post_accumulate_grad_hook(lambda t: None if x is y else None)


def _hook_node(x, y):
    node = y.grad_fn
    node.register_hook(lambda inputs, outputs: node and None)


def _prehook_node(x, y):
    node = y.grad_fn
    node.register_prehook(lambda outputs: node and None)


def _metadata(x, y):
    y.grad_fn.metadata["me"] = y


def _multi(x, y):
    symgrad.autograd.graph.register_multi_grad_hook((x, y), lambda grads: (x, y))


def _function(x, y):
    Twice = function_of(lambda ctx, a: a * 2, lambda ctx, g: 2 * g)
    z = Twice.apply(y)
    z.grad_fn.register_hook(lambda inputs, outputs: z and None)


def _module(x, y):
    module = symgrad.nn.Linear(2, 2)
    seen = []
    module.register_full_backward_hook(lambda m, inputs, outputs: seen.append((module, x, y)))
    module(x + 0).sum().backward()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("freed", [False, True])
@pytest.mark.parametrize("hook", [_hook_tensor, _hook_leaf, _hook_accumulated, _hook_node, _prehook_node, _metadata, _multi, _function, _module])
def test_a_hook_may_refer_to_its_own_tensor(hook, freed):
    """The collector sees the circle: once the tensors are forgotten, nothing of the graph or the hook is left."""
    x = leaf(1.0, 2.0)
    y = x * 3
    hook(x, y)
    if freed:
        y.sum().backward()
    known = [weakref.ref(each) for each in (x, y, x._node, y._node, y._value)]
    del x, y
    gc.collect()
    assert [each() for each in known] == [None] * 5


def test_hooks_upstream_of_a_selection_see_a_zero_derivative():
    x, seen = leaf(1.5, 2.5), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    for other, expected in ((y, [0.0, 1.0]), (tensor(0.0), [0.0, 0.0])):
        z = symgrad.where(tensor([True, False]), y.floor().sin(), other)
        z.register_hook(lambda g: None)
        z.sum().backward(retain_graph=True)
        assert seen.pop() == expected
    assert x.grad.tolist() == [0.0, 2.0]
