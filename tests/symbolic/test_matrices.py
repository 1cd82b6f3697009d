"""Matrix calculus: formulas of values, gradients and Hessians, their notations, and refused input."""

import random

import numpy as np
import pytest
import sympy

import symgrad
from symgrad import autograd, func, linalg
from symgrad.matrixcalc import (
    Disagreement,
    NoCompactForm,
    confirming,
    det,
    expression,
    inv,
    logdet,
    matrix_expr,
    matrix_gradient,
    matrix_hessian,
    solve,
)
from symgrad.matrixcalc.terms import Factor, Index, Sum, Symbol, Term
from tests.support.lines import lines
from tests.support.matrix_programs import Program, leaves


def named(name, *shape, seed=0):
    return symgrad.tensor(np.random.default_rng([seed, *name.encode()]).uniform(0.2, 0.9, shape), requires_grad=True, symbol=name)


def least_squares(rows, columns):
    A, x, b = named("A", rows, columns), named("x", columns), named("b", rows)
    return A, x, b, ((A @ x - b) ** 2).sum()


# Tensors


@pytest.mark.parametrize("shape", [(4, 3), (300, 20)], ids=["small", "large"])
def test_values_and_gradients_of_tensors(shape):
    A, x, b, y = least_squares(*shape)
    assert str(matrix_expr(y)) == "‖A x − b‖²"
    (g,) = autograd.grad(y, x, create_graph=True)
    assert str(matrix_expr(g)) == "2 Aᵀ(A x − b)"
    (curved,) = autograd.grad(g.sum(), x, create_graph=True)
    assert str(matrix_expr(curved)) == "2 AᵀA 𝟏"
    y.backward()
    assert str(matrix_expr(x.grad)) == "2 Aᵀ(A x − b)"
    assert str(matrix_expr(A.grad)) == "2 (A x − b) xᵀ"
    np.testing.assert_allclose(matrix_expr(A.grad).evaluate(), A.grad.numpy(), rtol=1e-12)


def test_accumulated_gradients_are_one_formula():
    _, x, _, y = least_squares(3, 2)
    y.backward()
    (x * x).sum().backward()
    assert str(matrix_expr(x.grad)) == "2 Aᵀ(A x − b) + 2 x"
    assert str(matrix_expr(autograd.grad(x @ x, x, symgrad.tensor(3.0))[0])) == "6 x"


GRAPHS = {name: (eval(f"lambda A, x, b: {function}"), text) for name, text, function in lines("recorded_matrix_gradients")}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_recorded_gradient_reads_as_the_derived_one(name):
    function, text = GRAPHS[name]
    A, x, b = named("A", 4, 3), named("x", 3), named("b", 4)
    y = function(A, x, b)
    (g,) = autograd.grad(y, x, create_graph=True)
    assert str(matrix_expr(g)) == str(matrix_gradient(y, x)) == text


def test_the_gradient_of_log_softmax_has_a_compact_form_where_it_is_derived():
    """The recorded gradient subtracts the largest element against cancellation, which has no compact form."""
    A, x, b = named("A", 4, 3), named("x", 3), named("b", 4)
    y = (b * symgrad.log_softmax(A @ x, 0)).sum()
    assert str(matrix_gradient(y, x)) == "Aᵀ(b − sum(b) softmax(A x))"
    with pytest.raises(NoCompactForm, match="amax has no compact form"):
        matrix_expr(autograd.grad(y, x, create_graph=True)[0])


@pytest.mark.sweep
def test_functions_of_matrices_in_a_recorded_graph():
    X = named("X", 3, 3) + 0
    X = symgrad.tensor(X.detach().numpy() + 2 * np.eye(3), requires_grad=True, symbol="X")
    for function, text in ((lambda X: linalg.slogdet(X)[1], "X⁻ᵀ"), (det, "det(X) X⁻ᵀ"), (lambda X: inv(X).trace(), "-(X⁻²)ᵀ"),
                           (logdet, "(1 − step(-sign(det(X)))) X⁻ᵀ")):  # where the determinant is negative, the gradient is 0, as in torch
        (g,) = autograd.grad(function(X), X, create_graph=True)
        assert str(matrix_expr(g)) == text
    (g,) = autograd.grad(det(X), X, create_graph=True)
    (curved,) = autograd.grad(g.sum(), X, create_graph=True)
    assert str(matrix_expr(curved)) == "det(X) (sum(X⁻¹) X⁻¹ − X⁻¹𝟏 𝟏ᵀX⁻¹)ᵀ"


