"""Kronecker products and axes that are merged and split, as matrix formulas: recorded gradients, sources, sizes and random programs."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

import symgrad
from symgrad import autograd, kron, linalg, matrix_expr, matrix_gradient, matrix_hessian, trace
from tests.support.lines import lines

SHAPES = {"A": (2, 3), "B": (3, 2), "S": (2, 2), "T": (3, 3), "u": (2,), "v": (3,), "z": (6,)}


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.integers(1, 9, shape) / 8 + 2 * (np.eye(*shape) if name in "ST" else 0) for name, shape in SHAPES.items()}


def leaves(seed=0):
    return {name: symgrad.tensor(value, requires_grad=True, symbol=name) for name, value in arrays(seed).items()}


VALUES = dict(lines("kronecker_values"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", VALUES)
def test_values(text):
    names = {"kron": kron, "linalg": linalg, "trace": trace, "symgrad": symgrad, "np": np}
    y = eval(text, {**names, **leaves()})  # noqa: S307  a text of this file
    found = matrix_expr(y)
    assert str(found) == VALUES[text]
    for value in (eval(found.numpy(), {"np": np, **arrays()}), found.evaluate()):  # noqa: S307
        np.testing.assert_allclose(value, y.detach().numpy(), rtol=1e-12)


def test_notations():
    t = leaves()
    f = matrix_gradient(((kron(t["A"], t["B"]) @ t["z"]) ** 2).sum(), "A")
    assert f.latex() == r"2 \, A \, \operatorname{unvec}\left(z\right)^{\top} \, B^{\top} \, B \, \operatorname{unvec}\left(z\right)"
    assert f.numpy() == "2 * (A @ z.reshape(A.shape[1], B.shape[1]) @ B.T @ B @ z.reshape(A.shape[1], B.shape[1]).T)"
    assert matrix_expr(kron(t["A"], t["B"])).latex() == r"A \otimes B"
    jacobian = matrix_expr(kron(t["u"], t["v"])).gradient("u")
    assert str(jacobian) == "Y[i,j] = Σ_k v[k] δ[i,(j,k)]" and jacobian.latex() == r"Y_{ij} = \sum_{k} \, v_{k} \, \delta_{i,(jk)}"
    exact = np.kron(np.eye(2), arrays()["v"][:, None])
    for value in (jacobian.evaluate(), eval(jacobian.numpy(), {"np": np, **arrays()})):  # noqa: S307
        np.testing.assert_array_equal(value, exact)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", ["trace(kron(S, T))", "((kron(A, B) @ z) ** 2).sum()", "z @ linalg.solve(kron(S, T), z)", "kron(u, v) @ z",
                                  "z @ (kron(S, np.eye(3)) + kron(np.eye(2), T)) @ z"])
def test_recorded_gradients_read_as_derived_ones(text):
    t = leaves()
    y = eval(text, {"kron": kron, "linalg": linalg, "trace": trace, "np": np, **t})  # noqa: S307
    for name in matrix_expr(y).names:
        (g,) = autograd.grad(y, t[name], create_graph=True)
        assert str(matrix_expr(g)) == str(matrix_gradient(y, name))


def test_formulas_hold_at_other_sizes():
    f = matrix_gradient(lambda A, B, x: symgrad.logsumexp(kron(A, B) @ x, 0), "A", A="m n", B="p q", x="n*q")
    rng = np.random.default_rng(0)
    big = {"A": rng.normal(size=(7, 5)), "B": rng.normal(size=(4, 6)), "x": rng.normal(size=30)}
    weights = np.exp(np.kron(big["A"], big["B"]) @ big["x"])
    exact = (weights / weights.sum()).reshape(7, 4) @ big["B"] @ big["x"].reshape(5, 6).T
    np.testing.assert_allclose(f.evaluate(big), exact, rtol=1e-11)
    tensors = {name: symgrad.tensor(value, requires_grad=True, symbol=name) for name, value in big.items()}
    y = symgrad.logsumexp(kron(tensors["A"], tensors["B"]) @ tensors["x"], 0)
    assert str(matrix_gradient(y, "A")) == str(f) == "unvec(softmax((A ⊗ B) x))ᵀB unvec(x)"


def test_sums_over_an_axis_of_pairs_take_no_memory_for_pairs():
    u = {name: symgrad.tensor(np.arange(1.0, 301.0), requires_grad=True, symbol=name) for name in "ab"}
    f = matrix_expr(kron(u["a"], u["b"]) @ kron(u["a"], u["b"]))
    assert str(f) == "‖a‖² ‖b‖²" and f.evaluate() == float(300 * 301 * 601 // 6) ** 2


@pytest.mark.sweep
def test_axes_of_pairs_of_different_lengths_are_no_common_factor():
    t = leaves()

    def y(T):
        return symgrad.exp(kron(t["z"].reshape(2, 3).T, T @ T.T) / 50).sum()

    hessian = matrix_hessian(y(t["T"]), "T")
    np.testing.assert_allclose(hessian.evaluate(), symgrad.func.hessian(y)(t["T"]).detach().numpy(), rtol=1e-11)


def program(rng, values, depth, rank):
    """A vector or a matrix of values by products and reshaping, which are the same for tensors and arrays."""
    if depth == 0:
        return values[rng.choice([name for name, shape in SHAPES.items() if len(shape) == rank])]
    def inner(rank):
        return program(rng, values, depth - 1, rank)
    kinds = {1: ["kron", "flat", "scaled"], 2: ["kron", "transposed", "gram", "rows", "split", "scaled", "mixed"]}
    kind = rng.choice(kinds[rank])
    if kind == "kron":
        return np.kron(inner(rank), inner(rank))
    if kind == "mixed":
        return np.kron(inner(2), inner(1))
    if kind == "scaled":
        x = inner(rank)
        return x * x + x * rng.choice([2, -3])
    if kind == "flat":
        return inner(2).reshape(-1)
    if kind == "split":
        return values["z"].reshape(2, 3) if depth == 1 else inner(1)[:, None] * inner(1)
    x = inner(2)
    return x.T if kind == "transposed" else x @ x.T if kind == "gram" else x + x.sum(0)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(30))
def test_random_programs_are_those_of_fractions(seed):
    exact = {name: np.vectorize(Fraction, otypes=[object])(value) for name, value in arrays(seed).items()}
    depth, rank = 2 + seed % 2, 1 + seed % 3 % 2
    small = next(n for n in itertools.count() if program(random.Random(f"{seed} {n}"), exact, depth, rank).size <= 300)
    wanted, y = (program(random.Random(f"{seed} {small}"), values, depth, rank) for values in (exact, leaves(seed)))
    found = matrix_expr(y)
    assert (eval(found.numpy(), {"np": np, **exact}) == wanted).all()  # noqa: S307
    np.testing.assert_allclose(found.evaluate(), wanted.astype(float), rtol=1e-12)
