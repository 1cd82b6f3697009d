"""Inverses, solutions, determinants, factors and spectra of matrices: any order, both modes, batches, programs, and bad input."""

import warnings

import numpy as np
import pytest

import symgrad
from symgrad import linalg
from symgrad.autograd import gradcheck, gradgradcheck
from symgrad.carriers import numeric, precise
from symgrad.func import hessian, jacfwd, jacrev, vmap

RNG = np.random.default_rng(0)
SPD = symgrad.tensor(np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]]))
SHEAR = symgrad.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 0.5], [0.25, 0.0, 1.0]])
A = symgrad.tensor(RNG.normal(size=(2, 4, 4)) + 3 * np.eye(4))
FUNCTIONS = {
    "inv": linalg.inv, "det": linalg.det, "slogdet": lambda a: linalg.slogdet(a).logabsdet, "cholesky": linalg.cholesky,
    "eigvalsh": linalg.eigvalsh, "eigh": lambda a: linalg.eigh(a).eigenvectors, "solve": lambda a: linalg.solve(a, a[:, :2] ** 2),
    "solve_triangular": lambda a: linalg.solve_triangular(a, a[:, :2] ** 2, upper=True), "logdet": symgrad.logdet,
    "cholesky_solve": lambda a: symgrad.cholesky_solve(a[:, :2], a), "cholesky_inverse": symgrad.cholesky_inverse,
    "svdvals": lambda a: linalg.svdvals(a @ SHEAR), "svd": lambda a: linalg.svd(a @ SHEAR).U,
    "svd_of_rows": lambda a: linalg.svd((a @ SHEAR)[:2]).Vh[:2],
    "qr": lambda a: linalg.qr(a[:, :2]).Q, "pinv": lambda a: linalg.pinv(a[:, :2]), "lstsq": lambda a: linalg.lstsq(a[:, :2], a ** 2).solution,
    "matrix_exp": linalg.matrix_exp, "lu": lambda a: linalg.lu_factor(a @ SHEAR).LU, "matrix_power": lambda a: linalg.matrix_power(a, -3),
    "cond": linalg.cond, "nuclear": lambda a: linalg.matrix_norm(a @ SHEAR, "nuc"), "eigvals": lambda a: linalg.eigvals(a @ SHEAR).real,
    "eig": lambda a: linalg.eig(a @ SHEAR).eigenvectors.real, "lu_solve": lambda a: linalg.lu_solve(*linalg.lu_factor(a @ SHEAR), a[:, :2] ** 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_batches_and_programs(name):
    f = FUNCTIONS[name]
    many = symgrad.stack([SPD, SPD * 2, SPD + symgrad.eye(3)])
    assert symgrad.allclose(vmap(f)(many), symgrad.stack([f(x) for x in many]), rtol=1e-12)
    assert symgrad.allclose(symgrad.compile(f)(SPD), f(SPD), rtol=1e-12)
    total = symgrad.compile(lambda a: symgrad.func.grad(lambda x: (f(x) ** 2).sum())(a))
    assert symgrad.allclose(total(SPD), symgrad.func.grad(lambda x: (f(x) ** 2).sum())(SPD), rtol=1e-10)


def test_formula_of_a_small_matrix():
    a = symgrad.tensor([[2.0, 1.0], [1.0, 3.0]], symbol="a", requires_grad=True)
    assert str(linalg.det(a).expr) == "a_0_0*a_1_1 - a_0_1*a_1_0"


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["cholesky", "slogdet", "inv"])
def test_rules_of_small_matrices_are_proved(name):
    report = symgrad.check(lambda a: FUNCTIONS[name](a).sum(), [[2.0, 1.0], [1.0, 3.0]], order=1, points=1)
    assert report.verdict == "proved", report.reason


def test_empty_batches_and_empty_matrices_have_many_digits():
    assert precise.matrix_inverse(precise.lift_value(np.ones((0, 3, 3)))).shape == (0, 3, 3)
    assert precise.determinant(precise.lift_value(np.ones((0, 3, 3)))).shape == (0,)
    assert precise.determinant(precise.lift_value(np.ones((2, 0, 0)))).tolist() == [1, 1]
    assert precise.solve_system(precise.lift_value(np.ones((0, 2, 2))), precise.lift_value(np.ones((2, 1)))).shape == (0, 2, 1)


def test_singular_and_indefinite_matrices_are_refused():
    ones = symgrad.ones(2, 2)
    with pytest.raises(RuntimeError, match="linalg.inv: .*element 2 "):
        linalg.inv(ones)
    with pytest.raises(RuntimeError, match="linalg.solve: the matrix is singular"):
        linalg.solve(ones, ones)
    with pytest.raises(RuntimeError, match="linalg.cholesky: the matrix is not positive definite"):
        linalg.cholesky(-ones)
    with pytest.raises(RuntimeError, match=r"\(...,n,n\).*\[2, 3\]"):
        linalg.det(symgrad.ones(2, 3))
    with pytest.raises(RuntimeError, match="floating-point or complex"):
        linalg.inv(symgrad.ones(2, 2, dtype=symgrad.int64))
    with pytest.raises(RuntimeError, match="too few digits"):
        linalg.inv(symgrad.ones(2, 2, dtype=symgrad.float16))


def test_equal_eigenvalues_have_no_derivative_of_eigenvectors():
    a = symgrad.eye(3).requires_grad_()
    (linalg.eigvalsh(a) ** 2).sum().backward()
    assert symgrad.allclose(a.grad, 2 * symgrad.eye(3))
    with pytest.raises(RuntimeError, match="eigenvalues with the numbers 0 and 1 are equal"):
        symgrad.autograd.grad(linalg.eigh(a).eigenvectors.sum(), a)


def test_singular_vectors_of_equal_and_zero_values_have_no_derivative():
    for a in (symgrad.eye(3), symgrad.ones(3, 2), symgrad.diag(symgrad.tensor([2.0, 1.0, 0.0]))):
        a.requires_grad_()
        symgrad.autograd.grad(linalg.matrix_norm(a, "nuc"), a)
        with pytest.raises(RuntimeError, match="linalg.svd: two singular values are equal, or one is zero"):
            symgrad.autograd.grad(linalg.svd(a, full_matrices=False).U.sum(), a)


def test_a_zero_singular_value_has_a_zero_derivative():
    a = symgrad.zeros(3, 2, requires_grad=True)
    assert symgrad.allclose(symgrad.autograd.grad(linalg.matrix_norm(a, "nuc"), a)[0], symgrad.zeros(3, 2))


def test_equal_eigenvalues_of_a_general_matrix():
    a = symgrad.eye(3).requires_grad_()
    assert symgrad.allclose(symgrad.autograd.grad((linalg.eigvals(a).real ** 2).sum(), a)[0], 2 * symgrad.eye(3))
    with pytest.raises(RuntimeError, match="linalg.eig: the eigenvalues with the numbers 0 and 1 are equal"):
        symgrad.autograd.grad(linalg.eig(a).eigenvectors.real.sum(), a)


def test_a_matrix_without_a_basis_of_eigenvectors_has_no_derivative_of_its_eigenvalues():
    for a in (symgrad.tensor([[1.0, 1.0], [0.0, 1.0]]), symgrad.tensor([[[2.0, 0.0], [0.0, 2.0]], [[0.0, 1.0], [0.0, 0.0]]])):
        assert symgrad.allclose(linalg.eigvals(a).real, symgrad.diagonal(a, 0, -2, -1))
        with pytest.raises(RuntimeError, match="linalg.eig: the matrix has no basis of eigenvectors"):
            symgrad.func.grad(lambda a: linalg.eigvals(a).real.sum())(a)
        with pytest.raises(RuntimeError, match="linalg.eig: the matrix has no basis of eigenvectors"):
            symgrad.func.jvp(linalg.eigvals, (a,), (a,))


def test_linearly_dependent_columns_have_no_derivative_of_orthogonal_factors():
    for a in (symgrad.ones(3, 2), symgrad.zeros(2, 2), symgrad.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]])):
        assert symgrad.allclose(linalg.qr(a).Q @ linalg.qr(a).R, a)
        with pytest.raises(RuntimeError, match="linalg.qr: the first columns of the matrix are linearly dependent"):
            symgrad.func.grad(lambda a: linalg.qr(a).R.sum())(a)
        with pytest.raises(RuntimeError, match="linalg.qr: the first columns of the matrix are linearly dependent"):
            symgrad.func.jvp(lambda a: linalg.qr(a).Q, (a,), (a,))
    wide = symgrad.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])  # the last column may depend on the first
    assert symgrad.func.grad(lambda a: linalg.qr(a).R.sum())(wide).isfinite().all()


