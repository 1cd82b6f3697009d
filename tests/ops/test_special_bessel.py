"""Bessel functions: digits next to zeros, and derivatives of the scaled functions in the tail, against mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.special

import symgrad
from symgrad import tensor
from symgrad.carriers import numeric
from symgrad.carriers.special.table import SPECIAL
from symgrad.graph.op import REGISTRY

NAMES = {"bessel_j0": (mpmath.besselj, 0), "bessel_j1": (mpmath.besselj, 1), "bessel_y0": (mpmath.bessely, 0), "bessel_y1": (mpmath.bessely, 1),
         "modified_bessel_k0": (mpmath.besselk, 0), "modified_bessel_k1": (mpmath.besselk, 1), "i0": (mpmath.besseli, 0), "i1": (mpmath.besseli, 1)}
def besselk(order, x):
    """K, by its series; mpmath takes a limit, which takes long."""
    return SPECIAL["bessel_k"].digits(mpmath.mp, x, order)


SCALED = {"i0e": (mpmath.besseli, 0, -1), "i1e": (mpmath.besseli, 1, -1), "scaled_modified_bessel_k0": (besselk, 0, 1),
          "scaled_modified_bessel_k1": (besselk, 1, 1)}


def derivatives(name, at, count):
    x = tensor(at, requires_grad=True)
    found = [getattr(symgrad, name)(x)]
    for _ in range(count):
        found += symgrad.autograd.grad(found[-1].sum(), x, create_graph=True)
    return [y.detach().numpy() for y in found]


@pytest.mark.parametrize("name", NAMES)
def test_values_have_all_digits(name):
    function, order = NAMES[name]
    at = np.array([1e-300, 1e-8, 0.3, 0.9, 2.405, 3.83, 11.79, 16.471, 24.9])
    (found,) = derivatives(name, at, 0)
    with mpmath.workdps(40):
        for x, y in zip(at, found):
            true = function(order, mpmath.mpf(x))
            assert abs(y - true) <= 8 * np.spacing(abs(float(true))), x


@pytest.mark.parametrize("name", SCALED)
def test_derivatives_of_scaled_functions_do_not_cancel(name):
    function, order, sign = SCALED[name]
    at = np.array([0.01, 0.7, 5.0, 33.3, 1e4, 1e8])
    found = derivatives(name, at, 3)
    with mpmath.workdps(120):
        for k, x in enumerate(at):
            for n, bound in enumerate((8, 8, 64, 512)):
                true = mpmath.diff(lambda t: mpmath.exp(sign * t) * function(order, t), mpmath.mpf(x), n, h=mpmath.mpf(x) * mpmath.mpf("1e-20"))
                assert abs(found[n][k] - true) <= bound * np.spacing(abs(float(true))), (x, n)


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


@pytest.mark.parametrize("name", [*NAMES, *SCALED])
def test_derivatives_agree_with_differences(name):
    at = np.array([0.4, 1.7, 6.0])
    found = derivatives(name, at, 2)
    for k in range(2):
        step = 1e-5
        slope = (derivatives(name, at + step, 1)[k] - derivatives(name, at - step, 1)[k]) / (2 * step)
        np.testing.assert_allclose(found[k + 1], slope, rtol=1e-6, atol=1e-8)


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
    with pytest.raises(TypeError, match="order requires grad"):
        symgrad.jv(tensor(1.5, requires_grad=True), x)
    with pytest.raises(TypeError, match="order must be one real number"):
        symgrad.jv(tensor([1.0, 2.0]), x)


def test_complex_numbers_are_refused():
    with pytest.raises(TypeError, match="real numbers"):
        symgrad.bessel_j0(tensor([1j]))
