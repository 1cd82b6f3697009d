"""Views of a tensor without dimensions, whose value is a number and no array: derivatives by every route are those without the view."""

import numpy as np
import pytest

import symgrad
from symgrad import func
from tests.support.routes import GRADIENTS, HESSIANS, array

VIEWS = {
    "reshape": lambda x: x.reshape(1), "view": lambda x: x.view(1, 1), "unsqueeze": lambda x: x.unsqueeze(0), "None": lambda x: x[None],
    "ellipsis": lambda x: x[...], "expand": lambda x: x.expand(3), "broadcast_to": lambda x: symgrad.broadcast_to(x, (2, 2)),
    "flatten": lambda x: x.flatten(), "ravel": lambda x: x.ravel(), "squeeze": lambda x: x.squeeze(), "permute": lambda x: x.permute(()),
    "atleast_2d": symgrad.atleast_2d, "stack": lambda x: symgrad.stack([x, x]), "cat": lambda x: symgrad.cat([x[None], x[None]]),
    "repeat": lambda x: x.repeat(2), "meshgrid": lambda x: symgrad.meshgrid(x, x, indexing="ij")[0], "real": lambda x: x.real,
    "view_as": lambda x: x.view_as(symgrad.zeros(1)), "twice": lambda x: x[None].expand(2).reshape(2, 1), "and back": lambda x: x.reshape(1)[0],
}
BEFORE = {"input": lambda x: x, "of a value": lambda x: (1.3 * x).cos(), "of a product": lambda x: x * x.sin()}
AFTER = {"product": lambda v: v.prod() * v.sum(), "norm": lambda v: v.norm().cos(), "softplus": lambda v: symgrad.nn.functional.softplus(v * v).sum()}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("view", VIEWS)
def test_derivatives_through_a_view_of_a_number(view, before, after):
    f = lambda x: AFTER[after](VIEWS[view](BEFORE[before](x)))  # noqa: E731
    shape = VIEWS[view](symgrad.tensor(0.0)).shape
    plain = lambda x: AFTER[after](BEFORE[before](x) * symgrad.ones(shape))  # noqa: E731
    x = symgrad.tensor(1 / 3)
    twice, thrice = func.grad(func.grad(f)), func.grad(func.grad(func.grad(f)))
    for table, true in ((GRADIENTS, func.grad(plain)(x)), (HESSIANS | {"grad of grad": lambda f, x: twice(x)}, func.hessian(plain)(x)),
                        ({"three times": lambda f, x: thrice(x), "series": lambda f, x: func.derivatives(f, 3)(x)[3]},
                         func.jacfwd(func.hessian(plain))(x))):
        for name, route in table.items():
            np.testing.assert_allclose(array(route(f, x)), true.numpy(), rtol=1e-10, atol=1e-13, err_msg=name)