def test_derivatives_of_the_exponential_of_a_nilpotent_matrix():
    a = symgrad.tensor([[0.0, 1.0], [0.0, 0.0]])
    t = symgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    curve = [t + (a @ t + t @ a) / 2 + a @ t @ a / 6]  # from Σ (a + ε t)ⁿ / n!, where a² = 0
    assert symgrad.allclose(symgrad.func.jvp(linalg.matrix_exp, (a,), (t,))[1], curve[0], rtol=1e-14)


def test_factors_of_a_singular_matrix_have_values_and_no_derivative():
    a = symgrad.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 1.0, 1.0]])
    p, lower, upper = linalg.lu(a)
    assert symgrad.allclose(p @ lower @ upper, a)
    with pytest.raises(RuntimeError, match="linalg.lu: element 3 "):
        linalg.lu(a.requires_grad_())


@pytest.mark.sweep
@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 3), (4, 2), (2, 2, 4)])
def test_triangular_factors_of_any_shape_have_derivatives_of_every_order(shape, complex):
    a = symgrad.tensor(RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if complex else 0), requires_grad=True)
    p, lower, upper = linalg.lu(a)
    assert symgrad.allclose(p.to(a.dtype) @ lower @ upper, a)
    assert gradcheck(lambda a: linalg.lu_factor(a).LU, (a,)) and gradgradcheck(lambda a: linalg.lu_factor(a).LU, (a,))


