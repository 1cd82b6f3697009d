"""Functions of matrices of the catalogue in matrix notation: values, gradients and Hessians."""

import numpy as np
import pytest

import symgrad
from symgrad.matrixcalc import NoCompactForm, matrix_expr, matrix_gradient, matrix_hessian
from tests.support.lines import lines

VALUES = dict(lines("catalogue_values"))
DERIVATIVES = {
    "logdet(A)": ("A⁻ᵀ", "-(A⁻¹ ⊗ A⁻ᵀ) K"), "trace(A @ A)": ("2 Aᵀ", "2 (I ⊗ I) K"),
    "v @ linalg.solve(A, v)": ("-A⁻ᵀv vᵀA⁻ᵀ", "(A⁻¹v vᵀA⁻¹ ⊗ A⁻ᵀ) K + (A⁻¹ ⊗ A⁻ᵀv vᵀA⁻ᵀ) K"),
}


def value(text):
    """The tensor of a text of this file, and its matrix."""
    A = symgrad.tensor([[2.0, 0.5, 0.25], [1.0, 3.0, 0.5], [0.125, 0.75, 4.0]], requires_grad=True, symbol="A")
    v = symgrad.tensor([1.0, 2.0, 3.0], requires_grad=True, symbol="v")
    return eval(text, {**{name: getattr(symgrad, name) for name in ("linalg", "logdet", "trace")}, "A": A, "v": v}), A


@pytest.mark.sampled(5)
@pytest.mark.parametrize("text", VALUES)
def test_values(text):
    assert str(matrix_expr(value(text)[0])) == VALUES[text]


@pytest.mark.parametrize("text", DERIVATIVES)
def test_gradients_and_hessians(text):
    y, A = value(text)
    assert (str(matrix_gradient(y, A)), str(matrix_hessian(y, A))) == DERIVATIVES[text]


def test_what_has_no_notation_is_refused_by_its_name():
    for text, match in (("linalg.matrix_exp(A)", "matrix_expr: linalg.matrix_exp has no compact form; symgrad.func.grad and .* derivatives"),
                        ("linalg.svdvals(A)", "linalg.svdvals has no compact form"), ("linalg.eigvalsh(A)", "linalg.eigvalsh has no compact form"),
                        ("linalg.solve_triangular(A, A, upper=True)", "only for a Cholesky factor; use linalg.solve")):
        with pytest.raises(NoCompactForm, match=match):
            matrix_expr(value(text)[0])
    with pytest.raises(NoCompactForm, match=r"the derivative of linalg.cholesky has no compact form; log det A is logdet\(A\), .* linalg.solve"):
        matrix_gradient(*value("linalg.cholesky(A @ A.mT).sum()"))


FACTORS = dict(lines("cholesky_factors"))


@pytest.mark.parametrize("text", FACTORS)
def test_cholesky_factors(text):
    S = symgrad.tensor([[1.0, 0.9, 0.2], [0.9, 1.0, 0.3], [0.2, 0.3, 2.0]], requires_grad=True, symbol="S")
    v, A = symgrad.tensor([1.0, 2.0, 3.0], requires_grad=True, symbol="v"), value("A")[1]
    names = {name: getattr(symgrad, name) for name in ("linalg", "cholesky_solve", "cholesky_inverse")}
    y = eval(text.replace("[:, 0]", ".squeeze(-1)"), {**names, "S": S, "v": v, "A": A})  # noqa: S307  a text of this file
    found = matrix_expr(y, symmetric=["S"] if "S" in text else [])
    assert str(found) == FACTORS[text] and found.latex()
    arrays = {"np": np, **{name: t.detach().numpy() for name, t in {"S": S, "v": v, "A": A}.items()}}
    for number in (eval(found.numpy(), arrays), found.evaluate()):  # noqa: S307
        np.testing.assert_allclose(number, y.detach().numpy(), rtol=1e-12, atol=1e-14)
