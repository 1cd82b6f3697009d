"""All routes to derivatives agree for functions of several ops, inside vmap, and through views of tensors without dimensions."""

import numpy as np
import pytest

import symgrad
from symgrad import func
from symgrad.func import grad, hessian, jacfwd, jacrev, jvp, vmap
from tests.support.routes import GRADIENTS, HESSIANS, array, disagreements

tensor = symgrad.tensor
X = tensor([0.5, -1.0, 2.0, 1.5])
V, W = tensor([1.0, 2.0, -1.0, 0.5]), tensor([0.5, 1.0, 0.25, -2.0])
EMPTY = symgrad.ones(0, 4)


def along(f, v):
    return lambda x: jvp(f, (x,), (v,))[1]


FUNCTIONS = {
    "norm": lambda x: symgrad.norm(x.reshape(2, 2)).sin(),
    "std": lambda x: x.std().sin() + x.std(),
    "dist": lambda x: symgrad.dist(x[:2], x[2:]).exp(),
    "p-norm": lambda x: symgrad.linalg.vector_norm(x, 3).sin(),
    "irfft of real numbers": lambda x: symgrad.fft.irfft(x).sin().sum(),
    "hfft of real numbers": lambda x: symgrad.fft.hfft(x).sin().sum(),
    "hfft2 of real numbers": lambda x: symgrad.fft.hfft2(x.reshape(2, 2)).sin().sum(),
    "a product without rows": lambda x: symgrad.mm(EMPTY, x.reshape(4, 1) * x).sum() + x.prod(),
    "no reflections": lambda x: symgrad.linalg.householder_product(x.reshape(2, 2).sin(), x[:0]).sum() + x.prod(),
    "fill": lambda x: symgrad.fill(x, x[1] ** 3).sum() + symgrad.fill(x, 2.0).sum(),
    "as_strided": lambda x: x.as_strided((2, 3), (1, 1)).prod(),
    "as_strided_scatter": lambda x: symgrad.as_strided_scatter(x, x[:2] ** 2, (2,), (2,)).prod(),
    "max of a number": lambda x: x[0].max(0).values * x.prod() + x[1].min(-1).values ** 3,
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_and_third_derivatives(name):
    f = FUNCTIONS[name]
    assert not disagreements(f, X)
    expected = jacrev(jacrev(jacrev(f)))(X) @ V @ W
    tolerance = 1e-9 * max(1.0, expected.abs().max().item())
    for route in (along(along(grad(f), V), W), jacfwd(lambda x: along(along(f, V), W)(x)), grad(along(along(f, V), W)),
                  along(lambda x: grad(lambda z: grad(f)(z) @ V)(x), W), lambda x: jvp(hessian(f), (x,), (W,))[1] @ V):
        assert (route(X) - expected).abs().max() <= tolerance


@pytest.mark.parametrize("name", FUNCTIONS)
def test_inside_vmap(name):
    f, xs = FUNCTIONS[name], symgrad.stack([X, 2 * X, X - 3])
    for g in (f, grad(f), hessian(f)):
        expected = symgrad.stack([g(x) for x in xs])
        assert (vmap(g)(xs) - expected).abs().max() <= 1e-12 * expected.abs().max()


@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "min"])
def test_dimensions_of_numbers_inside_vmap(name):
    found = vmap(lambda x: tuple(getattr(symgrad, name)(x, 0)) if len(name) == 3 else getattr(symgrad, name)(x, 0))(X)
    for part in found if isinstance(found, tuple) else (found,):
        assert part.shape == (4,)


def test_positions_beyond_a_member_of_a_batch_are_refused():
    with pytest.raises(RuntimeError, match="the storage has 32"):
        vmap(lambda x: x.as_strided((2,), (4,)))(symgrad.ones(3, 4))
    with pytest.raises(RuntimeError, match=r"\[3\].*\[2\]"):
        vmap(lambda x: symgrad.as_strided_scatter(x, x[:3], (2,), (2,)))(symgrad.ones(3, 4))


VIEWS = {
    "reshape": lambda x: x.reshape(1), "view": lambda x: x.view(1, 1), "unsqueeze": lambda x: x.unsqueeze(0), "None": lambda x: x[None],
    "ellipsis": lambda x: x[...], "expand": lambda x: x.expand(3), "broadcast_to": lambda x: symgrad.broadcast_to(x, (2, 2)),
    "flatten": lambda x: x.flatten(), "ravel": lambda x: x.ravel(), "squeeze": lambda x: x.squeeze(), "permute": lambda x: x.permute(()),
    "atleast_2d": symgrad.atleast_2d, "stack": lambda x: symgrad.stack([x, x]), "cat": lambda x: symgrad.cat([x[None], x[None]]),
    "repeat": lambda x: x.repeat(2), "meshgrid": lambda x: symgrad.meshgrid(x, x, indexing="ij")[0], "real": lambda x: x.real,
    "view_as": lambda x: x.view_as(symgrad.zeros(1)), "twice": lambda x: x[None].expand(2).reshape(2, 1), "and back": lambda x: x.reshape(1)[0],
}
BEFORE = {"input": lambda x: x, "of a value": lambda x: (1.3 * x).cos(), "of a product": lambda x: x * x.sin()}
AFTER = {"product": lambda v: v.prod() * v.sum(), "norm": lambda v: v.norm().cos(), "softplus": lambda v: symgrad.nn.functional.softplus(v * v).sum()}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("view", VIEWS)
def test_derivatives_through_a_view_of_a_number(view, before, after):
    f = lambda x: AFTER[after](VIEWS[view](BEFORE[before](x)))  # noqa: E731
    shape = VIEWS[view](symgrad.tensor(0.0)).shape
    plain = lambda x: AFTER[after](BEFORE[before](x) * symgrad.ones(shape))  # noqa: E731
    x = symgrad.tensor(1 / 3)
    twice, thrice = func.grad(func.grad(f)), func.grad(func.grad(func.grad(f)))
    for table, true in ((GRADIENTS, func.grad(plain)(x)), (HESSIANS | {"grad of grad": lambda f, x: twice(x)}, func.hessian(plain)(x)),
                        ({"three times": lambda f, x: thrice(x), "series": lambda f, x: func.derivatives(f, 3)(x)[3]},
                         func.jacfwd(func.hessian(plain))(x))):
        for name, route in table.items():
            np.testing.assert_allclose(array(route(f, x)), true.numpy(), rtol=1e-10, atol=1e-13, err_msg=name)
