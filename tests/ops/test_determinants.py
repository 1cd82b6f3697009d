"""Derivatives of determinants, also of singular matrices: the first two and the third, against exact arithmetic and SymPy."""

from fractions import Fraction

import numpy as np
import pytest
import sympy

import symgrad
from symgrad import autograd, func, linalg
from symgrad.carriers import numeric


def determinant(rows):
    rows, out = [list(row) for row in rows], Fraction(1)
    for k in range(len(rows)):
        at = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if at is None:
            return Fraction(0)
        if at != k:
            rows[k], rows[at], out = rows[at], rows[k], -out
        out *= rows[k][k]
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k])]
    return out


def minors(a):
    """For each row and column the matrix without them, and the sign of its determinant."""
    return {(i, j): ((-1) ** (i + j), np.delete(np.delete(a, i, 0), j, 1)) for i, j in np.ndindex(a.shape)}


def cofactors(a):
    return np.array([sign * determinant(m) for sign, m in minors(a).values()], object).reshape(a.shape)


def cofactors_along(a, t):
    return np.array([sign * (cofactors(m) * np.delete(np.delete(t, i, 0), j, 1)).sum() if len(a) > 1 else Fraction(0)
                     for (i, j), (sign, m) in minors(a).items()], object).reshape(a.shape)


def exact(a):
    return np.vectorize(Fraction, otypes=[object])(np.asarray(a, float))


def of_rank(n, rank, seed, graded):
    """A matrix of floats whose rank is exact, and a direction of the size of its elements."""
    rng = np.random.default_rng([n, rank, seed])
    a, t = (rng.integers(-4, 5, (n, rank)) @ rng.integers(-4, 5, (rank, n))).astype(float), rng.integers(-4, 5, (n, n)).astype(float)
    scale = 2.0 ** rng.integers(-30, 30, (n, 1)) * 2.0 ** rng.integers(-30, 30, (1, n)) if graded else 1.0
    return a * scale, t * scale


def sizes(a):
    """About how large the products of elements are of which the cofactors are sums."""
    rows = np.abs(a).max(1, keepdims=True)
    rows = np.where(rows, rows, 1.0)
    columns = np.abs(a / rows).max(0, keepdims=True)
    columns = np.where(columns, columns, 1.0)
    return rows.prod() * columns.prod() / (rows * columns)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("n, rank", [(n, rank) for n in range(1, 7) for rank in range(max(0, n - 3), n + 1)])
def test_first_and_second_derivatives_have_all_digits(n, rank, graded):
    for seed in range(3):
        a, t = of_rank(n, rank, seed, graded)
        first, second = func.jvp(func.grad(linalg.det), (symgrad.tensor(a),), (symgrad.tensor(t),))
        for found, true, size in ((first, cofactors(exact(a)), sizes(a)), (second, cofactors_along(exact(a), exact(t)), sizes(abs(a) + abs(t)))):
            assert (np.abs(found.numpy() - true.astype(float)) <= 1e-12 * np.maximum(size, np.abs(true.astype(float)))).all()


