"""The one node of a call with several outputs: lifetime, and other modes."""

import copy

import pytest

import symgrad
from symgrad.graph.common import CommonNode
from tests.support.functions import leaf


def test_an_output_without_references_has_no_gradient():
    x = leaf([1.0, 2.0], [3.0, 5.0])
    node = x.unbind()[1].grad_fn
    assert len(node._input_metadata) == 2 and node.next_functions[0][0].variable is x
    with pytest.raises(RuntimeError, match="output 0 of UnbindBackward0 has no gradient"):
        symgrad.autograd.grad((x * x).sum(), symgrad.autograd.graph.GradientEdge(node, 0))
    with pytest.raises(RuntimeError, match="has no output number 2"):
        symgrad.autograd.grad((x * x).sum(), symgrad.autograd.graph.GradientEdge(node, 2))
    with pytest.raises(RuntimeError, match="MulBackward0 has no output number 1"):
        symgrad.autograd.grad((x * x).sum(), symgrad.autograd.graph.GradientEdge((x * x).grad_fn, 1))
    with pytest.raises(TypeError, match="cannot pickle"):
        copy.deepcopy(node)


@pytest.mark.parametrize("modes", [
    lambda: symgrad.autograd.set_detect_anomaly(True), lambda: symgrad.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    symgrad.autograd.forward_ad.dual_level, symgrad.autograd.graph.allow_mutation_on_saved_tensors])
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_outputs_share_their_node_in_every_mode(modes):
    x, seen = leaf([1.0, 2.0], [3.0, 5.0]), []
    with modes():
        v, m = symgrad.var_mean(x, 0)
        assert v.grad_fn is m.grad_fn and (v.output_nr, m.output_nr) == (0, 1) and isinstance(v.grad_fn, CommonNode)
        m.grad_fn.register_prehook(seen.append)
        (v + m).sum().backward()
    ((g, h),) = seen
    assert g.tolist() == h.tolist() == [1.0, 1.0] and x.grad.tolist() == [[-1.5, -2.5], [2.5, 3.5]]


def test_a_written_output_leaves_the_call():
    x = leaf([1.0, 2.0], [3.0, 5.0])
    v, m = symgrad.var_mean(x, 0)
    former = v.grad_fn
    v.mul_(2)
    assert v.grad_fn.next_functions[0] == (former, 0) and v.output_nr == 0 and m.grad_fn is former
    seen = []
    former.register_prehook(seen.append)
    (v + m).sum().backward()
    assert [g.tolist() for g in seen[0]] == [[2.0, 2.0], [1.0, 1.0]]


def test_a_derivative_of_zero_is_no_undefined_gradient():
    x = leaf([1.0, 2.0], [3.0, 5.0])
    with symgrad.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        v, m = symgrad.var_mean(x, 0)
    (v.floor() + m.floor()).sum().register_hook(lambda g: g)
    (v.floor() + m.floor()).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


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
