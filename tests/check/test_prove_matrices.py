"""`symgrad.prove` and `symgrad.check` on functions of matrices: right ones are proved or verified, wrong ones refuted, others have a reason."""

from dataclasses import replace

import numpy as np
import pytest
import sympy

import symgrad
import symgrad.testing
from symgrad.engine.recording import core
from symgrad.graph import domains
from symgrad.graph.op import REGISTRY
from symgrad.linalg import eigh, eigvals, eigvalsh, matrix_exp, svdvals
from symgrad.ops import matrices
from symgrad.ops.linalg import matrix_transpose
from symgrad.proofs.case import Case
from symgrad.proofs.matrices import fitted, is_inside


def raising(*args):
    raise RuntimeError("no derivative")


def dividing(*args):
    raise ZeroDivisionError("division by zero")


def not_halved(xp, g, y, a):
    upper = matrix_transpose(xp, y)
    half = xp.solve_triangle(upper, xp.tril(xp.matmul(upper, g), 0), True, False)
    return matrices.hermitian(xp, xp.solve_triangle(upper, matrices.adjoint(xp, half), True, False))


def beyond(xp, g, y, a):
    """Twice the cotangent where the determinant is negative."""
    right = matrices._pull_inverse(xp, g, y, a)
    return xp.where(xp.lt(xp.determinant(a), 0), 2 * right, right)


PULL = {
    "a sign": ("matrix_inverse", lambda xp, g, y, a: -matrices._pull_inverse(xp, g, y, a)),
    "a transpose": ("matrix_inverse", lambda xp, g, y, a: matrix_transpose(xp, matrices._pull_inverse(xp, g, y, a))),
    "a thousandth": ("matrix_inverse", lambda xp, g, y, a: matrices._pull_inverse(xp, g, y, a) + g / 1000),
    "a negative determinant": ("matrix_inverse", beyond),
    "the transpose forgotten": ("determinant", lambda xp, g, y, a: matrices._as_matrices(xp, g) * matrix_transpose(xp, xp.cofactors(a))),
    "the half forgotten": ("cholesky_factor", not_halved),
    "one sign of a sum": ("eigenvalue_gaps", lambda xp, g, y, w, name: -matrices._pull_gaps(xp, g, y, w, name)),
}


def with_pullback(name, pull):
    return replace(REGISTRY[name], name=f"wrong {name}", vjp=lambda xp, g, y, args, needs: (pull(xp, g, y, *args),))


@pytest.mark.sweep
@pytest.mark.parametrize("what, complex", [*((what, False) for what in PULL), ("a transpose", True)])
def test_a_wrong_pullback_is_refuted_at_a_matrix_of_the_domain(what, complex):
    name, pull = PULL[what]
    op = with_pullback(name, pull)
    proof = symgrad.prove(op, 1, complex=complex, points=4)
    (refuted,) = proof.refuted
    assert refuted.what == "vjp by input" and refuted.claim != refuted.truth
    assert [s.verdict for s in proof.statements if s.what == "jvp"] in (["proved"], ["verified"])
    if not complex:
        case = Case(op, op.docs.examples[0] if op.docs.examples else (), op.docs.shapes)
        assert is_inside(case, {s: refuted.point[str(s)] for s in case.variables})


