"""Worked examples of matrix calculus, as data: functions, the dimensions of their arguments, and the compact text of derivatives."""

from typing import NamedTuple

import symgrad
from symgrad import dot, exp, kron, log, logsumexp, norm, outer, sigmoid, sin, softplus, sqrt, tanh, trace
from symgrad import sum as total
from symgrad.matrixcalc import det, inv, logdet, solve
from symgrad.nn.functional import binary_cross_entropy_with_logits


class Identity(NamedTuple):
    """∂ᵏ function / ∂ wrtᵏ is `text`; `arrays` gives the dimensions of the arguments."""

    name: str
    function: object
    arrays: dict
    wrt: object
    text: str
    order: int = 1


def square(**others):
    """Dimensions with a square X."""
    return {"X": "n n", **others}


COOKBOOK = [  # Petersen and Pedersen, The Matrix Cookbook, chapter 2
    Identity("tr X", lambda X: trace(X), square(), "X", "I"),
    Identity("tr AX", lambda A, X: trace(A @ X), {"A": "n m", "X": "m n"}, "X", "Aᵀ"),
    Identity("tr XA", lambda X, A: trace(X @ A), {"X": "m n", "A": "n m"}, "X", "Aᵀ"),
    Identity("tr AXB", lambda A, X, B: trace(A @ X @ B), {"A": "n m", "X": "m k", "B": "k n"}, "X", "AᵀBᵀ"),
    Identity("tr AX'B", lambda A, X, B: trace(A @ X.T @ B), {"A": "n m", "X": "k m", "B": "k n"}, "X", "B A"),
    Identity("tr AX'", lambda A, X: trace(A @ X.T), {"A": "n m", "X": "n m"}, "X", "A"),
    Identity("tr X'A", lambda X, A: trace(X.T @ A), {"X": "n m", "A": "n m"}, "X", "A"),
    Identity("tr X²", lambda X: trace(X @ X), square(), "X", "2 Xᵀ"),
    Identity("tr X²B", lambda X, B: trace(X @ X @ B), square(B="n n"), "X", "BᵀXᵀ + XᵀBᵀ"),
    Identity("tr X'X", lambda X: trace(X.T @ X), {"X": "m n"}, "X", "2 X"),
    Identity("tr XX'", lambda X: trace(X @ X.T), {"X": "m n"}, "X", "2 X"),
    Identity("tr X'BX", lambda X, B: trace(X.T @ B @ X), {"X": "n m", "B": "n n"}, "X", "(B + Bᵀ) X"),
    Identity("tr BXX'", lambda X, B: trace(B @ X @ X.T), {"X": "n m", "B": "n n"}, "X", "(B + Bᵀ) X"),
    Identity("tr XBX'", lambda X, B: trace(X @ B @ X.T), {"X": "m n", "B": "n n"}, "X", "X (B + Bᵀ)"),
    Identity("tr AXBX", lambda A, X, B: trace(A @ X @ B @ X), {"A": "n m", "X": "m n", "B": "n m"}, "X", "AᵀXᵀBᵀ + BᵀXᵀAᵀ"),
    Identity("tr AXBX'C", lambda A, X, B, C: trace(A @ X @ B @ X.T @ C), {"A": "k m", "X": "m n", "B": "n n", "C": "m k"}, "X",
             "AᵀCᵀX Bᵀ + C A X B"),
    Identity("tr B'X'CXB", lambda B, X, C: trace(B.T @ X.T @ C @ X @ B), {"B": "n k", "X": "m n", "C": "m m"}, "X", "(C + Cᵀ) X B Bᵀ"),
    Identity("tr X³", lambda X: trace(X @ X @ X), square(), "X", "3 (X²)ᵀ"),
    Identity("tr X⁴", lambda X: trace(X @ X @ X @ X), square(), "X", "4 (X³)ᵀ"),
    Identity("tr AX³", lambda A, X: trace(A @ X @ X @ X), square(A="n n"), "X", "Aᵀ(X²)ᵀ + XᵀAᵀXᵀ + (X²)ᵀAᵀ"),
    Identity("tr X⁻¹", lambda X: trace(inv(X)), square(), "X", "-(X⁻²)ᵀ"),
    Identity("tr AX⁻¹B", lambda A, X, B: trace(A @ inv(X) @ B), {"A": "m n", "X": "n n", "B": "n m"}, "X", "-X⁻ᵀAᵀBᵀX⁻ᵀ"),
    Identity("tr (X+A)⁻¹", lambda X, A: trace(inv(X + A)), square(A="n n"), "X", "-((X + A)⁻²)ᵀ"),
    Identity("a'X⁻¹b", lambda a, X, b: a @ inv(X) @ b, {"a": "n", "X": "n n", "b": "n"}, "X", "-X⁻ᵀa bᵀX⁻ᵀ"),
    Identity("tr (X'CX)⁻¹A", lambda X, C, A: trace(inv(X.T @ C @ X) @ A), {"X": "m n", "C": "m m symmetric", "A": "n n symmetric"}, "X",
             "-2 C X (XᵀC X)⁻¹A (XᵀC X)⁻¹"),
    Identity("tr (X'CX)⁻¹X'BX", lambda X, C, B: trace(inv(X.T @ C @ X) @ X.T @ B @ X), {"X": "m n", "C": "m m symmetric", "B": "m m symmetric"}, "X",
             "-2 (C X (XᵀC X)⁻¹XᵀB − B) X (XᵀC X)⁻¹"),
    Identity("det X", lambda X: det(X), square(), "X", "det(X) X⁻ᵀ"),
    Identity("det AXB", lambda A, X, B: det(A @ X @ B), square(A="n n", B="n n"), "X", "det(A X B) X⁻ᵀ"),
    Identity("det AXB, tall", lambda A, X, B: det(A @ X @ B), {"X": "m k", "A": "n m", "B": "k n"}, "X", "det(A X B) Aᵀ(A X B)⁻ᵀBᵀ"),
    Identity("det X'X", lambda X: det(X.T @ X), {"X": "m n"}, "X", "2 det(XᵀX) X (XᵀX)⁻¹"),
    Identity("det X'AX", lambda X, A: det(X.T @ A @ X), {"X": "m n", "A": "m m symmetric"}, "X", "2 det(XᵀA X) A X (XᵀA X)⁻¹"),
    Identity("log det X", lambda X: logdet(X), square(), "X", "X⁻ᵀ"),
    Identity("log det X'X", lambda X: logdet(X.T @ X), {"X": "m n"}, "X", "2 X (XᵀX)⁻¹"),
    Identity("log det AXB", lambda A, X, B: logdet(A @ X @ B), square(A="n n", B="n n"), "X", "X⁻ᵀ"),
    Identity("log det X, twice", lambda X: logdet(X), square(), "X", "-(X⁻¹ ⊗ X⁻ᵀ) K", 2),
    Identity("a'x", lambda a, x: dot(a, x), {"a": "n", "x": "n"}, "x", "a"),
    Identity("a'Xb", lambda a, X, b: a @ X @ b, {"a": "m", "X": "m n", "b": "n"}, "X", "a bᵀ"),
    Identity("a'X'b", lambda a, X, b: a @ X.T @ b, {"a": "n", "X": "m n", "b": "m"}, "X", "b aᵀ"),
    Identity("a'Xa", lambda a, X: a @ X @ a, {"a": "n", "X": "n n"}, "X", "a aᵀ"),
    Identity("b'X'Xc", lambda b, X, c: b @ X.T @ X @ c, {"b": "n", "X": "m n", "c": "n"}, "X", "X (b cᵀ + c bᵀ)"),
    Identity("b'X'DXc", lambda b, X, D, c: b @ X.T @ D @ X @ c, {"b": "n", "X": "m n", "D": "m m", "c": "n"}, "X", "DᵀX b cᵀ + D X c bᵀ"),
    Identity("(Xb+c)'D(Xb+c)", lambda X, b, c, D: (X @ b + c) @ D @ (X @ b + c), {"X": "m n", "b": "n", "c": "m", "D": "m m"}, "X",
             "(D + Dᵀ)(X b + c) bᵀ"),
    Identity("(Bx+b)'C(Dx+d)", lambda B, x, b, C, D, d: (B @ x + b) @ C @ (D @ x + d),
             {"B": "m n", "x": "n", "b": "m", "C": "m k", "D": "k n", "d": "k"}, "x", "BᵀC (D x + d) + DᵀCᵀ(B x + b)"),
    Identity("x'Bx", lambda x, B: x @ B @ x, {"x": "n", "B": "n n"}, "x", "(B + Bᵀ) x"),
    Identity("x'Bx, twice", lambda x, B: x @ B @ x, {"x": "n", "B": "n n"}, "x", "B + Bᵀ", 2),
    Identity("(x-As)'W(x-As) by s", lambda x, A, s, W: (x - A @ s) @ W @ (x - A @ s), {"x": "m", "A": "m n", "s": "n", "W": "m m symmetric"}, "s",
             "-2 AᵀW (x − A s)"),
    Identity("(x-s)'W(x-s) by x", lambda x, s, W: (x - s) @ W @ (x - s), {"x": "n", "s": "n", "W": "n n symmetric"}, "x", "2 W (x − s)"),
    Identity("(x-As)'W(x-As) by A", lambda x, A, s, W: (x - A @ s) @ W @ (x - A @ s), {"x": "m", "A": "m n", "s": "n", "W": "m m symmetric"}, "A",
             "-2 W (x − A s) sᵀ"),
    Identity("‖x-a‖", lambda x, a: norm(x - a), {"x": "n", "a": "n"}, "x", "(x − a) / ‖x − a‖"),
    Identity("‖x-a‖, twice", lambda x, a: norm(x - a), {"x": "n", "a": "n"}, "x", "I / ‖x − a‖ − (x − a)(x − a)ᵀ / ‖x − a‖³", 2),
    Identity("‖x‖²", lambda x: dot(x, x), {"x": "n"}, "x", "2 x"),
    Identity("‖X‖_F²", lambda X: total(X**2), {"X": "m n"}, "X", "2 X"),
    Identity("‖X‖_F", lambda X: norm(X), {"X": "m n"}, "X", "X / ‖X‖_F"),
]

