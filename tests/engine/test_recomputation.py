"""`utils.checkpoint` without reentrance: the graph of the plain call, whose saved tensors are computed again when they are read."""

import gc
import weakref

import numpy as np
import pytest

import symgrad
from symgrad import func
from symgrad.autograd import forward_ad
from symgrad.autograd.graph import save_on_cpu, saved_tensors_hooks
from symgrad.utils import checkpoint as module
from symgrad.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

T = symgrad.tensor


def block(x):
    return (x.sin() * 1.01 + x.cos()).tanh().exp() * 0.3


def kept(f, **settings):
    return lambda *args: checkpoint(f, *args, use_reentrant=False, **settings)


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *args):
        self.calls += 1
        return self.function(*args)


def orders(f, x, count=3):
    """The gradients of the sum of the gradients, and so on."""
    found, y = [], f(x).sum()
    for _ in range(count):
        (g,) = symgrad.autograd.grad(y, x, create_graph=True)
        found.append(g.tolist())
        y = (g * g).sum()
    return found


NESTED = {"once": kept(block), "twice": kept(kept(block)), "without early stop": kept(kept(block, early_stop=False), early_stop=False),
          "inside": kept(lambda x: kept(block)(x).sin() * x), "side by side": kept(lambda x: kept(block)(x) * kept(lambda x: x.exp())(x)),
          "a chain": kept(lambda x: kept(lambda y: y.tanh() * x)(kept(block)(x)))}
PLAIN = {"inside": lambda x: block(x).sin() * x, "side by side": lambda x: block(x) * x.exp(), "a chain": lambda x: block(x).tanh() * x}


@pytest.mark.parametrize("name", NESTED)
def test_derivatives_of_every_order_and_in_transforms(name):
    f, plain = NESTED[name], PLAIN.get(name, block)
    x = T([0.3, 0.7], requires_grad=True)
    np.testing.assert_allclose(orders(f, x), orders(plain, x), rtol=1e-13)
    f(x).sum().backward(retain_graph=True)
    first = x.grad.tolist()
    assert first == pytest.approx(orders(plain, x, 1)[0], rel=1e-14)
    for transform in (lambda g: func.grad(lambda x: g(x).sum()), lambda g: func.hessian(lambda x: g(x).prod()), func.jacrev, func.jacfwd,
                      lambda g: func.jacfwd(func.jacrev(g)), lambda g: lambda x: func.jvp(g, (x,), (x,))[1],
                      lambda g: func.vmap(func.hessian(lambda x: g(x * x))), lambda g: func.jacrev(func.vmap(g))):
        np.testing.assert_allclose(transform(f)(x.detach()), transform(plain)(x.detach()), rtol=1e-12, atol=1e-15)


def derivative_inside(x):
    a, b = x.sin().exp().sin(), x.cos().exp()
    (first,), (second,) = symgrad.autograd.grad(a, x, create_graph=True), symgrad.autograd.grad(b, x)
    return x.cos() * first + second


@pytest.mark.parametrize("early_stop", [True, False])
def test_backward_inside_of_a_checkpoint(early_stop):
    x = T(0.4, requires_grad=True)
    for f in kept(derivative_inside, early_stop=early_stop), kept(kept(derivative_inside, early_stop=early_stop), early_stop=early_stop):
        assert np.allclose(orders(f, x, 2), orders(derivative_inside, x, 2), rtol=1e-13)


def test_how_often_the_function_runs():
    x = T([0.3, 0.7], requires_grad=True)
    f, last = Counted(lambda x: last(x.sin().cos())), Counted(lambda x: x * 1)
    y = kept(f)(x).sum()
    assert (f.calls, last.calls) == (1, 1)
    y.backward(retain_graph=True)
    assert (f.calls, last.calls) == (2, 1)  # the last operation saves nothing
    y.backward()
    assert (f.calls, last.calls) == (3, 1)
    with module.set_checkpoint_early_stop(False):
        y = kept(f)(x).sum()
    y.backward()
    assert (f.calls, last.calls) == (5, 3)
    linear = Counted(lambda x: x * 2)
    kept(linear)(x).sum().backward()
    assert linear.calls == 1
    with symgrad.no_grad():
        assert not kept(f)(x).requires_grad
    assert kept(lambda x, n: (x.sin(), n, "word"))(x, 3)[1:] == (3, "word")


