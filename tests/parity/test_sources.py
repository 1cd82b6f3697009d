"""Source for torch and JAX is run by torch and JAX: of every op, of programs, of special functions, of ops from formulas and of random functions."""

import math

import jax
import numpy as np
import pytest
import sympy
import torch

import symgrad
from symgrad import func, tensor
from symgrad.codegen.languages import Jax, Torch
from symgrad.codegen.sources import to_jax, to_torch
from symgrad.engine.traced import core
from symgrad.graph.domains import POSITIVE
from symgrad.graph.op import REGISTRY
from symgrad.methods.extending import _unregister
from symgrad.symbolic.operations import op_from_sympy
from tests.program.test_printing import CASES as PRINTED
from tests.program.test_printing import check_printed
from tests.program.test_registry_compiled import CASES as EVERY_OP
from tests.program.test_registry_compiled import check_source
from tests.routes.__main__ import shown
from tests.routes.comparing import examined
from tests.routes.drawing import draw
from tests.routes.table import ROUTES
from tests.support.points import examples, numbers, of_numbers  # noqa: E402
from tests.support.special_sources import CASES as SPECIAL
from tests.support.special_sources import check, generic_cases

jax.config.update("jax_enable_x64", True)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, of its transforms
ONLY_VALUES = {"floor_divide", "rounded_quotient", "remainder", "fmod_tensor", "fmod_number",  # torch has others, or none
               "digamma"}  # of which torch has ten digits
ONLY_VALUES_IN_TORCH = ONLY_VALUES | {"zeta",  # by its first argument torch has no derivative
                                      "gammainc_derivative", "gamma_density"}  # which call digamma
CASES = [pytest.param(op, parameters, id=f"{op.name}{parameters}") for op in REGISTRY.values()
         if op.kind == "elementwise" and op.differentiable and of_numbers(op) for parameters in examples(op)]


def run(source, name="f"):
    names: dict = {}
    exec(compile(source, "source", "exec"), names)
    return names[name]


def ours(op, parameters):
    """An op as a function, ten points of its domain in columns, and what we compute there."""
    rng = np.random.default_rng(5)
    columns = [np.array(numbers(op.domain[i], rng, 10)) for i in range(op.arity)]
    call = core(op)
    xs = [tensor(c, requires_grad=True) for c in columns]
    y = call(*xs, *parameters)
    return lambda *given: call(*given, *parameters), columns, y.detach().numpy(), symgrad.autograd.grad(y.sum(), xs, materialize_grads=True)


def written(write, function, columns, **more):
    return run(write(function, at=[c[0] for c in columns], name="f", **more))


def agree(a, b, size=0.0):
    np.testing.assert_allclose(np.asarray(a, float), np.asarray(b, float), rtol=1e-12, atol=1e-13 * (1 + size))


@pytest.mark.parametrize("op, parameters", CASES)
def test_torch_agrees(op, parameters):
    function, columns, value, gradient = ours(op, parameters)
    f, both = written(to_torch, function, columns), written(to_torch, function, columns, derivatives=1)
    xs = [torch.tensor(c, requires_grad=True) for c in columns]
    y = f(*xs)
    agree(y.detach().numpy(), value)
    if op.name not in ONLY_VALUES_IN_TORCH and y.requires_grad:
        for a, b in zip(torch.autograd.grad(y.sum(), xs, allow_unused=True, materialize_grads=True), gradient):
            agree(a.numpy(), b.numpy(), abs(b.numpy()).max())
    v, g = both(*xs)
    agree(v.detach().numpy(), value)
    for a, b in zip(g, gradient):
        agree(np.broadcast_to(a.detach().numpy() if isinstance(a, torch.Tensor) else a, value.shape), b.numpy(), abs(b.numpy()).max())


