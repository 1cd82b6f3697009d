"""Checkpoints: equal derivatives, less memory, and an error if the recomputation differs."""

import contextlib
import gc
import weakref

import numpy as np
import pytest

import symgrad
from symgrad import nn, utils
from symgrad.autograd import functional
from symgrad.func import grad, hessian, hvp, jacfwd, jacrev, jvp, vmap
from symgrad.func.checkpointing import CheckpointError, checkpoint, checkpoint_sequential

T = symgrad.tensor


def same(a, b, tolerance=1e-13):
    a, b = np.asarray(a.detach()), np.asarray(b.detach())
    assert a.shape == b.shape and np.all(np.abs(a - b) <= tolerance * np.maximum(1, np.abs(b)))


def block(x):
    return (x.sin() * 1.01 + x.cos()).tanh().exp() * 0.3


def called(x):
    return checkpoint(block, x, use_reentrant=False)


VARIANTS = pytest.mark.parametrize("f", [
    called, checkpoint(block), checkpoint(checkpoint(block)), lambda x: checkpoint(block, x),
    lambda x: checkpoint(called, x, use_reentrant=True), lambda x: checkpoint(lambda: called(x), use_reentrant=False)])


@pytest.mark.sampled(2)
@VARIANTS
def test_derivatives_of_every_order_and_mode(f):
    x = T([0.3, 0.7])
    def of(f):
        return lambda x: f(x).sum() * f(x.flip(0))[0] ** 2

    same(grad(of(f))(x), grad(of(block))(x))
    same(hessian(of(f))(x), hessian(of(block))(x))
    same(jacrev(hessian(of(f)))(x), jacrev(hessian(of(block)))(x))
    same(jacfwd(jacfwd(of(f)))(x), hessian(of(block))(x))
    same(jacrev(jacrev(of(f)))(x), hessian(of(block))(x))
    same(jvp(of(f), (x,), (T([1.0, 2.0]),))[1], jvp(of(block), (x,), (T([1.0, 2.0]),))[1])
    same(hvp(of(f), x, T([1.0, 2.0])), hessian(of(block))(x) @ T([1.0, 2.0]))
    same(functional.hessian(of(f), x), hessian(of(block))(x))
    assert not any(t.requires_grad for t in (grad(grad(lambda t: of(f)(x * t)))(1.0), hessian(of(f))(x), jacrev(jacrev(of(f)))(x)))
    y = x.clone().requires_grad_()
    out = of(f)(y)
    out.backward(retain_graph=True)
    out.backward()
    same(y.grad, 2 * grad(of(block))(x))
    with pytest.raises(RuntimeError, match="a second time"):
        out.backward()


def test_batches():
    xs, w = T(np.random.default_rng(0).normal(size=(4, 3))), T([1.0, 2.0, 0.5])

    def of(run):
        return lambda w: vmap(lambda x: run(lambda x: (x * w).sin().sum(), x))(xs).sum()

    plain = of(lambda f, x: f(x))
    for transform in (grad, hessian, lambda g: jacrev(grad(g)), lambda g: jacfwd(grad(g))):
        same(transform(of(checkpoint))(w), transform(plain)(w))

    def each(run):
        return lambda w: vmap(lambda x: run(lambda x: (x * w).sin().sum(), x))(xs)

    same(jacrev(each(checkpoint))(w), jacrev(each(lambda f, x: f(x)))(w))
    same(jacfwd(each(checkpoint))(w), jacrev(each(lambda f, x: f(x)))(w))
    same(vmap(hessian(lambda x: called(x).sum()))(xs), vmap(hessian(lambda x: block(x).sum()))(xs))

    def slope(x):  # by what the members of the batch share
        return grad(lambda w: (w * x).sin().sum())(T(0.5)) * x.sum()

    same(grad(lambda xs: vmap(checkpoint(slope))(xs).sum())(xs), grad(lambda xs: vmap(slope)(xs).sum())(xs))
    inner = grad(lambda x: (x**3).sum())
    same(jacrev(checkpoint(inner))(w), jacrev(inner)(w))
    same(hessian(lambda x: checkpoint(inner, x).prod())(w), hessian(lambda x: inner(x).prod())(w))


def test_several_outputs_keyword_arguments_and_non_tensors():
    def f(x, tree, *, scale, word="no"):
        assert word == "yes"
        return {"a": x * tree[0] * scale, "b": [tree[1], x.exp()], "n": 3, "x": x}

    x, y = T([1.0, 2.0], requires_grad=True), T([0.5, 4.0], requires_grad=True)
    k = T([1, 2])
    out = checkpoint(f, x, (y, k), scale=2.0, word="yes", use_reentrant=False)
    assert out["n"] == 3 and out["b"][0].tolist() == [1, 2]
    (out["a"].sum() * 3 + (out["b"][1] * out["x"]).sum()).backward()
    expected_x = 6 * y + x.exp() * (1 + x)
    same(x.grad, expected_x)
    same(y.grad, 6 * x)