def tangent(f, x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, symgrad.ones_like(x)))).tangent


@pytest.mark.parametrize("differentiate", [
    lambda f, x: func.grad(f)(x), lambda f, x: func.jacrev(f)(x), lambda f, x: func.jacfwd(f)(x), lambda f, x: func.hessian(f)(x),
    lambda f, x: func.jvp(f, (x,), (x,)), tangent, lambda f, x: tangent(f, x.requires_grad_())],
    ids=["grad", "jacrev", "jacfwd", "hessian", "jvp", "tangent", "tangent with a graph"])
def test_one_pass_makes_the_call_again_once(differentiate):
    f = Counted(lambda x: (x.sin() * x.cos()).tanh() * x)
    differentiate(lambda x: kept(f)(x).sum(), T([0.3, 0.7]))
    assert f.calls <= 2  # a tangent without a graph is computed with the call


def test_the_graph_is_that_of_the_plain_call():
    x, calls = T(1.0, requires_grad=True), []
    y, z = checkpoint(lambda x: (x.sin(), x.sin().exp()), x, use_reentrant=False)
    assert z.grad_fn.name() == "ExpBackward0"
    z.grad_fn.next_functions[0][0].register_hook(lambda *_: calls.append("sin"))
    z.grad_fn.register_hook(lambda *_: y.backward(retain_graph=True))
    z.backward(retain_graph=True)
    assert calls == ["sin"] and x.grad.item() == pytest.approx(np.cos(1) * (1 + np.exp(np.sin(1))))
    seen = []
    w = T(2.0, requires_grad=True)
    w.register_hook(lambda g: seen.append(g.item()))
    kept(lambda x: x * w * w)(w * T(3.0)).backward()
    assert seen == [36.0]


def test_arguments_of_every_kind():
    x, k = T([1.0, 2.0], requires_grad=True), T([3.0, 4.0], requires_grad=True)
    found = checkpoint(lambda x, tree, *, scale: {"a": x * tree["k"][0].exp() * scale}, x, {"k": [k]}, scale=x, use_reentrant=False)
    found["a"].sum().backward()
    assert x.grad.tolist() == pytest.approx((2 * x * k.exp()).tolist()) and k.grad.tolist() == pytest.approx((x * x * k.exp()).tolist())


