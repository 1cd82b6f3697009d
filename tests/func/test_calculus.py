"""Laplacians, divergences and curls: against SymPy, against traces of Hessians and Jacobians, for batches, and differentiated again."""

import numpy as np
import pytest
import sympy

import symgrad
from symgrad.func import grad, hessian, jacfwd, jacrev, vmap
from symgrad.func.calculus import curl, divergence, laplacian, value_and_laplacian
from symgrad.func.custom import custom_jvp, custom_vjp
from tests.support.tables import table

sg = symgrad
ULP = 2.0**-52


def near(got, wanted, ulps=64):
    """Whether numbers agree to some units of the largest expected one."""
    got, wanted = (np.asarray(x.numpy() if isinstance(x, symgrad.Tensor) else x, float) for x in (got, wanted))
    assert got.shape == wanted.shape
    assert np.all(np.isfinite(got)) and abs(got - wanted).max(initial=0.0) <= ulps * ULP * max(abs(wanted).max(initial=0.0), 1.0), (got, wanted)


def point(n, seed=0):
    return symgrad.tensor(np.random.default_rng(seed).uniform(0.3, 1.5, n))


WEIGHTS = [symgrad.tensor(np.random.default_rng(i).normal(size=shape)) for i, shape in enumerate([(4, 6), (6,), (6, 6), (6,), (6, 2), (2,)])]


def network(x):
    h = symgrad.tanh(symgrad.matmul(x, WEIGHTS[0]) + WEIGHTS[1])
    h = symgrad.tanh(symgrad.matmul(h, WEIGHTS[2]) + WEIGHTS[3])
    return symgrad.matmul(h, WEIGHTS[4]) + WEIGHTS[5]


# A function of four numbers for each kind of op, and for ops that meet in each other's arguments.
FUNCTIONS = table(globals(), "FUNCTIONS")


def _written(x):
    y = x.clone()
    y[1:] *= x[:-1]
    y += x.sin()
    return y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_laplacian_is_the_trace_of_the_hessian(name):
    f, x = FUNCTIONS[name], point(4)
    near(laplacian(f)(x), np.trace(hessian(f)(x).numpy()))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_gradient_of_the_laplacian(name):
    f, x = FUNCTIONS[name], point(4)
    near(grad(laplacian(f))(x), grad(lambda z: symgrad.trace(jacfwd(jacrev(f))(z)))(x), 256)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_along_directions_with_weights(name):
    f, x, rng = FUNCTIONS[name], point(4), np.random.default_rng(1)
    v, w, h = rng.normal(size=(3, 4)), np.array([1.0, -2.0, 0.5]), hessian(f)(x).numpy()
    near(laplacian(f, directions=v, weights=w)(x), np.einsum("d,di,ij,dj->", w, v, h, v), 512)
    near(laplacian(f, directions=v)(x), np.einsum("di,ij,dj->", v, h, v), 512)


# The symbolic truth

X, Y, Z = sympy.symbols("x y z", positive=True)
EXPRESSIONS = [sympy.exp(X * Y) * sympy.sin(Z) + X**3 / Y, sympy.tanh(X * Z - Y) ** 2, sympy.log(X**2 + Y * Z) * sympy.sqrt(X),
               1 / (X**2 + Y**2 + Z**2),
               sympy.sin(X) ** sympy.cos(Y) + sympy.atan(Z / X)]
PLACE = {X: sympy.Rational(7, 10), Y: sympy.Rational(6, 5), Z: sympy.Rational(9, 10)}
NUMBERS = [float(PLACE[s]) for s in (X, Y, Z)]


def written(expression):
    """The expression as a function of a vector, by walking its tree."""
    functions = {sympy.exp: sg.exp, sympy.sin: sg.sin, sympy.cos: sg.cos, sympy.tanh: sg.tanh, sympy.log: sg.log, sympy.atan: sg.atan}

    def value(e, x):
        if e in (X, Y, Z):
            return x[(X, Y, Z).index(e)]
        if e.is_Number:
            return float(e)
        args = [value(a, x) for a in e.args]
        if e.is_Add or e.is_Mul or e.is_Pow:
            out = args[0]
            for a in args[1:]:
                out = out + a if e.is_Add else out * a if e.is_Mul else out**a
            return out
        return functions[e.func](*args)

    return lambda x: value(expression, x)


def exact(expression):
    return float(expression.subs(PLACE).evalf(30))


def symbolic_laplacian(e):
    return sum(sympy.diff(e, s, 2) for s in (X, Y, Z))


