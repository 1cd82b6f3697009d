"""The transforms: values, nesting in every order, arguments, results and errors. vmap and Hessians have their own files."""

from collections import namedtuple

import numpy as np
import pytest

import symgrad
from symgrad import autograd, func
from symgrad.func import grad, grad_and_value, hessian, jacfwd, jacobian, jacrev, jvp, linearize, vjp, vmap

rng = np.random.default_rng(0)
A = symgrad.tensor(rng.normal(size=(3, 4)))
V = symgrad.tensor(rng.normal(size=4))
T = symgrad.tensor(rng.normal(size=4))


def f(x):
    return (A @ x).tanh() * x.sum()


def close(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), np.asarray(expected), rtol=1e-12, atol=1e-13)


def rows():
    """The Jacobian of f by a pullback for each row, with autograd alone."""
    out = []
    for i in range(3):
        x = V.clone().requires_grad_()
        out.append(autograd.grad(f(x)[i], x)[0].numpy())
    return np.stack(out)


def test_jacobians_in_both_modes():
    for transform in (jacrev, jacfwd, jacobian):
        for chunk_size in (None, 1, 2, 5):
            close(transform(f, chunk_size=chunk_size)(V), rows())


def test_perturbations_are_not_confused():
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(1.0).item() == 1
    assert grad(lambda x: x * jvp(lambda y: x + y, (1.0,), (1.0,))[1])(1.0).item() == 1
    assert jvp(lambda x: x * grad(lambda y: x + y)(1.0), (1.0,), (1.0,))[1].item() == 1
    assert jvp(lambda x: x * jvp(lambda y: x + y, (1.0,), (1.0,))[1], (1.0,), (1.0,))[1].item() == 1
    assert grad(lambda x: x * grad(lambda y: x * y)(x))(3.0).item() == 6
    assert jvp(lambda x: x * vmap(grad(lambda y: x * y))(symgrad.ones(2)).sum(), (3.0,), (1.0,))[1].item() == 12
    inner = linearize(lambda y: y * y, 2.0)[1]
    assert grad(lambda x: inner(x) * x)(3.0).item() == 24


@pytest.mark.parametrize("tracked", [False, True])
def test_a_modified_saved_value_is_refused_by_every_transform(tracked):
    x, w, t = V.clone().requires_grad_(tracked), V.clone(), symgrad.ones(4)
    _, along = linearize(lambda x: (x * w).sin(), x)
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        along(t)


Point = namedtuple("Point", "a b")


def test_trees_as_arguments_and_outputs():
    def g(p, q, *, scale=1.0):
        return {"y": scale * p["x"][0] * q.a, "z": [q.b.sum(), None]}, "kept"

    p, q = {"x": (2.0, [symgrad.tensor(1.0)])}, Point(3.0, symgrad.ones(2))
    found, aux = jacrev(g, argnums=(0, 1), has_aux=True)(p, q, scale=10.0)
    assert aux == "kept" and found["z"][1] is None
    assert found["y"][0]["x"][0].item() == 30 and found["y"][0]["x"][1][0].item() == 0
    assert found["y"][1].a.item() == 20 and found["z"][0][1].b.tolist() == [1.0, 1.0] and isinstance(found["y"][1], Point)
    (dp, dq), (value, aux) = grad_and_value(lambda p, q: (p["x"][0] ** 2 * q.b.sum(), q.a), (0, 1), has_aux=True)(p, q)
    assert dp["x"][0].item() == 8 and dq.b.tolist() == [4.0, 4.0] and value.item() == 8 and aux == 3.0
    y, pullback = vjp(lambda p, q: (p["x"][0] * q.b, {"s": q.a}), p, q)
    dp, dq = pullback((symgrad.ones(2), {"s": 5.0}))
    assert dp["x"][0].item() == 2 and dq.a.item() == 5 and dq.b.tolist() == [2.0, 2.0]
    y, t = jvp(lambda p: p["u"] * p["v"], ({"u": 2.0, "v": 3.0},), ({"u": 1.0, "v": 10.0},))
    assert (y.item(), t.item()) == (6, 23)


def test_argnums_of_several_arguments_and_negative_argnums():
    g = lambda a, b, c: a * b**2 * c**3
    assert [grad(g, n)(2.0, 3.0, 4.0).item() for n in (0, 1, 2, -1, -3)] == [576, 768, 864, 864, 576]
    assert [t.item() for t in grad(g, (2, 0))(2.0, 3.0, 4.0)] == [864, 576]
    assert isinstance(grad(g, (1,))(2.0, 3.0, 4.0), tuple)
    assert grad(lambda x, n: x**n, 0)(2.0, 3).item() == 12  # the other argument is left as it is