def test_triangular_factors_have_a_formula():
    x = symgrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True, symbol="x")
    assert str(linalg.lu(x).U.expr) == "[[x_1_0, x_1_1], [0, -x_0_0*x_1_1/x_1_0 + x_0_1]]"


def test_factors_eliminated_by_steps_are_those_of_lapack():
    a = RNG.normal(size=(2, 5, 3)) + np.eye(5, 3) * 9
    steps = numeric.triangular_factors(a)
    assert np.allclose(steps, [numeric.triangular_factors(each) for each in a], atol=1e-14)
    exchanged = a[:, ::-1]
    steps = numeric.triangular_factors(exchanged[0])  # for which LAPACK would exchange rows
    lower, upper = np.tril(steps, -1) + np.eye(5, 3), np.triu(steps)[:3]
    assert np.allclose(lower @ upper, exchanged[0])


@pytest.mark.parametrize("strict", [np.errstate(all="raise"), warnings.catch_warnings(action="error")], ids=["errors", "warnings"])
def test_a_singular_matrix_is_refused_where_numpy_is_strict(strict):
    with strict, pytest.raises(RuntimeError, match="linalg.inv: .*element 2 "):
        linalg.inv(symgrad.tensor([[1.0, 2.0], [2.0, 4.0]]))


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_identity_does_not_depend_on_the_layout_of_a_matrix(order):
    assert numeric.eye_like(np.zeros((3, 2), order=order), 3).tolist() == np.eye(3).tolist()
    assert linalg.lu(symgrad.tensor(np.asarray(np.diag([2.0, 3.0]), order=order))).P.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_substitution_divides_by_the_smallest_numbers():
    a, b = symgrad.tensor([[1e-310, 0.0], [0.0, 3.0]]), symgrad.tensor([[1e-310, 2e-310], [1.0, 3.0]])
    assert linalg.solve_triangular(a, b, upper=True).tolist() == [[1.0, 2.0], [1 / 3, 1.0]]
    assert linalg.solve_triangular(a * 0, b, upper=False).isfinite().tolist() == [[False] * 2] * 2