@pytest.mark.sweep
def test_values():
    A, B, x = named("A", 3, 2), named("B", 2, 2), named("x", 2)
    S = symgrad.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True, symbol="S")
    for value, text in (
        (A @ B @ x, "A B x"), (A.sum(), "sum(A)"), (A.sum(1), "A 𝟏"), (A.sum(0), "Aᵀ𝟏"), (A + x, "A + 𝟏 xᵀ"), (A * x, "A diag(x)"),
        (x.mean(), "sum(x) / 2"), (symgrad.trace(A.T @ A), "‖A‖_F²"), (symgrad.trace(A @ B @ A.T), "tr(AᵀA B)"), (symgrad.diag(x) @ B, "diag(x) B"),
        (symgrad.diag(B) * x, "diag(B) ∘ x"), (symgrad.addmm(A, A, B), "A B + A"), (x - x, "0"), (x * 0 + 1, "𝟏"), (symgrad.outer(x, x), "x xᵀ"),
        (solve(B, x), "B⁻¹x"), (0.5 * x, "x / 2"), (0.1 * x, "0.1 x"),
        (solve(S @ S, x), "S⁻²x"), (inv(S) @ S @ x, "x"), (inv(A.T @ A) @ A.T @ A, "I"), (inv(inv(B)), "B"), (inv(2 * B), "B⁻¹ / 2"), (x / x, "𝟏"),
        (symgrad.exp(x).log(), "log(exp(x))"), (symgrad.std(x), "‖x − sum(x) 𝟏 / 2‖"), (symgrad.log(1 + symgrad.exp(x)), "softplus(x)"),
        (1 / (1 + symgrad.exp(-x)), "σ(x)"), (x.sum() * B.sum(), "sum(x) sum(B)"), ((x / x).sum(), "2"),
    ):
        found = matrix_expr(value)
        assert str(found) == text
        arrays = {name: t.detach().numpy() for name, t in {"A": A, "B": B, "x": x, "S": S}.items()}
        np.testing.assert_allclose(eval(found.numpy(), {"np": np, **arrays}), value.detach().numpy(), rtol=1e-12, atol=1e-15)


def test_symmetric_arrays():
    S, x = symgrad.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True, symbol="S"), named("x", 2)
    y = x @ S @ x
    assert str(matrix_gradient(y, x)) == "(S + Sᵀ) x"
    assert str(matrix_gradient(y, x, symmetric=["S"])) == "2 S x"
    assert str(matrix_expr(S.T @ x, symmetric=["S"])) == "S x"
    # elements vary independently: the mixed derivative by a symmetric matrix keeps both orders
    mixed = matrix_gradient(logdet(S + symgrad.outer(x, x)), x, symmetric=["S"])
    assert str(mixed) == "2 (S + x xᵀ)⁻¹x"
    assert not mixed.gradient("S").is_compact


# Notations


