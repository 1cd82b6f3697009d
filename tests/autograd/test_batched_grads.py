"""Batches of cotangents and tangents: `functional` with vectorize=True, and the batched checks of `gradcheck`."""

import numpy as np
import pytest

import symgrad
from symgrad import autograd
from symgrad.autograd import functional, gradcheck, gradgradcheck
from symgrad.testing.gradcheck.gradcheck import GradcheckError


def leaf():
    return symgrad.tensor([0.5, -1.25, 2.0], requires_grad=True)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_vectorize_true_gives_the_same_results(strategy, create_graph):
    """The batched passes give what one after the other gives, empty blocks and zeros with them, in memory of their own, and differentiable again."""
    def function(x, w):
        return x.sin() * w.sum(), (x * w[:3]).cumsum(0), w * 2, x.sum(), symgrad.zeros(0) * x.sum(), symgrad.ones(2)

    def inputs():
        return leaf(), symgrad.tensor([0.5, 2.0, -1.0, 3.0], requires_grad=True)

    at, beside = inputs(), inputs()
    found = functional.jacobian(function, at, create_graph, vectorize=True, strategy=strategy)
    expected = functional.jacobian(function, beside, create_graph, strategy=strategy)
    for row, other in zip(found, expected):
        for a, b in zip(row, other):
            assert a.shape == b.shape and a.dtype is b.dtype and a.requires_grad == b.requires_grad
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-15, atol=1e-15)
    if create_graph:
        for blocks in (found, expected):
            sum((a * a).sum() for row in blocks for a in row).backward()
        for x, y in zip(at, beside):
            np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-14)
    else:
        found[2][1].add_(1)
        assert not np.shares_memory(found[0][0].numpy(), found[2][1].numpy())


class OnlyOneByOne(symgrad.autograd.Function):
    """A Function whose rules leave the tensors, and are right where that is known."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0] if WHAT != "numpy" else symgrad.tensor(2 * g.numpy() * ctx.saved_tensors[0].detach().numpy())

    @staticmethod
    def jvp(ctx, t):
        return 2 * t * ctx.saved_tensors[0] * (1 if WHAT == "right" or not is_batched(t) else 1.5)


WHAT = "right"


def is_batched(t):
    return "Batched" in repr(t)


@pytest.mark.sweep
@pytest.mark.parametrize("what", ["right", "numpy", "wrong in a batch"])
def test_batches_of_cotangents_and_tangents(what, monkeypatch):
    monkeypatch.setitem(globals(), "WHAT", what)
    x = leaf()
    assert gradcheck(lambda x: (x * x).sin(), x, check_batched_grad=True, check_forward_ad=True, check_batched_forward_grad=True)
    assert gradgradcheck(lambda x: (x * x).sin(), x, check_batched_grad=True)
    if what == "right":
        assert gradcheck(OnlyOneByOne.apply, x, check_batched_grad=True, check_forward_ad=True, check_batched_forward_grad=True)
    elif what == "numpy":
        text = r"a batch of cotangents of output 0 .* raised .*: return 2 \* g .*\n    this rule calls NumPy with a tensor"
        with pytest.raises(GradcheckError, match=text):
            gradcheck(OnlyOneByOne.apply, x, check_batched_grad=True)
        assert not gradcheck(OnlyOneByOne.apply, x, check_batched_grad=True, raise_exception=False)
        assert gradcheck(OnlyOneByOne.apply, x)
    else:
        with pytest.raises(GradcheckError, match="a batch of tangents of input 0 .* gives tensor"):
            gradcheck(OnlyOneByOne.apply, x, check_forward_ad=True, check_batched_forward_grad=True)
        assert gradcheck(OnlyOneByOne.apply, x, check_forward_ad=True)


def test_random_numbers_in_a_batch_that_a_derivative_makes():
    class Noisy(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * (2 + 0 * symgrad.rand(2))

        @staticmethod
        def jvp(ctx, t):
            return t * (2 + 0 * symgrad.rand(2))

    x, words = symgrad.tensor([1.0, 2.0], requires_grad=True), "vmap: random numbers are drawn inside; draw them outside"
    with pytest.raises(RuntimeError, match="^" + words):
        autograd.grad(Noisy.apply(x), x, symgrad.ones(3, 2), is_grads_batched=True)
    for options in {"check_batched_grad": True}, {"check_forward_ad": True, "check_batched_forward_grad": True}:
        with pytest.raises(GradcheckError, match="a batch of .* raised " + words):
            gradcheck(Noisy.apply, x, attack=False, **options)


class Clipped(autograd.Function):
    """x · w, whose derivatives write in place, and depend on the sign of the first element of what they are given."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        ctx.save_for_forward(x, w)
        return x * w, x + 1

    @staticmethod
    def backward(ctx, g, h):
        x, w = ctx.saved_tensors
        out = h.new_zeros(3)
        out += g * w + h
        return (out, g * x) if g[0] > 0 else (2 * out, None)

    @staticmethod
    def jvp(ctx, t, s):
        x, w = ctx.saved_tensors
        out = t.new_zeros(3)
        out[:] = t * w
        return (out + s * x if t[0] >= 0 else -out), t + 0


def clipped(x, w):
    y, z = Clipped.apply(x, w)
    return y * y + z


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_backward_that_cannot_take_a_batch_is_called_for_each_member(create_graph):
    x, w = (symgrad.tensor(v, requires_grad=True) for v in ([1.0, 2.0, 3.0], [2.0, 3.0, 5.0]))
    y = clipped(x, w)
    rows = symgrad.tensor([[1.0, 0.0, 2.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    together = autograd.grad(y, (x, w), rows, retain_graph=True, create_graph=create_graph, is_grads_batched=True)
    one_by_one = [autograd.grad(y, (x, w), row, retain_graph=True, create_graph=create_graph, materialize_grads=True) for row in rows]
    for found, each in zip(together, zip(*one_by_one)):
        assert found.tolist() == [t.tolist() for t in each]
    if create_graph:
        for k in range(2):
            again = [autograd.grad(sum((t ** 2).sum() for t in ts), x, retain_graph=True)[0].tolist()
                     for ts in ([together[k]], [each[k] for each in one_by_one])]
            assert again[0] == again[1]


def test_transforms_of_functions_that_cannot_take_a_batch():
    x, w = symgrad.tensor([1.0, 2.0, 3.0]), symgrad.tensor([2.0, 3.0, 5.0])
    expected = symgrad.func.jacrev(lambda x: (x * w) ** 2 + x + 1)(x)
    reverse, forward = symgrad.func.jacrev(clipped)(x, w), symgrad.func.jacfwd(clipped)(x, w)
    assert forward.tolist() == expected.tolist() and reverse[0].tolist() == expected[0].tolist()
    assert reverse[1].tolist() == (2 * expected[1]).tolist()  # its first element is not positive
    with pytest.raises(RuntimeError, match="vmap: .* depends on the data of each member|vmap: .* writes in place inside vmap"):
        symgrad.func.vmap(symgrad.func.grad(lambda x: clipped(x, w).sum()))(symgrad.ones(2, 3))
