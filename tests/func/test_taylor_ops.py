"""Taylor mode of every registered op: three coefficients along a direction equal those of nested gradients."""

import numpy as np
import pytest

from symgrad import autograd, tensor
from symgrad.engine.traced import core
from symgrad.func.taylor import jet
from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import REGISTRY
from symgrad.methods.extending import BUILT_IN
from tests.support.exemptions import exempt
from tests.support.points import arrays, examples

CASES = [pytest.param(op, parameters, id=f"{op.name}{parameters}") for op in map(REGISTRY.__getitem__, sorted(BUILT_IN))
         if op.kind != "composite" and COMPLEX not in op.domain and op.differentiable and op.name not in exempt("alone")
         for parameters in examples(op)]


@pytest.mark.sampled(236)
@pytest.mark.parametrize("op, parameters", CASES)
@pytest.mark.parametrize("tracked", [False, True])
def test_every_op_along_a_direction(op, parameters, tracked):
    rng = np.random.default_rng(1)
    values = [np.asarray(a) for a in arrays(op, rng)]
    moving = [i for i, a in enumerate(values) if a.dtype.kind == "f"]
    along = [rng.standard_normal(a.shape) for a in values]
    call = core(op)

    def called(tensors):
        return call(tensors, *parameters) if op.arity is None else call(*tensors, *parameters)

    def moved(t):
        return called([tensor(a) + t * tensor(v) if i in moving else tensor(a) for i, (a, v) in enumerate(zip(values, along))])

    def function(*given):
        tensors = [tensor(a) for a in values]
        for i, z in zip(moving, given):
            tensors[i] = z
        return called(tensors)

    primals = tuple(tensor(values[i], requires_grad=tracked) for i in moving)
    y, series = jet(function, primals, [[along[i], 0 * along[i], 0 * along[i]] for i in moving])
    weights = rng.standard_normal(y.shape)
    t = tensor(0.0, requires_grad=True)
    g = (tensor(weights) * moved(t)).sum()
    np.testing.assert_array_equal(y.detach().numpy(), moved(t).detach().numpy())
    for coefficient in series:
        assert coefficient.requires_grad == tracked
        (g,) = autograd.grad(g, t, create_graph=True, allow_unused=True) if g is not None and g.requires_grad else (None,)
        terms = weights * coefficient.detach().numpy()
        assert abs(np.sum(terms) - (0.0 if g is None else g.item())) <= 1e-14 * (1 + np.sum(abs(terms)))
