"""`autograd.Function`: attributes of ctx, lifetime, and forward mode."""


import numpy as np
import pytest

import symgrad
from symgrad import autograd, tensor
from symgrad.autograd import grad
from tests.support.functions import Two, function_of, leaf


def quartic():
    """x³ by a forward that leaves x² for its backward."""
    return function_of(lambda ctx, x: setattr(ctx, "square", x * x) or x ** 3, lambda ctx, g: g * 3 * ctx.square)


def test_ctx_accepts_every_attribute_name_that_torch_accepts():
    names = ["value", "args", "parents", "flags", "op", "vjp", "inner", "call", "function", "saved", "needs", "sequence_nr", "span", "own", "node",
             "seen", "origin", "data", "shape", "grad", "x", "self", "output_nr", "release", "silent", "context", "place", "output"]

    def forward(ctx, x):
        for i, name in enumerate(names):
            setattr(ctx, name, [i])
        return x * 2

    def backward(ctx, g):
        assert [getattr(ctx, name) for name in names] == [[i] for i in range(len(names))]
        return g * 2

    x = leaf(2.0)
    y = function_of(forward, backward).apply(x)
    assert y.grad_fn.value == [0] and y.grad_fn is y.grad_fn and {y.grad_fn: 1}[y.grad_fn] == 1
    y.grad_fn.later = 5
    y.backward()
    assert x.grad.item() == 2.0 and y.grad_fn.later == 5 and not hasattr(y.grad_fn, "never")
    with pytest.raises(AttributeError, match="'BadBackward' object has no attribute 'never'"):
        _ = y.grad_fn.never


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


def test_a_ctx_has_the_interface_of_a_node():
    x = leaf(2.0)
    y = quartic().apply(x)
    a, b = Two.apply(x, x * 3)
    assert isinstance(y.grad_fn, autograd.graph.Node) and isinstance((2 * y).grad_fn, autograd.graph.Node)
    assert (y * y).grad_fn.next_functions == ((y.grad_fn, 0), (y.grad_fn, 0)) and (b * 1).grad_fn.next_functions[0] == (a.grad_fn, 1)
    assert a.grad_fn.next_functions[1][0].name() == "MulBackward0"
    edge, seen = autograd.graph.get_gradient_edge(b), []
    assert (edge.node, edge.output_nr) == (b.grad_fn, 1) and grad(2 * b, edge)[0].item() == 2.0
    autograd.graph.register_multi_grad_hook((a, b), seen.append)
    (3 * a + b).backward()
    assert [[g.item() for g in grads] for grads in seen] == [[3.0, 1.0]]


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


def test_gradients_of_results_that_are_not_differentiable_may_stay_undefined():
    class Two(autograd.Function):
        @staticmethod
        def forward(ctx, x, materialize):
            first, second = x * 2, x * 3
            ctx.mark_non_differentiable(second)
            ctx._materialize_non_diff_grads = materialize
            return first, second

        @staticmethod
        def backward(ctx, g, h):
            seen.append(None if h is None else h.tolist())
            return g * 2, None

    seen, x = [], leaf(1.0)
    for materialize in (True, False):
        Two.apply(x, materialize)[0].backward()
    assert seen == [0.0, None] and x.grad == 4.0


def test_names_of_old_programs():
    class Double(autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated; use 'saved_tensors'"):
                assert len(ctx.saved_variables) == 1
            return g * 2

    y = Double.apply(leaf(1.0))
    assert type(y.grad_fn) is Double._backward_cls and issubclass(Double._backward_cls, autograd.function.BackwardCFunction)
    y.backward()
    with pytest.warns(DeprecationWarning, match="no instances"):
        assert Double(inplace=True).inplace
