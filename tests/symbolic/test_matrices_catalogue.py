"""Functions of matrices of the catalogue in matrix notation: values, gradients and Hessians."""

import pytest

import symgrad
from symgrad.matrixcalc import NoCompactForm, matrix_expr, matrix_gradient, matrix_hessian

VALUES = {
    "linalg.inv(A)": "A⁻¹", "A.inverse()": "A⁻¹", "A.mT": "Aᵀ", "linalg.det(A)": "det(A)", "logdet(A)": "log det(A)", "trace(A)": "tr(A)",
    "linalg.slogdet(A)[1]": "log det(A)", "linalg.solve(A, v)": "A⁻¹v", "linalg.solve(A, A.mT)": "A⁻¹Aᵀ", "linalg.matrix_power(A, 3)": "A³",
    "trace(linalg.inv(A) @ A.mT)": "tr(A⁻ᵀA)", "v @ linalg.solve(A, v) + logdet(A)": "vᵀA⁻¹v + log det(A)", "linalg.multi_dot([A, A, v])": "A²v",
    "linalg.matrix_norm(A)": "‖A‖_F",
}
DERIVATIVES = {
    "logdet(A)": ("A⁻ᵀ", "-(A⁻¹ ⊗ A⁻ᵀ) K"), "trace(A @ A)": ("2 Aᵀ", "2 (I ⊗ I) K"),
    "v @ linalg.solve(A, v)": ("-A⁻ᵀv vᵀA⁻ᵀ", "(A⁻¹v vᵀA⁻¹ ⊗ A⁻ᵀ) K + (A⁻¹ ⊗ A⁻ᵀv vᵀA⁻ᵀ) K"),
}


def value(text):
    """The tensor of a text of this file, and its matrix."""
    A = symgrad.tensor([[2.0, 0.5, 0.25], [1.0, 3.0, 0.5], [0.125, 0.75, 4.0]], requires_grad=True, symbol="A")
    v = symgrad.tensor([1.0, 2.0, 3.0], requires_grad=True, symbol="v")
    return eval(text, {**{name: getattr(symgrad, name) for name in ("linalg", "logdet", "trace")}, "A": A, "v": v}), A


@pytest.mark.parametrize("text", VALUES)
def test_values(text):
    assert str(matrix_expr(value(text)[0])) == VALUES[text]


@pytest.mark.parametrize("text", DERIVATIVES)
def test_gradients_and_hessians(text):
    y, A = value(text)
    assert (str(matrix_gradient(y, A)), str(matrix_hessian(y, A))) == DERIVATIVES[text]


def test_what_has_no_notation_is_refused_by_its_name():
    with pytest.raises(NoCompactForm, match="cholesky_factor has no compact form"):
        matrix_expr(symgrad.linalg.cholesky(value("A @ A.mT")[0]))