@pytest.mark.sweep
@pytest.mark.parametrize("e", EXPRESSIONS, ids=str)
def test_sympy_agrees_on_the_laplacian_and_on_derivatives_of_it(e):
    f, x = written(e), symgrad.tensor(NUMBERS)
    first = symbolic_laplacian(e)
    near(laplacian(f)(x), exact(first))
    near(grad(laplacian(f))(x), [exact(sympy.diff(first, s)) for s in (X, Y, Z)], 256)
    near(laplacian(laplacian(f))(x), exact(symbolic_laplacian(first)), 1024)  # the biharmonic operator: fourth derivatives


def test_identities_of_vector_calculus():
    f, x = FUNCTIONS["an elementwise op of two arguments"], point(3)

    def potential(z):
        return symgrad.exp(z[0] * z[1]) * z[2].sin()

    def field(z):
        return symgrad.stack([z[1] * z[2] ** 2, z[0].exp() * z[2], z[0] * z[1].sin()])

    near(divergence(curl(field))(x), 0.0)
    near(curl(grad(potential))(x), np.zeros(3))
    near(divergence(grad(potential))(x), laplacian(potential)(x))
    near(grad(divergence(field))(x) - curl(curl(field))(x), laplacian(field)(x))
    near(divergence(grad(f))(point(4)), laplacian(f)(point(4)))


# Points, trees and outputs


def test_a_batch_of_points_equals_single_points():
    x = symgrad.tensor(np.random.default_rng(2).normal(size=(5, 4)))
    wanted = np.array([[np.trace(hessian(lambda z, k=k: network(z)[k])(x[i]).numpy()) for k in range(2)] for i in range(5)])
    near(laplacian(network, dim=-1)(x), wanted)
    near(laplacian(network, dim=(1,))(x), wanted)
    near(vmap(laplacian(network))(x), wanted)
    near(laplacian(vmap(network), dim=-1)(x), wanted)
    near(laplacian(lambda z: network(z.t()), dim=0)(x.t()), wanted)
    for _ in range(3):  # the steps of the first call
        near(laplacian(network, dim=-1)(x * 2.0), vmap(laplacian(network))(x * 2.0).numpy())


def test_shared_layers_and_narrow_layers():
    def f(x):
        h = symgrad.tanh(symgrad.matmul(x, WEIGHTS[0]) + WEIGHTS[1])
        k = symgrad.sigmoid(symgrad.matmul(h, WEIGHTS[2])) * h + symgrad.cat([x, x[..., :2]], -1).exp()
        return symgrad.matmul(k, WEIGHTS[4]) + symgrad.matmul(h, WEIGHTS[4]).square()

    operator = laplacian(f, dim=-1)
    for count in (1, 2, 40, 40, 40, 40):
        x = symgrad.tensor(np.random.default_rng(count).normal(size=(count, 4)))
        near(operator(x), vmap(laplacian(f))(x).numpy(), 256)


def test_coordinates_as_arguments_of_their_own():
    t, x, y = (point(6, seed) for seed in range(3))

    def heat(t, x, y):
        return symgrad.exp(-t) * symgrad.sin(x) * symgrad.sin(2.0 * y)

    near(laplacian(heat, argnums=(1, 2), dim=())(t, x, y), -5.0 * heat(t, x, y).numpy())
    near(laplacian(heat, argnums=1, dim=())(t, x, y), -heat(t, x, y).numpy())
    near(vmap(laplacian(heat, argnums=(1, 2)))(t, x, y), -5.0 * heat(t, x, y).numpy())
    near(divergence(lambda x, y: (x * y, y.sin()), argnums=(0, 1), dim=())(x, y), y.numpy() + np.cos(y.numpy()))


def test_trees_of_arguments_and_outputs():
    tree = {"a": point(2), "b": (point(3), 0.5)}

    def f(p):
        return {"s": (p["a"] ** 3).sum() * p["b"][1], "v": p["b"][0].exp(), "c": 1.0}

    found = laplacian(f)(tree)
    near(found["s"], 0.5 * 6.0 * tree["a"].numpy().sum())
    near(found["v"], np.exp(tree["b"][0].numpy()))
    assert found["c"].item() == 0.0


