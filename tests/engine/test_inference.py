"""Inference mode: that other code is not affected."""

import gc
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
