"""The special functions of one number, and beta, with their derivatives: digits in the tails, next to poles and at every change of method."""

import math

import flint
import mpmath
import numpy as np
import pytest
import scipy.special
from scipy import special

import symgrad
from symgrad import tensor
from symgrad.carriers import ball
from symgrad.carriers.special.polynomials import FAMILIES
from symgrad.carriers.special.table import SPECIAL
from symgrad.ops.special import NAMES

ULP = (8, 8, 64, 512, 512)
TAIL = (-3.0, 0.5, 1.0, 1.5, 5.5, 20.3, 26.0, 26.6, 27.1)  # of erfc, where the last two values are subnormal numbers
BESSEL = (1e-300, 1e-8, 0.3, 0.9, 2.405, 3.83, 11.79, 16.471, 24.9)
ZERO = 0.37250741078136663  # of ei


def besselk(order, x):
    """K, by its series; mpmath takes a limit, which takes long."""
    return SPECIAL["bessel_k"].digits(mpmath.mp, x, order)


def of_order(function, order, sign=0):
    """A Bessel function of an order, scaled by an exponential."""
    return lambda x: mpmath.exp(sign * x) * function(order, x)


UNARY = {  # the function, points, and what is beyond three derivatives or short of them
    "erfc": (mpmath.erfc, TAIL, 4), "ndtr": (mpmath.ncdf, tuple(-(2**0.5) * x for x in TAIL), 4),
    **{f"{name}{order}": (of_order(function, order), BESSEL, 0) for name, function in (
        ("bessel_j", mpmath.besselj), ("bessel_y", mpmath.bessely), ("modified_bessel_k", mpmath.besselk), ("i", mpmath.besseli))
        for order in (0, 1)},
    **{name: (of_order(function, order, sign), (0.01, 0.7, 5.0, 33.3, 1e4, 1e8)) for name, function, order, sign in (
        ("i0e", mpmath.besseli, 0, -1), ("i1e", mpmath.besseli, 1, -1), ("scaled_modified_bessel_k0", besselk, 0, 1),
        ("scaled_modified_bessel_k1", besselk, 1, 1))},
    "exp1": (mpmath.e1, (1e-9, 0.6, 1.0, 30.0)), "lambertw": (mpmath.lambertw, (-0.3, 1e-9, 1.0, 1e9, 1e90), 1),
    "erfcx": (lambda x: mpmath.exp(x * x) * mpmath.erfc(x), (-25.5, -3.1, -1e-9, 0.0, 1e-3, 0.7, 4.9, 9.99, 10.01, 1e3, 1e8)),
    "log_ndtr": (lambda x: mpmath.log1p(-mpmath.erfc(x / mpmath.sqrt(2)) / 2) if x > 5 else mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2),
                 (-1e5, -40.0, -10.01, -9.99, -1.0, -0.3, 0.0, 0.8, 3.9, 4.1, 20.0, 36.0)),
    "erfinv": (mpmath.erfinv, (-0.999999, -0.5, -0.3, 1e-200, 1e-5, 0.25, 0.4999, 0.5001, 0.84, 0.99, 1 - 2.0**-50)),
    "ndtri": (lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1), (1e-60, 1e-9, 0.01, 0.2499, 0.2501, 0.4, 0.5000001, 0.7, 0.9, 1 - 2.0**-50)),
    "airy_ai": (mpmath.airyai, (-19.9, -7.3, -4.087949435683372, -2.3381074104597674, -1.0, 1e-3, 0.3, 6.1, 15.9, 16.1, 90.0)),
    "sine_integral": (mpmath.si, (-41.0, -39.9, -2.0, 1e-9, 0.3, 3.1, 300.0)),
    "cosine_integral": (mpmath.ci, (1e-9, 0.3, 0.6, 0.6165054856207163, 0.617, 2.9, 3.1, 39.9, 40.1, 300.0)),
    "expi": (mpmath.ei, (-650.0, -30.0, -1.0, -1e-5, 1e-9, ZERO, ZERO + 1e-14, ZERO - 1e-6, 0.9999, 1.0000001, 3.5, 39.9, 40.1, 690.0)),
    "spherical_bessel_j0": (mpmath.sinc, (-300.1, -2.0, 1e-9, 0.01, 0.9, 1.1, 3.9, 4.1, 30.3)),
}


def within(found, true, order, at):
    assert abs(found - true) <= ULP[order] * np.spacing(abs(float(true))), (at, order, found, true)


@pytest.mark.sweep
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name):
    function, at, *orders = UNARY[name]
    x = tensor(at, requires_grad=True)
    found = getattr(symgrad, name)(x)
    with mpmath.workdps(150):
        for order in range((orders or [3])[0] + 1):
            for here, y in zip(at, found.detach().numpy()):
                step = abs(mpmath.mpf(here or 1)) * mpmath.mpf("1e-25")
                within(y, mpmath.diff(function, here, order, h=step) if order else function(mpmath.mpf(here)), order, here)
            (found,) = symgrad.autograd.grad(found.sum(), x, create_graph=True)


