"""`symgrad.check` of functions with eigenvalues, singular values and exponentials, which have no formula: by differences in many digits."""

from dataclasses import replace

import pytest

import symgrad
from symgrad.engine.recording import core
from symgrad.graph.op import REGISTRY
from symgrad.linalg import eigh, eigvals, eigvalsh, matrix_exp, svdvals
from symgrad.ops import matrices

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


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_without_a_formula_are_verified_by_values_in_many_digits(name):
    function, inputs = FUNCTIONS[name]
    report = symgrad.check(function, *inputs, points=4, seconds=1.0, order=1 if name in ("matrix_exp", "eigvals") else 2)
    assert report.verdict == "verified" and report.points.random >= 4 and report.points.digits >= 48, report
    assert "the difference quotient of the value in many digits" in report.reason and "no formula" in report.notes[0]


@pytest.mark.parametrize("factor", [-1.0, 1 + 2.0**-40])
def test_a_wrong_rule_of_a_spectrum_is_refuted(factor):
    wrong = core(replace(REGISTRY["hermitian_eigenvalues"], name="wrong eigenvalues",
                         vjp=lambda xp, g, y, args, needs: (matrices._pull_eigenvalues(xp, g, y, *args) * factor,)))
    report = symgrad.check(lambda A: wrong(A)[0], A, points=4, seconds=1.0, order=1)
    assert report.verdict == "refuted" and "difference quotient" in report.reason, report
    assert report.counterexample.op == "wrong eigenvalues"


def test_points_without_a_derivative_and_kinks_are_left_out():
    report = symgrad.check(lambda A: eigvalsh(A)[0], symgrad.eye(2), points=4, seconds=1.0, order=1)
    assert report.verdict == "verified" and report.points.kinks > 0
    assert any("given point" in note for note in report.notes)
    kink = symgrad.check(lambda x: svdvals(x)[0], symgrad.zeros(1, 1), points=4, seconds=1.0, order=1)
    assert kink.verdict == "verified" and kink.points.kinks > 0
    spread = symgrad.check(largest, 1e-300, 1e-300, 1e300, points=2, seconds=1.0, order=1)
    assert spread.verdict != "refuted"


def test_an_op_with_values_of_floats_alone_is_not_replayed(declare):
    import math

    numbers_only = declare("numbers_only", lambda xp, x: x * math.sin(x), lambda xp, y, x: xp.cos(x))
    report = symgrad.check(lambda x, A: numbers_only(x) * eigvalsh(A)[0], 1.0, A)
    assert report.verdict == "not checkable" and "numbers_only has no symbolic form" in report.reason
