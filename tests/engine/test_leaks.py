"""Memory stays constant over many forward and backward passes with the garbage collector off: every graph is freed by reference counts alone."""

import gc
import os
import resource
import sys

import pytest

import symgrad
from symgrad.system.weakkeys import WeakKeys

STEPS = {"thorough": 1_000_000, "ci": 3_000}.get(os.environ.get("HYPOTHESIS_PROFILE", "ci"), 2_000)
x = symgrad.tensor([0.5, 1.0, 1.5], requires_grad=True)
w = symgrad.tensor([1.0, -1.0, 2.0], requires_grad=True)


def plain():
    (x * w).sin().sum().backward()


def kept_for_a_second_time():
    y = (x * w).exp().sum()
    y.backward(retain_graph=True)
    y.backward()


def never_used():
    ((x * w).exp() + x).sum()


def gradients_asked_for():
    symgrad.autograd.grad((x * w).tanh().sum(), [x, w])


def second_derivatives():
    (g,) = symgrad.autograd.grad((x**3 * w).sum(), x, create_graph=True)
    symgrad.autograd.grad(g.sum(), x)


def backward_with_a_graph():
    (x * x * w).sum().backward(create_graph=True)
    x.grad = w.grad = None  # torch asks for the same


def in_place():
    y = x * 2
    y.add_(w)
    y.mul_(w)
    y[0] = 3.0
    y.exp_()
    y.sum().backward()


def views():
    y = x * 2
    v, u = y[:2], y.view(3, 1)
    v.mul_(w[:2])
    u.t().sum().backward(retain_graph=True)
    a, b, c = y.unbind()
    (a * b * c + y.sum()).backward()


def leaves_written_to():
    with symgrad.no_grad():
        x.mul_(1.0)
        w[0] = 1.0
    (x * w).sum().backward()


def hooks():
    y = x * w
    handle = y.register_hook(lambda g: g * 2)
    on_leaf = x.register_hook(lambda g: None)
    (y * y).sum().backward()
    handle.remove()
    on_leaf.remove()


def gradients_retained():
    y = x * w
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad is not None


def errors():
    y = x * w
    z = (y * y).sum()
    y.add_(1)
    for wrong in (z.backward, y.backward, lambda: x.add_(1)):
        try:
            wrong()
        except RuntimeError:
            pass


def names():
    y = symgrad.tensor(2.0, requires_grad=True, symbol="y")
    (y * y).sin().backward()
    y.grad.expr


VARIANTS = [plain, kept_for_a_second_time, never_used, gradients_asked_for, second_derivatives, backward_with_a_graph, in_place, views,
            leaves_written_to, hooks, gradients_retained, errors, names]
FEWER = {names: 5, errors: 20}  # formulas are slower, and so is finding whom an error is about


def blocks_after(variant, steps):
    """How many more blocks of memory are held after so many steps."""
    before = sys.getallocatedblocks()
    for _ in range(steps):
        variant()
    x.grad = w.grad = None
    return sys.getallocatedblocks() - before


def growth(variant, steps):
    """How many blocks of memory the steps leave behind, and by how much the process grew (KiB)."""
    gc.collect()
    gc.disable()
    try:
        for length in range(1, 21):  # the interpreter keeps up to 2000 tuples of each length for later; a collection has emptied that store
            list(map(tuple, [[None] * length] * 2500))
        flat = 0
        for _ in range(20):  # until caches are full: one round may seem flat because a table has become smaller
            flat = flat + 1 if blocks_after(variant, 500 // FEWER.get(variant, 1)) < 20 else 0
            if flat == 2:
                break
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return blocks_after(variant, steps), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - size
    finally:
        gc.enable()


@pytest.mark.sweep
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.__name__)
def test_memory_stays_flat(variant):
    steps = STEPS // FEWER.get(variant, 1)
    blocks, size = growth(variant, steps)
    assert blocks < 100
    assert size < 4096


def test_a_cycle_is_seen():
    def leaks():
        y = x * w
        y_again = [y]
        y_again.append(y_again)

    blocks, _ = growth(leaks, 1000)
    gc.collect()
    assert blocks > 1000


def test_weak_keys_are_compared_by_identity():
    keys = [symgrad.ones(3), symgrad.ones(3)]
    found = WeakKeys()
    for k, key in enumerate(keys):
        found[key] = None
        found[key] = k
    assert [found.get(key) for key in keys] == [0, 1] and found.get(symgrad.ones(3)) is None and len(found) == 2
    assert all(a is b for a, b in zip(found, keys))
    del key, keys[0]
    assert list(found.values()) == [1] and found.pop(keys[0]) == 1 and not found
