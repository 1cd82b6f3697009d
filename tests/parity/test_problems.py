"""The problems whose second derivatives are timed: every route of torch gives our numbers."""

import numpy as np
import pytest
import torch

import symgrad
from symgrad.func import hessian, hvp
from tests.benchmarks import fields, products
from tests.benchmarks.hessians import torch_routes
from tests.benchmarks.problems import DENSE, hand_hessian, make
from tests.benchmarks.table import agree

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # torch's own, of its forward mode


@pytest.mark.parametrize("name", DENSE)
def test_every_route_to_a_hessian(name):
    problem = make(name)
    f, x = problem.of(symgrad, symgrad.tensor)
    ours, closed = hessian(f)(x), hand_hessian(problem)()
    for route in torch_routes(torch, problem).values():
        theirs = route()
        agree(ours, theirs, 1e-11)
        agree(closed, theirs, 1e-11)


def test_every_route_to_the_physics_informed_loss():
    ours = fields.poisson_by_grad(symgrad, symgrad.tensor)()
    for route in (fields.poisson_by_grad(torch, torch.tensor), fields.poisson_by_vmap(torch),
                  fields.poisson_by_jvp(torch, torch.func.jvp, torch.tensor)):
        agree(ours, route(), 1e-11)


def test_every_route_to_the_laplacian():
    w = [symgrad.tensor(a) for a in fields.weights()]
    one = hessian(lambda z: fields.network(symgrad, z, w)[0])
    ours = np.array([np.trace(np.asarray(one(symgrad.tensor(z)))) for z in fields.points()])
    for route in fields.laplacian_routes(torch).values():
        agree(ours, route(), 1e-11)


def test_every_route_to_a_hessian_vector_product():
    c = products.Classifier(symgrad, symgrad.tensor)
    ours = hvp(c.loss, c.plain, c.direction)
    for route in products.routes(torch).values():
        agree(ours, route(), 1e-11)