def test_value_and_aux():
    calls = []

    def f(x):
        calls.append(x)
        return (x**3).sum(), "aux"

    x = symgrad.tensor([1.0, 2.0])
    value, second = value_and_laplacian(f, has_aux=True)(x)
    assert (value[0].item(), value[1], second.item()) == (9.0, "aux", 18.0)
    assert laplacian(f, has_aux=True)(x)[1] == "aux"
    assert len(calls) == 2  # the function runs once


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_dtype_is_kept(dtype):
    x = symgrad.tensor(np.random.default_rng(0).normal(size=(3, 4)).astype(dtype))
    operator, field = laplacian(lambda z: (z.tanh() ** 2 / (z.exp() + 1.0)).sum(-1), dim=-1), divergence(lambda z: z.sin() * z, dim=-1)
    for _ in range(3):
        assert operator(x).numpy().dtype == field(x).numpy().dtype == dtype


def test_by_weights_and_directions_it_is_differentiable():
    x, v, w = point(3), symgrad.tensor(np.eye(3)[:2] + 0.5), symgrad.tensor([1.0, -0.5])

    def f(z):
        return z.prod() + (z**4).sum()

    h = hessian(f)(x).numpy()
    near(grad(lambda w: laplacian(f, directions=v, weights=w)(x))(w), np.einsum("di,ij,dj->d", v.numpy(), h, v.numpy()))
    near(grad(lambda v: laplacian(f, directions=v, weights=w)(x))(v), 2.0 * w.numpy()[:, None] * (v.numpy() @ h))


# Functions with derivatives of their own


class Cube(symgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


@custom_jvp
def forwards(x):
    return x**3


@forwards.defjvp
def _(primals, tangents):
    return primals[0] ** 3, 3 * primals[0] ** 2 * tangents[0]


@custom_vjp
def backwards(x):
    return x**3


backwards.defvjp(lambda x: (x**3, x), lambda x, g: (3 * x * x * g,))


@pytest.mark.parametrize("cube", [Cube.apply, forwards, backwards], ids=["Function", "custom_jvp", "custom_vjp"])
def test_custom_derivatives(cube):
    x = symgrad.tensor([[0.5, 2.0], [1.5, -1.0]])
    near(laplacian(lambda z: (cube(z) * z[0]).sum())(x[0]), np.trace(hessian(lambda z: (z**3 * z[0]).sum())(x[0]).numpy()))
    near(laplacian(lambda z: cube(z).sum(-1), dim=-1)(x), 6.0 * x.numpy().sum(-1))
    near(grad(lambda s: laplacian(lambda z: (cube(z * s)).sum())(x[0]))(symgrad.tensor(2.0)), 6.0 * 3 * 4.0 * x.numpy()[0].sum())
    weights = np.array([1.0, -2.0])
    near(laplacian(lambda z: cube(z).sum(), directions=np.eye(2), weights=weights)(x[0]), 6.0 * (weights * x.numpy()[0]).sum())


def test_an_unselected_branch_contributes_no_nan():
    x = symgrad.tensor([-1.0, 4.0])
    near(laplacian(lambda z: symgrad.where(z > 0, z.sqrt(), 0.0 * z).sum())(x), -0.25 * 4.0**-1.5)


@pytest.mark.parametrize("f, wanted", [(lambda x: (x**2).sum(), 6.0), (lambda x: (x**1.0).sum(), 0.0), (lambda x: (x**3).sum(), 0.0),
                                       (lambda x: x.sinc().sum(), -np.pi**2), (lambda x: x.abs().sum(), 0.0), (lambda x: (x * x).sum(), 6.0)])
def test_at_zero(f, wanted):
    near(laplacian(f)(symgrad.zeros(3)), wanted)


def test_numbers_and_arrays():
    near(laplacian(lambda x: x**3)(2.0), 12.0)
    near(laplacian(lambda x: np.sin(x).sum())(np.array([1.0, 2.0])), -np.sin([1.0, 2.0]).sum())
    near(laplacian(lambda x: (x**2).sum())(symgrad.zeros(0)), 0.0)


def test_the_curl_in_two_dimensions_is_a_scalar():
    x = symgrad.tensor(np.random.default_rng(5).normal(size=(4, 2)))
    near(curl(lambda z: symgrad.stack([-z[..., 1] ** 2, z[..., 0] * z[..., 1]], -1))(x), 3.0 * x.numpy()[:, 1])
    space = symgrad.tensor(np.random.default_rng(6).normal(size=(4, 3)))
    field = lambda z: symgrad.stack([z[..., 1] * z[..., 2], z[..., 0].sin(), z[..., 0] * z[..., 1]], -1)  # noqa: E731
    near(curl(field)(space), vmap(curl(field))(space).numpy())
    near(curl(lambda z: field(z.t()).t(), dim=0)(space.t()), curl(field)(space).numpy().T)
    near(divergence(field, dim=-1)(space), vmap(divergence(field))(space).numpy())
