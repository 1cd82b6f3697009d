"""The special functions and their derivatives against mpmath, in the tails, next to poles and on both sides of every change of method."""

import mpmath
import numpy as np
import pytest

import symgrad
from symgrad import tensor

ULP = (8, 8, 64, 512)
UNARY = {
    "erfcx": (lambda x: mpmath.exp(x * x) * mpmath.erfc(x), (-25.5, -3.1, -1e-9, 0.0, 1e-3, 0.7, 4.9, 9.99, 10.01, 1e3, 1e8)),
    "log_ndtr": (lambda x: mpmath.log1p(-mpmath.erfc(x / mpmath.sqrt(2)) / 2) if x > 5 else mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2),
                 (-1e5, -40.0, -10.01, -9.99, -1.0, -0.3, 0.0, 0.8, 3.9, 4.1, 20.0, 36.0)),
    "erfinv": (mpmath.erfinv, (-0.999999, -0.5, -0.3, 1e-200, 1e-5, 0.25, 0.4999, 0.5001, 0.84, 0.99, 1 - 2.0**-50)),
    "ndtri": (lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1), (1e-60, 1e-9, 0.01, 0.2499, 0.2501, 0.4, 0.5000001, 0.7, 0.9, 1 - 2.0**-50)),
    "airy_ai": (mpmath.airyai, (-19.9, -7.3, -1.0, 1e-3, 0.3, 6.1, 15.9, 16.1, 90.0)),
    "spherical_bessel_j0": (mpmath.sinc, (-300.1, -2.0, 1e-9, 0.01, 0.9, 1.1, 3.9, 4.1, 30.3)),
}
BINARY = {
    "gammainc": (lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), ((0.1, 0.01), (0.5, 1.4), (0.5, 1.6), (3.0, 1.2), (25.0, 1.2), (30.0, 28.0),
                                                                           (28.0, 30.0), (5.0, 40.0), (150.0, 120.0))),
    "gammaincc": (lambda a, x: mpmath.gammainc(a, x, regularized=True), ((1e-8, 0.3), (0.5, 1.4), (0.5, 1.6), (3.0, 1.2), (30.0, 28.0), (28.0, 30.0),
                                                                         (5.0, 40.0))),
    "zeta": (mpmath.zeta, ((1.001, 0.7), (2.0, 1.0), (3.5, 1e-3), (40.0, 3.0), (1.5, 900.0))),
}


def within(found, true, order, at):
    assert abs(found - true) <= ULP[order] * np.spacing(abs(float(true))), (at, order, found, true)


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name):
    function, at = UNARY[name]
    x = tensor(at, requires_grad=True)
    found = getattr(symgrad, name)(x)
    with mpmath.workdps(150):
        for order in range(4):
            for here, y in zip(at, found.detach().numpy()):
                step = abs(mpmath.mpf(here or 1)) * mpmath.mpf("1e-25")
                within(y, mpmath.diff(function, here, order, h=step) if order else function(mpmath.mpf(here)), order, here)
            (found,) = symgrad.autograd.grad(found.sum(), x, create_graph=True)


@pytest.mark.parametrize("name", BINARY)
def test_functions_with_an_order(name):
    """With all derivatives by both arguments to the second order, and the third by the order of the function."""
    function, at = BINARY[name]
    xs = [tensor(list(x), requires_grad=True) for x in zip(*at)]
    value = getattr(symgrad, name)(*xs)
    first = symgrad.autograd.grad(value.sum(), xs, create_graph=True)
    found = {(0, 0): value, (1, 0): first[0], (0, 1): first[1]}
    found[2, 0], found[1, 1] = symgrad.autograd.grad(first[0].sum(), xs, create_graph=True)
    found[0, 2] = symgrad.autograd.grad(first[1].sum(), xs[1])[0]
    found[3, 0] = symgrad.autograd.grad(found[2, 0].sum(), xs[0])[0]
    with mpmath.workdps(120):
        for orders, values in found.items():
            for here, y in zip(at, values.detach().numpy()):
                at_point = tuple(map(mpmath.mpf, here))
                true = mpmath.diff(function, at_point, orders, h=mpmath.mpf("1e-25")) if any(orders) else function(*at_point)
                within(y, true, sum(orders), here)


def test_beta_has_the_values_of_scipy():
    special = pytest.importorskip("scipy.special")
    a, b = np.array([0.3, 2.0, 7.5]), np.array([1.4, 0.01, 9.0])
    np.testing.assert_allclose(symgrad.beta(tensor(a), tensor(b)).numpy(), special.beta(a, b), rtol=1e-13)
    np.testing.assert_allclose(symgrad.betaln(tensor(a), tensor(b)).numpy(), special.betaln(a, b), rtol=1e-13)


def test_values_at_the_ends_of_the_domain():
    infinity = float("inf")
    assert symgrad.special.erfinv(tensor([-1.0, 1.0])).tolist() == [-infinity, infinity]
    assert symgrad.special.ndtri(tensor([0.0, 0.5, 1.0])).tolist() == [-infinity, 0.0, infinity]
    assert symgrad.special.log_ndtr(tensor([-infinity, infinity])).tolist() == [-infinity, 0.0]
    assert symgrad.special.erfcx(tensor([-infinity, infinity])).tolist() == [infinity, 0.0]
    for name in ("erfcx", "erfinv", "ndtri", "log_ndtr", "airy_ai", "spherical_bessel_j0"):
        x = tensor(float("nan"), requires_grad=True)
        y = getattr(symgrad.special, name)(x)
        y.backward()
        assert y.isnan().item() and x.grad.isnan().item(), name
