"""Implicit differentiation: derivatives of solutions of every order, against closed forms and SymPy."""

import itertools

import numpy as np
import pytest
import scipy.optimize
import sympy

import symgrad
from symgrad import nn
from symgrad.func import grad, hessian, hvp, jacfwd, jacrev, jvp, vmap
from symgrad.func.custom import custom_vjp
from symgrad.func.implicit import implicit_argmin, implicit_fixed_point, implicit_root
from symgrad.func.taylor import jet
from symgrad.trees import flatten

T = symgrad.tensor


def numbers(tree):
    return np.concatenate([np.ravel(leaf.detach().numpy()) for leaf in flatten(tree)[0]])


def close(found, expected, tolerance=1e-10):
    found, expected = (numbers(t) if not isinstance(t, np.ndarray) else t.ravel() for t in (found, expected))
    assert found.shape == expected.shape and np.all(np.abs(found - expected) <= tolerance * np.maximum(1, np.abs(expected)))


def square_root(**options):
    return implicit_root(lambda x, a: x**2 - a, lambda a: float(a) ** 0.5, **options)


def single(matvec, b):
    return b / matvec(np.ones_like(b))


ROOTS = [float(sympy.diff(sympy.sqrt(sympy.Symbol("a")), "a", k).subs("a", 3).evalf(30)) for k in range(5)]


# Roots


@pytest.mark.parametrize("solve", ["dense", "cg", "gmres", single])
def test_derivatives_of_a_square_root_up_to_order_four(solve):
    found = square_root(solve=solve)
    assert float(found(T(3.0))) == ROOTS[0]
    for k in range(1, 5):
        found = grad(found)
        assert float(found(3.0)) == pytest.approx(ROOTS[k], rel=2e-15), k


def test_every_route_and_mode():
    root = square_root()
    assert float(jvp(root, (3.0,), (2.0,))[1]) == pytest.approx(2 * ROOTS[1], rel=1e-15)
    assert float(jacfwd(jacfwd(jacfwd(root)))(3.0)) == pytest.approx(ROOTS[3], rel=1e-14)
    assert float(jacrev(jacfwd(root))(3.0)) == pytest.approx(ROOTS[2], rel=1e-14)
    assert float(jacfwd(jacrev(root))(3.0)) == pytest.approx(ROOTS[2], rel=1e-14)
    assert float(hessian(root)(3.0)) == pytest.approx(ROOTS[2], rel=1e-14)
    assert float(grad(hessian(root))(3.0)) == pytest.approx(ROOTS[3], rel=1e-14)
    assert float(hvp(root, T(3.0), T(2.0))) == pytest.approx(2 * ROOTS[2], rel=1e-14)
    a = T(3.0, requires_grad=True)
    x = root(a)
    assert x.grad_fn.name() == "ImplicitRootBackward"
    for k in range(1, 5):
        (x,) = symgrad.autograd.grad(x, a, create_graph=True)
        assert x.item() == pytest.approx(ROOTS[k], rel=1e-14), k


def test_batches():
    root, a = square_root(), T([1.0, 3.0, 4.0])
    close(vmap(root)(a), np.sqrt([1, 3, 4]))
    close(vmap(grad(grad(root)))(a), -0.25 * np.array([1.0, 3, 4]) ** -1.5)
    close(grad(lambda a: vmap(root)(a).sum())(a), 0.5 * np.array([1.0, 3, 4]) ** -0.5)
    close(vmap(lambda x, a: grad(root)(a) * x, (0, None))(a, T(4.0)), 0.25 * np.array([1.0, 3, 4]))
    argmin = implicit_argmin(lambda x, a: x**3 / 3 - a * x, lambda a: float(a) ** 0.5)
    close(vmap(lambda x, a: grad(lambda a: argmin(a) * x)(a), (0, None))(a, T(4.0)), 0.25 * np.array([1.0, 3, 4]))
    close(grad(lambda b: vmap(lambda x: argmin(b) * x)(a).sum())(T(4.0)), np.array(2.0))
    close(hessian(lambda a: vmap(root)(a).prod())(a), hessian(lambda a: (a**0.5).prod())(a))


