"""Derivatives of functions of complex numbers where formulas are delicate: on branch cuts, and next to removable points."""

import mpmath
import numpy as np
import pytest

import symgrad
from symgrad import autograd, func

REAL_CUTS = {"asin": (2.3, -1.7), "acos": (2.3, -1.7), "acosh": (0.3, -0.4, -2.6), "atanh": (2.3, -1.7), "log": (-2.1,), "log1p": (-3.1,),
             "log2": (-2.1,), "log10": (-0.3,), "sqrt": (-2.1,), "rsqrt": (-0.7,)}


def slope(f, z):
    """The derivative in forward mode."""
    return func.jvp(f, (z,), (symgrad.ones_like(z),))[1]


IMAGINARY_CUTS = {"asinh": (2.3, -1.7), "atan": (2.3, -1.7)}


@pytest.mark.parametrize("side", [0.0, -0.0])
@pytest.mark.parametrize("name", [*REAL_CUTS, *IMAGINARY_CUTS])
def test_derivatives_on_a_cut_are_those_of_the_side_of_the_value(name, side):
    f, turned = getattr(symgrad, name), name in IMAGINARY_CUTS

    def at(x):
        return complex(side, x) if turned else complex(x, side)

    for x in (IMAGINARY_CUTS if turned else REAL_CUTS)[name]:
        z = symgrad.tensor(at(x))
        above, below = (f(symgrad.tensor(at(x + h))).item() for h in (1e-5, -1e-5))
        true = (above - below) / (2e-5j if turned else 2e-5)
        leaf = z.clone().requires_grad_()
        (back,) = autograd.grad(f(leaf).real, leaf)
        np.testing.assert_allclose([slope(f, z).item(), back.conj().item()], [true] * 2, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("z", [0j, 1e-9 + 1e-9j, -3e-7j, 1e-6 - 1e-6j, 0.3 + 0.2j, -1.7 + 0.4j, 5.5 - 1j, 0.5 + 1e-8j, 1.3j])
def test_derivatives_of_sinc(z):
    f, at, wanted = symgrad.sinc, symgrad.tensor(z), []
    for order in range(4):
        with mpmath.workdps(50):
            wanted.append(complex(mpmath.diff(mpmath.sincpi, mpmath.mpmathify(z), order)))
        found = f(at).item()
        assert abs(found - wanted[-1]) <= 2e-14 * max(abs(wanted[-1]), abs(z), 1e-12)
        f = lambda w, f=f: slope(f, w)  # noqa: E731
    leaf = at.clone().requires_grad_()
    assert abs(autograd.grad(symgrad.sinc(leaf).real, leaf)[0].conj().item() - wanted[1]) <= 2e-14 * max(abs(wanted[1]), 1e-12)
