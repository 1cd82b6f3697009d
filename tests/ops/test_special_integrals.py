"""Exponential integrals: digits next to the zero, at the ends of the series, and in the tails, against mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.special
import sympy

import symgrad
from symgrad import tensor
from symgrad.carriers.special.table import SPECIAL


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


def test_fresnel_is_known_by_name():
    x = sympy.Symbol("x", real=True)
    formula = sympy.fresnels(x) * sympy.fresnelc(x)
    assert symgrad.to_sympy(lambda x: symgrad.fresnel_s(x) * symgrad.fresnel_c(x)) == symgrad.to_sympy("fresnel_s(x)*fresnel_c(x)") == formula
    assert symgrad.from_sympy(formula)(2.0).item() == float(symgrad.fresnel_s(2.0) * symgrad.fresnel_c(2.0))
    assert "scipy.special.fresnel(x)[0]" in symgrad.to_python(sympy.fresnels(x))
    assert "jax.scipy.special.fresnel(x)[1]" in symgrad.to_jax(sympy.fresnelc(x))
    assert "symgrad_fresnel_s(x)" in symgrad.to_c(sympy.fresnels(x)) and "sin" in symgrad.to_c(sympy.sin(sympy.pi * x**2 / 2))


def test_the_derivative_of_airy_ai_is_public():
    at = np.array([-5.0, 0.0, 3.0])
    np.testing.assert_allclose(symgrad.special.airy_ai_prime(tensor(at)).numpy(), scipy.special.airy(at)[1], rtol=1e-14)