def test_a_formula_as_text_source_numbers_and_elements():
    f = matrix_gradient(lambda A, x, b: ((A @ x - b) ** 2).sum(), "x", A="m n", x="n", b="m")
    assert f.names == ("A", "x", "b") and f.shape == (f.evaluate().size,) and f.is_compact and f.points == 2
    assert f.latex() == r"2 \, A^{\top} \, \left(A \, x - b\right)" and f._repr_latex_() == rf"$\displaystyle {f.latex()}$"
    assert f.numpy() == "2 * (A.T @ (A @ x - b))"
    assert f.indices() == "Y[i] = 2 Σ_j (Σ_l A[j,l] x[l] − b[j]) A[j,i]"
    rng = np.random.default_rng(0)
    A, x, b = rng.normal(size=(50, 7)), rng.normal(size=7), rng.normal(size=50)
    np.testing.assert_allclose(f.evaluate(A=A, x=x, b=b), 2 * A.T @ (A @ x - b), rtol=1e-12)
    np.testing.assert_allclose(f.evaluate({"A": symgrad.tensor(A), "x": x, "b": b}), 2 * A.T @ (A @ x - b), rtol=1e-12)
    a, c, p, q, d = sympy.symbols("A_0_0 A_0_1 x_0 x_1 b_0", real=True)
    assert [sympy.expand(e) for e in f.sympy({"m": 1, "n": 2})] == [sympy.expand(2 * s * (a * p + c * q - d)) for s in (a, c)]
    with pytest.raises(ValueError, match="axis 0 of x has length 4, but axis 1 of A, which must agree with it, has 7"):
        f.evaluate(A=A, x=x[:4], b=b)
    with pytest.raises(ValueError, match="there is no C; the formula depends on A, x, b"):
        f.evaluate(C=A)
    with pytest.raises(ValueError, match="A has 2 axes, but the array given has shape \\[7\\]"):
        f.evaluate(A=x)
    with pytest.raises(ValueError, match="there is no dimension k; those with a name are m, n"):
        f.sympy({"k": 2})


@pytest.mark.sweep
def test_latex():
    for text, function, arrays in (
        (r"\operatorname{diag}\left(\sigma\left(x\right) \circ \left(1 - \sigma\left(x\right)\right)\right)", symgrad.sigmoid, {"x": "n"}),
        (r"\frac{x}{\left\lVert x \right\rVert}", symgrad.norm, {"x": "n"}),
    ):
        assert matrix_gradient(lambda x: function(x), "x", **arrays).latex() == text  # noqa: B023
    assert matrix_gradient(lambda X: det(X), "X", X="n n").latex() == r"\det\left(X\right) \, X^{-\top}"
    assert matrix_hessian(lambda X: logdet(X), "X", X="n n").latex() == r"-\left(X^{-1} \otimes X^{-\top}\right) \, K"
    assert matrix_gradient(lambda Sigma_0, x: x @ inv(Sigma_0) @ x, "x", Sigma_0="n n symmetric", x="n").latex() == r"2 \, \Sigma_{0}^{-1} \, x"
    assert matrix_gradient(lambda x: ((x - x.mean()) ** 2).sum() / 2, "x", x="n").latex() == \
        r"x - \frac{\operatorname{sum}\left(x\right) \, \mathbf{1}}{n}"


def test_formulas_without_matrix_notation_are_in_index_notation():
    A, B = named("A", 3, 2), named("B", 3, 2)
    found = matrix_expr(symgrad.einsum("ij,ik,il->jkl", A, A, B))
    assert str(found) == "Y[i,j,k] = Σ_l A[l,i] A[l,j] B[l,k]" and not found.is_compact and found.points == 2
    assert found.latex() == r"Y_{ijk} = \sum_{l} \, A_{li} \, A_{lj} \, B_{lk}"
    assert found.numpy() == 'np.einsum("ij,ik,il->jkl", A, A, B)'
    a, b = A.detach().numpy(), B.detach().numpy()
    np.testing.assert_allclose(eval(found.numpy(), {"np": np, "A": a, "B": b}), np.einsum("ij,ik,il->jkl", a, a, b))
    jacobian = matrix_gradient(symgrad.exp(A.sum(1)), A)
    assert str(jacobian) == "Y[i,j,k] = exp(Σ_m A[i,m]) δ[i,j]"
    np.testing.assert_allclose(jacobian.evaluate(), func.jacrev(lambda A: symgrad.exp(A.sum(1)))(A.detach()).numpy(), rtol=1e-12)
    np.testing.assert_allclose(eval(jacobian.numpy(), {"np": np, "A": a}), jacobian.evaluate(), rtol=1e-12)


def test_gradients_of_formulas():
    y = matrix_expr(named("x", 3) @ named("B", 3, 3) @ symgrad.ones(3))
    assert str(y) == "xᵀB 𝟏" and str(y.gradient("x")) == "B 𝟏" and str(y.gradient("x").gradient("x")) == "0"
    with pytest.raises(ValueError, match="derivatives beyond the second"):
        y.gradient("x").gradient("x").gradient("x")


