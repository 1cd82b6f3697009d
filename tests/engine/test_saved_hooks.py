"""Saved-tensor hooks, multi-grad hooks and gradient edges: derivatives of every order, lifetime and threads; nodes with several outputs."""

import math
import weakref

import numpy as np
import pytest

import symgrad
from symgrad.autograd import graph
from tests.support.functions import leaf

OPS = {
    "tanh": lambda x: x.tanh(), "sigmoid": lambda x: x.sigmoid(), "relu": lambda x: x.relu(), "expm1": lambda x: x.expm1(),
    "div": lambda x: 2 / x + x / x, "pow": lambda x: x ** x, "matmul": lambda x: x @ x, "einsum": lambda x: symgrad.einsum("ij,kj->ik", x, x),
    "softmax": lambda x: x.softmax(0), "where": lambda x: symgrad.where(x > 0.7, x * x, x.exp()), "prod": lambda x: x.prod(),
    "std": lambda x: x.std(),
    "cat": lambda x: symgrad.cat([x * x, x]), "broadcast": lambda x: x * x[0] * x.sum(), "in place": lambda x: x.clone().sin_().mul_(x),
    "view": lambda x: (x * x)[0].exp(), "logsumexp": lambda x: x.logsumexp(1), "maximum": lambda x: x.maximum(x.T),
    "clamp": lambda x: (x * x).clamp(0.3, 0.8), "norm": lambda x: x.norm(), "remainder": lambda x: x.remainder(x.T + 0.1),
    "unbind": lambda x: symgrad.stack([a * b for a, b in zip(x, x.unbind(1))]),
}


def derivatives(function, x, *hooks):
    """The first, second and third derivative in the direction of ones."""
    out = []
    if hooks:
        with graph.saved_tensors_hooks(*hooks):
            y = function(x).sum()
    else:
        y = function(x).sum()
    for _ in range(3):
        (g,) = symgrad.autograd.grad(y, x, symgrad.ones_like(y) * (1 - 2j) if y.is_complex() else None, create_graph=True)
        out.append(np.array(g.tolist()))
        y = g.sum()
    return out


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", [symgrad.float64, symgrad.complex128])
def test_derivatives_of_every_order_with_packed_copies(name, dtype):
    if dtype is symgrad.complex128 and name in ("relu", "where", "std", "logsumexp", "maximum", "clamp", "norm", "remainder", "prod", "softmax"):
        dtype = symgrad.float64
    x = symgrad.tensor([[0.3, 0.6, 0.9], [1.1, 0.8, 0.5], [0.2, 0.4, 1.3]], dtype=dtype, requires_grad=True)
    kept = []

    def pack(t):
        kept.append(t.detach().clone())
        return len(kept) - 1

    expected = derivatives(OPS[name], x)
    found = derivatives(OPS[name], x, pack, lambda i: kept[i])
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_an_unpacked_value_is_used_in_every_order():
    x = symgrad.tensor(2.0, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: None, lambda _: symgrad.tensor(5.0)):
        y = x.sin()
    (first,) = symgrad.autograd.grad(y, x, create_graph=True)
    (second,) = symgrad.autograd.grad(first, x)
    assert first.item() == pytest.approx(np.cos(5.0)) and second.item() == pytest.approx(-np.sin(5.0))


def test_the_graph_does_not_keep_packed_values_alive():
    x = symgrad.ones(1000, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: None, lambda _: symgrad.ones(1000)):
        y = x * 1
        z = (y * y).exp()
        s = z.sum()
    held = weakref.ref(y._value), weakref.ref(z._value)
    del y, z
    assert all(r() is None for r in held)
    s.backward()
    assert x.grad[0].item() == 2


def test_formulas_and_tangents_pass_through_hooks():
    x = symgrad.tensor(2.0, requires_grad=True, symbol="x")
    seen = []
    with graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        y = 3 * x.sin() * x
    assert seen and str(y.expr) == "3*x*sin(x)"
    y.backward()
    assert str(x.grad.expr) == "3*x*cos(x) + 3*sin(x)"
    forward_ad = symgrad.autograd.forward_ad
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t), forward_ad.dual_level():
        y = forward_ad.make_dual(symgrad.tensor(2.0, requires_grad=True), symgrad.tensor(1.0)) ** 3
        assert forward_ad.unpack_dual(y).tangent.item() == 12


def test_a_write_outside_of_allow_mutation_tracking_raises():
    x = symgrad.ones(2, requires_grad=True)
    with graph.allow_mutation_on_saved_tensors():
        y = x * 2
        z = (y * y).sum()
        y.numpy(force=True)[:] = 7
        graph.increment_version(y)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.backward()


@pytest.mark.parametrize("name", ["grad", "hessian", "jacrev", "jacfwd"])
def test_transforms_of_functions_that_use_hooks(name):
    def f(x):
        with graph.save_on_cpu():
            return (x.sin() * x.exp() / x).sum().exp()

    x = symgrad.tensor([0.3, 0.7])
    plain = getattr(symgrad.func, name)(lambda x: (x.sin() * x.exp() / x).sum().exp())
    transform = getattr(symgrad.func, name)(f)
    xs = symgrad.stack([x, x + 1])
    for found, expected in (transform(x), plain(x)), (symgrad.func.vmap(transform)(xs), symgrad.func.vmap(plain)(xs)):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(symgrad.func.jacfwd(transform)(x), symgrad.func.jacfwd(plain)(x), rtol=1e-13)


def test_a_posthook_that_an_unpack_hook_registers_runs():
    def unpack(t):
        if not seen:
            z.grad_fn.register_hook(lambda inputs, outputs: seen.append(outputs) or tuple(g / 2 for g in inputs))
        return t

    x, seen = symgrad.tensor([1.0, 2.0], requires_grad=True), []
    with graph.saved_tensors_hooks(lambda t: t, unpack):
        z = x.cos()
        y = z.sum()
    for times in (1, 2):
        y.backward(retain_graph=True)
        assert x.grad.tolist() == pytest.approx([-times * math.sin(v) / 2 for v in (1.0, 2.0)])
    assert [[g.tolist() for g in outputs] for outputs in seen] == [[], [[1.0, 1.0]]]


@pytest.mark.parametrize("transform", ["hessian", "jacfwd of grad", "jvp of grad", "jacrev of grad"])
def test_transforms_inside_hooks(transform):
    x, power = symgrad.tensor([1.0, 2.0]), lambda x: (x**3).sum()
    by_transform = {"hessian": symgrad.func.hessian(power), "jacfwd of grad": symgrad.func.jacfwd(symgrad.func.grad(power)),
                    "jacrev of grad": symgrad.func.jacrev(symgrad.func.grad(power)),
                    "jvp of grad": lambda x: symgrad.func.vmap(lambda t: symgrad.func.jvp(symgrad.func.grad(power), (x,), (t,))[1])(symgrad.eye(2))}
    packs = []
    with symgrad.autograd.graph.saved_tensors_hooks(lambda t: packs.append(t) or t, lambda t: t):
        found = by_transform[transform](x)
    assert found.tolist() == [[6.0, 0.0], [0.0, 12.0]] and packs


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
