"""Elliptic integrals: digits next to m = 0 and m = 1, for very negative m, and next to multiples of π/2, in every derivative."""

import numpy as np
import pytest
import scipy.special
import sympy

import symgrad
from symgrad import tensor
from symgrad.carriers.digits import context
from symgrad.carriers.special.table import SPECIAL

PARAMETERS = [-1e100, -1e20, -3.0, -1.0, -1e-9, -1e-300, 0.0, 1e-300, 1e-9, 0.3, 0.5, 0.9, 0.999999, 1 - 2.0**-52]
ANGLES = [1e-200, 1e-9, -0.3, 1.5, np.pi / 2, np.nextafter(np.pi / 2, 2), 3.1, -4.0, 47.3]


def orders(name, xs, count):
    """The derivatives by the last argument."""
    xs = [tensor(x, requires_grad=True) for x in xs]
    found = [getattr(symgrad.special, name)(*xs)]
    for _ in range(count):
        found += symgrad.autograd.grad(found[-1].sum(), xs[-1], create_graph=True)
    return [y.detach().numpy() for y in found]


@pytest.mark.parametrize("name", ["ellipk", "ellipe", "ellipkm1"])
def test_derivatives_of_complete_integrals_have_all_digits(name):
    at = [1e-300, 1e-20, 0.3, 1.0, 1 + 1e-9, 7.0, 1e30] if name == "ellipkm1" else PARAMETERS
    for n, values in enumerate(orders(name, [at], 3)):
        for m, y in zip(at, values):
            true = SPECIAL[f"{name}_derivative"].digits(context, context.mpf(m), n)
            assert abs(y - true) <= 4 * np.spacing(min(abs(float(true)), 1e308)) or abs(true) > 1e308, (n, m)


@pytest.mark.parametrize("name", ["ellipkinc", "ellipeinc"])
def test_derivatives_of_incomplete_integrals_have_all_digits(name):
    phi, m = map(np.ravel, np.meshgrid(ANGLES, PARAMETERS[1:]))
    for n, values in enumerate(orders(name, [phi, m], 2)):
        for a, b, y in zip(phi, m, values):
            true = SPECIAL[f"{name}_derivative"].digits(context, context.mpf(a), context.mpf(b), 0, n)
            assert abs(y - true) <= 4 * np.spacing(abs(float(true))), (n, a, b)


def test_many_digits_agree_with_mpmath_and_its_differences():
    with context.workdps(30):
        for m in map(context.mpf, (-5.0, 0.01, 0.7)):
            calls = {"ellipk": lambda t: context.ellipk(t), "ellipe": lambda t: context.ellipe(t), "ellipkinc": lambda t: context.ellipf(4, t),
                     "ellipeinc": lambda t: context.ellipe(4, t)}
            for name, call in calls.items():
                word, before = SPECIAL[f"{name}_derivative"].digits, (context.mpf(4), ) if name.endswith("inc") else ()
                for n in range(3):
                    with context.workdps(90):
                        true = context.diff(call, m, n, h=context.mpf("1e-25"))
                    found = word(context, *before, m, *(0,) * len(before), n)
                    assert abs(found / true - 1) < 1e-19, (name, n, m)


def test_they_have_the_values_of_scipy():
    m, phi = np.array([-np.inf, -7.0, 0.0, 0.4, 1.0, 1.5, np.nan]), np.array([0.2, -1.0, 2.0, 9.0, 1.0, 0.1, 0.3])
    for name in ("ellipk", "ellipe", "ellipkm1"):
        x = np.abs(m[1:]) if name == "ellipkm1" else m[1:]
        np.testing.assert_allclose(getattr(symgrad.special, name)(tensor(x)).numpy(), getattr(scipy.special, name)(x), rtol=3e-15)
    for name in ("ellipkinc", "ellipeinc"):
        found = getattr(symgrad.special, name)(tensor(phi[1:]), tensor(m[1:])).numpy()
        np.testing.assert_allclose(found, getattr(scipy.special, name)(phi[1:], m[1:]), rtol=3e-15)
    with pytest.raises(TypeError, match="real numbers"):
        symgrad.special.ellipk(tensor([1j]))


def test_they_are_known_by_name():
    phi, m = sympy.symbols("phi m", real=True)
    formula = sympy.elliptic_f(phi, m) * sympy.elliptic_e(m) + sympy.elliptic_e(phi, m) + sympy.elliptic_k(m) + sympy.elliptic_k(1 - phi)
    text = "ellipkinc(phi, m)*ellipe(m) + ellipeinc(phi, m) + ellipk(m) + ellipkm1(phi)"
    assert symgrad.to_sympy(text) == formula
    function = symgrad.from_sympy(formula, (phi, m))
    namespace = {}
    exec(symgrad.to_python(formula, symbols=(phi, m), derivatives=1, name="f"), namespace)
    for at in ((1.1, 0.3), (4.0, 1e-12), (1.0, 0.0)):
        value, gradient = namespace["f"](*at)
        np.testing.assert_allclose(value, function(*at).item(), rtol=1e-13)
        np.testing.assert_allclose(gradient, [g.item() for g in symgrad.func.grad(function, (0, 1))(*map(float, at))], rtol=1e-11)
    for language in (symgrad.to_torch, symgrad.to_jax):
        source = language(formula, symbols=(phi, m), derivatives=1)
        assert all(f"_{name}(" in source for name in ("ellipk", "ellipe", "ellipkinc", "ellipeinc", "ellipk_derivative"))
    assert "symgrad_ellipk(m)" in symgrad.to_c(sympy.elliptic_k(m)) and "symgrad_ellipe(m)" in symgrad.to_c(sympy.elliptic_e(m))