DOCUMENTATION = [  # in the manner of matrixcalculus.org: losses, likelihoods and elementwise functions
    Identity("least squares", lambda A, x, b: total((A @ x - b) ** 2) / 2, {"A": "m n", "x": "n", "b": "m"}, "x", "Aᵀ(A x − b)"),
    Identity("least squares, twice", lambda A, x, b: total((A @ x - b) ** 2) / 2, {"A": "m n", "x": "n", "b": "m"}, "x", "AᵀA", 2),
    Identity("ridge", lambda A, x, b, c: total((A @ x - b) ** 2) + c * dot(x, x), {"A": "m n", "x": "n", "b": "m", "c": ""}, "x",
             "2 Aᵀ(A x − b) + 2 c x"),
    Identity("ridge, twice", lambda A, x, b, c: total((A @ x - b) ** 2) + c * dot(x, x), {"A": "m n", "x": "n", "b": "m", "c": ""}, "x",
             "2 AᵀA + 2 c I", 2),
    Identity("mean square", lambda A, x, b: ((A @ x - b) ** 2).mean(), {"A": "m n", "x": "n", "b": "m"}, "x", "2 Aᵀ(A x − b) / m"),
    Identity("logistic regression", lambda X, w, y: total(softplus(X @ w) - y * (X @ w)), {"X": "m n", "w": "n", "y": "m"}, "w", "Xᵀ(σ(X w) − y)"),
    Identity("logistic regression, twice", lambda X, w, y: total(softplus(X @ w) - y * (X @ w)), {"X": "m n", "w": "n", "y": "m"}, "w",
             "Xᵀ diag(σ(X w) ∘ (1 − σ(X w))) X", 2),
    Identity("logistic loss, labels ±1", lambda X, w, y: total(log(1 + exp(-y * (X @ w)))), {"X": "m n", "w": "n", "y": "m"}, "w",
             "-Xᵀ(σ(-y ∘ (X w)) ∘ y)"),
    Identity("factorisation by U", lambda T, U, V: total((T - U @ V.T) ** 2), {"T": "n m", "U": "n k", "V": "m k"}, "U", "-2 (T − U Vᵀ) V"),
    Identity("factorisation by V", lambda T, U, V: total((T - U @ V.T) ** 2), {"T": "n m", "U": "n k", "V": "m k"}, "V", "-2 (T − U Vᵀ)ᵀU"),
    Identity("factorisation, twice", lambda T, U, V: total((T - U @ V.T) ** 2), {"T": "n m", "U": "n k", "V": "m k"}, "U", "2 VᵀV ⊗ I", 2),
    Identity("log-sum-exp", lambda x: logsumexp(x, 0), {"x": "n"}, "x", "softmax(x)"),
    Identity("log-sum-exp, twice", lambda x: logsumexp(x, 0), {"x": "n"}, "x", "diag(softmax(x)) − softmax(x) softmax(x)ᵀ", 2),
    Identity("log-sum-exp of Ax", lambda A, x: logsumexp(A @ x, 0), {"A": "m n", "x": "n"}, "x", "Aᵀ softmax(A x)"),
    Identity("cross-entropy", lambda W, x, y: logsumexp(W @ x, 0) - dot(y, W @ x), {"W": "k n", "x": "n", "y": "k"}, "W",
             "(softmax(W x) − y) xᵀ"),
    Identity("sum of exp", lambda A, x: total(exp(A @ x)), {"A": "m n", "x": "n"}, "x", "Aᵀ exp(A x)"),
    Identity("sum of exp, twice", lambda A, x: total(exp(A @ x)), {"A": "m n", "x": "n"}, "x", "Aᵀ diag(exp(A x)) A", 2),
    Identity("entropy", lambda x: total(x * log(x)), {"x": "n"}, "x", "log(x) + 1"),
    Identity("log barrier", lambda A, x, b: -total(log(b - A @ x)), {"A": "m n", "x": "n", "b": "m"}, "x", "Aᵀ(1 ⊘ (b − A x))"),
    Identity("elementwise sine", lambda A, X: total(A * sin(X)), {"A": "m n", "X": "m n"}, "X", "A ∘ cos(X)"),
    Identity("tanh layer by W", lambda a, W, x: dot(a, tanh(W @ x)), {"a": "m", "W": "m n", "x": "n"}, "W", "(a ∘ (1 − tanh(W x)^∘2)) xᵀ"),
    Identity("tanh layer by W, twice", lambda V, W, x, y: total((V @ tanh(W @ x) - y) ** 2) / 2, {"V": "k m", "W": "m n", "x": "n", "y": "k"}, "W",
             "x xᵀ ⊗ diag(1 − tanh(W x)^∘2) VᵀV diag(1 − tanh(W x)^∘2) − 2 x xᵀ ⊗ diag(tanh(W x) ∘ (1 − tanh(W x)^∘2) ∘ (Vᵀ(V tanh(W x) − y)))", 2),
    Identity("binary cross-entropy", lambda X, w, t: binary_cross_entropy_with_logits(X @ w, t, reduction="sum"), {"X": "m n", "w": "n", "t": "m"},
             "w", "Xᵀ(σ(X w) − t)"),
    Identity("sigmoid of a'x", lambda a, x: sigmoid(dot(a, x)), {"a": "n", "x": "n"}, "x", "σ(aᵀx) (1 − σ(aᵀx)) a"),
    Identity("Gaussian by mean", lambda x, m, S: -(x - m) @ inv(S) @ (x - m) / 2 - logdet(S) / 2, {"x": "n", "m": "n", "S": "n n symmetric"}, "m",
             "S⁻¹(x − m)"),
    Identity("Gaussian by covariance", lambda x, m, S: -(x - m) @ inv(S) @ (x - m) / 2 - logdet(S) / 2, {"x": "n", "m": "n", "S": "n n symmetric"},
             "S", "S⁻¹(x − m)(x − m)ᵀS⁻¹ / 2 − S⁻¹ / 2"),
    Identity("Gaussian by precision", lambda x, m, P: logdet(P) / 2 - (x - m) @ P @ (x - m) / 2, {"x": "n", "m": "n", "P": "n n symmetric"}, "P",
             "P⁻¹ / 2 − (x − m)(x − m)ᵀ / 2"),
    Identity("Gaussians by covariance", lambda C, S: trace(inv(S) @ C) + logdet(S), {"C": "n n symmetric", "S": "n n symmetric"}, "S",
             "S⁻¹ − S⁻¹C S⁻¹"),
    Identity("Mahalanobis by A", lambda A, x, S: (A @ x) @ solve(S, A @ x), {"A": "m n", "x": "n", "S": "m m symmetric"}, "A", "2 S⁻¹A x xᵀ"),
    Identity("Rayleigh quotient", lambda x, A: (x @ A @ x) / dot(x, x), {"x": "n", "A": "n n symmetric"}, "x", "2 A x / ‖x‖² − 2 (xᵀA x) x / ‖x‖⁴"),
    Identity("quadratic form", lambda x, A, b: x @ A @ x / 2 - dot(b, x), {"x": "n", "A": "n n symmetric", "b": "n"}, "x", "A x − b"),
    Identity("quadratic form, twice", lambda x, A, b: x @ A @ x / 2 - dot(b, x), {"x": "n", "A": "n n symmetric", "b": "n"}, "x", "A", 2),
    Identity("matrix least squares", lambda A, X, B: total((A @ X - B) ** 2), {"A": "m n", "X": "n k", "B": "m k"}, "X", "2 Aᵀ(A X − B)"),
    Identity("matrix least squares, twice", lambda A, X, B: total((A @ X - B) ** 2), {"A": "m n", "X": "n k", "B": "m k"}, "X", "2 I ⊗ AᵀA", 2),
    Identity("nuclear", lambda X, A: trace(X @ A @ X.T), {"X": "m n", "A": "n n symmetric"}, "X", "2 X A", 1),
    Identity("cosine", lambda a, x: dot(a, x) / norm(x), {"a": "n", "x": "n"}, "x", "a / ‖x‖ − (aᵀx) x / ‖x‖³"),
    Identity("Ax by x", lambda A, x: A @ x, {"A": "m n", "x": "n"}, "x", "A"),
    Identity("AXB by X", lambda A, X, B: A @ X @ B, {"A": "m n", "X": "n k", "B": "k l"}, "X", "Bᵀ ⊗ A"),
    Identity("X⁻¹ by X", lambda X: inv(X), square(), "X", "-X⁻ᵀ ⊗ X⁻¹"),
    Identity("xx' by W in tr Wxx'", lambda W, x: trace(W @ outer(x, x)), {"W": "n n", "x": "n"}, "W", "x xᵀ"),
    Identity("σ(Ax) by x", lambda A, x: sigmoid(A @ x), {"A": "m n", "x": "n"}, "x", "diag(σ(A x) ∘ (1 − σ(A x))) A"),
    Identity("softmax by x", lambda x: symgrad.softmax(x, 0), {"x": "n"}, "x", "diag(softmax(x)) − softmax(x) softmax(x)ᵀ"),
    Identity("Huber-like", lambda x: total(sqrt(1 + x**2)), {"x": "n"}, "x", "x ⊘ √(x^∘2 + 1)"),
    Identity("mixed", lambda A, x, y: x @ A @ y, {"A": "m n", "x": "m", "y": "n"}, ("x", "y"), "A", 2),
    Identity("variance", lambda x: ((x - x.mean()) ** 2).mean(), {"x": "n"}, "x", "2 x / n − 2 sum(x) 𝟏 / n²"),
]

