"""`.grad` owns its memory in the leaf's layout; accumulation survives threads and interrupts; the cost is linear in the number of inputs."""

import sys

import numpy as np
import pytest

import symgrad
from symgrad import tensor
from symgrad.autograd import grad
from symgrad.system.frames import PACKAGE
from tests.support.functions import leaf


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_share_memory_with_nothing(create_graph):
    """Not with each other, with the cotangent that was given, with gradients that are kept, nor with what a hook was shown."""
    shown = []
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    x.register_hook(lambda g: shown.append(g))
    z = x + y
    z.retain_grad()
    z.register_hook(lambda g: shown.append(g))
    seed = symgrad.ones(2)
    z.backward(seed, create_graph=create_graph)
    grads = [t.grad._value for t in (x, y, z)]
    others = [seed._value, *(g._value for g in shown)]
    for i, g in enumerate(grads):
        assert not any(np.shares_memory(g, other) for other in (*grads[:i], *others))
        assert g.flags.writeable and g.tolist() == [1.0, 1.0]


def test_derivatives_with_a_graph_share_memory_with_nothing():
    x, y, seed = leaf(1.0, 2.0), leaf(3.0, 4.0), symgrad.ones(2)
    a, b = grad(x + y, (x, y), seed, create_graph=True)
    with symgrad.no_grad():
        a.mul_(5)
    assert b.tolist() == seed.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kept", ["nothing", "by a hook", "by a view that keeps its gradient"])
def test_a_matrix_that_was_transposed_twice_is_taken_only_if_nothing_else_has_it(kept):
    """The gradient of a linear layer's weight is computed transposed, and is an array of its own, without a base."""
    shown, w, x = [], leaf([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]), tensor([[1.0, 1.0, 2.0]])
    turned = w.t()
    if kept == "by a hook":
        turned.register_hook(shown.append)
    elif kept != "nothing":
        turned.retain_grad()
    x.mm(turned).sum().backward()
    others = [g._value for g in (*shown, *([turned.grad] if turned.retains_grad else []))]
    assert len(others) == (kept != "nothing") and not any(np.shares_memory(w.grad._value, other) for other in others)
    assert w.grad._value.base is None and w.grad.is_contiguous() and w.grad.tolist() == [[1.0, 1.0, 2.0]] * 2


def test_a_signal_handler_may_run_a_backward():
    """It interrupts another backward at any line of the library, also where that adds to `.grad`; no sum is lost."""
    x, count = leaf(1.0, 2.0), 0

    def handler():
        nonlocal count
        count += 1
        with symgrad.enable_grad():  # a pass that is interrupted may have switched recording off
            (x * 2).sum().backward()

    def trace(frame, event, arg):
        nonlocal left
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            left -= 1
            if not left:
                sys.settrace(None)
                handler()
        return trace

    rounds, before = 0, sys.gettrace()
    while count == rounds:
        rounds, left = rounds + 1, rounds + 1
        sys.settrace(trace)
        try:
            (x * 3).sum().backward()
        finally:
            sys.settrace(before)
    assert count > 20 and x.grad.tolist() == [3.0 * rounds + 2.0 * count] * 2


def test_a_nested_backward_inside_an_accumulation_is_added():
    """What a handler brings at the very line that adds is added too."""
    x = leaf(1.0)
    (x * 1).backward()

    class Interrupted(symgrad.Tensor):
        def _array(self):
            if not interrupted:
                interrupted.append(True)
                (x * 10).backward()
            return super()._array()

    interrupted = []
    old = Interrupted.__new__(Interrupted)
    old._value, old._node_slot, old._view = x.grad._value, None, None
    x.grad = old
    (x * 100).backward()
    assert interrupted and x.grad.item() == 111.0


def lines_of(work):
    """How many lines of Python run."""
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def test_hooks_on_other_tensors_do_not_slow_a_backward():
    def work():
        (leaf(1.0) * 2).backward()

    other = leaf(1.0)
    other.register_hook(lambda g: None)
    work()
    few = lines_of(work)
    hooked = [leaf(1.0) for _ in range(2000)]
    for t in hooked:
        t.register_hook(lambda g: None)
    assert lines_of(work) <= few + 10


def test_derivatives_by_many_inputs_are_linear_in_their_number():
    def work(n):
        xs = [leaf(1.0) for _ in range(n)]
        found = grad(sum(xs[1:], xs[0] * xs[0]), xs, create_graph=True)
        assert found[0].item() == 2.0 and all(g.item() == 1.0 and g.requires_grad for g in found[1:])
        zero = grad(found[1], [xs[1], xs[0]])  # the derivative of a constant derivative is zero, by each of the inputs
        assert [t.item() for t in zero] == [0.0, 0.0] and grad(found[0], xs[0])[0].item() == 2.0
        with pytest.raises(RuntimeError, match="not have been used"):
            grad(found[1], leaf(1.0))

    work(10)
    few, many = (lines_of(lambda n=n: work(n)) for n in (100, 800))
    assert many < 9 * few
