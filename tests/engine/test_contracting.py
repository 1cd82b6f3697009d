"""Sums of products over named indices as products of matrices: the numbers are those of NumPy's loop, and no memory is shared."""

import random

import numpy as np
import pytest

import symgrad
from symgrad.carriers import contracting


@pytest.mark.sweep
def test_products_of_matrices_are_the_sums_of_products(monkeypatch):
    monkeypatch.setattr(contracting, "FEW", 0)
    contracting._plan.cache_clear()
    rng, choose, planned = np.random.default_rng(0), random.Random(0), 0
    for _ in range(600):
        sizes = {letter: choose.choice([1, 2, 3]) for letter in "abcdef"}
        terms = ["".join(choose.sample("abcdef", choose.randint(0, 4))) for _ in range(choose.randint(1, 4))]
        known = sorted(set("".join(terms)))
        equation = ",".join(terms) + "->" + "".join(choose.sample(known, choose.randint(0, len(known))))
        xs = [rng.normal(size=[sizes[letter] for letter in term]) for term in terms]
        if choose.random() < 0.3:
            xs = [x + 1j * rng.normal(size=x.shape) for x in xs]
        if choose.random() < 0.3:  # as the cotangent of a sum
            xs = [np.broadcast_to(x.ravel()[0], x.shape) for x in xs]
        ours, theirs = contracting.contract(equation, xs), np.einsum(equation, *xs)
        assert np.shape(ours) == np.shape(theirs) and np.result_type(ours) == np.result_type(theirs), equation
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11, err_msg=equation)
        assert not any(np.shares_memory(ours, x) for x in xs), equation
        planned += len(xs) > 1 and contracting._plan(equation, tuple(x.shape for x in xs)) is not None
    assert planned > 300
    contracting._plan.cache_clear()


@pytest.mark.parametrize("equation", ["ij,jk->ik", "i,ij->j", "ij,ij,jk->ik", "...ij,jk->ik", "ij,ij->iz", "ij,ij->ii", "ij,ij", "ij->i", ",ij->ij"])
@pytest.mark.parametrize("few", [0, contracting.FEW])
def test_equations_that_operands_do_not_fit_are_refused_as_by_numpy(monkeypatch, equation, few):
    monkeypatch.setattr(contracting, "FEW", few)
    contracting._plan.cache_clear()
    for shapes in ([(3,), (3,)], [(3, 3), (3, 3)], [(2, 3), (2, 3)], [(2, 3), (3, 3), (3, 3)]):
        xs, found = [np.ones(shape) for shape in shapes], []
        for function in (contracting.contract, lambda equation, xs: np.einsum(equation, *xs)):
            try:
                found.append(np.asarray(function(equation, xs)).tolist())
            except ValueError:
                found.append("refused")
        assert found[0] == found[1], shapes
    contracting._plan.cache_clear()


def test_large_sums_of_products_have_the_derivatives_of_the_product():
    a, b = (symgrad.randn(2, 20, 30, requires_grad=True), symgrad.randn(2, 30, 10, requires_grad=True))
    found = []
    for y in (symgrad.einsum("bij,bjk->bki", a, b).mT, a @ b):
        first = symgrad.autograd.grad((y**3).sum(), (a, b), create_graph=True)
        found.append([y, *first, *symgrad.autograd.grad((first[0] ** 2).sum(), (a, b))])
    assert all(symgrad.allclose(x, y, rtol=1e-9) for x, y in zip(*found))
    rows = symgrad.func.vmap(lambda a, b: symgrad.einsum("ij,jk->ik", a, b))(a, b)
    assert symgrad.allclose(rows, a @ b)
    sums = symgrad.func.vmap(lambda a: symgrad.einsum("ij,jk->", a, b[0]))(a)
    assert symgrad.allclose(sums, (a @ b[0]).sum((1, 2)))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("equation", ["ij->i", "ji->i", "ij->", "ij,ij->i", "ij,ij->"])
def test_long_sums_of_single_precision_keep_their_digits(equation, dtype):
    terms = equation.partition("->")[0].split(",")
    xs = [np.full({"ij": (3, 100003), "ji": (100003, 3)}[term], 0.1, dtype) for term in terms]
    found = symgrad.einsum(equation, *map(symgrad.tensor, xs)).numpy()
    exact = np.einsum(equation, *[x.astype(complex) for x in xs])
    assert found.dtype == dtype
    np.testing.assert_allclose(found, exact, rtol=3e-6)
