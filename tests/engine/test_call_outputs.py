"""The one node of a call with several outputs: lifetime, and other modes."""

import pytest

import symgrad
from tests.support.functions import leaf


def test_an_output_without_references_has_no_gradient():
    x = leaf([1.0, 2.0], [3.0, 5.0])
    node = x.unbind()[1].grad_fn
    with pytest.raises(RuntimeError, match="output 0 of UnbindBackward0 has no gradient"):
        symgrad.autograd.grad((x * x).sum(), symgrad.autograd.graph.GradientEdge(node, 0))
    with pytest.raises(RuntimeError, match="has no output number 2"):
        symgrad.autograd.grad((x * x).sum(), symgrad.autograd.graph.GradientEdge(node, 2))
    with pytest.raises(RuntimeError, match="MulBackward0 has no output number 1"):
        symgrad.autograd.grad((x * x).sum(), symgrad.autograd.graph.GradientEdge((x * x).grad_fn, 1))


def test_copies_of_outputs_have_their_own_cotangents():
    """The recorded forward of a Function is copied when its backward is differentiated."""
    class Product(symgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.a, ctx.b = symgrad.var_mean(x * x)
            return ctx.a * ctx.b

        @staticmethod
        def backward(ctx, g):
            return (g * ctx.a * ctx.b).expand(3)

    x = leaf(1.0, 2.0, 4.0)
    expected = symgrad.var_mean(x * x)
    (expected,) = symgrad.autograd.grad(expected[0] * expected[1], x)
    with symgrad.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        (first,) = symgrad.autograd.grad(Product.apply(x), x, create_graph=True)
        (second,) = symgrad.autograd.grad(first[0], x)
    assert second.tolist() == pytest.approx(expected.tolist())