class Saves(symgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        Saves.seen = ctx.saved_tensors
        if Saves.twice:
            ctx.saved_tensors  # noqa: B018
        return g * Saves.seen[1], None


def test_saved_tensors_of_functions():
    x, y = T(1.0, requires_grad=True), T(3.0)
    Saves.twice = False
    kept(lambda x, y: Saves.apply(x, y))(x, y).backward()
    assert Saves.seen[1] is y and x.grad.item() == 3
    Saves.twice = True
    with pytest.raises(CheckpointError, match="read twice"):
        kept(lambda x, y: Saves.apply(x.sin(), y))(x, y).backward()


def changing(*functions):
    given = iter(functions)
    return lambda x: next(given)(x)


TWO, THREE = (lambda x: x.sin().exp()), (lambda x: x.sin().exp().sin())


@pytest.mark.parametrize(("first", "again", "settings", "words"), [
    (THREE, TWO, {}, "the first call saved 3 tensors, and the recomputation 2"),
    (TWO, THREE, {"early_stop": False}, "saves more than the 2 tensors"),
    (TWO, lambda x: x.sin() * T([1.0, 2.0]), {}, "saved tensor 1 was {'shape': torch.Size([1])"),
    (TWO, lambda x: x.sin().float().exp(), {}, "float32"),
])
def test_a_recomputation_that_differs_is_refused(first, again, settings, words):
    x = T([0.5], requires_grad=True)
    y = kept(changing(first, again), **settings)(x)
    with pytest.raises(CheckpointError) as caught:
        y.sum().backward()
    assert words in str(caught.value)
    for debug in {"debug": True}, {}:
        with module.set_checkpoint_debug_enabled(None if debug else True):
            y = kept(changing(first, again), **settings, **debug)(x)
        with pytest.raises(CheckpointError, match="Operations of the recomputation") as caught:
            y.sum().backward()
        assert "  Sin([1]) -> [1] at " in str(caught.value) and __file__ in str(caught.value) and words in str(caught.value)


def test_differences_that_do_not_matter():
    x = T([0.5], requires_grad=True)
    kept(changing(TWO, THREE))(x).backward()
    assert x.grad.item() == pytest.approx(np.exp(np.sin(0.5)) * np.cos(0.5))
    kept(changing(TWO, lambda x: x.sin() * T([1.0, 2.0])), determinism_check="none")(x).sum().backward()
    assert x.grad.shape == (1,)


def test_an_argument_written_in_place_is_detected():
    x, scale = T([0.1, 0.2], requires_grad=True), T([1.0, 2.0])
    y = kept(lambda x, s: (x * s).sin())(x, scale).sum()
    scale.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    y = kept(block)(x)
    y.mul_(2)
    y[0].add_(1)
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx((2 * func.grad(lambda x: block(x).sum())(x.detach())).tolist())


def test_random_numbers_are_drawn_again():
    x = T(np.ones(100), requires_grad=True)
    for preserve in True, False:
        x.grad = None
        y = checkpoint(lambda x: (x * symgrad.rand(100)).exp(), x, use_reentrant=False, preserve_rng_state=preserve)
        after = symgrad.get_rng_state()
        y.sum().backward()
        assert np.allclose(x.grad.detach(), (y * y.log()).detach()) == preserve
        assert symgrad.equal(symgrad.get_rng_state(), after) == preserve


def test_memory():
    made = []

    def f(x):
        y = x.sin()
        made.append(weakref.ref(y._value))
        return y.exp()

    x = symgrad.ones(1000).requires_grad_()
    y = kept(f)(x)
    assert made[0]() is None
    y.sum().backward(retain_graph=True)
    assert len(made) == 2 and made[1]() is None
    graph = weakref.ref(y._node)
    gc.disable()
    del y
    gc.enable()
    assert graph() is None


def test_together_with_other_hooks():
    x = T([0.3, 0.7], requires_grad=True)
    expected = func.grad(lambda x: block(block(x) * 1).sum())(x.detach()).tolist()
    packed = []
    with saved_tensors_hooks(lambda t: packed.append(1) or t.numpy(force=True).copy(), symgrad.from_numpy):
        kept(lambda x: kept(block)(block(x) * 1))(x).sum().backward()
    assert x.grad.tolist() == pytest.approx(expected) and packed == [1]  # the argument
    x.grad = None

    def offloaded(x):
        with save_on_cpu():
            return block(x) * 1

    kept(lambda x: block(offloaded(x)))(x).sum().backward()
    assert x.grad.tolist() == pytest.approx(expected)


def test_formulas():
    x = T(2.0, requires_grad=True, symbol="x")
    y = kept(lambda x: x.sin() * x)(x)
    y.backward()
    assert str(y.expr) == "x*sin(x)" and str(x.grad.expr) == "x*cos(x) + sin(x)"


@pytest.mark.parametrize("call", [lambda x: checkpoint(block, x), lambda x: checkpoint_sequential([block, block], 2, x)])
def test_a_call_that_does_not_say_use_reentrant_warns(call):
    x = T([0.3, 0.7], requires_grad=True)
    with pytest.warns(UserWarning, match="use_reentrant is not given") as caught:
        call(x).sum().backward()
    assert x.grad is not None and caught[0].filename == __file__


@pytest.mark.parametrize("segments", [1, 2, 3])
def test_sequential(segments):
    x = T([0.3, 0.7], requires_grad=True)
    checkpoint_sequential([block, symgrad.sin, block], segments, x, use_reentrant=False).sum().backward()
    assert x.grad.tolist() == pytest.approx(func.grad(lambda x: block(block(x).sin()).sum())(x.detach()).tolist())


@pytest.mark.parametrize(("words", "settings"), [
    ("scale", {"use_reentrant": True, "scale": 1, "n": 2}), ("debug", {"use_reentrant": True, "debug": True}),
    ("'all'", {"use_reentrant": False, "determinism_check": "all"}),
    ("context_fn", {"use_reentrant": False, "debug": True, "context_fn": lambda: None}),
])
def test_refusals(words, settings):
    with pytest.raises(ValueError, match=words):
        checkpoint(block, T(1.0, requires_grad=True), **settings)