def system(x, p):
    """Two coupled equations whose unknowns and parameters are trees."""
    return {"u": x["u"] ** 3 + x["v"].sum() - p[0], "v": x["v"] * symgrad.exp(x["u"]) - p[1]["b"] * x["v"].flip(0) * 0.1 - p[1]["c"]}


def newton(p, start=None):
    b, c = p[1]["b"].numpy(), p[1]["c"].numpy()

    def residual(z):
        return np.concatenate([[z[0] ** 3 + z[1:].sum() - float(p[0])], z[1:] * np.exp(z[0]) - b * z[:0:-1] * 0.1 - c])

    z = scipy.optimize.fsolve(residual, np.ones(3) if start is None else start, xtol=1e-13)
    return {"u": z[0], "v": z[1:]}


POINT = (T(2.0), {"b": T([0.5, 1.0]), "c": T([0.7, 0.2])})


@pytest.mark.sweep
@pytest.mark.parametrize("solve", ["dense", "gmres", lambda matvec, b: np.linalg.solve(np.stack([matvec(e) for e in np.eye(3)], 1), b)])
def test_trees_of_unknowns_and_parameters(solve):
    root = implicit_root(system, newton, solve=solve)
    assert root(POINT, start=np.full(3, 0.5))["u"] < 0  # another solution
    x = root(POINT)
    assert x["u"].shape == () and x["v"].shape == (2,)
    close(system(x, POINT), np.zeros(3), 1e-13)

    def unrolled(p):
        """Newton's method, recorded: three steps from the solution are exact to the third derivative."""
        z = symgrad.cat([x["u"].detach().reshape(1), x["v"].detach()])
        def flat(z):
            found = system({"u": z[0], "v": z[1:]}, p)
            return symgrad.cat([found["u"].reshape(1), found["v"]])

        for _ in range(3):
            z = z - eliminated(jacrev(flat)(z), flat(z))
        return {"u": z[0], "v": z[1:]}

    close(jacrev(root)(POINT), jacrev(unrolled)(POINT), 1e-12)
    close(jacfwd(root)(POINT), jacrev(unrolled)(POINT), 1e-12)

    def scalar(f):
        return lambda p: f(p)["u"] * f(p)["v"].prod()

    close(hessian(scalar(root))(POINT), jacrev(jacrev(scalar(unrolled)))(POINT), 1e-11)
    close(jacrev(jacrev(scalar(root)))(POINT), jacrev(jacrev(scalar(unrolled)))(POINT), 1e-11)


def eliminated(a, b):
    """a⁻¹ b by elimination."""
    rows, n = [[*row, right] for row, right in zip(a, b)], len(b)
    for i in range(n):
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j in set(range(n)) - {i}:
            rows[j] = [x - rows[j][i] * y for x, y in zip(rows[j], rows[i])]
    return symgrad.stack([row[n] for row in rows])


# Minimisers


def ridge():
    rng = np.random.default_rng(0)
    return T(rng.normal(size=(50, 10))), T(rng.normal(size=50))


