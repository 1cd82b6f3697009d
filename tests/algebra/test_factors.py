"""Factored Hessians: the form found in a graph, and that its product is the Hessian, on known models and on random programs."""

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, cg

import symgrad
from symgrad.func import factors, hessian
from symgrad.func.factors import factored_hessian, hessian_factors
from tests.benchmarks.hessians import hand_hessian, make
from tests.support.functions import saving
from tests.support.lines import lines

rng = np.random.default_rng(0)


def array(*shape):
    return symgrad.tensor(rng.normal(size=shape))


X, Y, A, B = array(20, 4), array(20, 3), array(40), array(3, 40)
ONES = symgrad.ones(20)


def whole(f, argnums, *xs):
    """The Hessian of all elements by all elements, dense."""
    found = hessian(f, argnums)(*xs)
    if not isinstance(argnums, tuple):
        return found.numpy().reshape((xs[argnums].numel(),) * 2)
    sizes = [xs[n].numel() for n in argnums]
    return np.block([[block.numpy().reshape(p, q) for block, q in zip(row, sizes)] for row, p in zip(found, sizes)])


def held(operator, wanted):
    """Check all products of an operator against a dense matrix."""
    n = len(wanted)
    scale = max(abs(wanted).max(initial=0.0), 1.0) * 2.0**-52
    v, block = np.random.default_rng(1).normal(size=n), np.random.default_rng(2).normal(size=(n, 3))
    assert isinstance(operator, LinearOperator) and operator.shape == (n, n) and operator.dtype == wanted.dtype
    dense = operator.todense()
    assert isinstance(dense, np.ndarray) and abs(dense - wanted).max(initial=0.0) <= 64 * scale
    for got, right in ((operator @ v, wanted @ v), (operator @ block, wanted @ block), (operator.T @ v, wanted @ v)):
        assert got.shape == right.shape and abs(got - right).max(initial=0.0) <= 64 * n * scale


MODELS = {name: (form, eval(function), eval(xs), eval(argnums)) for name, form, xs, argnums, function in lines("factored_hessians")}


@pytest.mark.parametrize("name", MODELS)
def test_factors_multiply_to_the_hessian(name):
    form, f, xs, argnums = MODELS[name]
    h = hessian_factors(f, argnums)(*xs)
    assert h.report.form == form and h.report.shape == h.shape
    held(h, whole(f, argnums, *xs))


@pytest.mark.parametrize("name", MODELS)
def test_the_program_is_replayed_on_other_values(name):
    _, f, xs, argnums = MODELS[name]
    transform = hessian_factors(f, argnums)
    for scale in (1.0, 0.5, -0.25, 2.0):
        moved = tuple(x * scale for x in xs)
        held(transform(*moved), whole(f, argnums, *moved))


def test_the_factors_of_a_generalised_linear_model():
    w = array(4)
    h = hessian_factors(lambda w: (X @ w).exp().sum())(w)
    assert h.factors["X"] is X.numpy() or (h.factors["X"] == X.numpy()).all()
    assert np.allclose(h.factors["D"], np.exp(X.numpy() @ w.numpy()), rtol=1e-14)
    assert h.report.numbers == 20 * 4 + 20


def test_the_factors_of_a_matrix_factorisation():
    problem = make("factorization")
    f, u = problem.of(symgrad, symgrad.tensor)
    h = hessian_factors(f)(u)
    v = problem.constants[0]
    assert h.report.form == "I kron A" and h.factors["times"] == 50 and h.factors["A"].shape == (5, 5)
    assert np.allclose(h.factors["A"], 2.0 * v.T @ v, rtol=1e-14)
    assert np.allclose(h.todense(), np.kron(np.eye(50), h.factors["A"]), rtol=1e-14, atol=0)


def test_the_factors_of_several_responses():
    h = hessian_factors(lambda w: ((X @ w - Y) ** 2).sum())(array(4, 3))
    assert np.allclose(h.todense(), np.kron(h.factors["A"], np.eye(3)), rtol=1e-14, atol=0) and h.factors["times"] == 3