def test_results_require_grad_only_inside_another_derivative():
    x = symgrad.tensor([1.0, 2.0])
    for found in (grad(lambda x: x.prod())(x), jacrev(f)(V), hessian(lambda x: x.prod())(x), jvp(f, (V,), (T,))[1], vjp(f, V)[0]):
        assert not found.requires_grad and found.grad_fn is None
    leaf = symgrad.tensor([1.0, 2.0], requires_grad=True)
    found = grad(lambda x: x.prod() ** 2)(leaf)
    assert found.requires_grad
    found.sum().backward()
    assert leaf.grad.tolist() == [8 + 8, 8 + 2]
    with symgrad.no_grad():
        assert not grad(lambda x: x.prod() ** 2)(leaf).requires_grad
        assert grad(lambda x: x.prod() ** 2)(leaf).tolist() == [8.0, 4.0]
    weight = symgrad.tensor(3.0, requires_grad=True)
    value, tangent = jvp(lambda x: weight * x**2, (2.0,), (1.0,))
    assert autograd.grad(tangent, weight)[0].item() == 4
    _, pullback = vjp(lambda x: x**2, 3.0)
    v = symgrad.tensor(5.0, requires_grad=True)
    assert autograd.grad(pullback(v)[0], v)[0].item() == 6


def test_hooks_and_detached_values():
    seen = []

    def g(x):
        y = x * 2
        y.register_hook(lambda c: seen.append(c.item()) or c * 10)
        return y**2

    assert grad(g)(3.0).item() == 240 and seen == [12.0]
    assert grad(lambda x: x * x.detach())(3.0).item() == 3
    assert grad(lambda x: symgrad.tensor(1.0))(3.0).item() == 0
    assert jacfwd(lambda x: symgrad.ones(2))(symgrad.ones(3)).tolist() == [[0.0] * 3] * 2


def test_functional_call():
    layer = symgrad.nn.Sequential(symgrad.nn.Linear(4, 3, dtype=symgrad.float64), symgrad.nn.Tanh(), symgrad.nn.Linear(3, 1, dtype=symgrad.float64))
    weights = {name: p.detach() for name, p in layer.named_parameters()}
    x = symgrad.tensor(np.random.default_rng(1).normal(size=(5, 4)))
    loss = lambda w, x: func.functional_call(layer, w, (x,)).square().sum()
    found = grad(loss)(weights, x)
    layer(x).square().sum().backward()
    for name, p in layer.named_parameters():
        close(found[name], p.grad.numpy())
    each = vmap(grad(loss), in_dims=(None, 0))(weights, x)
    for name, p in layer.named_parameters():
        close(each[name].sum(0), p.grad.numpy())
        assert p.requires_grad and p is dict(layer.named_parameters())[name]
    models = [symgrad.nn.Linear(2, 1) for _ in range(3)]
    params, buffers = func.stack_module_state(models)
    x = symgrad.ones(2, dtype=models[0].weight.dtype)
    y = vmap(lambda p, b, x: func.functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None))(params, buffers, x)
    np.testing.assert_allclose(y.detach().numpy(), np.stack([m(x).detach().numpy() for m in models]), rtol=1e-6)


def test_an_unselected_branch_contributes_no_nan_to_second_derivatives():
    def f(x):
        return symgrad.where(x > 0, x**1.5, 0 * x).sum()

    x = symgrad.tensor([0.0, -1.0, 4.0])
    expected = np.diag([0.0, 0.0, 0.375])
    for transform in (hessian, lambda f: jacrev(grad(f)), lambda f: jacfwd(grad(f)), lambda f: jacfwd(jacfwd(f)), lambda f: jacrev(jacrev(f))):
        close(transform(f)(x), expected)
    leaf = x.clone().requires_grad_()
    (g,) = autograd.grad(f(leaf), leaf, create_graph=True)
    assert autograd.grad(g.sum(), leaf)[0].tolist() == [0.0, 0.0, 0.375]


def test_nan_of_one_element_does_not_spread_to_others():
    x, y = symgrad.tensor([1.0, 1e-300], requires_grad=True), symgrad.tensor([0.0, 0.0], requires_grad=True)
    first = autograd.grad((x**y).sum(), x, create_graph=True)[0]
    second = autograd.grad(first.sum(), x, create_graph=True)[0]  # y (y - 1) x**(y - 2), which is 0
    assert autograd.grad(second.sum(), y)[0].tolist()[0] == -1.0
