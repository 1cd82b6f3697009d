"""Taylor mode of every registered op, whose coefficients equal nested gradients, and of powers, whose coefficients keep their digits."""

import mpmath
import numpy as np
import pytest

import symgrad
from symgrad import autograd, tensor
from symgrad.engine.traced import core
from symgrad.func.taylor import derivatives, jet
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


ORDER = 8
NEAR = [float(n + d) for n in (-3, -1, 0, 1, 2, 3, 6, 70) for d in (2.0**-40, -1e-12, 1e-9, -3e-7)] + [1 + 2.0**-52, 1 - 2.0**-53, 2 + 2.0**-51]
FAR = [1 / 3, -1 / 3, 0.46, 0.1, 2.5, -0.5, np.pi, -np.e, 10.3, 64.7, 65.0]
PATHS = [(0.7, 0.6, 0.3), (1.3, -0.4, 0.25, 0.1), (3.7, 1 / 3, 0.0, 0.2)]


def exact(path, p):
    """The coefficients of the power of a polynomial, by their recurrence in 80 digits."""
    with mpmath.workdps(80):
        p, path = mpmath.mpf(p), [mpmath.mpf(c) for c in path]
        out = [path[0]**p]
        for k in range(1, ORDER + 1):
            out.append(sum((j * (p + 1) - k) * path[j] * out[k - j] for j in range(1, min(k, len(path) - 1) + 1)) / (k * path[0]))
        return out


def errors(found, true):
    with mpmath.workdps(80):
        return [float(abs(mpmath.mpf(y.item()) / t - 1)) for y, t in zip(found, true, strict=True) if t]


@pytest.mark.parametrize("exponent", ["a number", "a tensor"])
def test_derivatives_of_powers(exponent):
    """Along a line the coefficients are binomial."""
    for p in NEAR + FAR:
        for at in (0.7, 13.3):
            found = derivatives(lambda x, p=p: x ** (p if exponent == "a number" else tensor(p)), ORDER)(at)
            with mpmath.workdps(80):
                true = [mpmath.ff(mpmath.mpf(p), k) * mpmath.mpf(at)**(mpmath.mpf(p) - k) for k in range(ORDER + 1)]
            assert max(errors(found, true)) < 3e-15, (p, at, errors(found, true))


def test_powers_along_curves():
    """Next to an integer n, all coefficients above n times the degree of the path are as small as the difference from it."""
    for p in NEAR + FAR:
        for path in PATHS:
            given = [*path[1:], *[0.0] * (ORDER + 1 - len(path))]
            y, found = jet(lambda x, p=p: symgrad.pow(x, p), (path[0],), (given,), factorial_scaled=False)
            assert max(errors([y, *found], exact(path, p))) < 2e-13, (p, path, errors([y, *found], exact(path, p)))