@pytest.mark.sweep
def test_a_wrong_pushforward_is_refuted():
    op = replace(REGISTRY["matrix_inverse"], name="wrong inverse", jvp=lambda xp, tangents, y, args: xp.matmul(xp.matmul(y, tangents[0]), y))
    assert [s.what for s in symgrad.prove(op, 1, points=4).refuted] == ["jvp", "jvp"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rule", [raising, dividing])
@pytest.mark.parametrize("name", ["matrix_inverse", "determinant", "cholesky_factor"])
def test_a_rule_that_raises_at_matrices_of_the_domain_is_not_proved(name, rule):
    for op in (with_pullback(name, rule), replace(REGISTRY[name], jvp=lambda xp, tangents, y, args: rule())):
        for complex in (False, True) if rule is raising else (False,):
            assert symgrad.prove(op, 1, complex=complex, points=4).verdict == "not checkable"


@pytest.mark.sweep
@pytest.mark.parametrize("name, verdict", [("cholesky_factor", "verified"), ("matrix_inverse", "proved"), ("solve_triangle", "proved")])
def test_right_rules_are_confirmed_also_for_complex_numbers(name, verdict):
    proof = symgrad.prove(name, 1, complex=True, points=4)
    assert proof.verdict == verdict and all(s.points >= 4 for s in proof.statements)


KINDS = ("SPD", "SYMMETRIC", "SEPARATED", "LOWER_TRIANGULAR", "ORTHOGONAL", "NONSINGULAR", "TRIANGULAR", "FULL", "SEPARATED_SINGULAR")


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_of_a_domain_are_made_and_known(kind):
    op = replace(REGISTRY["matrix_inverse"], domain=(getattr(domains, kind),))
    case = Case(op, (), ((2, 2),))

    def at(*numbers):
        return dict(zip(case.variables, map(sympy.Rational, numbers)))

    made = fitted(case, at(1, 2, 3, 5))
    assert is_inside(case, made)
    a = np.array([float(made[s]) for s in case.variables]).reshape(2, 2)
    if kind == "SPD":
        assert np.linalg.eigvalsh(a)[0] > 0 and a[0, 1] == a[1, 0]
    if kind == "ORTHOGONAL":
        assert np.allclose(a @ a.T, np.eye(2)) and a[0, 1]
    outside = {"SPD": (1, 2, 2, 1), "SYMMETRIC": (1, 2, 3, 5), "SEPARATED": (2, 0, 0, 2), "LOWER_TRIANGULAR": (1, 0, 3, 0),
               "ORTHOGONAL": (1, 0, 0, 2), "NONSINGULAR": (1, 2, 2, 4), "TRIANGULAR": (0, 1, 1, 1), "FULL": (1, 1, 0, 1),
               "SEPARATED_SINGULAR": (0, 1, -1, 0)}
    assert not is_inside(case, at(*outside[kind]))
    assert not is_inside(case, {case.variables[0]: sympy.Integer(1)})


@pytest.mark.sweep
def test_the_kit_draws_matrices_with_determinants_of_both_signs():
    report = symgrad.testing.check_op(with_pullback("matrix_inverse", beyond), checks=["pullback"], raise_exception=False)
    assert [failure.check for failure in report.failures] == ["pullback"]


A = symgrad.tensor([[1.0, 0.5], [0.25, 3.0]])


def largest(a, b, c):
    return eigvalsh(symgrad.stack([symgrad.stack([a, b]), symgrad.stack([b, c])]))[-1]


FUNCTIONS = {
    "eigvalsh": (largest, (1.0, 0.5, 3.0)),
    "eigh": (lambda A: eigh(A).eigenvectors[0, 0] ** 2, (A,)),
    "svdvals": (lambda A: svdvals(A).sum() * symgrad.exp(A[0, 0]), (A,)),
    "matrix_exp": (lambda A: matrix_exp(A)[0, 1], (A,)),
    "eigvals": (lambda A: eigvals(A).abs().sum(), (A,)),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_without_a_formula_are_verified_by_values_in_many_digits(name):
    function, inputs = FUNCTIONS[name]
    report = symgrad.check(function, *inputs, points=4, order=1 if name in ("matrix_exp", "eigvals") else 2)
    assert report.verdict == "verified" and report.points.random >= 4 and report.points.digits >= 48, report
    assert "the difference quotient of the value in many digits" in report.reason and "no formula" in report.notes[0]


@pytest.mark.parametrize("factor", [-1.0, 1 + 2.0**-40])
def test_a_wrong_rule_of_a_spectrum_is_refuted(factor):
    wrong = core(replace(REGISTRY["hermitian_eigenvalues"], name="wrong eigenvalues",
                         vjp=lambda xp, g, y, args, needs: (matrices._pull_eigenvalues(xp, g, y, *args) * factor,)))
    report = symgrad.check(lambda A: wrong(A)[0], A, points=4, order=1)
    assert report.verdict == "refuted" and "difference quotient" in report.reason, report
    assert report.counterexample.op == "wrong eigenvalues"


@pytest.mark.sweep
def test_points_without_a_derivative_and_kinks_are_left_out():
    report = symgrad.check(lambda A: eigvalsh(A)[0], symgrad.eye(2), points=4, order=1)
    assert report.verdict == "verified" and report.points.kinks > 0
    assert any("given point" in note for note in report.notes)
    kink = symgrad.check(lambda x: svdvals(x)[0], symgrad.zeros(1, 1), points=4, order=1)
    assert kink.verdict == "verified" and kink.points.kinks > 0
    spread = symgrad.check(largest, 1e-300, 1e-300, 1e300, points=2, order=1)
    assert spread.verdict != "refuted"


def test_an_op_with_values_of_floats_alone_is_not_replayed(declare):
    import math

    numbers_only = declare("numbers_only", lambda xp, x: x * math.sin(x), lambda xp, y, x: xp.cos(x))
    report = symgrad.check(lambda x, A: numbers_only(x) * eigvalsh(A)[0], 1.0, A)
    assert report.verdict == "not checkable" and "numbers_only has no symbolic form" in report.reason
