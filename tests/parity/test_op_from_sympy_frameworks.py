"""Ops from formulas in torch and JAX: the same numbers as here, with derivatives of every order that those frameworks check themselves."""

import math

import numpy as np
import pytest
import sympy

from symgrad.graph.domains import POSITIVE
from symgrad.methods.extending import _unregister
from symgrad.symbolic.operations import op_from_sympy

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, of its transforms
torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)

x, y = sympy.symbols("x y", real=True)
POINTS = (-3.0, -0.4, -1e-4, 0.0, 1e-6, 0.3, 2.5)
FORMULAS = {
    "softsign": x / (1 + sympy.Abs(x)), "swish": x / (1 + sympy.exp(-x)), "sinc_like": sympy.sin(x) / x, "exprel": (sympy.exp(x) - 1) / x,
    "tanh": sympy.tanh(x), "log_cosh": sympy.log(sympy.cosh(x)), "pieces": sympy.Piecewise((x, x > 0), (sympy.exp(x) - 1, True)),
    "root": (1 + x**2) ** sympy.Rational(1, 3), "larger": sympy.Max(x, 1 - x) ** 2,
}


@pytest.fixture(scope="module")
def ops():
    made = {name: op_from_sympy(f"parity_{name}", expr, check=False) for name, expr in FORMULAS.items()}
    made["logistic_loss"] = op_from_sympy("parity_loss", lambda x, y: sympy.log(1 + sympy.exp(-x * y)), check=False)
    made["planck"] = op_from_sympy("parity_planck", lambda x, y: x**3 / (sympy.exp(x / y) - 1), domain=POSITIVE, check=False)
    yield made
    for op in made.values():
        _unregister(op.__name__)


def ours(op, order, points):
    return [float(op.derivative(order)(v)) for v in points]


@pytest.mark.parametrize("name", FORMULAS)
def test_torch_gives_our_numbers(ops, name):
    op = ops[name]
    f = op.as_torch_function()
    t = torch.tensor(POINTS, dtype=torch.float64, requires_grad=True)
    out = f(t)
    for order in range(3):
        assert np.allclose(out.detach().numpy(), ours(op, order, POINTS), rtol=3e-15, atol=1e-300)
        out, = torch.autograd.grad(out.sum(), t, create_graph=True)


@pytest.mark.parametrize("name", [name for name in FORMULAS if name not in ("softsign", "pieces", "larger")])
def test_torch_checks_the_gradients(ops, name):
    f = ops[name].as_torch_function()
    t = torch.tensor(POINTS, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(f, (t,)) and torch.autograd.gradgradcheck(f, (t,))


def test_torch_with_two_arguments(ops):
    for name in ("logistic_loss", "planck"):
        f = ops[name].as_torch_function()
        a = torch.tensor([[0.5], [1.5]], dtype=torch.float64, requires_grad=True)
        b = torch.tensor([1.0, 2.0, 0.7], dtype=torch.float64, requires_grad=True)
        assert f(a, b).shape == (2, 3)
        assert torch.autograd.gradcheck(f, (a, b)) and torch.autograd.gradgradcheck(f, (a, b))
        assert f(a, 2.0).shape == (2, 1)
        with pytest.raises(TypeError, match="takes 2 arguments, not 1"):
            f(a)


def test_torch_transforms(ops):
    f = ops["sinc_like"].as_torch_function()
    t = torch.tensor(POINTS, dtype=torch.float64)
    second = ours(ops["sinc_like"], 2, POINTS)
    assert np.allclose(torch.diagonal(torch.func.hessian(lambda v: f(v).sum())(t)).numpy(), second, rtol=1e-14)
    assert np.allclose(torch.func.vmap(torch.func.grad(torch.func.grad(f)))(t).numpy(), second, rtol=1e-14)
    assert f(t.to(torch.float32)).dtype is torch.float32
    assert torch.func.jvp(f, (t,), (torch.ones_like(t),))[1].tolist() == pytest.approx(ours(ops["sinc_like"], 1, POINTS), rel=1e-14)


@pytest.mark.parametrize("name", FORMULAS)
def test_jax_gives_our_numbers(ops, name):
    op = ops[name]
    f = op.as_jax()
    for order in range(3):
        assert np.allclose(jax.vmap(f)(np.array(POINTS)), ours(op, order, POINTS), rtol=3e-15, atol=1e-300)
        f = jax.grad(f)


def test_jax_transforms(ops):
    f, loss = ops["exprel"].as_jax(), ops["logistic_loss"].as_jax()
    assert float(jax.jit(jax.grad(jax.grad(jax.grad(f))))(0.0)) == 0.25
    assert float(jax.hessian(lambda v: loss(v, 2.0))(0.7)) == pytest.approx(4 * math.exp(-1.4) / (1 + math.exp(-1.4)) ** 2, rel=1e-14)
    assert jax.jacrev(lambda v: f(v))(np.array([0.0, 1.0])).shape == (2, 2)
    assert f(np.array([0.0, 1.0], np.float32)).dtype == np.float32
    assert loss(np.ones((2, 1)), np.ones(3)).shape == (2, 3)


def test_frameworks_agree_in_the_tails(ops):
    points = (-700.0, -40.0, 40.0, 700.0)
    for name in ("swish", "log_cosh", "tanh"):
        for order in range(3):
            true = ours(ops[name], order, points)
            f, g = ops[name].as_torch_function(), ops[name].as_jax()
            t = torch.tensor(points, dtype=torch.float64, requires_grad=True)
            out = f(t)
            for _ in range(order):
                out, = torch.autograd.grad(out.sum(), t, create_graph=True)
                g = jax.grad(g)
            assert np.allclose(out.detach().numpy(), true, rtol=1e-14, atol=1e-290)
            assert np.allclose(jax.vmap(g)(np.array(points)), true, rtol=1e-14, atol=1e-290)
