"""Diagonals, traces, products and extreme eigenvalues of Hessians: exact ones against dense matrices, estimates by their statistics."""

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

import symgrad
from symgrad.func import grad, hessian, vmap
from symgrad.func.estimators import extreme_eigenvalues, hessian_diag, hessian_operator, hessian_trace

N = 24


def matrix(decay=3.0):
    rng = np.random.default_rng(0)
    q = np.linalg.qr(rng.normal(size=(N, N)))[0]
    return (q * np.exp(-np.arange(N) / decay)) @ q.T


def dense(x):
    """A function whose Hessian is dense and depends on x."""
    return (x @ symgrad.tensor(matrix()) @ x) / 2.0 + (x**3).sum() * x[0].sin() + x.norm()


def banded(x):
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


FUNCTIONS = {"dense": dense, "banded": banded, "separable": lambda x: (x**4).sum(), "linear": lambda x: x.sum()}


def point(n=N, seed=1):
    return symgrad.tensor(np.random.default_rng(seed).uniform(0.5, 1.5, n))


def whole(f, x):
    return hessian(f)(x).numpy()


def near(got, wanted, ulps=256):
    got, wanted = np.asarray(got.numpy() if isinstance(got, symgrad.Tensor) else got), np.asarray(wanted)
    assert got.shape == wanted.shape and abs(got - wanted).max(initial=0.0) <= ulps * 2.0**-52 * max(abs(wanted).max(initial=0.0), 1.0)


# The diagonal


@pytest.mark.parametrize("chunk_size", [None, 1, 7])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_diagonal(name, chunk_size):
    f, x = FUNCTIONS[name], point()
    near(hessian_diag(f, chunk_size=chunk_size)(x), np.diag(whole(f, x)))


def test_the_diagonal_has_the_structure_of_the_arguments():
    x, y = point(3), point(4).reshape(2, 2)

    def f(p, y):
        return (p["x"] ** 3).sum() * (y**2).sum() + y.prod()

    a, b = hessian_diag(f, argnums=(0, 1))({"x": x}, y)
    near(a["x"], 6.0 * x.numpy() * (y.numpy() ** 2).sum())
    near(b, np.full((2, 2), 2.0 * (x.numpy() ** 3).sum()))


def test_a_large_sparse_diagonal_takes_few_products():
    x = point(20_000)
    a = x.numpy()
    wanted = np.zeros(20_000)
    wanted[:-1] = 1200.0 * a[:-1] ** 2 - 400.0 * a[1:] + 2.0
    wanted[1:] += 200.0
    near(hessian_diag(banded)(x), wanted)
    assert hessian_trace(banded)(x).products == 3


def test_it_is_differentiable():
    x = symgrad.tensor([1.0, 2.0])
    near(grad(lambda z: hessian_diag(lambda u: (u**4).sum())(z).sum())(x), 24.0 * x.numpy())
    near(grad(lambda z: hessian_trace(lambda u: (u**4).sum())(z).value)(x), 24.0 * x.numpy())
    near(grad(lambda z: hessian_trace(lambda u: (u**4).sum(), method="hutchinson", seed=0, samples=4)(z).value)(x), 24.0 * x.numpy())
    near(grad(lambda z: hessian_diag(lambda u: (u**4).sum(), method="hutchinson", seed=0, samples=4)(z).value.sum())(x), 24.0 * x.numpy())
    near(vmap(hessian_diag(lambda u: (u**3).sum() * u[0]))(symgrad.tensor([[1.0, 2.0], [3.0, 4.0]])), [[12.0, 12.0], [108.0, 72.0]])


def test_an_estimate_of_the_diagonal_is_within_its_errors():
    x = point()
    wanted = np.diag(whole(dense, x))
    found = hessian_diag(dense, method="hutchinson", samples=400, seed=3, chunk_size=64)(x)
    scores = (found.value.numpy() - wanted) / found.standard_error.numpy()
    assert found.products == 400 and abs(scores).max() < 4.0 and 0.5 < scores.std() < 1.5
    assert hessian_diag(lambda z: (z**3).sum(), method="hutchinson", samples=2, seed=0)(x).standard_error.numpy().max() == 0.0


# The trace