def test_an_argument_that_is_upstream_of_another_one():
    x = T(0.7, requires_grad=True)
    y = x.sin()

    def f(x, y):
        return x * y * z

    z = y * x  # captured, upstream of nothing but computed from both
    out = checkpoint(f, x, y, use_reentrant=False)
    (first,) = symgrad.autograd.grad(out, x, create_graph=True)
    (second,) = symgrad.autograd.grad(first, x)

    def plain(x):
        return x * x.sin() * (x.sin() * x)

    same(first, grad(plain)(0.7))
    same(second, grad(grad(plain))(0.7))


def network():
    symgrad.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_sequential(segments):
    x = T(np.random.default_rng(0).normal(size=(5, 4)), requires_grad=True)
    plain, kept = network(), network()
    plain(x).square().sum().backward()
    expected, x.grad = x.grad, None
    checkpoint_sequential(kept, segments, x, use_reentrant=False).square().sum().backward()
    same(x.grad, expected)
    for p, q in zip(plain.parameters(), kept.parameters(), strict=True):
        same(q.grad, p.grad)
    with pytest.raises(ValueError, match="segments=6 must be from 1 to the number of functions, 5"):
        checkpoint_sequential(kept, 6, x)


# Random numbers


def test_the_same_random_numbers_are_drawn_again():
    x = T(np.ones(1000), requires_grad=True)
    symgrad.manual_seed(1)
    y = checkpoint(lambda x: x * symgrad.rand(1000), x)
    following = symgrad.rand(3).tolist()
    symgrad.manual_seed(1)
    symgrad.rand(1000)
    y.sum().backward()
    same(x.grad, y)  # x is 1, so that y is what was drawn
    assert symgrad.rand(3).tolist() == following  # as if nothing had been drawn in between


def test_preserve_rng_state_false_draws_new_random_numbers():
    x = T(np.ones(1000), requires_grad=True)
    y = checkpoint(lambda x: x * symgrad.rand(1000), x, preserve_rng_state=False)
    y.sum().backward()
    assert not np.isclose(x.grad.numpy(), y.detach().numpy()).all()


# Memory


def test_arguments_are_freed_after_backward():
    class Big:
        pass

    big, x = Big(), T(1.0, requires_grad=True)
    known = weakref.ref(big)
    y = checkpoint(lambda x, big: x.sin(), x, big, use_reentrant=False)
    del big
    assert known() is not None
    y.backward()
    gc.collect()
    assert known() is None and y is not None


# The calling convention


@pytest.mark.parametrize("checkpoint", [checkpoint, utils.checkpoint.checkpoint], ids=["func", "utils"])
def test_contexts(checkpoint):
    entered = []

    @contextlib.contextmanager
    def noted(name):
        entered.append(name)
        yield

    x = T(1.0, requires_grad=True)
    y = checkpoint(block, x, use_reentrant=False, context_fn=lambda: (noted("forward"), noted("again")))
    assert entered == ["forward"]
    y.backward()
    assert entered == ["forward", "again"]


def test_without_a_graph_the_function_is_called_directly():
    calls = []

    def f(x):
        calls.append(1)
        return x * 2

    with symgrad.no_grad():
        assert checkpoint(f, T(1.0, requires_grad=True), use_reentrant=False).grad_fn is None
    assert not checkpoint(f, T(1.0), use_reentrant=False).requires_grad
    assert len(calls) == 2

    @checkpoint
    def named(x):
        """Documented."""
        return x

    assert (named.__name__, named.__doc__) == ("named", "Documented.")


# Recomputations that are others


def changing(values):
    given = iter(values)
    return lambda x: next(given)(x)


@pytest.mark.parametrize("again", [lambda x: x.exp()[:1], lambda x: x.exp().to(symgrad.float32), lambda x: 3.0, lambda x: x.exp().sin().asin(),
                                   lambda x: symgrad.cat([x, x]).exp()[:2]])
def test_a_recomputation_that_differs_is_refused(again):
    x = T([0.1, 0.2], requires_grad=True)
    y = checkpoint(changing([lambda x: x.exp(), again]), x, use_reentrant=False)
    with pytest.raises(CheckpointError):
        y.sum().backward()


def test_a_recomputation_from_other_tensors():
    x, other = T([0.1, 0.2], requires_grad=True), T([0.1, 0.2], requires_grad=True)
    y = checkpoint(changing([lambda x: x * x, lambda x: x * other]), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="depends on tensors that the forward pass did not depend on"):
        y.sum().backward()
    y = checkpoint(changing([lambda x: x.exp(), lambda x: x.exp().sin().asin()]), x, use_reentrant=False, determinism_check="none")
    y.sum().backward()
    same(x.grad, x.exp())


def test_an_argument_modified_in_place_is_detected():
    x, mask = T([0.1, 0.2], requires_grad=True), T([1.0, 2.0])
    y = checkpoint(lambda x, m: x * m, x, mask, use_reentrant=False).sum()
    mask.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    y = checkpoint(lambda x: x * x, x, use_reentrant=False).sum()
    with symgrad.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
