"""The incomplete gamma functions and their derivatives by both arguments: their many digits against mpmath, floats against the many digits."""

import math

import flint
import mpmath
import numpy as np
import pytest

import symgrad
from symgrad import tensor
from symgrad.carriers import ball
from symgrad.carriers.special import incomplete_gamma_digits as digits

ULP = (8, 8, 64, 512)
POINTS = ((1e-8, 0.3), (1e-3, 1e-3), (0.1, 0.01), (0.5, 1.4), (0.5, 1.6), (0.3, 30.0), (3.0, 1.2), (19.9, 1.4), (25.0, 1.2), (28.0, 30.0),
          (30.0, 28.0), (5.0, 40.0), (150.0, 120.0), (900.0, 1000.0), (1e4, 9.9e3), (1e4, 1.02e4))
STEP = mpmath.mpf(10) ** -30


@pytest.mark.sweep
@pytest.mark.parametrize("a, x", [(0.01, 0.5), (3.0, 1.2), (28.0, 30.0), (0.5, 40.0), (12.0, 200.0)])
def test_many_digits_are_those_of_mpmath(a, x):
    mp = mpmath.mp.clone()
    mp.dps = 50
    given = mp.mpf(a), mp.mpf(x)
    with mpmath.workdps(170):
        a, x = mpmath.mpf(a), mpmath.mpf(x)

        def upper(a):
            return mpmath.gammainc(a, x, regularized=True)

        def density(a):
            return x ** (a - 1) * mpmath.exp(-x) * mpmath.rgamma(a)

        pairs = [(digits.upper(mp, *given), upper(a)), (digits.lower(mp, *given), 1 - upper(a)), (digits.density(mp, *given, 0), density(a))]
        for n in (1, 3):
            pairs += [(digits.order_derivative(mp, *given, n), -mpmath.diff(upper, a, n, h=STEP)),
                      (digits.density(mp, *given, n), mpmath.diff(density, a, n, h=STEP))]
        for found, true in pairs:
            assert abs(found - true) <= abs(true) * mpmath.mpf(10) ** -48  # the differences have 60 digits, of which 12 may cancel


@pytest.mark.sweep
def test_more_digits_are_all_right():
    """Beside still more, with both series and in the tails."""
    mp = mpmath.mp.clone()
    for a, x in ((0.01, 0.5), (28.0, 30.0), (0.5, 100.0), (1e-100, 2.0)):
        a, x = mp.mpf(a), mp.mpf(x)
        for function in (digits.lower, digits.upper, *(lambda mp, a, x, f=f: f(mp, a, x, 2) for f in (digits.order_derivative, digits.density))):
            mp.dps = 400
            found = function(mp, a, x)
            mp.dps = 600
            assert abs(found - function(mp, a, x)) <= abs(found) * mp.mpf(10) ** -399


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_values_and_derivatives_have_all_digits(name):
    """All derivatives by both arguments to the second order, and the third by the order of the function, for a and x up to 10,000."""
    sign, value = {"gammainc": (1, digits.lower), "gammaincc": (-1, digits.upper)}[name]
    xs = [tensor(list(x), requires_grad=True) for x in zip(*POINTS)]
    y = getattr(symgrad, name)(*xs)
    first = symgrad.autograd.grad(y.sum(), xs, create_graph=True)
    found = {(0, 0): y, (1, 0): first[0], (0, 1): first[1]}
    found[2, 0], found[1, 1] = symgrad.autograd.grad(first[0].sum(), xs, create_graph=True)
    found[0, 2] = symgrad.autograd.grad(first[1].sum(), xs[1])[0]
    found[3, 0] = symgrad.autograd.grad(found[2, 0].sum(), xs[0])[0]
    mp = mpmath.mp.clone()
    mp.dps = 40
    for (by_a, by_x), numbers in found.items():
        for point, here in zip(POINTS, numbers.detach().numpy()):
            a, x = map(mp.mpf, point)
            if by_x == 0:
                true = sign * digits.order_derivative(mp, a, x, by_a) if by_a else value(mp, a, x)
            else:
                true = sign * digits.density(mp, a, x, by_a) * ((a - 1 - x) / x if by_x == 2 else 1)
            assert abs(mp.mpf(float(here)) - true) <= ULP[by_a + by_x] * np.spacing(abs(float(true))), (name, point, by_a, by_x, here, true)


def test_the_ends_of_the_domain():
    infinity = math.inf
    a, x = tensor([2.0, 2.0, 0.0, 0.0, -1.0, math.nan]), tensor([0.0, infinity, 1.0, 0.0, 1.0, 1.0])
    np.testing.assert_array_equal(symgrad.special.gammainc(a, x).numpy(), [0, 1, 1, math.nan, math.nan, math.nan])
    np.testing.assert_array_equal(symgrad.special.gammaincc(a, x).numpy(), [1, 0, 0, math.nan, math.nan, math.nan])
    a, x = tensor([2.0, 2.0, 1.0, 0.5], requires_grad=True), tensor([0.0, infinity, 0.0, 0.0], requires_grad=True)
    symgrad.gammainc(a, x).sum().backward()
    assert a.grad.tolist() == [0.0] * 4 and x.grad.tolist() == [0.0, 0.0, 1.0, infinity]


