"""Products of vectors and matrices have the infinities, NaN and zeros of the sums of products, for inner sizes of 1 too."""

import itertools
import warnings

import numpy as np
import pytest

import symgrad
from symgrad.program.native import find_compiler

BACKENDS = [None, "numpy", "interpreter", *["c"] * bool(find_compiler())]
ENDS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -0.37, 2.9])
FORMS = {
    "matmul": lambda a, b: a @ b, "linear": lambda a, b: symgrad.nn.functional.linear(b.T, a).T,
    "einsum": lambda a, b: symgrad.einsum("ij,jk->ik", a, b),
    "mv": lambda a, b: symgrad.stack([a.mv(b[:, j]) for j in range(b.shape[1])], 1),
    "vm": lambda a, b: symgrad.stack([a[i] @ b for i in range(a.shape[0])]), "bmm": lambda a, b: (a[None] @ b[None])[0],
    "dot": lambda a, b: symgrad.stack([symgrad.stack([a[i].dot(b[:, j]) for j in range(b.shape[1])]) for i in range(a.shape[0])]),
}
SIZES = [(m, k, n) for m, k, n in itertools.product((1, 2, 5), (1, 2), (1, 2, 5))]


def draw(rng, *shape):
    return symgrad.tensor(rng.choice(ENDS, shape))


def sums_of_products(a, b):
    """The product by its definition, begun with 0."""
    return np.add.reduce(np.concatenate([np.zeros((a.shape[0], 1, b.shape[1])), a.numpy()[:, :, None] * b.numpy()[None]], 1), 1)


def assert_same(found, true, what):
    found = found.numpy()
    assert found.shape == true.shape, what
    np.testing.assert_allclose(found, true, rtol=1e-12, err_msg=str(what))
    zeros = true == 0
    assert (np.signbit(found[zeros]) == np.signbit(true[zeros])).all(), (what, found, true)


@pytest.mark.sweep
@pytest.mark.parametrize("backend", BACKENDS)
def test_products_are_sums_of_products(backend):
    rng = np.random.default_rng(len(str(backend)))
    sizes = SIZES if backend != "c" else [(2, 1, 1)]
    for m, k, n in sizes:
        def f(*ms):
            return [form(a, b) for form in FORMS.values() for a, b in zip(ms[::2], ms[1::2])]

        operands = [draw(rng, *shape) for _ in range(6) for shape in ((m, k), (k, n))]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = (f if backend is None else symgrad.compile(f, backend=backend))(*operands)
            true = [sums_of_products(a, b) for _ in FORMS for a, b in zip(operands[::2], operands[1::2])]
        for i, (y, z) in enumerate(zip(found, true)):
            assert_same(y, z, (backend, m, k, n, [*FORMS][i // 6]))
