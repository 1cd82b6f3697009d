"""The problems whose second derivatives are timed: every route of ours gives the numbers of the closed forms."""


import numpy as np
import pytest

import symgrad
from symgrad.func import hessian, hvp, vhp
from tests.benchmarks import fields, higher, products
from tests.benchmarks.hessians import DENSE, Problem, factorization, hand_hessian, make
from tests.benchmarks.table import agree

RNG = np.random.default_rng(2)
SMALL = [make(name) for name in ("rosenbrock-3", "rosenbrock-10", "logistic-40x7", "quadratic-12", "helmholtz-6", "mlp")]
SMALL.append(Problem("factorization", factorization, RNG.normal(size=(6, 3)), (RNG.normal(size=(4, 3)), RNG.normal(size=(6, 4)))))
small = pytest.mark.parametrize("problem", SMALL, ids=lambda problem: problem.name)


@pytest.mark.parametrize("name", DENSE)
def test_a_hessian_is_the_closed_form(name):
    problem = make(name)
    f, x = problem.of(symgrad, symgrad.tensor)
    found = hessian(f)(x)
    assert found.shape == (*x.shape, *x.shape)
    agree(found, hand_hessian(problem)(), 1e-11)


@small
def test_a_structure_changes_no_number(problem):
    f, x = problem.of(symgrad, symgrad.tensor)
    n = x.numel()
    for structure in ("auto", "local"):
        found = hessian(f, structure=structure)(x)
        agree(found if isinstance(found, symgrad.Tensor) else found.todense(), hand_hessian(problem)().reshape(n, n), 1e-11)


@small
def test_a_problem_is_the_same_function_in_numpy(problem):
    f, x = problem.of(symgrad, symgrad.tensor)
    agree(f(x), problem.function(np, problem.point, *problem.constants), 1e-13)


def test_the_physics_informed_loss_has_one_value_by_both_routes():
    by_grad = fields.poisson_by_grad(symgrad, symgrad.tensor)()
    agree(by_grad, fields.poisson_by_jvp(symgrad, symgrad.func.jvp, symgrad.tensor)(), 1e-11)


def test_the_laplacian_is_the_trace_of_the_hessian():
    w = [symgrad.tensor(a) for a in fields.weights()]
    one = hessian(lambda z: fields.network(symgrad, z, w)[0])
    agree(higher.our_laplacian()(), np.array([np.trace(np.asarray(one(symgrad.tensor(z)))) for z in fields.points()]), 1e-11)


@pytest.mark.parametrize("shape", higher.BARS)
def test_the_last_derivative_of_a_jet_is_the_nested_gradient(shape):
    agree(higher.our_jet(shape)(), higher.nested(symgrad, higher.point(symgrad, shape), higher.ORDER), 1e-11)


def test_a_product_with_the_weights_is_the_double_backward_and_is_symmetric():
    c = products.Classifier(symgrad, symgrad.tensor)
    found = hvp(c.loss, c.plain, c.direction)
    agree(found, c.double_backward(), 1e-11)
    agree(vhp(c.loss, c.plain, c.direction), found, 1e-11)
    other = tuple(symgrad.tensor(np.random.default_rng(1).normal(size=v.shape)) for v in c.direction)
    one, two = (sum(float((a * b).sum()) for a, b in zip(u, hvp(c.loss, c.plain, v))) for u, v in ((other, c.direction), (c.direction, other)))
    np.testing.assert_allclose(one, two, rtol=1e-9)