REGULAR = {
    "d n": (lambda X: logdet(X @ X.T), "X", {"X": "d n"}, "2 (X Xᵀ)⁻¹X"),
    "n d": (lambda X: logdet(X.T @ X), "X", {"X": "n d"}, "2 X (XᵀX)⁻¹"),
    "a determinant": (lambda X: det(X @ X.T), "X", {"X": "d n"}, "2 det(X Xᵀ) (X Xᵀ)⁻¹X"),
    "least squares": (lambda X, y: y @ X.T @ inv(X @ X.T) @ X @ y, "y", {"X": "d n", "y": "n"}, "2 Xᵀ(X Xᵀ)⁻¹X y"),
    "three lengths, ascending": (lambda A, B: symgrad.trace(inv(A @ B @ B.T @ A.T)), "A", {"A": "k m", "B": "m n"}, "-2 (A B BᵀAᵀ)⁻²A B Bᵀ"),
    "three lengths, in no order": (lambda c, A, B: c @ inv(A @ B @ B.T @ A.T) @ c, "c", {"c": "m", "A": "m n", "B": "n k"}, "2 (A B BᵀAᵀ)⁻¹c"),
}


@pytest.mark.parametrize("name", REGULAR)
def test_lengths_are_drawn_for_which_the_matrices_are_regular(name):
    """With fewer rows than columns, or the other way round, a matrix such as X Xᵀ has no inverse, whose numbers would confirm nothing."""
    function, wrt, dimensions, text = REGULAR[name]
    found = matrix_gradient(function, wrt, **dimensions)
    assert str(found) == text
    lengths = {"m": 3, "n": 5, "k": 7} if "c" in dimensions else {"d": 3, "k": 3, "m": 5, "n": 7}
    tensors = {n: named(n, *(lengths[w] for w in words.split())) for n, words in dimensions.items()}
    (true,) = autograd.grad(function(**tensors), tensors[wrt])
    condition = max(float(np.linalg.cond(t.detach().numpy())) for t in tensors.values() if t.ndim == 2)
    np.testing.assert_allclose(found.evaluate(tensors), true.numpy(), rtol=1e-9 * condition**2)


@pytest.mark.sweep
def test_formulas_hold_at_other_sizes():
    for function, arrays, wrt in (
        (lambda X, w, y: (symgrad.softplus(X @ w) - y * (X @ w)).mean(), {"X": (6, 4), "w": (4,), "y": (6,)}, "w"),
        (lambda X: logdet(X.T @ X), {"X": (7, 3)}, "X"),
        (lambda x: symgrad.var(x), {"x": (9,)}, "x"),
    ):
        small = {name: " ".join({6: "m", 4: "n", 7: "m", 3: "n", 9: "k"}[n] for n in shape) for name, shape in arrays.items()}
        tensors = {name: named(name, *shape) for name, shape in arrays.items()}
        found = matrix_gradient(function, wrt, **small).evaluate(tensors)
        (true,) = autograd.grad(function(**tensors), tensors[wrt])
        np.testing.assert_allclose(found, true.numpy(), rtol=1e-11)
        hessian = matrix_hessian(function, wrt, **small).evaluate(tensors)
        others = {name: t for name, t in tensors.items() if name != wrt}
        exact = func.hessian(lambda x: function(**{wrt: x}, **others))(tensors[wrt])  # noqa: B023
        np.testing.assert_allclose(hessian, exact.detach().numpy(), rtol=1e-9, atol=1e-12)


# Confirmation


def test_a_wrong_formula_raises_disagreement(monkeypatch):
    _, x, _, y = least_squares(3, 2)
    right = expression.derivative

    def wrong(total, symbol):
        found = right(total, symbol)
        return Sum(found.out, (Term(found.terms[0].coefficient * (1 + sympy.Rational(1, 10**40)), found.terms[0].factors), *found.terms[1:]))

    monkeypatch.setattr(expression, "derivative", wrong)
    with pytest.raises(Disagreement, match=r"2.* is .* where the reference value is .*; please report this"):
        matrix_gradient(y, x)
    y.backward()
    with pytest.raises(Disagreement):
        matrix_expr(x.grad)


