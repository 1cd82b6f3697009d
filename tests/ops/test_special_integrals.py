"""Exponential integrals: digits next to the zero, at the ends of the series, and in the tails, against mpmath."""

import mpmath
import numpy as np

import symgrad
from symgrad import tensor


def test_values_have_all_digits():
    with mpmath.workdps(50):
        zero = mpmath.findroot(mpmath.ei, 0.37)
        at = np.array([-700.0, -1.5, -1.0, -0.5, -1e-300, 1e-300, 0.25, 0.382, 3.5, 39.9, 40.1, 700.0])
        at = np.append(at, float(zero) + np.array([0.0, 1e-14, -1e-6]))
        for x, y, z in zip(at, symgrad.expi(tensor(at)).numpy(), symgrad.exp1(tensor(-at)).numpy()):
            true = mpmath.ei(mpmath.mpf(x))
            assert abs(y - true) <= 8 * np.spacing(abs(float(true))), x
            assert z == -y or x > 0 and np.isnan(z)
