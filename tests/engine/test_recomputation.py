"""`utils.checkpoint` without reentrance: the graph of the plain call, whose saved tensors are computed again when they are read."""

import gc
import weakref

import numpy as np
import pytest

import symgrad
from symgrad import func
from symgrad.autograd import forward_ad
from symgrad.utils import checkpoint as module
from symgrad.utils.checkpoint import CheckpointError, checkpoint

T = symgrad.tensor


def block(x):
    return (x.sin() * 1.01 + x.cos()).tanh().exp() * 0.3


def kept(f, **settings):
    return lambda *args: checkpoint(f, *args, use_reentrant=False, **settings)


NESTED = {"once": kept(block), "twice": kept(kept(block)), "without early stop": kept(kept(block, early_stop=False), early_stop=False),
          "inside": kept(lambda x: kept(block)(x).sin() * x), "side by side": kept(lambda x: kept(block)(x) * kept(lambda x: x.exp())(x)),
          "a chain": kept(lambda x: kept(lambda y: y.tanh() * x)(kept(block)(x)))}
PLAIN = {"inside": lambda x: block(x).sin() * x, "side by side": lambda x: block(x) * x.exp(), "a chain": lambda x: block(x).tanh() * x}


@pytest.mark.parametrize("name", NESTED)
def test_derivatives_in_transforms(name):
    f, plain, x = NESTED[name], PLAIN.get(name, block), T([0.3, 0.7])
    for transform in (lambda g: func.grad(lambda x: g(x).sum()), lambda g: func.hessian(lambda x: g(x).prod()), func.jacrev, func.jacfwd,
                      lambda g: func.jacfwd(func.jacrev(g)), lambda g: lambda x: func.jvp(g, (x,), (x,))[1],
                      lambda g: func.vmap(func.hessian(lambda x: g(x * x))), lambda g: func.jacrev(func.vmap(g))):
        np.testing.assert_allclose(transform(f)(x), transform(plain)(x), rtol=1e-12, atol=1e-15)


def tangent(f, x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, symgrad.ones_like(x)))).tangent


@pytest.mark.parametrize("differentiate", [
    lambda f, x: func.grad(f)(x), lambda f, x: func.jacrev(f)(x), lambda f, x: func.jacfwd(f)(x), lambda f, x: func.hessian(f)(x),
    lambda f, x: func.jvp(f, (x,), (x,)), tangent, lambda f, x: tangent(f, x.requires_grad_())],
    ids=["grad", "jacrev", "jacfwd", "hessian", "jvp", "tangent", "tangent with a graph"])
def test_one_pass_makes_the_call_again_once(differentiate):
    calls = []
    differentiate(lambda x: kept(lambda x: calls.append(1) or (x.sin() * x.cos()).tanh() * x)(x).sum(), T([0.3, 0.7]))
    assert len(calls) <= 2  # a tangent without a graph is computed with the call


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


def test_formulas():
    x = T(2.0, requires_grad=True, symbol="x")
    y = kept(lambda x: x.sin() * x)(x)
    y.backward()
    assert str(y.expr) == "x*sin(x)" and str(x.grad.expr) == "x*cos(x) + sin(x)"
