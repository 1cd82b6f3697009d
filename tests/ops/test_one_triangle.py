"""Functions of a Hermitian matrix read the triangle that LAPACK reads, on every route; the derivative is that along Hermitian perturbations."""

import numpy as np
import pytest

import symgrad
from symgrad import linalg
from symgrad.carriers import precise
from symgrad.engine.replay import replay
from symgrad.func import grad, hessian, jacfwd, jacrev, jet, jvp, vjp, vmap
from symgrad.matrixcalc import matrix_gradient
from symgrad.matrixcalc.terms import NoCompactForm

RNG = np.random.default_rng(30)
FUNCTIONS = {
    "eigvalsh": lambda a, upper: linalg.eigvalsh(a, "U" if upper else "L"), "eigenvalues": lambda a, upper: linalg.eigh(a, "U" if upper else "L")[0],
    "eigenvectors": lambda a, upper: linalg.eigh(a, "u" if upper else "l")[1], "cholesky": lambda a, upper: linalg.cholesky(a, upper=upper),
    "old cholesky": lambda a, upper: symgrad.cholesky(a, upper), "cholesky_ex": lambda a, upper: linalg.cholesky_ex(a, upper=upper).L,
    "numpy eigvalsh": lambda a, upper: np.linalg.eigvalsh(a, "U" if upper else "L"),
    "numpy eigh": lambda a, upper: np.linalg.eigh(a, "U" if upper else "L")[1], "numpy cholesky": lambda a, upper: np.linalg.cholesky(a, upper=upper),
}
LOWER = {
    "pinv": lambda a, upper: linalg.pinv(a, hermitian=True), "numpy pinv": lambda a, upper: np.linalg.pinv(a, hermitian=True),
    "ldl": lambda a, upper: linalg.ldl_factor(a, hermitian=True).LD, "lobpcg": lambda a, upper: symgrad.lobpcg(a, 2)[1],
    "lobpcg of two": lambda a, upper: symgrad.lobpcg(a, 2, a + 1.5 * a.new_tensor(np.eye(3)))[0],
}
CASES = [(name, upper) for name in FUNCTIONS for upper in (False, True)] + [(name, False) for name in LOWER]
ROUTES = ("eigvalsh", "eigenvectors", "cholesky", "pinv", "ldl")


def matrices(upper, complex, front=(), garbage=np.nan):
    """A Hermitian matrix (well conditioned, eigenvalues apart), and the same with something else in the triangle that is not read."""
    b = RNG.normal(size=(*front, 3, 3)) + (1j * RNG.normal(size=(*front, 3, 3)) if complex else 0)
    whole = (b + np.conj(np.swapaxes(b, -1, -2))) / 7 + np.diag([1.3, 2.9, 5.1])
    other = RNG.normal(size=whole.shape) * 37 / 3
    other[..., 0, 2] = other[..., 2, 0] = garbage
    half = np.triu(whole) + np.tril(other, -1) if upper else np.tril(whole) + np.triu(other, 1)
    return symgrad.tensor(whole), symgrad.tensor(half + (1j * np.diag(other.diagonal(0, -2, -1)) if complex and not front else 0))


def function(name, upper):
    return lambda a: (FUNCTIONS | LOWER)[name](a, upper)


def close(found, expected, digits=11):
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=10.0**-digits, atol=10.0**-digits)


