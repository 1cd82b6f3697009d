"""Functions of Hermitian matrices that are given by one triangle have torch's values and gradients."""

import numpy as np
import pytest
import torch

import symgrad

RNG = np.random.default_rng(7)
CALLS = {
    "eigvalsh": lambda t, a, upper: t.linalg.eigvalsh(a, UPLO="U" if upper else "L"),
    "eigh": lambda t, a, upper: t.linalg.eigh(a, UPLO="U" if upper else "L")[1].abs(),
    "cholesky": lambda t, a, upper: t.linalg.cholesky(a, upper=upper), "cholesky_ex": lambda t, a, upper: t.linalg.cholesky_ex(a, upper=upper).L,
    "pinv": lambda t, a, upper: t.linalg.pinv(a, hermitian=True),
    "ldl": lambda t, a, upper: t.linalg.ldl_factor(a, hermitian=True).LD,
    "matrix_rank": lambda t, a, upper: t.linalg.matrix_rank(a, hermitian=True),
}


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("name, upper", [(name, upper) for name in CALLS for upper in (False, True) if not upper or name in list(CALLS)[:4]])
def test_values_and_gradients_at_one_triangle(name, upper, complex):
    b = RNG.normal(size=(2, 3, 3)) + (1j * RNG.normal(size=(2, 3, 3)) if complex else 0)
    a = (b + b.conj().swapaxes(-1, -2)) / 7 + np.diag([1.3, 2.9, 5.1])
    garbage = RNG.normal(size=a.shape) * 11 / 3
    a = np.triu(a) + np.tril(garbage, -1) if upper else np.tril(a) + np.triu(garbage, 1)
    found = []
    for t in (symgrad, torch):
        x = t.tensor(a, requires_grad=True)
        y = CALLS[name](t, x, upper)
        y = y.tril() if name == "ldl" else y
        found.append([y.detach().numpy()])
        if name not in ("pinv", "ldl", "matrix_rank"):  # torch's gradient of pinv depends on the triangle that is not read; its LDL has none
            (y.abs() ** 2 * t.arange(1, y.numel() + 1).reshape(y.shape)).sum().backward()
            found[-1].append(x.grad.numpy())
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
