"""Taylor mode of powers: every coefficient keeps its digits for exponents next to an integer, whose falling factorial has a small factor."""

import mpmath
import numpy as np
import pytest

import symgrad
from symgrad import tensor
from symgrad.func.taylor import derivatives, jet

ORDER = 8
NEAR = [float(n + d) for n in (-3, -1, 0, 1, 2, 3, 6, 70) for d in (2.0**-40, -1e-12, 1e-9, -3e-7)] + [1 + 2.0**-52, 1 - 2.0**-53, 2 + 2.0**-51]
FAR = [1 / 3, -1 / 3, 0.46, 0.1, 2.5, -0.5, np.pi, -np.e, 10.3, 64.7, 65.0]
PATHS = [(0.7, 0.6, 0.3), (1.3, -0.4, 0.25, 0.1), (3.7, 1 / 3, 0.0, 0.2)]


def exact(path, p):
    """The coefficients of the power of a polynomial, by their recurrence in 80 digits."""
    with mpmath.workdps(80):
        p, path = mpmath.mpf(p), [mpmath.mpf(c) for c in path]
        out = [path[0]**p]
        for k in range(1, ORDER + 1):
            out.append(sum((j * (p + 1) - k) * path[j] * out[k - j] for j in range(1, min(k, len(path) - 1) + 1)) / (k * path[0]))
        return out


def errors(found, true):
    with mpmath.workdps(80):
        return [float(abs(mpmath.mpf(y.item()) / t - 1)) for y, t in zip(found, true, strict=True) if t]


@pytest.mark.parametrize("exponent", ["a number", "a tensor"])
def test_derivatives_of_powers(exponent):
    """Along a line the coefficients are binomial."""
    for p in NEAR + FAR:
        for at in (0.7, 13.3):
            found = derivatives(lambda x, p=p: x ** (p if exponent == "a number" else tensor(p)), ORDER)(at)
            with mpmath.workdps(80):
                true = [mpmath.ff(mpmath.mpf(p), k) * mpmath.mpf(at)**(mpmath.mpf(p) - k) for k in range(ORDER + 1)]
            assert max(errors(found, true)) < 3e-15, (p, at, errors(found, true))


def test_powers_along_curves():
    """Next to an integer n, all coefficients above n times the degree of the path are as small as the difference from it."""
    for p in NEAR + FAR:
        for path in PATHS:
            given = [*path[1:], *[0.0] * (ORDER + 1 - len(path))]
            y, found = jet(lambda x, p=p: symgrad.pow(x, p), (path[0],), (given,), factorial_scaled=False)
            assert max(errors([y, *found], exact(path, p))) < 2e-13, (p, path, errors([y, *found], exact(path, p)))