TWO = {"A": "m n", "B": "p q"}
SQUARES = {"A": "m m", "B": "p p"}
KRONECKER = [  # Magnus and Neudecker, Matrix Differential Calculus, chapters 2 and 9, and losses with two factors
    Identity("tr A⊗B", lambda A, B: trace(kron(A, B)), SQUARES, "A", "tr(B) I"),
    Identity("‖A⊗B‖_F²", lambda A, B: total(kron(A, B) ** 2), TWO, "B", "2 ‖A‖_F²B"),
    Identity("sum of A⊗B", lambda A, B: total(kron(A, B)), TWO, "A", "sum(B) 𝟏 𝟏ᵀ"),
    Identity("det A⊗B", lambda A, B: det(kron(A, B)), SQUARES, "A", "p det(A ⊗ B) A⁻ᵀ"),
    Identity("log det A⊗B", lambda A, B: logdet(kron(A, B)), SQUARES, "B", "m B⁻ᵀ"),
    Identity("tr (A⊗B)⁻¹", lambda A, B: trace(inv(kron(A, B))), SQUARES, "A", "-tr(B⁻¹) (A⁻²)ᵀ"),
    Identity("tr (A⊗B)(C⊗D)", lambda A, B, C, D: trace(kron(A, B) @ kron(C, D)), {**TWO, "C": "n m", "D": "q p"}, "A", "tr(D B) Cᵀ"),
    Identity("tr A⊗B⊗A", lambda A, B: trace(kron(A, kron(B, A))), SQUARES, "A", "2 tr(B) tr(A) I"),
    Identity("two factors by A", lambda A, B, x, y: total((kron(A, B) @ x - y) ** 2), {**TWO, "x": "n*q", "y": "m*p"}, "A",
             "2 unvec((A ⊗ B) x − y)ᵀB unvec(x)"),
    Identity("two factors by B", lambda A, B, x, y: total((kron(A, B) @ x - y) ** 2), {**TWO, "x": "n*q", "y": "m*p"}, "B",
             "2 unvec((A ⊗ B) x − y) A unvec(x)ᵀ"),
    Identity("two factors by x", lambda A, B, x, y: total((kron(A, B) @ x - y) ** 2), {**TWO, "x": "n*q", "y": "m*p"}, "x",
             "2 (Aᵀ ⊗ Bᵀ)((A ⊗ B) x − y)"),
    Identity("two factors by x, twice", lambda A, B, x: total((kron(A, B) @ x) ** 2), {**TWO, "x": "n*q"}, "x", "2 AᵀA ⊗ BᵀB", 2),
    Identity("two factors by A, twice", lambda A, B, x: total((kron(A, B) @ x) ** 2), {**TWO, "x": "n*q"}, "A", "2 unvec(x)ᵀBᵀB unvec(x) ⊗ I", 2),
    Identity("y'(A⊗B)x by B", lambda A, B, x, y: y @ kron(A, B) @ x, {**TWO, "x": "n*q", "y": "m*p"}, "B", "unvec(y) A unvec(x)ᵀ"),
    Identity("(A⊗B)x by x", lambda A, B, x: kron(A, B) @ x, {**TWO, "x": "n*q"}, "x", "A ⊗ B"),
    Identity("mean of (A⊗B)x", lambda A, B, x: (kron(A, B) @ x).mean(), {**TWO, "x": "n*q"}, "x", "Aᵀ𝟏 ⊗ Bᵀ𝟏 / (m p)"),
    Identity("(u⊗v)'z by u", lambda u, v, z: kron(u, v) @ z, {"u": "m", "v": "n", "z": "m*n"}, "u", "unvec(z)ᵀv"),
    Identity("(u⊗v)'z by z", lambda u, v, z: kron(u, v) @ z, {"u": "m", "v": "n", "z": "m*n"}, "z", "u ⊗ v"),
    Identity("(v⊗A)z by v", lambda v, A, z: total(kron(v, A) @ z), {"v": "k", "A": "m n", "z": "k*n"}, "v", "unvec(z)ᵀAᵀ𝟏"),
    Identity("(A⊗xy')z", lambda A, x, y, z: total(kron(A, outer(x, y)) @ z), {"A": "m n", "x": "p", "y": "q", "z": "n*q"}, "x",
             "(zᵀ(Aᵀ𝟏 ⊗ y)) 𝟏"),
    Identity("z'(A⊕B)z by A", lambda A, B, z: z @ (kron(A, symgrad.eye(3)) + kron(symgrad.eye(2), B)) @ z, {"A": "2 2", "B": "3 3", "z": "2*3"}, "A",
             "unvec(z)ᵀ unvec(z)"),
    Identity("z'(A⊕B)z by z", lambda A, B, z: z @ (kron(A, symgrad.eye(3)) + kron(symgrad.eye(2), B)) @ z,
             {"A": "2 2 symmetric", "B": "3 3 symmetric", "z": "2*3"}, "z", "2 (A ⊗ I + I ⊗ B) z"),
    Identity("Gaussian of two covariances", lambda A, B, z: -z @ solve(kron(A, B), z) / 2 - logdet(kron(A, B)) / 2,
             {"A": "m m symmetric", "B": "p p symmetric", "z": "m*p"}, "A", "A⁻¹ unvec(z)ᵀB⁻¹ unvec(z) A⁻¹ / 2 − p A⁻¹ / 2"),
    Identity("vec AXB by X", lambda A, X, B, z: (A @ X @ B).reshape(-1) @ z, {"A": "m n", "X": "n k", "B": "k l", "z": "m*l"}, "X",
             "Aᵀ unvec(z)ᵀBᵀ"),
    Identity("a product with a reshaped vector", lambda A, z: total((A @ z.reshape(3, 2)) ** 2), {"A": "m 3", "z": "3*2"}, "A",
             "2 A unvec(z)ᵀ unvec(z)"),
]