def test_the_gradient_of_a_singular_matrix_is_its_adjugate():
    A = symgrad.tensor([[1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0], [0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 2.0, 1.0]], requires_grad=True)
    linalg.det(A).backward()
    assert A.grad.numpy().round(12).tolist() == [[2, -2, -2, 2], [-1, 1, 1, -1], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert func.grad(linalg.det)(symgrad.diag(symgrad.tensor([1.0, 2.0, 0.0, 0.0]))).abs().sum().item() == 0


@pytest.mark.sweep
def test_batches_complex_and_narrow_matrices():
    rng = np.random.default_rng(0)
    singular = rng.normal(size=(4, 3)) @ rng.normal(size=(3, 4))
    batch = np.stack([singular, rng.normal(size=(4, 4)), np.ones((4, 4))])
    A = symgrad.tensor(batch, requires_grad=True)
    (g,) = autograd.grad(linalg.det(A).sum(), A)
    for one, found in zip(batch, g.numpy()):
        np.testing.assert_allclose(found, func.grad(linalg.det)(symgrad.tensor(one)).numpy(), atol=1e-13)
    np.testing.assert_array_equal(func.vmap(func.grad(linalg.det))(A.detach()).numpy(), g.numpy())

    z = rng.normal(size=(4, 3)) @ rng.normal(size=(3, 4)) + 1j * (rng.normal(size=(4, 3)) @ rng.normal(size=(3, 4)))
    z[3] = (1 - 2j) * z[0]
    Z = symgrad.tensor(z, requires_grad=True)
    true = np.array(sympy.Matrix(z.tolist()).cofactor_matrix().tolist(), complex)
    np.testing.assert_allclose(autograd.grad(linalg.det(Z).real, Z)[0].numpy(), true.conj(), atol=1e-12)
    assert autograd.gradgradcheck(lambda Z: linalg.det(Z).real, Z)

    narrow = func.grad(linalg.det)(symgrad.tensor(singular.astype(np.float32)))
    assert narrow.dtype is symgrad.float32
    np.testing.assert_allclose(narrow.numpy(), func.grad(linalg.det)(symgrad.tensor(singular)).numpy(), atol=1e-5)


def test_numbers_out_of_range_and_not_numbers():
    tiny = np.diag([1e-200, 1e-200, 1e200, 0.0])
    np.testing.assert_allclose(numeric.cofactors(tiny), np.diag([0, 0, 0, 1e-200]), rtol=1e-12)
    np.testing.assert_allclose(numeric.cofactors(np.diag([5e-324, 1.0, 1.0, 0.0])), np.diag([0, 0, 0, 5e-324]), rtol=1e-12)
    huge = np.diag([1e200, 1e200, 1e-200, 1e-200])
    np.testing.assert_allclose(numeric.cofactors(huge), np.diag([1e-200, 1e-200, 1e200, 1e200]), rtol=1e-12)
    nan = symgrad.full((4, 4), np.nan)
    with np.errstate(invalid="ignore"):
        assert func.grad(linalg.det)(nan).isnan().all() and func.jvp(func.grad(linalg.det), (nan,), (nan,))[1].isnan().all()
    assert numeric.cofactors(np.zeros((0, 4, 4))).shape == numeric.cofactors_along(np.zeros((0, 4, 4)), np.zeros((0, 4, 4))).shape == (0, 4, 4)
    assert numeric.cofactors(np.zeros((2, 0, 0))).shape == (2, 0, 0)


def along(A, T):
    return func.jvp(func.grad(linalg.det), (A,), (T,))[1]


@pytest.mark.sweep
@pytest.mark.parametrize("function, count", [(func.grad(linalg.det), 1), (along, 2)])
def test_programs_and_sources_of_gradients(function, count):
    arrays = of_rank(4, 3, 0, False)[:count]
    values = [symgrad.tensor(a) for a in arrays]
    true = function(*values).numpy()
    compiled = symgrad.compile(function)
    np.testing.assert_allclose(compiled(*values).numpy(), true, atol=1e-11)
    for text in (symgrad.to_python(compiled, name="written"), symgrad.to_python(function, *[(4, 4)] * count, name="written")):
        names = {}
        exec(text, names)  # noqa: S102
        np.testing.assert_allclose(names["written"](*arrays), true, atol=1e-11)


# Logarithms


@pytest.mark.parametrize("z", [[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2j], [2.0, 4j]]])
def test_the_logarithm_of_a_singular_matrix_is_minus_infinity_and_has_no_derivative(z):
    sign, value = linalg.slogdet(symgrad.tensor(z))
    assert sign.item() == 0 and value.item() == -np.inf
    for of in (lambda A: linalg.slogdet(A)[1], lambda A: symgrad.slogdet(A).logabsdet, lambda A: (symgrad.logdet(A) if np.isrealobj(z) else
                                                                                                  linalg.slogdet(A)[1])):
        for derivative in (func.grad(of), symgrad.compile(func.grad(of)), lambda A: func.jvp(of, (A,), (A,)), func.hessian(of),  # noqa: B023
                           lambda A: func.vmap(func.grad(of))(A[None])):  # noqa: B023
            with pytest.raises(linalg.LinAlgError, match=r"linalg.slogdet: .*log \|det A\| is -inf .* no derivative .* Differentiate linalg.det"):
                derivative(symgrad.tensor(z))


@pytest.mark.sweep
def test_derivatives_of_the_sign_of_complex_determinants():
    rng = np.random.default_rng(0)
    Z = symgrad.tensor(rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)), requires_grad=True)
    assert autograd.gradcheck(lambda Z: linalg.slogdet(Z)[0].imag + linalg.slogdet(Z)[1], Z)
