"""`autograd.Function`: what is ours alone: other errors, and forward mode by the recorded forward. The rest is in the recorded programs."""

import numpy as np
import pytest

import symgrad
from symgrad import autograd, tensor
from symgrad.autograd import grad
from tests.support.functions import Two, function_of, leaf


def quartic():
    """x³ by a forward that leaves x² for its backward."""
    return function_of(lambda ctx, x: setattr(ctx, "square", x * x) or x ** 3, lambda ctx, g: g * 3 * ctx.square)


def test_errors_whose_text_differs_from_pytorch():
    x, z = leaf(1.0, 2.0), tensor([1.0 + 1.0j], requires_grad=True)
    with pytest.raises(RuntimeError, match="BadBackward: gradient 1 .*complex128"):
        grad(function_of(lambda ctx, x: x * 1, lambda ctx, g: g * 1j).apply(x).sum(), x)
    Real = function_of(lambda ctx, z: z * 1, lambda ctx, g: g.abs())
    assert grad(Real.apply(z), z, symgrad.ones(1, dtype=z.dtype))[0].dtype is z.dtype

    def forward(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    with pytest.warns(UserWarning, match="mark_dirty"):
        function_of(forward, lambda ctx, g: g).apply(x)


def test_forward_mode_by_the_recorded_forward():
    """Without a `jvp` the tangents go through the recorded forward, also to be differentiated again."""
    fw = autograd.forward_ad
    Quartic = quartic()
    x = leaf(2.0)
    with fw.dual_level():
        dual = fw.make_dual(x, tensor(1.0))
        slope = fw.unpack_dual(Quartic.apply(dual) * dual).tangent
        parts = [fw.unpack_dual(t).tangent for t in Two.apply(dual, dual)]
    assert slope.item() == 32.0 and grad(slope, x)[0].item() == 48.0
    assert [t.item() for t in parts] == [4.0, 2.0]


class SineByNumPy(autograd.Function):
    @staticmethod
    def forward(x):
        return symgrad.from_numpy(np.sin(x.numpy()))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos()

    @staticmethod
    def jvp(ctx, t):
        return t * ctx.saved_tensors[0].cos()

    @staticmethod
    def vmap(info, in_dims, x):
        return SineByNumPy.apply(x), in_dims[0]


def test_a_forward_may_take_the_array_of_a_tensor_that_requires_grad():
    """Grad mode is off in forward, where nothing can be lost; in grad mode it is refused, as in torch."""
    x = symgrad.tensor([0.3, 0.7, 1.1], requires_grad=True)
    with symgrad.no_grad():
        assert np.shares_memory(x.numpy(), x.detach().numpy()) and np.asarray(x).tolist() == [0.3, 0.7, 1.1]
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()
    SineByNumPy.apply(x).sum().backward()
    assert np.allclose(x.grad.numpy(), np.cos([0.3, 0.7, 1.1]))
    x = x.detach()
    f = symgrad.func
    for jacobian in (f.jacrev(SineByNumPy.apply), f.jacfwd(SineByNumPy.apply), lambda x: f.vmap(f.grad(SineByNumPy.apply))(x).diag()):
        assert np.allclose(jacobian(x).numpy(), np.diag(np.cos(x.numpy())))
    for chunk_size in (None, 1, 2):
        second = f.hessian(lambda x: SineByNumPy.apply(x).sum(), chunk_size=chunk_size)(x)
        assert np.allclose(second.numpy(), -np.diag(np.sin(x.numpy())))