@pytest.mark.parametrize("op, parameters", CASES)
def test_jax_agrees(op, parameters):
    function, columns, value, gradient = ours(op, parameters)
    f, both = written(to_jax, function, columns), written(to_jax, function, columns, derivatives=1)
    agree(f(*columns), value)
    if op.name not in ONLY_VALUES:
        every = tuple(range(op.arity))
        for a, b in zip(jax.grad(lambda *xs: jax.numpy.sum(f(*xs)), every)(*columns), gradient):
            agree(a, b.numpy(), abs(b.numpy()).max())
    v, g = both(*columns)
    agree(v, value)
    for a, b in zip(g, gradient):
        agree(np.broadcast_to(a, value.shape), b.numpy(), abs(b.numpy()).max())


def helmholtz(x, y, w):
    s = (x * y).sin()
    return (w * w).sum() * s.exp() + symgrad.where(x > y, s.sinh(), s / 3) + (1 + x * x) ** 1.5 - s.sigmoid() * w[1]


AT = (0.7, -0.3, [0.4, 1.25])


def test_a_function_with_arrays_and_a_choice():
    value = helmholtz(*map(tensor, AT)).item()
    gradient = [g.numpy() for g in func.grad(helmholtz, (0, 1, 2))(*map(tensor, AT))]
    hessian = [[h.numpy() for h in row] for row in func.jacfwd(func.grad(helmholtz, (0, 1, 2)), (0, 1, 2))(*map(tensor, AT))]
    for write, make in ((to_torch, lambda v: torch.tensor(v, dtype=torch.float64)), (to_jax, lambda v: jax.numpy.asarray(v, dtype=float))):
        written = run(write(helmholtz, (), (), 2, derivatives=2, name="f"))
        v, g, h = (jax.jit(written) if write is to_jax else written)(*map(make, AT))
        agree(v, value)
        for a, b in zip(g, gradient):
            agree(a, b)
        for row, true in zip(h, hessian):
            for a, b in zip(row, true):
                agree(a, b)
    f = run(to_torch(helmholtz, (), (), 2, name="f"))
    xs = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in AT]
    for a, b in zip(torch.autograd.grad(f(*xs), xs), gradient):
        agree(a.numpy(), b)


def test_a_formula_for_torch_with_several_extremes_and_numbers():
    x, y = sympy.symbols("x y")
    f = run(to_torch(sympy.Max(x, y, 0) + sympy.Piecewise((1, x > 1), (sympy.pi, True)) + 2**x + sympy.atan2(1, x) + sympy.Mod(5, y), name="f"))
    value = f(torch.tensor([2.0, 0.5], dtype=torch.float64), torch.tensor(3.0, dtype=torch.float64))
    truth = [3 + 1 + 4 + np.arctan2(1, 2) + 2, 3 + np.pi + 2**0.5 + np.arctan2(1, 0.5) + 2]
    agree(value.numpy(), truth)


@pytest.mark.parametrize("name, derivative", PRINTED)
def test_printed_for_torch(name, derivative):
    check_printed(symgrad.to_torch, torch.tensor, name, derivative)


@pytest.mark.sweep
@pytest.mark.parametrize("name, derivative", PRINTED)
def test_printed_for_jax(name, derivative):
    with jax.enable_x64(True):
        check_printed(symgrad.to_jax, jax.numpy.array, name, derivative)


@pytest.mark.sweep
@pytest.mark.parametrize(("op", "parameters"), EVERY_OP)
def test_every_op_printed_for_torch(op, parameters):
    check_source(op, parameters, symgrad.to_torch, lambda x: torch.tensor(np.asarray(x)))


@pytest.mark.sweep
@pytest.mark.parametrize(("op", "parameters"), EVERY_OP)
def test_every_op_printed_for_jax(op, parameters):
    with jax.enable_x64(True):
        check_source(op, parameters, symgrad.to_jax, jax.numpy.asarray)


jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize(("name", "parameters"), SPECIAL)
def test_special_functions_for_torch(name, parameters):
    check(Torch, name, parameters, torch.tensor)


@pytest.mark.parametrize(("name", "parameters"), SPECIAL)
def test_special_functions_for_jax(name, parameters):
    check(Jax, name, parameters, jax.numpy.asarray)