@pytest.mark.sweep
@pytest.mark.parametrize("solve", ["dense", "cg"])
def test_ridge_regression_against_the_closed_form(solve):
    features, targets = ridge()
    X, y, theta = features.numpy(), targets.numpy(), 10.0
    solution = implicit_argmin(lambda w, theta: 0.5 * ((features @ w - targets) ** 2).sum() + 0.5 * theta * (w**2).sum(),
                               lambda theta: np.linalg.solve(X.T @ X + float(theta) * np.eye(10), X.T @ y), solve=solve)
    matrix = X.T @ X + theta * np.eye(10)
    w = np.linalg.solve(matrix, X.T @ y)
    jacobian = -np.linalg.solve(matrix, w)
    second = -2 * np.linalg.solve(matrix, jacobian)
    third = -3 * np.linalg.solve(matrix, second)
    for route in (jacrev, jacfwd):
        assert np.abs(route(solution)(theta).numpy() - jacobian).max() <= 1e-10 * np.abs(jacobian).max()
    for route in (lambda f: jacrev(jacrev(f)), lambda f: jacfwd(jacrev(f)), lambda f: jacfwd(jacfwd(f)), hessian):
        assert np.abs(route(solution)(theta).numpy() - second).max() <= 1e-10 * np.abs(second).max()
    assert np.abs(jacrev(hessian(solution))(theta).numpy() - third).max() <= 1e-10 * np.abs(third).max()


# Fixed points


def kepler(mean, eccentricity):
    x = mean
    for _ in range(200):
        x = mean + eccentricity * symgrad.sin(x)
    return x


@pytest.mark.sweep
def test_keplers_equation_to_the_third_order():
    """E = M + e sin E, whose derivatives follow from (1 - e cos E) dE = dM + sin E de."""
    m, e, x = sympy.symbols("m e x")
    anomaly = implicit_fixed_point(lambda x, mean, eccentricity: mean + eccentricity * symgrad.sin(x), kepler)
    values = 0.9, 0.4
    point = float(anomaly(*map(T, values)))
    assert point == pytest.approx(0.9 + 0.4 * np.sin(point), rel=1e-15)

    def total(f, by):
        """The derivative of f(x(m, e), m, e)."""
        slope = (1 if by == m else sympy.sin(x)) / (1 - e * sympy.cos(x))
        return sympy.diff(f, by) + sympy.diff(f, x) * slope

    for order in (1, 2, 3):
        for names in itertools.product((m, e), repeat=order):
            exact, found = x, anomaly
            for name in names:
                exact, found = total(exact, name), grad(found, 0 if name == m else 1)
            assert float(found(*values)) == pytest.approx(float(exact.subs({m: values[0], e: values[1], x: point})), rel=1e-12), names


# Captured tensors


def test_captured_parameters_get_gradients_and_hessians():
    a = T(3.0, requires_grad=True)
    root = implicit_root(lambda x: x**2 - a, lambda: a.item() ** 0.5)
    x = root()
    (first,) = symgrad.autograd.grad(x, a, create_graph=True)
    (second,) = symgrad.autograd.grad(first, a, create_graph=True)
    (third,) = symgrad.autograd.grad(second, a)
    assert [t.item() for t in (x, first, second, third)] == pytest.approx(ROOTS[:4], rel=1e-14)

    def outer(a):
        return implicit_root(lambda x, b: x**2 - a * b, lambda b: float(a * b) ** 0.5)(T(1.0)) * a

    expected = [float(sympy.diff(sympy.Symbol("a") ** 1.5, "a", k).subs("a", 3).evalf(20)) for k in range(4)]
    assert float(hessian(outer)(3.0)) == pytest.approx(expected[2], rel=1e-14)
    assert float(jacfwd(outer)(3.0)) == pytest.approx(expected[1], rel=1e-14)
    assert float(grad(grad(grad(outer)))(3.0)) == pytest.approx(expected[3], rel=1e-14)


@pytest.mark.sweep
def test_captured_tensors_that_depend_on_each_other():
    a = T(0.8, requires_grad=True)
    b = a.sin()
    c = b * a
    x = implicit_root(lambda x, c: x**3 + x * b - a - c,
                      lambda c: scipy.optimize.brentq(lambda x: x**3 + x * np.sin(0.8) - 0.8 - float(c), 0, 3, xtol=1e-15))(c)
    (first,) = symgrad.autograd.grad(x, a, create_graph=True)
    (second,) = symgrad.autograd.grad(first, a)
    s, y = sympy.Symbol("a"), sympy.Function("x")(sympy.Symbol("a"))
    equation = y**3 + y * sympy.sin(s) - s - s * sympy.sin(s)
    (slope,) = sympy.solve(sympy.diff(equation, s), y.diff(s))
    curvature = sympy.diff(slope, s).subs(y.diff(s), slope)
    at = {y: sympy.Float(x.item()), s: 0.8}
    assert first.item() == pytest.approx(float(slope.subs(at)), rel=1e-13)
    assert float(second) == pytest.approx(float(curvature.subs(at)), rel=1e-13)


