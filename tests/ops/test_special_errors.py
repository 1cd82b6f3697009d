"""The error function and the normal distribution: digits in the tails, against mpmath."""

import mpmath
import numpy as np
import pytest

import symgrad
from symgrad import tensor

TAIL = np.array([-3.0, 0.5, 1.0, 1.5, 5.5, 20.3, 26.0, 26.6, 27.1])  # of erfc, where the last two values are subnormal numbers


@pytest.mark.parametrize("name, scale", [("erfc", 1.0), ("ndtr", -(2**0.5))])
def test_derivatives_have_all_digits_in_the_tails(name, scale):
    """The third derivative of a subnormal value is none, and has all digits."""
    at = TAIL * scale
    x = tensor(at, requires_grad=True)
    found = [getattr(symgrad.special, name)(x)]
    for _ in range(4):
        found += symgrad.autograd.grad(found[-1].sum(), x, create_graph=True)
    function = mpmath.erfc if name == "erfc" else mpmath.ncdf
    with mpmath.workdps(80):
        for n, bound in enumerate((8, 8, 64, 512, 512)):
            for k, x in enumerate(at):
                true = mpmath.diff(function, mpmath.mpf(x), n)
                assert abs(found[n].detach().numpy()[k] - true) <= bound * np.spacing(abs(float(true))), (n, x)


def test_complex_values_and_derivatives():
    at = np.array([0.3 + 0.4j, -1.0 + 2.0j])
    z = tensor(at, requires_grad=True)
    for call, function in ((symgrad.erf, mpmath.erf), (symgrad.erfc, mpmath.erfc)):
        y = call(z)
        (slope,) = symgrad.autograd.grad(y.sum(), z, grad_outputs=tensor(1.0 + 0.0j))
        assert y.tolist() == pytest.approx([complex(function(x)) for x in at], rel=1e-14)
        assert slope.conj().tolist() == pytest.approx([complex(mpmath.diff(function, x)) for x in at], rel=1e-14)