def test_the_factors_of_a_diagonal_plus_low_rank():
    for name in ("separable plus some combinations", "separable times a combination"):
        _, f, (x,), _ = MODELS[name]
        h = hessian_factors(f)(x)
        d, w, k = (h.factors[key] for key in ("diagonal", "W", "K"))
        assert w.shape[1] <= 6
        assert np.allclose(np.diag(d) + w @ k @ w.T, whole(f, 0, x), rtol=1e-12, atol=1e-12)


def test_j_and_s_give_the_hessian():
    for name in ("ridge", "a quadratic form", "softmax regression", "few combinations"):
        _, f, xs, argnums = MODELS[name]
        h = hessian_factors(f, argnums)(*xs)
        j = np.concatenate([m.toarray() if hasattr(m, "toarray") else m for m in h.factors["J"]])
        s = h.factors["S"].toarray() if hasattr(h.factors["S"], "toarray") else h.factors["S"]
        assert np.allclose(j.T @ s @ j, whole(f, argnums, *xs), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["rosenbrock-10", "rosenbrock-100", "logistic-1000x50", "quadratic-500", "factorization", "helmholtz-50", "mlp"])
def test_benchmark_problems(name):
    problem = make(name)
    f, x = problem.of(symgrad, symgrad.tensor)
    h = hessian_factors(f)(x)
    wanted = hand_hessian(problem)().reshape(h.shape)
    assert abs(h.todense() - wanted).max() <= 1e-12 * abs(wanted).max()
    assert h.report.form == {"rosenbrock": "sparse", "logistic": "X' D X", "factorization": "I kron A"}.get(name.split("-")[0], "J' S J")


@pytest.mark.sweep
def test_the_hessian_of_a_large_model_is_never_dense():
    """The matrix is a million by a million; only its factors are computed."""
    n, rows = 1_000_000, symgrad.tensor(np.random.default_rng(3).normal(size=(2, 1_000_000)))
    x = symgrad.tensor(np.random.default_rng(4).uniform(0.5, 1.5, n))
    h = hessian_factors(lambda x: (x**3).sum() + (rows @ x * 1e-3).square().sum())(x)
    assert h.report.form == "diagonal plus low rank" and h.report.numbers < 6 * n
    v = np.random.default_rng(5).normal(size=n)
    wanted = 6.0 * x.numpy() * v + 2e-6 * rows.numpy().T @ (rows.numpy() @ v)
    assert abs(h @ v - wanted).max() < 1e-12 * abs(wanted).max()
    step, failed = cg(h, v, rtol=1e-10)
    assert not failed and abs(h @ step - v).max() < 1e-7


@pytest.mark.parametrize("name", ["centred", "ridge", "logistic regression, with an intercept", "few combinations"])
def test_a_large_linear_part_stays_an_operator(name, monkeypatch):
    _, f, xs, argnums = MODELS[name]
    monkeypatch.setattr(factors, "MAX_ENTRIES", 8)
    monkeypatch.setattr(factors, "_product", lambda node, starts: None)
    h = hessian_factors(f, argnums)(*xs)
    assert h.report.form == "J' S J"
    held(h, whole(f, argnums, *xs))


# Random programs

LINEAR = [lambda x, r: x.flip(0), lambda x, r: symgrad.tensor(r.normal(size=(6, 6))) @ x, lambda x, r: x * symgrad.tensor(r.normal(size=6)),
          lambda x, r: x.cumsum(0), lambda x, r: x - x.mean(), lambda x, r: 2.0 * x + 1.0, lambda x, r: symgrad.roll(x, 1, 0), lambda x, r: -x / 3.0,
          lambda x, r: x[symgrad.tensor(r.integers(0, 6, 6))], lambda x, r: x.reshape(2, 3).t().reshape(6), lambda x, r: symgrad.cat([x[3:], x[:3]]),
          lambda x, r: x.reshape(3, 2) @ symgrad.tensor(r.normal(size=(2, 2))).reshape(2, 2) @ symgrad.ones(2, 2) @ symgrad.ones(2)]
