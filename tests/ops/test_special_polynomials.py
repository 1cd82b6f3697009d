"""Orthogonal polynomials against SciPy and differences of degrees, and the functions that are integrals against mpmath."""

import numpy as np
import pytest
import scipy.special

import symgrad
from symgrad import tensor
from symgrad.carriers.special.polynomials import FAMILIES
from symgrad.ops.special import NAMES

X = np.array([-0.9, -0.2, 0.0, 0.4, 1.7])
SCIPY = {"chebyshev_polynomial_t": "chebyt", "chebyshev_polynomial_u": "chebyu", "hermite_polynomial_h": "hermite",
         "hermite_polynomial_he": "hermitenorm",
         "legendre_polynomial_p": "legendre", "laguerre_polynomial_l": "laguerre", "shifted_chebyshev_polynomial_t": "sh_chebyt",
         "shifted_chebyshev_polynomial_u": "sh_chebyu"}


@pytest.mark.parametrize("name", SCIPY)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 9])
def test_polynomials_agree_with_scipy(name, n):
    expected = getattr(scipy.special, SCIPY[name])(n)
    x = tensor(X, requires_grad=True)
    y = getattr(symgrad, name)(x, n)
    for _ in range(3):
        np.testing.assert_allclose(y.detach().numpy(), expected(X), rtol=1e-9, atol=1e-9 * np.abs(expected(X)).max())
        (y,), expected = symgrad.autograd.grad(y.sum(), x, create_graph=True, allow_unused=True, materialize_grads=True), expected.deriv()


def test_chebyshev_polynomials_of_the_third_and_fourth_kind():
    angle = np.array([0.3, 1.1, 2.4])
    for n in range(6):
        v, w = (getattr(symgrad, f"chebyshev_polynomial_{kind}")(tensor(np.cos(angle)), n).numpy() for kind in "vw")
        np.testing.assert_allclose(v, np.cos((n + 0.5) * angle) / np.cos(angle / 2), atol=1e-13)
        np.testing.assert_allclose(w, np.sin((n + 0.5) * angle) / np.sin(angle / 2), atol=1e-13)


def test_degrees_are_whole_numbers():
    assert tuple(FAMILIES) == NAMES
    assert symgrad.legendre_polynomial_p(tensor([0.5]), -1).tolist() == [0.0]
    assert symgrad.legendre_polynomial_p(tensor([0.5]), tensor(2)).tolist() == [-0.125]
    with pytest.raises(TypeError, match="n must be a whole number"):
        symgrad.legendre_polynomial_p(tensor([0.5]), 1.5)
    with pytest.raises(TypeError, match="n must be a whole number, or a tensor of whole numbers, got 2.5"):
        symgrad.legendre_polynomial_p(tensor([0.5]), tensor([1.0, 2.5]))
    assert symgrad.legendre_polynomial_p(0.5, tensor([1, 2])).tolist() == [0.5, -0.125]
    assert symgrad.legendre_polynomial_p(tensor([]), tensor([], dtype=symgrad.int64)).tolist() == []
    with pytest.raises(TypeError, match="requires grad"):
        symgrad.legendre_polynomial_p(tensor([0.5]), tensor(2.0, requires_grad=True))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("degrees", [[1, 2, 3], [[4], [-1]], [2, 2, 2], [3.0, 0.0, 5.0], [[[1]]]])
def test_a_tensor_of_degrees_broadcasts(name, degrees):
    polynomial, x = getattr(symgrad, name), np.array([0.3, -0.5, 1.2])
    f = lambda x: polynomial(x, tensor(degrees))  # noqa: E731
    both = np.broadcast_arrays(x, np.array(degrees))
    each = [[g(tensor(a)).item() for g in (h, symgrad.func.grad(h), symgrad.func.hessian(h))] for a, n in zip(*map(np.ravel, both))
            for h in [lambda a, n=int(n): polynomial(a, n)]]
    value, first, second = np.reshape(each, (*both[0].shape, 3)).transpose(-1, *range(both[0].ndim))
    for found in (f(tensor(x)), polynomial(tensor(x), np.array(degrees)), symgrad.compile(f)(tensor(x)), symgrad.func.vmap(f)(tensor([x, x]))[1]):
        np.testing.assert_allclose(found.numpy(), value, rtol=1e-14)
    total = lambda x: f(x).sum()  # noqa: E731
    np.testing.assert_allclose(symgrad.func.grad(total)(tensor(x)).numpy(), first.reshape(-1, 3).sum(0), rtol=1e-14)
    np.testing.assert_allclose(symgrad.func.hessian_diag(total)(tensor(x)).numpy(), second.reshape(-1, 3).sum(0), rtol=1e-14)