def test_complex_values_and_derivatives_of_the_error_function():
    at = np.array([0.3 + 0.4j, -1.0 + 2.0j])
    z = tensor(at, requires_grad=True)
    for call, function in ((symgrad.erf, mpmath.erf), (symgrad.erfc, mpmath.erfc)):
        y = call(z)
        (slope,) = symgrad.autograd.grad(y.sum(), z, grad_outputs=tensor(1.0 + 0.0j))
        assert y.tolist() == pytest.approx([complex(function(x)) for x in at], rel=1e-14)
        assert slope.conj().tolist() == pytest.approx([complex(mpmath.diff(function, x)) for x in at], rel=1e-14)


def test_beta_has_the_values_of_scipy():
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
    function = UNARY[name][0]
    for low, high in ends:
        wide = ball.Balls.fill([flint.arb(low).union(flint.arb(high))], ())
        try:
            found = getattr(ball, name)(wide).item()
        except ball.Undecided:
            continue
        for x in (low, high):
            assert not found.is_finite() or found.overlaps(flint.arb(mpmath.nstr(function(mpmath.mpf(x)), 15))), (name, low, high)


@pytest.mark.parametrize("a, b", [(8.980999268751287, 8.536924205362665), (49.99999999999999, 10.240481485963691), (15.75, 49.9999999999995),
                                  (0.0079, 982.951876906201), (300.25, 411.7), (16.0, 8.93771973874275), (1e-300, 3.0), (0.25, 1e300)])
def test_the_beta_function_has_no_error_of_a_large_exponent(a, b):
    with mpmath.workdps(400):
        p, q = mpmath.mpf(a), mpmath.mpf(b)
        true = mpmath.exp(mpmath.loggamma(p) + mpmath.loggamma(q) - mpmath.loggamma(p + q))
        for found in (symgrad.beta(a, b), symgrad.beta(b, a)):
            within(found.item(), true, 0, (a, b))


@pytest.mark.sweep
@pytest.mark.parametrize("a, b", [(0.001, 0.0050673), (0.0020013, 0.0274451), (0.0625, 0.0625002), (0.001, 16.0), (1e-9, 1e6), (3.0, 0.5)])
def test_mixed_derivatives_of_the_beta_function_do_not_cancel(a, b):
    xs = [tensor(x, requires_grad=True) for x in (a, b)]
    first, = symgrad.autograd.grad(symgrad.beta(*xs), xs[:1], create_graph=True)
    mixed, = symgrad.autograd.grad(first, xs[1:], create_graph=True)
    third = symgrad.autograd.grad(mixed, xs)
    with mpmath.workdps(700):
        p, q = mpmath.mpf(a), mpmath.mpf(b)
        value = mpmath.exp(mpmath.loggamma(p) + mpmath.loggamma(q) - mpmath.loggamma(p + q))
        x, y, m, t = (mpmath.psi(0, p) - mpmath.psi(0, p + q), mpmath.psi(0, q) - mpmath.psi(0, p + q), -mpmath.psi(1, p + q), -mpmath.psi(2, p + q))
        within(mixed.item(), value * (x * y + m), 2, (a, b))
        for found, u, v, z in zip(third, (x, y), (y, x), (p, q)):
            within(found.item(), value * (u * (u * v + m) + (mpmath.psi(1, z) + m) * v + u * m + t), 3, (a, b))


@pytest.mark.parametrize("a, b", [(0.3, 0.7), (11.9, 12.1), (3.0, 1e15), (1e15, 2e15), (1e-20, 1e20), (200.0, 1e-5), (1e9, 3e7), (4e-3, 1.5e-3)])
def test_beta_functions_where_one_number_is_large_beside_the_other(a, b):
    """Values and both derivatives of the logarithm; three values of lgamma, and two of polygamma, would cancel."""
    xs = [tensor(x, requires_grad=True) for x in (a, b)]
    y = symgrad.betaln(*xs)
    first = symgrad.autograd.grad(y, xs, create_graph=True)
    second = [symgrad.autograd.grad(g, xs, retain_graph=True) for g in first]
    with mpmath.workdps(120):
        p, q = mpmath.mpf(a), mpmath.mpf(b)
        value = mpmath.loggamma(p) + mpmath.loggamma(q) - mpmath.loggamma(p + q)
        slopes = [mpmath.psi(0, x) - mpmath.psi(0, p + q) for x in (p, q)]
        mixed = -mpmath.psi(1, p + q)
        curved = [[mpmath.psi(1, p) + mixed, mixed], [mixed, mpmath.psi(1, q) + mixed]]
        within(y.item(), value, 0, (a, b))
        for i in range(2):
            within(first[i].item(), slopes[i], 1, (a, b))
            for k in range(2):
                within(second[i][k].item(), curved[i][k], 2, (a, b))
        moves = 1 + abs(p * slopes[0]) + abs(q * slopes[1])
        true = float(mpmath.exp(value))
        assert abs(symgrad.beta(*xs).item() - mpmath.exp(value)) <= ULP[0] * moves * np.spacing(true)


