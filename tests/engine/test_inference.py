"""Inference mode: that other code is not affected."""

import copy
import gc
import pickle
import weakref

import pytest

import symgrad
from symgrad.graph.modes import special, thread
from symgrad.graph.node import INFERENCE


def made(*values):
    with symgrad.inference_mode():
        return symgrad.tensor(list(values))


def test_live_inference_tensors_do_not_change_the_hot_path():
    t = made(1.0, 2.0)
    assert not special and thread.modes.plain
    x = symgrad.ones(2, requires_grad=True)
    y = x * x
    assert type(y.grad_fn).__name__ == "MulBackward0" and t._node is INFERENCE
    assert (t * 2)._node is None


def test_no_graph_ever_holds_the_node_of_inference_tensors():
    x, t = symgrad.ones(2, requires_grad=True), made(1.0, 2.0)
    y = symgrad.cat([x + t, t - x, symgrad.stack([t, x])[1]])
    stack, seen = [y._node], set()
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack += node.parents
    assert INFERENCE not in seen and len(seen) > 4


def test_inference_tensors_are_constants_in_formulas():
    x, t = symgrad.tensor(2.0, requires_grad=True, symbol="x"), made(5.0)
    assert str((x + t)[0].expr) == "x + 5"
    with pytest.raises(RuntimeError, match="not saved"):
        x * t


def test_copies_and_pickles_are_ordinary_tensors():
    t = made(1.0, 2.0)
    assert not copy.deepcopy(t).is_inference() and not pickle.loads(pickle.dumps(t)).is_inference()
    assert copy.deepcopy(t).add_(1).tolist() == [2, 3]


def test_a_graph_made_outside_is_pulled_back_inside():
    x = symgrad.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    seen = []
    x.register_hook(lambda g: seen.append(g * 2))
    with symgrad.inference_mode():
        y.backward()
    assert x.grad.tolist() == [2, 4] and seen[0].tolist() == [4, 8]


def test_saved_tensor_hooks_do_not_allow_saving_inference_tensors():
    x, t = symgrad.ones(2, requires_grad=True), made(1.0, 2.0)
    with symgrad.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t), pytest.raises(RuntimeError, match="not saved"):
        x * t
    with symgrad.autograd.set_detect_anomaly(True):
        with pytest.raises(RuntimeError, match="not saved"):
            x * t
        assert (x + t).requires_grad


def test_dual_tensors_and_inference_tensors():
    forward_ad, t = symgrad.autograd.forward_ad, made(5.0, 7.0)
    with forward_ad.dual_level():
        y = forward_ad.make_dual(symgrad.ones(2), symgrad.ones(2)) + t
        assert forward_ad.unpack_dual(y).tangent.tolist() == [1, 1]


def test_factories_refuse_an_inference_tensor_as_out():
    with pytest.raises(RuntimeError, match="inference tensor"):
        symgrad.arange(2.0, out=made(1.0, 2.0))


def test_integer_tensors_are_never_inference_tensors():
    with symgrad.inference_mode():
        i = symgrad.arange(3)
    assert not i.is_inference() and i.add_(1).tolist() == [1, 2, 3]
    assert i.exp().dtype == symgrad.get_default_dtype()


def test_writes_through_views_in_inference_mode_hold_no_tensor():
    with symgrad.inference_mode():
        t = symgrad.zeros(4)
        v, w = t[:2], t[1:]
        v.add_(1)
        w.mul_(3)
    assert t.tolist() == [1, 3, 0, 0] and v.tolist() == [1, 3] and v.is_inference() and v._base is None
    reference = weakref.ref(t)
    del t, v, w
    gc.collect()
    assert reference() is None


def test_leaves_that_require_grad():
    with symgrad.inference_mode():
        t = symgrad.ones(1, 2, requires_grad=True)
        assert t.is_inference() and t.requires_grad and t.is_leaf
        inside = [t * t, t.view(-1), t.add_(1), t.transpose_(0, 1), t.resize_(1, 2), t.copy_(symgrad.zeros(1, 2))]
    outside = t.view(-1)
    assert [(x.is_inference(), x.requires_grad, x._is_view()) for x in (*inside[:2], outside)] == [(True, False, False)] * 3
    assert all(x is t for x in inside[2:]) and t.is_inference() and t.requires_grad and t.is_leaf and outside.is_leaf
    s = symgrad.ones(1, 2, requires_grad=True)
    alone = [t * t, t.sin(), t**2, symgrad.cat([t, t]), t.detach(), t * 2.0, t + 1, 1 - t, t / 2, t.clone(), t.float()]
    assert [(x.is_inference(), x.requires_grad) for x in alone] == [(False, False)] * 4 + [(True, False)] + [(False, True)] * 6  # as in torch
    for call in (lambda: t * s, lambda: s * t):
        with pytest.raises(RuntimeError, match="^an inference tensor is not saved"):
            call()
    y = (t + s) * 3
    y.sum().backward()
    assert t.grad.tolist() == s.grad.tolist() == [[3, 3]] and not y.is_inference()
    (first,) = symgrad.autograd.grad(((t + s) ** 3).sum(), t, create_graph=True)
    assert symgrad.autograd.grad(first.sum(), t)[0].tolist() == [[6, 6]] and not t.detach().requires_grad