def test_a_wrong_normal_form_raises_disagreement(monkeypatch):
    A, x, _, y = least_squares(100, 20)
    wrong = Symbol("A", [i.dimension for i in matrix_expr(A)._sum.out][::-1])
    graph = matrix_expr(A @ x)._graph
    i, k = Index(wrong.dimensions[0]), Index(wrong.dimensions[1])
    graph.normal_form = Sum((i,), (Term(sympy.S.One, (Factor(Symbol("x", [k.dimension]), (i,)),)),))
    with pytest.raises((Disagreement, ValueError)):
        confirming.confirm(graph, (), graph.normal_form, None, "x")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(25))
def test_random_programs_have_confirmed_formulas(seed):
    rng = random.Random(1000 + seed)
    tensors = leaves(np.random.default_rng(seed))
    y = Program(rng.choice, tensors).draw("", rng.randint(2, 3))
    assert np.isfinite(y.item())
    value = matrix_expr(y)
    wrt = rng.choice(value.names)
    gradient = value.gradient(wrt)
    (true,) = autograd.grad(y, tensors[wrt], materialize_grads=True)
    np.testing.assert_allclose(gradient.evaluate(), true.numpy(), rtol=1e-9, atol=1e-10)
    arrays = {name: t.detach().numpy() for name, t in tensors.items()}
    for formula, wanted in ((value, y.detach()), (gradient, true)):
        np.testing.assert_allclose(eval(formula.numpy(), {"np": np, **arrays}), wanted.numpy(), rtol=1e-9, atol=1e-10)
    assert gradient.latex() and gradient.indices()


# Inverse, determinant and solution as operations


@pytest.mark.sweep
def test_the_determinant_of_a_singular_matrix_has_all_derivatives():
    values = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 1.0, 1.0]])
    X = symgrad.tensor(values, requires_grad=True, symbol="X")
    (first,) = autograd.grad(det(X), X, create_graph=True)
    M = sympy.Matrix(3, 3, sympy.symbols("m:9"))
    at = dict(zip(M, map(int, values.ravel())))
    np.testing.assert_allclose(first.detach().numpy().ravel(), [float(M.det().diff(m).subs(at)) for m in M], atol=1e-14)
    exact = [[float(M.det().diff(m, k).subs(at)) for k in M] for m in M]
    np.testing.assert_allclose(func.hessian(det)(X.detach()).numpy().reshape(9, 9), exact, atol=1e-14)
    third = autograd.grad(autograd.grad((first * first).sum(), X, create_graph=True)[0].sum(), X)[0]
    square = sum(M.det().diff(m) ** 2 for m in M)
    np.testing.assert_allclose(third.numpy().ravel(), [float(sum(square.diff(m, k) for k in M).subs(at)) for m in M], atol=1e-12)


def test_operations_refuse_matrices_that_are_not_square():
    for function in (inv, det, logdet):
        with pytest.raises(RuntimeError, match=r"\(...,n,n\).*\[2, 3\]"):
            function(symgrad.ones(2, 3))
    with pytest.raises(RuntimeError, match=r"linalg.solve: .*\[2, 2\], \[3, 1\]"):
        solve(symgrad.eye(2), symgrad.ones(3))


# Refused input


def test_a_tensor_without_a_compact_form_has_no_such_attribute():
    for t in (symgrad.ones(2), symgrad.amax(named("x", 2))):
        assert not hasattr(t, "matrix_expr")
        with pytest.raises(AttributeError, match="^matrix_expr: "):
            t.matrix_expr
    assert "matrix_expr" not in dir(symgrad.ones(2)) and "matrix_expr" in dir(named("x", 2))


@pytest.mark.parametrize("error, message, call", lines("refused_matrix_formulas"))
def test_unsupported_arguments_are_refused(error, message, call):
    p, q = symgrad.symbols("p q", [1.0, 2.0])
    given = {"A": named("A", 3, 2), "B": named("B", 3, 2), "x": named("x", 2), "p": p, "q": q,
             "unnamed": symgrad.tensor([1.0, 2.0], requires_grad=True)}
    with pytest.raises(eval(error), match=message):
        eval(call, globals() | given)
