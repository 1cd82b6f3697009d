"""Powers by all routes, for exponents of every kind: those of which the predecessor is rounded, next to integers, negative and large."""

import fractions
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad
from symgrad.dtypes.exponents import has_predecessor
from symgrad.engine.recording import core
from symgrad.graph.domains import REAL
from symgrad.graph.op import REGISTRY
from tests.support.exemptions import exempt
from tests.support.points import arrays, domain, examples
from tests.support.routes import GRADIENTS, HESSIANS, TRACES, array
from tests.support.second_order import jets

tensor, func = symgrad.tensor, symgrad.func
COMPILED = {
    "compiled hessian": lambda f, x: symgrad.compile(func.hessian(f))(x), "compiled jacfwd of grad": lambda f, x: symgrad.compile(
        func.jacfwd(func.grad(f)))(x), "compiled hvp": lambda f, x: np.stack([symgrad.compile(lambda v: func.hvp(f, x, v))(v).numpy()
                                                                             for v in tensor(np.eye(x.numel()))]),
}
EXPONENTS = (1 / 3, 0.46, 0.1, -1 / 3, -0.9, math.pi, -math.e, 1.1, 4 / 3, 2 + 2.0**-51, 1 - 2.0**-53, 1e-17, -1e-17, 17.3)
KINDS = {"number": lambda b: b, "scalar": tensor, "array": lambda b: tensor([b, b]), "power of a power": None}


def power(x, kind, b):
    return (x**b) ** -3 if KINDS[kind] is None else x ** KINDS[kind](b)


def check(kind, b, c, point, routes):
    """All routes to the derivatives of a power and, if there is another exponent, of a product of two agree with 50 digits."""
    f = lambda x: (power(x, kind, b) if c is None else power(x, kind, b) * x[0] ** c).sum()  # noqa: E731
    with mpmath.workdps(50):
        base = jets(point)
        total = sum(((a**b) ** -3 if KINDS[kind] is None else a**b) * (1 if c is None else base[0] ** c) for a in base)
        first = np.array(total.first, float)
        second = np.array([[total.second[min(i, k), max(i, k)] for k in range(2)] for i in range(2)], float)
    terms = np.abs(first / point).max()  # the terms of a second derivative, which cancel in that of (x ** (-1/3)) ** -3
    for table, truth, size in ((GRADIENTS, first, 0), (HESSIANS | COMPILED, second, terms), (TRACES, np.trace(second), terms)):
        for name, route in table.items():
            if name in routes or routes == "all":
                atol = 1e-11 * max(np.abs(truth).max(), size)
                np.testing.assert_allclose(array(route(f, tensor(point))), truth, rtol=1e-11, atol=atol, err_msg=name)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("b", EXPONENTS)
def test_all_routes_to_derivatives_of_powers(b, kind):
    check(kind, b, None, [0.7, 1.9], "all")


FAST = ("hessian", "remembered", "auto", "hvp", "jacfwd of grad", "jacrev of grad", "jet", "grad of autograd.grad", "laplacian")

ANY = st.one_of(st.floats(-3, 3), st.integers(-40, 40).map(lambda n: n / 10), st.integers(-9, 9).map(lambda n: n / 3),
                st.integers(-4, 4).map(lambda n: math.nextafter(n, math.inf)))


@pytest.mark.sweep
@settings(deadline=None, max_examples=max(12, settings.default.max_examples // 4))
@given(st.sampled_from(list(KINDS)), ANY, st.none() | ANY, st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)))
def test_derivatives_of_powers_of_any_exponents(kind, b, c, point):
    check(kind, b, c, list(point), FAST)


@pytest.mark.parametrize("b", [2.0**53 + 4, 1e16, 2.0**53, -1e16, 9e15])
@pytest.mark.parametrize("name", ["hessian", "jet", "jacrev of grad", "remembered"])
def test_exponents_that_are_larger_than_their_spacing(name, b):
    x = 1 + 2.0**-46
    f = lambda x: (x**b - 2 * x**b).sum()  # noqa: E731
    with mpmath.workdps(50):
        true = float(-mpmath.mpf(b) * (mpmath.mpf(b) - 1) * mpmath.mpf(x) ** (mpmath.mpf(b) - 2))
    np.testing.assert_allclose(array(HESSIANS[name](f, tensor([x]))).item(), true, rtol=2e-15)


@given(st.floats(allow_nan=False, allow_infinity=False, width=64))
def test_the_predecessor_is_a_float(b):
    assert has_predecessor(b) == (abs(b) > 1e19 or fractions.Fraction(b) - 1 == fractions.Fraction(b - 1))


# A number in the place of a tensor, for which a rule may have a branch of its own

POWERS = {"", "power_of_length"}  # recorded of lengths, which are tensors
SEVERAL = [pytest.param(op, parameters, i, id=f"{op.name}{parameters}-{i}") for op in REGISTRY.values()
           if op.kind == "elementwise" and op.differentiable and len(op.partials) > 1 and op.name not in exempt("alone") | POWERS
           for parameters in examples(op) for i, partial in enumerate(op.partials) if callable(partial)]


GENERIC = (1 / 3, -0.46, math.pi)


def with_numbers(op, parameters, i, seed):
    """A function of one argument of an op, the others being numbers, and that argument."""
    xs = arrays(op, np.random.default_rng(seed), [(3,) if k == i else () for k in range(op.arity)])
    numbers = [None if k == i else GENERIC[seed] if domain(op, k) is REAL else x.item() for k, x in enumerate(xs)]
    return lambda x: core(op)(*[x if k == i else n for k, n in enumerate(numbers)], *parameters), xs[i]


@pytest.mark.sampled(15)
@pytest.mark.parametrize("op, parameters, i", SEVERAL)
def test_a_number_in_the_place_of_a_tensor(op, parameters, i):
    """The Hessian is that of double backward, and the result may be written before the backward if it was not saved."""
    for seed in range(len(GENERIC)):
        f, x = with_numbers(op, parameters, i, seed)
        if x.dtype.kind != "f":
            return  # a condition
        leaf = tensor(x, requires_grad=True)
        with np.errstate(all="ignore"):
            expected = symgrad.autograd.grad(f(leaf * 1).sum(), leaf, create_graph=True)[0]
            second = symgrad.autograd.grad(expected.sum(), leaf, allow_unused=True, materialize_grads=True)[0].numpy()
            total = lambda x, f=f: f(x).sum()  # noqa: E731
            for found in (func.hvp(total, tensor(x), tensor(np.ones(x.shape))), func.hessian_diag(total)(tensor(x))):
                np.testing.assert_allclose(found.numpy(), second, rtol=1e-9, atol=1e-9 * np.nanmax(np.abs(second)))
            y = f(leaf * 1)
            y.detach().fill_(np.nan)
            try:
                found = symgrad.autograd.grad(y.sum(), leaf)[0].numpy()
            except RuntimeError as error:
                assert "modified by an inplace operation" in str(error)  # noqa: PT017  torch saves the result, too
            else:
                np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-14)