@pytest.mark.parametrize("a, b", [(0.7, -0.3), (-1.3, 0.7), (-1.3, -2.4), (-10.3, 20.2), (2.3, -1 / 3), (-0.4, -0.7)])
def test_beta_of_negative_numbers_has_its_sign(a, b):
    """So have its derivatives, and the sources where they have a value."""
    f, at = symgrad.special.beta, (symgrad.tensor(a), symgrad.tensor(b))
    found = [f(*at), *symgrad.func.grad(f, argnums=(0, 1))(*at), symgrad.func.grad(symgrad.func.grad(f, 0), 1)(*at)]
    with mpmath.workdps(40):
        wanted = [float(mpmath.diff(mpmath.beta, (a, b), order)) for order in ((0, 0), (1, 0), (0, 1), (1, 1))]
    assert [y.item() for y in found] == pytest.approx(wanted, rel=1e-12)


def test_lambertw_is_not_real_below_its_branch_point():
    assert symgrad.special.lambertw(symgrad.tensor([-2.7, -0.5, -0.37])).isnan().all()
    assert symgrad.special.lambertw(symgrad.tensor(-0.3)).item() == pytest.approx(-0.48940222718021487, rel=1e-15)


@pytest.mark.parametrize("f, slope", [(symgrad.special.entr, math.inf), (lambda x: symgrad.xlogy(x, x), -math.inf),
                                      (lambda x: symgrad.xlogy(x, 2 * x), -math.inf), (lambda x: symgrad.special.xlog1py(x, x - 1), -math.inf)])
def test_x_log_x_has_an_infinite_slope_at_0(f, slope):
    x = symgrad.tensor(0.0)
    assert f(x).item() == 0
    for found in (symgrad.func.grad(f), symgrad.func.jacfwd(f), symgrad.compile(symgrad.func.grad(f))):
        assert found(x).item() == slope
    assert symgrad.func.hessian(f)(x).item() == -slope


def test_fresnel_has_the_values_of_scipy():
    x = np.array([-np.inf, -30.0, -1.5, -0.0, 0.0, 1e-200, 0.3, 5.9, 6.1, 1e9, np.inf, np.nan])
    for found, true in zip(symgrad.special.fresnel(tensor(x)), scipy.special.fresnel(x)):
        np.testing.assert_allclose(found.numpy(), true, rtol=3e-15, equal_nan=True)
    with pytest.raises(TypeError, match="real numbers"):
        symgrad.fresnel_s(tensor([1j]))


def test_fresnel_has_all_digits_next_to_zeros_of_its_derivatives_and_far_away():
    at = [1e-300, 0.3, 1.0, 3**0.5, 6**0.5, 4.698, 5.99, 6.01, 75.25, 2**0.5 * 1e5, 1e8 + 0.3, 2.0**52 + 1, 1e40]
    with mpmath.workdps(120):  # so that mpmath knows the angle
        for name, true, wave in (("fresnel_s", mpmath.fresnels, mpmath.sinpi), ("fresnel_c", mpmath.fresnelc, mpmath.cospi)):
            x = tensor(at, requires_grad=True)
            y = getattr(symgrad, name)(x)
            (slope,) = symgrad.autograd.grad(y.sum(), x, create_graph=True)
            (bend,) = symgrad.autograd.grad(slope.sum(), x)
            other = mpmath.cospi if name == "fresnel_s" else lambda t: -mpmath.sinpi(t)
            for k, v in enumerate(map(mpmath.mpf, at)):
                for found, exact in ((y, true(v)), (slope, wave(v * v / 2)), (bend, mpmath.pi * v * other(v * v / 2))):
                    unit = np.spacing(abs(float(exact)))
                    assert abs(found.detach().numpy()[k] - exact) <= 4 * unit, (name, at[k])


def test_many_digits_of_fresnel_agree_with_mpmath_on_both_sides_of_the_change_of_method():
    with mpmath.workdps(50):
        for name, true in (("fresnel_s", mpmath.fresnels), ("fresnel_c", mpmath.fresnelc)):
            for x in (0.5, -9.9, -10.1, 11.0, 12.0, 40.25):
                found = SPECIAL[name].digits(mpmath.mp, mpmath.mpf(x))
                with mpmath.workdps(90):
                    assert abs(found - true(mpmath.mpf(x))) < mpmath.mpf("1e-48"), (name, x)