@pytest.mark.parametrize(("name", "parameters"), [*generic_cases()])
def test_generic_parameters(name, parameters):
    check(Torch, name, parameters, torch.tensor, 6)
    check(Jax, name, parameters, jax.numpy.asarray, 6)


X, Y = sympy.symbols("x y", real=True)
POINTS = (-3.0, -0.4, -1e-4, 0.0, 1e-6, 0.3, 2.5)
FORMULAS = {
    "softsign": X / (1 + sympy.Abs(X)), "swish": X / (1 + sympy.exp(-X)), "sinc_like": sympy.sin(X) / X, "exprel": (sympy.exp(X) - 1) / X,
    "tanh": sympy.tanh(X), "log_cosh": sympy.log(sympy.cosh(X)), "pieces": sympy.Piecewise((X, X > 0), (sympy.exp(X) - 1, True)),
    "root": (1 + X**2) ** sympy.Rational(1, 3), "larger": sympy.Max(X, 1 - X) ** 2,
}


@pytest.fixture(scope="module")
def ops():
    made = {name: op_from_sympy(f"parity_{name}", expr, check=False) for name, expr in FORMULAS.items()}
    made["logistic_loss"] = op_from_sympy("parity_loss", lambda x, y: sympy.log(1 + sympy.exp(-x * y)), check=False)
    made["planck"] = op_from_sympy("parity_planck", lambda x, y: x**3 / (sympy.exp(x / y) - 1), domain=POSITIVE, check=False)
    yield made
    for op in made.values():
        _unregister(op.__name__)


def derivatives_of(op, order, points):
    return [float(op.derivative(order)(v)) for v in points]


@pytest.mark.parametrize("name", FORMULAS)
def test_torch_gives_our_numbers(ops, name):
    op = ops[name]
    f = op.as_torch_function()
    t = torch.tensor(POINTS, dtype=torch.float64, requires_grad=True)
    out = f(t)
    for order in range(3):
        assert np.allclose(out.detach().numpy(), derivatives_of(op, order, POINTS), rtol=3e-15, atol=1e-300)
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
    second = derivatives_of(ops["sinc_like"], 2, POINTS)
    assert np.allclose(torch.diagonal(torch.func.hessian(lambda v: f(v).sum())(t)).numpy(), second, rtol=1e-14)
    assert np.allclose(torch.func.vmap(torch.func.grad(torch.func.grad(f)))(t).numpy(), second, rtol=1e-14)
    assert f(t.to(torch.float32)).dtype is torch.float32
    assert torch.func.jvp(f, (t,), (torch.ones_like(t),))[1].tolist() == pytest.approx(derivatives_of(ops["sinc_like"], 1, POINTS), rel=1e-14)


@pytest.mark.parametrize("name", FORMULAS)
def test_jax_gives_our_numbers(ops, name):
    op = ops[name]
    f = op.as_jax()
    for order in range(3):
        assert np.allclose(jax.vmap(f)(np.array(POINTS)), derivatives_of(op, order, POINTS), rtol=3e-15, atol=1e-300)
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
            true = derivatives_of(ops[name], order, points)
            f, g = ops[name].as_torch_function(), ops[name].as_jax()
            t = torch.tensor(points, dtype=torch.float64, requires_grad=True)
            out = f(t)
            for _ in range(order):
                out, = torch.autograd.grad(out.sum(), t, create_graph=True)
                g = jax.grad(g)
            assert np.allclose(out.detach().numpy(), true, rtol=1e-14, atol=1e-290)
            assert np.allclose(jax.vmap(g)(np.array(points)), true, rtol=1e-14, atol=1e-290)


INSTALLED = {"torch": torch, "jax": jax}
FOREIGN = [route._replace(share=1.0) for route in ROUTES if route.needs in INSTALLED]


@pytest.mark.parametrize("seed", range(6))
def test_sources_of_random_functions(seed):
    found = examined(draw(seed), FOREIGN)
    assert not found.differences, shown(found)


def test_every_library_is_taken():
    assert {route.needs for route in FOREIGN} == INSTALLED.keys()
