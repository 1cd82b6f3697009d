"""`autograd.functional` and the problems whose second derivatives are timed: every route of torch gives our numbers."""

import numpy as np
import pytest
import torch
from torch.autograd import functional as theirs

import symgrad
from symgrad.autograd import functional as ours
from symgrad.func import hessian, hvp
from tests.benchmarks import fields, products
from tests.benchmarks.hessians import DENSE, hand_hessian, make, torch_routes
from tests.benchmarks.table import agree

pytestmark = [pytest.mark.usefixtures("double_precision"),
              pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")]  # torch's own, of its forward mode


UNARY = ("sin", "exp", "tanh", "sigmoid", "square", "cos")


def program(rng, scalar):
    """A random smooth function of two tensors, as a function of the library it is written in."""
    first, second = rng.choice(UNARY, 2)
    weight, dim, form = rng.uniform(-1, 1, (3, 3)), int(rng.integers(2)), int(rng.integers(4))

    def function(t, x, y):
        w = t.tensor(weight)
        a = getattr(t, first)(x @ w) * y
        b = getattr(t, second)(a).sum(dim) if form % 2 else getattr(t, second)(a / (1 + y * y)).transpose(0, 1)
        if scalar:
            return (b * b).mean() + (x[0] * y[-1]).sum()
        return (b, a[:, 1:], y.sum()) if form > 1 else b

    return function


def numbers(found):
    """The arrays of nested tuples, and their structure with shapes."""
    if isinstance(found, (tuple, list)):
        parts = [numbers(each) for each in found]
        return [array for arrays, _ in parts for array in arrays], [shape for _, shape in parts]
    array = found.detach().numpy()
    return [array], array.shape


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("caller", ["jacobian", "vjp", "jvp", "hessian", "vhp", "hvp", "jacobian forward", "hessian forward"])
def test_random_programs(caller, seed):
    rng = np.random.default_rng(seed)
    name, _, forward = caller.partition(" ")
    scalar = name in ("hessian", "vhp", "hvp")
    function = program(rng, scalar)
    x, y = rng.uniform(-1, 1, (2, 3)), rng.uniform(-1, 1, (2, 3))
    found = []
    for t, f in (torch, theirs), (symgrad, ours):
        inputs = t.tensor(x), t.tensor(y)
        outputs = function(t, *inputs)
        like = inputs if name != "vjp" else outputs
        draw = np.random.default_rng(seed + 100)
        v = [t.tensor(draw.uniform(-1, 1, tuple(each.shape))) for each in (like if isinstance(like, tuple) else (like,))]
        options = {"vectorize": True, "strategy" if name == "jacobian" else "outer_jacobian_strategy": "forward-mode"} if forward else {}
        rest = () if name in ("jacobian", "hessian") else (tuple(v) if isinstance(like, tuple) else v[0],)
        found.append(numbers(getattr(f, name)(lambda *xs, t=t: function(t, *xs), inputs, *rest, **options)))
    (expected, structure), (got, our_structure) = found
    assert str(structure) == str(our_structure)
    for a, b in zip(expected, got):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-13)


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