def test_the_derivative_of_airy_ai_is_public():
    at = np.array([-5.0, 0.0, 3.0])
    np.testing.assert_allclose(symgrad.special.airy_ai_prime(tensor(at)).numpy(), scipy.special.airy(at)[1], rtol=1e-14)


X = np.array([-0.9, -0.2, 0.0, 0.4, 1.7])
SCIPY = {"chebyshev_polynomial_t": "chebyt", "chebyshev_polynomial_u": "chebyu", "hermite_polynomial_h": "hermite",
         "hermite_polynomial_he": "hermitenorm",
         "legendre_polynomial_p": "legendre", "laguerre_polynomial_l": "laguerre", "shifted_chebyshev_polynomial_t": "sh_chebyt",
         "shifted_chebyshev_polynomial_u": "sh_chebyu"}


@pytest.mark.parametrize("name", SCIPY)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 9])
def test_polynomials_agree_with_scipy(name, n):
    expected = getattr(scipy.special, SCIPY[name])(n)
    x = tensor(X, requires_grad=True)
    y = getattr(symgrad, name)(x, n)
    for _ in range(3):
        np.testing.assert_allclose(y.detach().numpy(), expected(X), rtol=1e-9, atol=1e-9 * np.abs(expected(X)).max())
        (y,), expected = symgrad.autograd.grad(y.sum(), x, create_graph=True, allow_unused=True, materialize_grads=True), expected.deriv()


def test_chebyshev_polynomials_of_the_third_and_fourth_kind():
    angle = np.array([0.3, 1.1, 2.4])
    for n in range(6):
        v, w = (getattr(symgrad, f"chebyshev_polynomial_{kind}")(tensor(np.cos(angle)), n).numpy() for kind in "vw")
        np.testing.assert_allclose(v, np.cos((n + 0.5) * angle) / np.cos(angle / 2), atol=1e-13)
        np.testing.assert_allclose(w, np.sin((n + 0.5) * angle) / np.sin(angle / 2), atol=1e-13)


def test_degrees_are_whole_numbers():
    assert tuple(FAMILIES) == NAMES
    assert symgrad.legendre_polynomial_p(tensor([0.5]), -1).tolist() == [0.0]
    assert symgrad.legendre_polynomial_p(tensor([0.5]), tensor(2)).tolist() == [-0.125]
    with pytest.raises(TypeError, match="n must be a whole number"):
        symgrad.legendre_polynomial_p(tensor([0.5]), 1.5)
    with pytest.raises(TypeError, match="n must be a whole number, or a tensor of whole numbers, got 2.5"):
        symgrad.legendre_polynomial_p(tensor([0.5]), tensor([1.0, 2.5]))
    assert symgrad.legendre_polynomial_p(0.5, tensor([1, 2])).tolist() == [0.5, -0.125]
    assert symgrad.legendre_polynomial_p(tensor([]), tensor([], dtype=symgrad.int64)).tolist() == []
    with pytest.raises(TypeError, match="requires grad"):
        symgrad.legendre_polynomial_p(tensor([0.5]), tensor(2.0, requires_grad=True))


@pytest.mark.sampled(15)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("degrees", [[1, 2, 3], [[4], [-1]], [2, 2, 2], [3.0, 0.0, 5.0], [[[1]]]])
def test_a_tensor_of_degrees_broadcasts(name, degrees):
    polynomial, x = getattr(symgrad, name), np.array([0.3, -0.5, 1.2])
    f = lambda x: polynomial(x, tensor(degrees))  # noqa: E731
    both = np.broadcast_arrays(x, np.array(degrees))
    each = [[g(tensor(a)).item() for g in (h, symgrad.func.grad(h), symgrad.func.hessian(h))] for a, n in zip(*map(np.ravel, both))
            for h in [lambda a, n=int(n): polynomial(a, n)]]
    value, first, second = np.reshape(each, (*both[0].shape, 3)).transpose(-1, *range(both[0].ndim))
    for found in (f(tensor(x)), polynomial(tensor(x), np.array(degrees)), symgrad.compile(f)(tensor(x)), symgrad.func.vmap(f)(tensor([x, x]))[1]):
        np.testing.assert_allclose(found.numpy(), value, rtol=1e-14)
    total = lambda x: f(x).sum()  # noqa: E731
    np.testing.assert_allclose(symgrad.func.grad(total)(tensor(x)).numpy(), first.reshape(-1, 3).sum(0), rtol=1e-14)
    np.testing.assert_allclose(symgrad.func.hessian_diag(total)(tensor(x)).numpy(), second.reshape(-1, 3).sum(0), rtol=1e-14)