CURVED = [lambda x: x.sin(), lambda x: x**2, lambda x: (x * 0.3).exp(), lambda x: x.tanh(), lambda x: x * symgrad.ones(6), lambda x: x * x[0],
          lambda x: symgrad.softmax(x, 0), lambda x: symgrad.logaddexp(x, 0.0 * x)]


def program(seed):
    def f(x):
        r = np.random.default_rng(seed)
        pool = [x]
        for _ in range(r.integers(2, 7)):
            z = pool[r.integers(len(pool))]
            if r.random() < 0.6:
                y = LINEAR[r.integers(len(LINEAR) - 1)](z, r)
            else:
                y = CURVED[r.integers(len(CURVED))](z)
            pool.append(y + pool[r.integers(len(pool))] if r.random() < 0.3 else y)
        return sum((z * symgrad.tensor(r.normal(size=6))).sum() for z in pool[-2:])

    return f


@pytest.mark.sampled(40)
@pytest.mark.parametrize("seed", range(120))
def test_random_programs(seed):
    f, x = program(seed), symgrad.tensor(np.random.default_rng(seed + 1000).normal(size=6))
    held(hessian_factors(f)(x), whole(f, 0, x))


@pytest.mark.sweep
def test_random_programs_have_all_kinds_of_factors():
    x = symgrad.tensor(np.random.default_rng(0).normal(size=6))
    assert {hessian_factors(program(seed))(x).report.form for seed in range(120)} >= {"X' D X", "J' S J", "sparse", "zero"}


# Factored Hessians in other functions


def test_trees_keywords_and_other_transforms():
    p = {"w": array(4).requires_grad_(), "b": symgrad.tensor(0.5)}

    def loss(p, scale=1.0):
        return (X @ p["w"] * scale + p["b"]).exp().sum()

    h = hessian_factors(loss)(p, scale=2.0)
    x = np.concatenate([2.0 * X.numpy(), np.ones((20, 1))], 1)
    d = np.exp(x @ np.concatenate([p["w"].detach().numpy(), [0.5]]))
    assert h.report.form == "X' D X"
    held(h, x.T @ (d[:, None] * x))


def test_factors_of_an_evaluation():
    from symgrad.func.evaluation import evaluate

    ev = evaluate(lambda w: (X @ w).exp().sum(), (array(4),), {}, 0, "test")
    assert factored_hessian(ev, ev.outputs[0]).report.form == "X' D X"


def test_affine_values_that_depend_on_each_other():
    M = array(3, 3)
    f = hessian_factors(lambda x: x @ M @ x)
    for _ in range(3):  # the third call is a remembered program
        np.testing.assert_allclose(f(array(3)).todense(), (M + M.T).numpy(), rtol=1e-14)


def test_custom_functions_are_products():
    Cube = saving(lambda x: x**3, lambda g, x: 3 * x * x * g, "Cube")

    x = array(70)
    h = hessian_factors(lambda x: Cube.apply(x).sum() * x.sum())(x)
    assert h.report.form == "products" and h.factors == {}
    held(h, whole(lambda x: (x**3).sum() * x.sum(), 0, x))


def test_refused():
    with pytest.raises(RuntimeError, match="scalar"):
        hessian_factors(lambda x: x)(array(3))
    with pytest.raises(RuntimeError, match="int64"):
        hessian_factors(lambda x: x.sum())(symgrad.tensor([1, 2]))


@pytest.mark.parametrize("f", [lambda z: (z * z).sum() * z.sum(), lambda z: z[1] * z.sum(), lambda z: (z.sort()[0] * z).sum(),
                               lambda z: z.square().max() * z.sum()])
def test_values_at_the_cut_that_depend_on_each_other(f):
    x = symgrad.tensor([1.0, 3.0, -1.0])
    assert np.allclose(hessian_factors(f)(x).todense(), symgrad.func.hessian(f)(x).numpy())