def test_formulas_and_sources():
    import sympy

    assert str(symgrad.to_sympy("gammainc(a, x)*gammaincc(a, x)")) == "lowergamma(a, x)*uppergamma(a, x)/gamma(a)**2"
    x = tensor(1.5, requires_grad=True, symbol="x")
    y = symgrad.gammainc(tensor(2.5, symbol="a"), x)
    y.backward()
    assert str(y.expr) == "lowergamma(a, x)/gamma(a)" and str(x.grad.expr) == "x**(a - 1)*exp(-x)/gamma(a)"
    for write, call in ((symgrad.to_python, ".gammainc("), (symgrad.to_jax, ".gammainc("), (symgrad.to_torch, "return _gammainc(a, x)")):
        assert call in write(sympy.lowergamma(*sympy.symbols("a x")) / sympy.gamma(sympy.Symbol("a")))


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "gammainc_derivative", "gamma_density"])
def test_a_ball_contains_the_values_at_its_ends(name):
    exact = getattr(digits, {"gammainc": "lower", "gammaincc": "upper", "gammainc_derivative": "order_derivative", "gamma_density": "density"}[name])
    order = (1,) * (name not in ("gammainc", "gammaincc"))
    for low, high in ((0.4, 0.5), (3.0, 3.001), (20.0, 20.001)):
        arguments = [ball.Balls.fill([flint.arb(low).union(flint.arb(high))], ()), ball.Balls.fill([flint.arb(7)], ())]
        found = getattr(ball, name)(*arguments, *order).item()
        for a in (low, high):
            true = exact(mpmath.mp, mpmath.mpf(a), mpmath.mpf(7), *order)
            assert found.overlaps(flint.arb(mpmath.nstr(true, 15))) and found.is_finite(), (name, low, high)


CONCENTRATIONS = (0.01, 0.3, 2.0, 30.0, 1e4)


def sampled(a):
    return symgrad.random.gamma(a, generator=symgrad.Generator().manual_seed(7))


def test_numbers_follow_the_concentration_along_their_distribution_function():
    """The first two derivatives of z(a) with P(a, z(a)) constant, from many digits, in both modes; the third by forward mode over reverse mode."""
    a = tensor(CONCENTRATIONS, requires_grad=True)
    z = sampled(a)
    (first,) = symgrad.autograd.grad(z.sum(), a, create_graph=True)
    (second,) = symgrad.autograd.grad(first.sum(), a, create_graph=True)
    (third,) = symgrad.autograd.grad(second.sum(), a)
    ones = symgrad.ones(len(CONCENTRATIONS))

    def along(function):
        return lambda a: symgrad.func.jvp(function, (a,), (ones,))[1]

    forward = along(sampled), along(along(sampled)), along(along(along(sampled)))
    mp = mpmath.mp.clone()
    mp.dps = 60
    for i, (here, number) in enumerate(zip(CONCENTRATIONS, z.tolist())):
        c, x = mp.mpf(here), mp.mpf(number)
        of_a, density, by_a = digits.order_derivative(mp, c, x, 1), digits.density(mp, c, x, 0), digits.density(mp, c, x, 1)
        slope = -of_a / density
        along_x = (c - 1 - x) / x * density
        curved = -(digits.order_derivative(mp, c, x, 2) + 2 * by_a * slope + along_x * slope**2) / density
        assert abs(first[i].item() - slope) <= 8 * np.spacing(abs(float(slope)))
        terms = abs(by_a * slope / density) + abs(along_x * slope**2 / density)  # which cancel
        assert abs(second[i].item() - curved) <= 64 * np.spacing(float(terms))
    for found, reverse, tolerance in zip(forward, (first, second, third), (1e-14, 1e-11, 1e-8)):
        np.testing.assert_allclose(found(a.detach()).numpy(), reverse.detach().numpy(), tolerance, 1e-16)


@pytest.mark.sweep
@pytest.mark.sampled(1)
@pytest.mark.parametrize("concentration", [0.01, 0.7, 40.0, 1e4])
def test_expectations_have_the_derivative_of_the_expectation(concentration):
    """E z = a and E z² = a (a + 1), up to five standard errors."""
    a = symgrad.full((40_000,), concentration, requires_grad=True)
    z = sampled(a)
    for values, true in ((z, 1.0), (z**2, 2 * concentration + 1)):
        (slopes,) = symgrad.autograd.grad(values.sum(), a, retain_graph=True)
        slopes = slopes.numpy()
        assert abs(slopes.mean() - true) <= 5 * slopes.std() / math.sqrt(slopes.size), (concentration, true)


def test_sampling_takes_seeds_dtypes_rates_and_batches():
    symgrad.manual_seed(3)
    x = symgrad.random.gamma(tensor([0.5, 2.0]), rate=tensor([[1.0], [4.0]]))
    symgrad.manual_seed(3)
    np.testing.assert_array_equal(x.numpy(), symgrad._standard_gamma(tensor([[0.5, 2.0]] * 2)).numpy() / [[1.0], [4.0]])
    rate = tensor(2.0, requires_grad=True)
    y = symgrad.random.gamma(3.0, rate)
    y.backward()
    assert y.shape == () and rate.grad.item() == pytest.approx(-y.item() / 2)
    single = tensor([1e-3, 5.0], dtype=symgrad.float32, requires_grad=True)
    z = symgrad._standard_gamma(single, generator=symgrad.Generator().manual_seed(1))
    z.sum().backward()
    assert z.dtype == symgrad.float32 and (z > 0).all() and single.grad.isfinite().all() and (single.grad > 0).all()
    of_each = symgrad.func.vmap(lambda a: symgrad.func.grad(lambda a: symgrad._standard_gamma(a))(a), randomness="different")(tensor([0.5, 0.5, 9.0]))
    assert of_each.shape == (3,) and of_each[0] != of_each[1] and of_each.isfinite().all()
    for wrong, error in ((tensor([1, 2]), NotImplementedError), (tensor([0.0]), RuntimeError), (tensor([math.nan]), RuntimeError)):
        with pytest.raises(error):
            symgrad._standard_gamma(wrong)
    with pytest.raises(RuntimeError, match="positive rate"):
        symgrad.random.gamma(1.0, -1.0)