def likelihood(A, y):
    """The negative logarithm of a Gaussian likelihood as it is computed, by a Cholesky factor."""
    factor = symgrad.linalg.cholesky(A)
    return total(symgrad.linalg.solve_triangular(factor, y.unsqueeze(-1), upper=False) ** 2) / 2 + total(log(symgrad.diagonal(factor)))


NORMAL = {"A": "n n symmetric", "y": "n"}
CHOLESKY = [
    Identity("log det by a factor", lambda A: 2 * total(log(symgrad.diagonal(symgrad.linalg.cholesky(A)))), {"A": "n n symmetric"}, "A", "A⁻¹"),
    Identity("log det by a factor, symmetric part", lambda A: total(log(symgrad.diagonal(symgrad.linalg.cholesky((A + A.mT) / 2)))), {"A": "n n"},
             "A", "(A + Aᵀ)⁻¹"),
    Identity("likelihood by covariance", likelihood, NORMAL, "A", "A⁻¹ / 2 − A⁻¹y yᵀA⁻¹ / 2"),
    Identity("likelihood by observations", likelihood, NORMAL, "y", "A⁻¹y"),
    Identity("likelihood by observations, twice", likelihood, NORMAL, "y", "A⁻¹", 2),
    Identity("likelihood by noise", lambda A, s, y: likelihood(A + s * s * symgrad.eye(len(y)), y), {**NORMAL, "s": ""}, "s",
             "s (tr((A + s²I)⁻¹) − yᵀ(A + s²I)⁻²y)"),
    Identity("a system by a factor", lambda A, y: y @ symgrad.cholesky_solve(y.unsqueeze(-1), symgrad.linalg.cholesky(A)).squeeze(-1), NORMAL, "A",
             "-A⁻¹y yᵀA⁻¹"),
]

IDENTITIES = COOKBOOK + DOCUMENTATION + KRONECKER + CHOLESKY
