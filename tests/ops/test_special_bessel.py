"""Bessel functions: digits next to zeros, and derivatives of the scaled functions in the tail, against mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.special

import symgrad
from symgrad import tensor
from symgrad.carriers import numeric
from symgrad.carriers.special.table import SPECIAL
from symgrad.dtypes.ulp import ulp_of
from symgrad.graph.op import REGISTRY

ULP = ulp_of("float64")


def derivatives(name, at, count):
    x = tensor(at, requires_grad=True)
    found = [getattr(symgrad, name)(x)]
    for _ in range(count):
        found += symgrad.autograd.grad(found[-1].sum(), x, create_graph=True)
    return [y.detach().numpy() for y in found]


def test_digits_next_to_zeros():
    with mpmath.workdps(50):
        zeros = {("bessel_j", n): mpmath.besseljzero(n, 3) for n in (0, 1, 5)} | {("bessel_y", n): mpmath.besselyzero(n, 3) for n in (0, 1, 5)}
        zeros |= {("i1e_derivative", n): mpmath.findroot(lambda t, n=n: SPECIAL["i1e_derivative"].digits(mpmath.mp, t, n), at)
                  for n, at in ((1, 1.5), (2, 2.8), (3, 3.9))}
        for (name, order), zero in zeros.items():
            at = float(zero) + np.array([0.0, 1e-15, -1e-12, 1e-9, -1e-6, 1e-3, 0.03])
            for x, y in zip(at, getattr(numeric, name)(at, order)):
                true = SPECIAL[name].digits(mpmath.mp, mpmath.mpf(x), order)
                assert abs(y - true) <= 8 * np.spacing(abs(float(true))), (name, order, x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("letter, order", [("j", 0), ("j", 5), ("j", 2.75), ("y", 1)])
@pytest.mark.parametrize("times", [0, 2])
def test_large_arguments_have_all_digits(letter, order, times):
    """From 25 on, next to zeros of the derivative, too: its zero is between two floats."""
    word = SPECIAL[f"bessel_{letter}_derivative"]
    f = REGISTRY[f"bessel_{letter}_derivative"].forward
    low = max(25.5, 2.0 * (order + times) ** 2) if order == 2.75 else 25.5
    at = [low, low + 3.3, 123.4, 2345.6, 1e6 + 0.1, 3e9, 1e22, 1.7e308]
    for start in (low, 200.3, 1e6):
        grid = np.linspace(start, start + 4, 20)
        y = f(numeric, grid, order, times)
        k = int(np.flatnonzero(y[1:] * y[:-1] < 0)[0])
        lower, upper = grid[k], grid[k + 1]
        while (middle := (lower + upper) / 2) not in (lower, upper):
            if f(numeric, np.float64(middle), order, times) * y[k] > 0:
                lower = middle
            else:
                upper = middle
        at += [lower, upper, upper * (1 + 1e-10), upper + 1e-4]
    with mpmath.workdps(60):
        for x, found in zip(at, f(numeric, np.array(at), order, times)):
            with mpmath.extraprec(max(0, mpmath.mag(x))):
                true = (mpmath.besselj if letter == "j" else mpmath.bessely)(order, mpmath.mpf(x), derivative=times)
                assert ULP.error(found, true) <= 8, x
                assert ULP.error(float(word.digits(mpmath.mp, mpmath.mpf(x), order, times)), true) <= 0.5, x


def test_ends_of_the_line():
    assert symgrad.bessel_j0(tensor([np.inf, -np.inf])).tolist() == [0.0, 0.0] and symgrad.bessel_y0(tensor(np.inf)).item() == 0.0
    assert np.isnan(symgrad.bessel_j1(tensor([1.0, 30.0, np.nan])).numpy()).tolist() == [False, False, True]
    assert derivatives("bessel_y0", [5e-324, 1e-200], 3)[3].tolist() == [np.inf, np.inf]


def test_scaled_k0_next_to_its_pole():
    at = np.array([1e-300, 1e-17, 1e-13, 9e-10, 1.1e-9])
    with mpmath.workdps(40):
        for x, y in zip(at, symgrad.special.scaled_modified_bessel_k0(tensor(at)).numpy()):
            true = mpmath.exp(mpmath.mpf(x)) * mpmath.besselk(0, mpmath.mpf(x))
            assert abs(y - true) <= 8 * np.spacing(float(true)), x


def test_printed_derivatives_of_scaled_functions_do_not_cancel():
    for name in ("i0e", "i1e"):
        namespace = {}
        exec(symgrad.to_python(getattr(symgrad.special, name), at=[1.0], derivatives=1, name="f"), namespace)
        at = np.array([0.0, 1e-3, 5.0, 300.0, 1e6])
        np.testing.assert_allclose(namespace["f"](at)[1][0], derivatives(name, at, 1)[1], rtol=1e-14)


def test_orders_may_be_negative():
    for word, sign in (("bessel_j", -1), ("bessel_y", -1), ("bessel_i", 1), ("bessel_k", 1)):
        call = REGISTRY[word].forward
        for order in (1, 2):
            assert call(numeric, np.float64(2.5), -order) == sign**order * call(numeric, np.float64(2.5), order)


@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kv"])
@pytest.mark.parametrize("order", [0.5, 2, -1, -0.75])
def test_derivatives_of_real_orders_agree_with_scipy(name, order):
    at = np.array([0.3, 2.0, 15.0])
    x = tensor(at, requires_grad=True)
    y = getattr(symgrad, name)(order, x)
    for k in range(3):
        np.testing.assert_allclose(y.detach().numpy(), getattr(scipy.special, f"{name}p")(order, at, k), rtol=1e-12)
        (y,) = symgrad.autograd.grad(y.sum(), x, create_graph=True)


def test_an_order_is_a_number_without_gradient():
    x = tensor([1.0])
    assert symgrad.jv(tensor(1.5), x).tolist() == symgrad.jv(1.5, x).tolist()
    with pytest.raises(TypeError, match="requires? grad"):
        symgrad.jv(tensor(1.5, requires_grad=True), x)
    with pytest.raises(TypeError, match="order must be one real number"):
        symgrad.jv(tensor([1.0, 2.0]), x)


def test_complex_numbers_are_refused():
    with pytest.raises(TypeError, match="real numbers"):
        symgrad.bessel_j0(tensor([1j]))


@pytest.mark.parametrize("order", [0.5, -1.25])
@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kv"])
def test_orders_that_are_not_whole_have_all_digits(name, order):
    at = [1e-300, 1e-5, 0.7, 1.2, 2.9, 3.1, 9.42477796076938, 17.3, 40.0]
    true = {"jv": mpmath.besselj, "yv": mpmath.bessely, "iv": mpmath.besseli, "kv": mpmath.besselk}[name]
    x = tensor(at, requires_grad=True)
    y = getattr(symgrad, name)(order, x)
    (g,) = symgrad.autograd.grad(y.sum(), x)
    with mpmath.workdps(60):
        for x, value, slope in zip(at, y.tolist(), g.tolist()):
            step, x = mpmath.mpf("1e-20") * x, mpmath.mpf(x)
            expected = true(order, x), (true(order, x + step) - true(order, x - step)) / (2 * step)
            for found, exact in zip((value, slope), expected):
                assert abs(found - exact) <= 8 * np.spacing(abs(float(exact))) or abs(exact) > 1.7e308, (x, found, exact)
