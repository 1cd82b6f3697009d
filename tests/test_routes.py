"""All routes to one derivative agree: at smooth points, at kinks and ties, where a branch that was not taken is singular, for Functions."""

import numpy as np
import pytest
from routes import disagreements

import symgrad

tensor, where = symgrad.tensor, symgrad.where
MATRIX = tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])


class Cube(symgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * t


PROGRAMS = {
    "smooth": (lambda z: (z.sin() * z.flip(0).exp()).sum().tanh(), [0.3, 1.0, 2.0]),
    "two arguments": (lambda z: symgrad.atan2(z, z + 1).sum() ** 2, [0.3, 1.0, 2.0]),
    "logarithm": (lambda z: symgrad.logsumexp(z * z, 0), [0.3, 1.0, 2.0]),
    "product with zeros": (lambda z: z.prod() * z.sum(), [0.0, 0.0, 2.0]),
    "powers at zero": (lambda z: (z**2.0).sum() * (z**3).sum(), [0.0, 0.0, 2.0]),
    "linear": (lambda z: (z * 3).sum(), [0.0, 1.0, 2.0]),
    "constant": (lambda z: (z * 0).sum() + 1, [0.0, 1.0, 2.0]),
    "softplus": (lambda z: symgrad.nn.functional.softplus(z * z).sum(), [0.0, 1.0, 2.0]),
    "abs": (lambda z: (z.abs() * z.exp()).sum(), [0.0, 1.0, -2.0]),
    "abs squared": (lambda z: (z.abs() ** 2).sum(), [0.0, 1.0, -2.0]),
    "sign": (lambda z: (z.sign() * z**2).sum(), [0.0, 1.0, -2.0]),
    "floor": (lambda z: (z.floor() * z**2).sum(), [0.0, 1.0, -2.0]),
    "relu": (lambda z: (symgrad.relu(z) * z.cos()).sum() ** 2, [0.0, 1.0, -2.0]),
    "maximum at ties": (lambda z: symgrad.maximum(z * z, z).square().sum(), [0.0, 1.0, -2.0]),
    "minimum at ties": (lambda z: (symgrad.minimum(z**3, z) * z).sum(), [0.0, 1.0, -2.0]),
    "clamp at its ends": (lambda z: (z.clamp(0.0, 1.0) * z.exp()).sum(), [0.0, 1.0, -2.0]),
    "max at ties": (lambda z: (z * z).max() * z.sum(), [1.0, 1.0, -1.0]),
    "sort at ties": (lambda z: (z.sort()[0] * tensor([1.0, 2.0, 3.0]) * z).sum(), [1.0, 1.0, 0.0]),
    "norm at zero": (lambda z: z.norm() ** 3, [0.0, 0.0, 0.0]),
    "hypot at zero": (lambda z: symgrad.hypot(z, 2 * z).square().sum(), [0.0, 1.0, 2.0]),
    "where, a power": (lambda z: where(z > 0, z**1.5, 0 * z).sum(), [0.0, 1.0, 2.0]),
    "where, a root": (lambda z: where(z > 0, z.sqrt(), z * z).sum(), [0.0, 1.0, 4.0]),
    "where, a product": (lambda z: where(z > 0, z * z.sqrt(), z * z).sum(), [0.0, 1.0, 4.0]),
    "where, a logarithm": (lambda z: where(z > 0, z * z.log(), 0 * z).sum(), [0.0, 1.0, 4.0]),
    "where, a quotient": (lambda z: where(z != 0, z.sin() / z, 1.0 + 0 * z).sum(), [0.0, 1.0, 4.0]),
    "where in where": (lambda z: where(z > 0, where(z > 0, z**1.5, z).exp(), z).sum() ** 2, [0.0, 1.0, 2.0]),
    "where, used again": (lambda z: (where(z > 0, z**1.5 * z.sin(), z) * z).sum(), [0.0, 1.0, 2.0]),
    "where, of sums": (lambda z: where(z.sum() > 100, z.sqrt().sum(), z.square().sum()), [0.0, 1.0, 2.0]),
    "where, of a product of matrices": (lambda z: where(tensor([True, False]), MATRIX @ (z * z), 0.0).exp().sum(), [0.0, 1.0, 2.0]),
    "masked": (lambda z: (z.sqrt().masked_fill(z <= 0, 0.0) * z).sum(), [0.0, 1.0, 2.0]),
    "relu of a root": (lambda z: symgrad.relu(z.sqrt() - 1).square().sum(), [0.0, 1.0, 4.0]),
    "relu of a power": (lambda z: (symgrad.relu(z**1.5 - 1) * z.exp()).sum(), [0.0, 1.0, 4.0]),
    "maximum with a root": (lambda z: symgrad.maximum(z.sqrt(), z + 0.5).square().sum(), [0.0, 1.0, 0.01]),
    "clamp of a root": (lambda z: (z.sqrt().clamp(0.5, 1.5) * z.exp()).sum(), [0.0, 1.0, 9.0]),
    "complex on the way": (lambda z: (symgrad.complex(z, z * z).exp() * (1 - 2j)).abs().sum(), [0.3, 1.0, -1.0]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_routes_agree(name):
    f, x = PROGRAMS[name]
    assert not disagreements(f, tensor(x))


def test_the_branch_that_was_not_taken():
    """The derivative of what was chosen, and not NaN, by every route."""
    f = lambda z: where(z > 0, z**1.5, 0 * z).sum()  # noqa: E731
    x = tensor([0.0, 1.0], requires_grad=True)
    (g,) = symgrad.autograd.grad(f(x), x, create_graph=True)
    (h,) = symgrad.autograd.grad(g.sum(), x, create_graph=True)
    (third,) = symgrad.autograd.grad(h.sum(), x)
    assert h.tolist() == [0.0, 0.75] and third.tolist() == [0.0, -0.375]
    for a in (symgrad.func.jacrev, symgrad.func.jacfwd):
        for b in (symgrad.func.jacrev, symgrad.func.jacfwd):
            for c in (symgrad.func.jacrev, symgrad.func.jacfwd, symgrad.func.hessian):
                found = a(b(c(f)) if c is not symgrad.func.hessian else c(f))(x.detach())
                assert np.allclose(found.numpy()[1, 1, 1], -0.375) and np.count_nonzero(found.numpy()) == 1


def test_a_nan_that_was_chosen_stays():
    """Only what is not chosen is dropped: a singular derivative that counts is NaN or infinite by every route, as in a graph without a choice."""
    x = tensor([0.0, 1.0], requires_grad=True)
    (g,) = symgrad.autograd.grad((x.sqrt() * x.sqrt()).sum(), x)
    assert g.isnan().tolist() == [True, False]
    assert symgrad.func.grad(lambda z: where(z >= 0, z.sqrt(), z).sum())(x.detach()).tolist() == [float("inf"), 0.5]


@pytest.mark.parametrize("f", [lambda z: (Cube.apply(z) * z).sum(), lambda z: where(z > 1, Cube.apply(z), z).sum() ** 2])
def test_custom_functions(f):
    found = disagreements(f, tensor([0.5, 1.0, 2.0]))
    assert not {key: value for key, value in found.items() if key != "first" and "NotImplementedError" not in str(value)}
