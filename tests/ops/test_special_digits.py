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
    "sine_integral": (mpmath.si, (-41.0, -39.9, -2.0, 1e-9, 0.3, 3.1, 300.0)),
    "cosine_integral": (mpmath.ci, (1e-9, 0.3, 0.6, 2.9, 3.1, 39.9, 40.1, 300.0)),
    "spherical_bessel_j0": (mpmath.sinc, (-300.1, -2.0, 1e-9, 0.01, 0.9, 1.1, 3.9, 4.1, 30.3)),
}

def within(found, true, order, at):
    assert abs(found - true) <= ULP[order] * np.spacing(abs(float(true))), (at, order, found, true)


@pytest.mark.sampled(2)
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


@pytest.mark.parametrize("name, ends", [("erfinv", [(-0.1, 0.3), (0.4, 0.6), (-0.9, -0.2), (0.99, 0.9999)]),
                                        ("ndtri", [(0.3, 0.6), (1e-9, 2e-9), (0.7, 0.9)])])
def test_a_ball_of_an_inverse_contains_the_values_at_its_ends(name, ends):
    flint = pytest.importorskip("flint")
    ball = pytest.importorskip("symgrad.carriers.ball")
    function = UNARY[name][0]
    for low, high in ends:
        wide = ball.Balls.fill([flint.arb(low).union(flint.arb(high))], ())
        try:
            found = getattr(ball, name)(wide).item()
        except ball.Undecided:
            continue
        for x in (low, high):
            assert not found.is_finite() or found.overlaps(flint.arb(mpmath.nstr(function(mpmath.mpf(x)), 15))), (name, low, high)