@pytest.mark.sampled(31)
@pytest.mark.parametrize("front", [(), (2,)])
@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("name, upper", CASES)
def test_the_other_triangle_is_not_read(name, upper, complex, front):
    whole, half = matrices(upper, complex, front)
    f = function(name, upper)
    close(f(half), f(whole))
    if not front:
        close(symgrad.compile(f)(half), f(whole))
    else:
        close(vmap(f)(half), f(whole)) if name != "cholesky_ex" else None


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("name", ROUTES)
def test_both_modes_have_the_derivative_along_hermitian_perturbations(name, complex):
    """The cotangent is Hermitian, a tangent counts by its Hermitian part, and both modes are adjoint, at first and second order and in programs."""
    upper = name == "cholesky"
    whole, half = matrices(upper, complex, garbage=2.7)
    f = function(name, upper)
    t = symgrad.tensor(RNG.normal(size=(3, 3)) + (1j * RNG.normal(size=(3, 3)) if complex else 0))
    y, pull = vjp(f, half)
    g = symgrad.tensor(RNG.normal(size=y.shape)).to(y.dtype)
    (back,), (_, along) = pull(g), jvp(f, (half,), (t,))
    close(back, back.mH)
    close(back, vjp(f, whole)[1](g)[0])
    close(along, jvp(f, (whole,), ((t + t.mH) / 2,))[1])
    assert abs(((g.conj() * along).sum() - (back.conj() * t).sum()).real) < 1e-11

    def part(a):
        return f((a + a.mH) / 2)

    def total(a):
        return (f(a).abs() ** 2 * symgrad.arange(1.0, 1.0 + y.numel()).reshape(y.shape)).sum() / 3

    def total_of_part(a):
        return (part(a).abs() ** 2 * symgrad.arange(1.0, 1.0 + y.numel()).reshape(y.shape)).sum() / 3

    close(symgrad.compile(grad(total))(half), grad(total_of_part)(whole))
    if not complex:
        close(jacrev(f)(half), jacrev(part)(whole))
        close(jacfwd(f)(half), jacrev(part)(whole))
        for second in (hessian(total), jacfwd(grad(total)), jacrev(grad(total)), symgrad.compile(hessian(total))):
            close(second(half), hessian(total_of_part)(whole), 9)
        close(jet(f, (half,), ((t,),))[1][0], along)


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("name", ["cholesky", "eigvalsh", "pinv", "ldl"])
def test_many_digits_read_the_same_triangle(name, complex):
    whole, half = matrices(False, complex, garbage=2.7)
    f = function(name, False)
    for a in (whole, half):
        a.requires_grad_()
        y = f(a)
        many = replay(precise, [y._node], lambda leaf: precise.lift_value(leaf.value), precise.lift_value)[y._node]
        np.testing.assert_allclose(np.array(many.tolist(), y.numpy(force=True).dtype), f(whole).numpy(force=True), rtol=1e-12, atol=1e-12)


def test_formulas_read_the_same_triangle():
    a = symgrad.tensor([[2.3, 1.1], [0.7, 1.9]], requires_grad=True, symbol="a")
    values = {s: a[int(s.name[2]), int(s.name[4])].item() for s in linalg.cholesky(a).expr[1, 1].free_symbols}
    assert "a_0_1" not in str(linalg.cholesky(a).expr) and "a_1_0" not in str(linalg.cholesky(a, upper=True).expr)
    assert abs(float(linalg.cholesky(a).expr[1, 1].subs(values)) - linalg.cholesky(a)[1, 1].item()) < 1e-15


@pytest.mark.sweep
def test_a_check_says_that_it_reads_the_hermitian_part():
    report = symgrad.check(lambda a: linalg.cholesky(a)[1, 1], [[2.3, 0.7], [0.9, 1.7]], order=1, points=1, seconds=1.0)
    assert report.ok and "linalg.cholesky the Hermitian part was read" in report.notes[-1]
    at_hermitian = symgrad.check(lambda a, b: linalg.cholesky(symgrad.stack([symgrad.stack([a, b]), symgrad.stack([b, a])]))[1, 1], 2.3, 0.7, order=1,
                                 points=1, seconds=1.0)
    assert at_hermitian.ok and not any("Hermitian" in note for note in at_hermitian.notes)


def test_a_matrix_formula_of_one_triangle_is_refused():
    a = symgrad.tensor([[2.3, 0.1], [0.7, 1.9]], requires_grad=True, symbol="A")

    def log_det(A):
        return symgrad.log(symgrad.diagonal(linalg.cholesky(A))).sum()

    for refused in (lambda: symgrad.matrix_expr(log_det(a)), lambda: matrix_gradient(log_det, "A", A="n n")):
        with pytest.raises(NoCompactForm, match="reads the lower triangle"):
            refused()