@pytest.mark.parametrize("chunk_size", [None, 5])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_trace(name, chunk_size):
    f, x = FUNCTIONS[name], point()
    found = hessian_trace(f, chunk_size=chunk_size)(x)
    near(found.value, np.trace(whole(f, x)))
    assert found.standard_error.item() == 0.0


@pytest.mark.sweep
@pytest.mark.parametrize("method, samples", [("hutchinson", 60), ("hutch++", 30)])
def test_estimates_are_unbiased_and_their_errors_right(method, samples):
    x = point()
    wanted = np.trace(whole(dense, x))
    found = [hessian_trace(dense, method=method, samples=samples, seed=seed)(x) for seed in range(200)]
    values, errors = np.array([e.value.item() for e in found]), np.array([e.standard_error.item() for e in found])
    assert abs(values.mean() - wanted) < 4.0 * values.std(ddof=1) / np.sqrt(len(values))
    assert 0.85 < np.sqrt((errors**2).mean()) / values.std(ddof=1) < 1.15  # what each says of itself is what they are together
    assert np.mean(abs(values - wanted) < 2.0 * errors) > 0.8


def test_hutch_plus_plus_is_exact_with_enough_samples():
    x = point()
    found = hessian_trace(dense, method="hutch++", samples=3 * N, seed=0)(x)
    near(found.value, np.trace(whole(dense, x)))
    assert found.standard_error.item() == 0.0 and found.products == 2 * N


def test_random_numbers_come_from_a_seed_or_a_generator():
    x = point()
    ask = lambda **how: hessian_trace(dense, method="hutchinson", samples=5, **how)(x).value.item()  # noqa: E731
    assert ask(seed=1) == ask(seed=1) != ask(seed=2)
    assert ask(generator=symgrad.Generator().manual_seed(7)) == ask(generator=symgrad.Generator().manual_seed(7))
    assert ask(generator=np.random.default_rng(1)) == ask(seed=1)
    symgrad.manual_seed(5)
    first = ask()
    symgrad.manual_seed(5)
    assert ask() == first
    assert hessian_trace(dense, method="hutchinson", samples=5, seed=1, chunk_size=2)(x).value.item() == pytest.approx(ask(seed=1), rel=1e-14)


# Products and eigenvalues


@pytest.mark.parametrize("chunk_size", [None, 3])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_products(name, chunk_size):
    f, x, rng = FUNCTIONS[name], point(), np.random.default_rng(2)
    operator, h = hessian_operator(f, chunk_size=chunk_size)(x), whole(f, x)
    v, block = rng.normal(size=N), rng.normal(size=(N, 5))
    assert isinstance(operator, LinearOperator) and operator.shape == (N, N)
    near(operator @ v, h @ v)
    near(operator @ block, h @ block)
    near(operator.T @ v, h @ v)
    near(operator.H @ block, h @ block)
    near(operator @ v[:, None], (h @ v)[:, None])
    near(operator.todense(), h)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("which", ["both", "largest", "smallest"])
def test_extreme_eigenvalues(name, which):
    f, x = FUNCTIONS[name], point(40)
    f = f if name != "dense" else (lambda z: dense(z[:N]) + (z[N:] ** 2).sum() * z[0])
    h = whole(f, x)
    all_of_them = np.linalg.eigvalsh(h)
    wanted = {"both": all_of_them[[0, 1, -2, -1]], "largest": all_of_them[-2:], "smallest": all_of_them[:2]}[which]
    found = extreme_eigenvalues(f, count=2, which=which, vectors=True)(x)
    near(found.values, wanted, 4096)
    v = found.vectors.numpy()
    near(v @ h, v * wanted[:, None], 2**16)
    near(v @ v.T, np.eye(len(wanted)), 4096)
    assert extreme_eigenvalues(f, count=2, which=which)(x).vectors is None


def test_eigenvectors_have_the_structure_of_the_arguments():
    found = extreme_eigenvalues(lambda p: p["a"] ** 2 + 3.0 * (p["b"] ** 2).sum(), vectors=True)({"a": 1.0, "b": point(2)})
    near(found.values, [2.0, 6.0])
    assert found.vectors["a"].shape == (2,) and found.vectors["b"].shape == (2, 2)
    near(abs(found.vectors["a"].numpy()), [1.0, 0.0])
    near(extreme_eigenvalues(lambda x: x**4, which="largest")(2.0).values, [48.0])
