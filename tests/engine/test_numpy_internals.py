"""Without NumPy's private modules the same numbers are computed with its public functions."""

import subprocess
import sys

import numpy as np
import pytest

from symgrad.carriers import numeric
from symgrad.carriers.special import pieces

PROGRAM = """
import sys, types
import numpy as np, numpy.fft, numpy.linalg
for name in {hidden}:
    sys.modules[name] = types.ModuleType(name)
import symgrad
from symgrad.system import numpy_internals
assert (numpy_internals.transforms is None) == (numpy_internals.linalg_loop("inv") is None) == bool({hidden})
x = symgrad.tensor([[2.0, 0.3], [0.3, 1.0]], requires_grad=True)
for f in (symgrad.linalg.inv, symgrad.linalg.det, symgrad.linalg.cholesky, lambda a: symgrad.linalg.eigh(a).eigenvalues, symgrad.linalg.svdvals,
          lambda a: symgrad.linalg.solve(a, a[0]), lambda a: symgrad.fft.fft(a).abs(), lambda a: symgrad.fft.irfft(a + 0j),
          lambda a: symgrad.fft.ifft(a * 1j).imag, lambda a: symgrad.fft.rfft2(a).real):
    y = f(x)
    (g,) = symgrad.autograd.grad((y * y).sum(), x)
    print(*np.round(y.detach().numpy(), 12).ravel() + 0.0, *np.round(g.numpy(), 12).ravel() + 0.0)
"""
PRIVATE = ("numpy.linalg._umath_linalg", "numpy.fft._pocketfft_umath")


def output(hidden):
    return subprocess.run([sys.executable, "-c", PROGRAM.format(hidden=hidden)], capture_output=True, text=True, check=True).stdout


@pytest.mark.sweep
def test_public_functions_give_the_same_numbers():
    assert output(()) == output(PRIVATE)


def test_the_public_function_for_intervals(monkeypatch):
    x = np.linspace(-8, 8, 60)
    known = numeric.erfcx(x)
    monkeypatch.setattr(pieces, "clip", np.clip)
    np.testing.assert_array_equal(numeric.erfcx(x), known)