@pytest.mark.sweep
def test_a_layer_defined_by_its_fixed_point():
    symgrad.manual_seed(0)
    inner, rng = nn.Linear(3, 3), np.random.default_rng(0)
    with symgrad.no_grad():
        inner.weight.mul_(0.5)

    def step(z, x):
        return (inner(z) + x).tanh()

    def iterated(x, steps=200):
        z = symgrad.zeros(3)
        for _ in range(steps):
            z = step(z, x)
        return z

    layer = implicit_fixed_point(step, lambda x: iterated(x).detach())
    x = T(rng.normal(size=3), requires_grad=True)
    leaves = [x, *inner.parameters()]
    found = symgrad.autograd.grad(layer(x).square().sum(), leaves, create_graph=True)
    unrolled = symgrad.autograd.grad(iterated(x).square().sum(), leaves, create_graph=True)
    close(list(found), list(unrolled), 1e-12)
    again = symgrad.autograd.grad(sum((g.square().sum() for g in found), T(0.0)), leaves)
    close(list(again), list(symgrad.autograd.grad(sum((g.square().sum() for g in unrolled), T(0.0)), leaves)), 1e-11)


# What a solver may return, and what is refused


def test_options_go_to_the_solver_and_dtypes_stay():
    seen = []
    root = implicit_root(lambda x, a: x - 2 * a, lambda a, **options: seen.append(options) or 2 * a)
    x = root(T([1.0, 2.0], dtype=symgrad.float32, requires_grad=True), start=3, rtol=1e-9)
    assert seen == [{"start": 3, "rtol": 1e-9}] and x.dtype == symgrad.float32
    assert not root(T(1.0)).requires_grad
    with symgrad.no_grad():
        assert not root(T(1.0, requires_grad=True)).requires_grad
    empty = implicit_root(lambda x, a: x * a, lambda a: np.zeros(0))(T(1.0, requires_grad=True))
    empty.sum().backward()


def test_a_residual_that_is_not_zero_without_a_tolerance():
    assert float(implicit_root(lambda x, a: x**2 - a, lambda a: float(a) / 2, tolerance=None)(T(3.0))) == 1.5


def test_a_solution_modified_in_place_is_detected():
    a = T([4.0, 9.0], requires_grad=True)
    x = implicit_root(lambda x, a: x**2 - a, lambda a: a.sqrt())(a)
    total = x.sum()
    x.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_it_has_no_formula():
    a = T(4.0, requires_grad=True, symbol="a")
    with pytest.raises(RuntimeError, match="a solution found by a solver has no formula"):
        _ = square_root()(a).expr
    square_root()(a).backward()
    assert float(a.grad) == 0.25
    with pytest.raises(RuntimeError, match="no formula"):
        _ = a.grad.expr
    with pytest.raises(NotImplementedError, match="no Taylor series"):
        jet(square_root(), (T(4.0),), ([T(1.0), T(0.0)],))
    assert symgrad.check(square_root(), 4.0).verdict == "not checkable"


def test_an_equation_with_a_pullback_of_its_own():
    f = custom_vjp(lambda x: x**2)
    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * 2 * x,))
    root = implicit_root(lambda x, a: f(x) - a, lambda a: float(a) ** 0.5, solve="gmres")
    assert [float(g(3.0)) for g in (grad(root), grad(grad(root)), jacfwd(root))] == pytest.approx([ROOTS[1], ROOTS[2], ROOTS[1]], rel=1e-13)
