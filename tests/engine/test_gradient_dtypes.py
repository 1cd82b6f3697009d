"""A gradient has its leaf's dtype, whatever dtype a rule computed in."""

import numpy as np
import pytest

import symgrad
from symgrad.graph.op import REGISTRY, elementwise

DTYPES = [symgrad.float16, symgrad.bfloat16, symgrad.float32, symgrad.float64]


@pytest.fixture
def step():
    """An op whose partial derivative is written with Python numbers, so that it is computed in float64."""
    from symgrad.engine.traced import lift

    op = elementwise("ramp_of_the_tests", lambda xp, x: xp.where(x > 0, x, 0.0 * x), lambda xp, y, x: xp.where(x > 0, 1.0, 0.0))
    yield lift(op)
    REGISTRY.pop("ramp_of_the_tests", None)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_have_the_dtype_of_the_leaf(step, dtype):
    x = symgrad.tensor([1.0, -2.0, 3.0], dtype=dtype, requires_grad=True)
    step(x).sum().backward()
    assert x.grad.dtype == dtype
    (step(x) * x).sum().backward()
    assert x.grad.dtype == dtype and x.grad.to(symgrad.float64).tolist() == [3.0, 0.0, 7.0]
    for create_graph in (False, True):
        (g,) = symgrad.autograd.grad((step(x) * x).sum(), x, create_graph=create_graph)
        assert g.dtype == dtype
    (second,) = symgrad.autograd.grad(g.sum(), x)
    assert second.dtype == dtype and second.to(symgrad.float64).tolist() == [2.0, 0.0, 2.0]
    assert symgrad.func.grad(lambda x: step(x).sum())(x.detach()).dtype == dtype
    assert symgrad.func.jacrev(step)(x.detach()).dtype == dtype
    assert symgrad.func.vjp(step, x.detach())[1](symgrad.ones(3, dtype=dtype))[0].dtype == dtype
    assert symgrad.func.grad(lambda x: symgrad.func.grad(lambda x: (step(x) * x).sum())(x).sum())(x.detach()).dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_hooks_see_the_dtype_of_their_tensor(step, dtype):
    x = symgrad.tensor([1.0, -2.0, 3.0], dtype=dtype, requires_grad=True)
    doubled, seen = x * 2, []
    doubled.retain_grad()
    for tensor in (x, doubled):
        tensor.register_hook(lambda g: seen.append(g.dtype))
    step(doubled).sum().backward()
    assert seen == [dtype, dtype] and doubled.grad.dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tangents_have_the_dtype_of_the_value(step, dtype):
    x = symgrad.tensor([1.0, -2.0, 3.0], dtype=dtype)
    ones = symgrad.ones(3, dtype=dtype)
    with symgrad.autograd.forward_ad.dual_level():
        dual = symgrad.autograd.forward_ad.make_dual(x, ones)
        y = step(dual)
        assert symgrad.autograd.forward_ad.unpack_dual(y).tangent.dtype == y.dtype
    value, tangent = symgrad.func.jvp(step, (x,), (ones,))
    assert tangent.dtype == value.dtype


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_where_with_a_python_number_keeps_the_dtype(dtype):
    x = symgrad.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
    for y in (symgrad.where(x > 1.5, x, 0.0), symgrad.where(x > 1.5, 0.0, x), symgrad.where(x > 1.5, x, 1), symgrad.where(x > 1.5, 2, x)):
        assert y.dtype == dtype
        y.sum().backward()
        assert x.grad.dtype == dtype
    assert np.asarray(symgrad.where(x > 1.5, x, 0.0).to(symgrad.float64).detach()).tolist() == [0.0, 2.0]


def test_rules_may_compare_with_python_operators_in_every_pass(step):
    x = symgrad.tensor([1.0, -2.0, 3.0])
    cube = lambda x: (step(x) * x * x).sum()  # noqa: E731
    assert symgrad.func.hessian(cube)(x).diagonal().tolist() == [6.0, 0.0, 18.0]
    assert symgrad.func.jvp(symgrad.func.grad(cube), (x,), (symgrad.ones(3),))[1].tolist() == [6.0, 0.0, 18.0]
    assert [t.tolist() for t in symgrad.func.jet(step, (x,), ((symgrad.ones(3), symgrad.zeros(3)),))[1]] == [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("f", [lambda x: x.tanh() * x / 3, lambda x: x**3, lambda x: symgrad.relu(x)])
def test_coefficients_have_the_dtype_of_the_value(f, dtype):
    x = symgrad.tensor([0.7, 1.3], dtype=getattr(symgrad, dtype))
    u, found = x * 0 + 1, lambda x: f(x).sum()
    exact = symgrad.func.directional_derivatives(found, 3)(x.double(), u.double())
    results = [
        (1, lambda: symgrad.func.jet(found, (x,), ([u, 0 * u, 0 * u],))[1]), (0, lambda: symgrad.func.directional_derivatives(found, 3)(x, u)),
        (0, lambda: symgrad.func.derivatives(lambda t: found(x + t * u), 3)(symgrad.tensor(0.0, dtype=x.dtype))),
        (1, lambda: symgrad.func.vmap(lambda z: symgrad.func.jet(found, (z,), ([u, 0 * u, 0 * u],))[1])(x[None])),
        (2, lambda: [symgrad.func.laplacian(found)(x)]),
    ]
    for first, result in results:
        for k, t in enumerate(result(), first):
            assert t.dtype == x.dtype
            assert abs(t.double().sum() - exact[k]) <= 0.05 * max(1, abs(exact[k]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_derivatives_of_compiled_functions_in_every_dtype(dtype):
    """They were silently 0 for bfloat16, whose kind is another than that of the other floats."""
    func, x = symgrad.func, symgrad.tensor([0.7, -1.3], dtype=dtype)
    f = lambda x: (x.tanh() * x / 3).sum()  # noqa: E731
    compiled = symgrad.compile(f)
    leaf = x.clone().requires_grad_()
    compiled(leaf).backward()
    assert leaf.grad.tolist() == func.grad(f)(x).tolist() != [0.0, 0.0]
    for transform in (func.grad, func.jacfwd, func.jacrev, func.hessian, lambda g: func.grad(lambda z: func.grad(g)(z).sum())):
        for _ in range(2):
            found, expected = transform(compiled)(x), transform(f)(x)
            assert found.dtype == dtype
            assert np.allclose(found.double(), expected.double(), rtol=0.02, atol=0.02)