def test_a_least_squares_problem_of_deficient_rank_has_the_shortest_solution():
    a, b = symgrad.ones(3, 2), symgrad.tensor([1.0, 2.0, 3.0])
    assert symgrad.allclose(linalg.lstsq(a, b).solution, symgrad.ones(2)) and int(linalg.lstsq(a, b).rank) == 1


def test_singular_values_that_are_zero_in_floats_have_zero_derivatives():
    """Their vectors are arbitrary, so that the derivative is that of the others: of least norm."""
    for a in (symgrad.ones(3, 3), symgrad.outer(symgrad.tensor([0.1, 0.7, -0.3]), symgrad.tensor([1.3, -0.4]))):
        u, s, vh = linalg.svd(a)
        least = u[:, :1] @ vh[:1]
        assert (symgrad.func.grad(lambda a: linalg.matrix_norm(a, "nuc"))(a) - least).abs().max() <= 1e-15
        assert symgrad.func.grad(lambda a: linalg.svdvals(a)[1:].sum())(a).abs().max() == 0
        assert symgrad.func.jvp(linalg.svdvals, (a,), (symgrad.ones_like(a),))[1][1:].abs().max() == 0
    graded = symgrad.diag(symgrad.tensor([1.0, 1e-15]))
    assert symgrad.func.grad(lambda a: linalg.svdvals(a)[1])(graded).tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_the_condition_number_shares_its_derivative_among_equal_singular_values():
    for p in (None, 2, -2):
        assert symgrad.func.grad(lambda a, p=p: linalg.cond(a, p))(symgrad.eye(3)).abs().max() <= 1e-16
    a = symgrad.diag(symgrad.tensor([4.0, 4.0, 1.0]))
    assert symgrad.func.grad(linalg.cond)(a).tolist() == [[0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, -4.0]]


def test_second_derivatives_of_equal_values_say_what_has_one():
    for f in (linalg.eigvalsh, linalg.svdvals, lambda a: linalg.eigvals(a).real):
        with pytest.raises(RuntimeError, match=r"equal.* and the values have no second one. Compute .* by traces, determinants and"):
            hessian(lambda a, f=f: f(a).square().sum())(symgrad.eye(2))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_modes_agree(name):
    f = FUNCTIONS[name]
    assert symgrad.allclose(jacfwd(f)(SPD), jacrev(f)(SPD), rtol=1e-9, atol=1e-10)
    forward, backward = jacfwd(jacfwd(f))(SPD), jacrev(jacrev(f))(SPD)
    assert symgrad.allclose(forward, backward, rtol=1e-9, atol=1e-9)
    assert symgrad.allclose(jacfwd(jacrev(f))(SPD), backward, rtol=1e-9, atol=1e-9)


def test_leading_axes_broadcast():
    b = symgrad.tensor(RNG.normal(size=(4, 2)))
    assert symgrad.allclose(A @ linalg.solve(A, b), b.expand(2, 4, 2))
    row = b.T[:1].expand(2, 1, 4)
    assert symgrad.allclose(linalg.solve(A, row, left=False) @ A, row)
    assert linalg.det(A).shape == (2,) and linalg.inv(symgrad.zeros(0, 3, 3)).shape == (0, 3, 3)
