"""Source for torch and JAX is run by torch and JAX: values, gradients as written, and gradients of their own agree with ours."""


import jax
import numpy as np
import pytest
import sympy
import torch

import symgrad
from symgrad import func, tensor
from symgrad.codegen.sources import to_jax, to_torch
from symgrad.engine.traced import core
from symgrad.graph.op import REGISTRY
from tests.support.points import examples, numbers, of_numbers  # noqa: E402

jax.config.update("jax_enable_x64", True)
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
    """The source as a function."""
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
