"""Laue, Mitterreiter and Giesen's Hessians of matrix expressions: x'Ax, logistic regression, and a factorisation whose Hessian compresses.

Every Hessian is compared with its formula. Those of the last two are found in the factors of the formula, too: X' D X, and I ⊗ A with A of k by k.
"""

import numpy as np

import symgrad
from symgrad import func

ROWS, FEATURES = 200, 20
N, M, K = 50, 40, 5  # T is n by m, U is n by k, V is m by k
RNG = np.random.default_rng(0)


def quadratic(x, a):
    """f(x) = x'Ax."""
    return symgrad.dot(x, symgrad.mv(a, x))


def logistic(w, features, labels):
    """f(w) = Σ log(exp(-yᵢ (Xw)ᵢ) + 1), with labels yᵢ = ±1."""
    return symgrad.sum(symgrad.softplus(-labels * symgrad.mv(features, w)))


def factorization(u, v, target):
    """f(U) = ‖T - UV'‖²."""
    return symgrad.sum((target - symgrad.matmul(u, v.T)) ** 2)


def agree(found, true):
    """Assert that a matrix is the true one, up to rounding."""
    assert found.shape == true.shape
    assert np.abs(found - true).max() < 1e-14 * np.abs(true).max()


def main():
    """Print the Hessians and what was found of them, and assert that they agree with the formulas."""
    print("| f | Hessian | size | found as | numbers |")
    x, a = RNG.normal(size=FEATURES), RNG.normal(size=(FEATURES, FEATURES))
    agree(func.hessian(quadratic)(x, a).numpy(), a + a.T)
    print(f"| x'Ax | A' + A | {FEATURES} by {FEATURES} | dense | {FEATURES**2} |")

    features, labels, w = RNG.normal(size=(ROWS, FEATURES)), RNG.choice([-1.0, 1.0], ROWS), RNG.normal(size=FEATURES)
    s = 1.0 / (1.0 + np.exp(-features @ w))
    true = features.T @ ((s * (1.0 - s))[:, None] * features)
    agree(func.hessian(logistic)(w, features, labels).numpy(), true)
    found = func.hessian_factors(logistic)(w, features, labels)
    agree(found.todense(), true)
    agree(found.factors["X"], features)
    agree(found.factors["D"], s * (1.0 - s))
    assert (found.report.form, found.report.numbers) == ("X' D X", ROWS * FEATURES + ROWS)
    print(f"| logistic regression | X' diag(s(1 - s)) X | {FEATURES} by {FEATURES} | {found.report.form} | {found.report.numbers} |")

    u, v, target = RNG.normal(size=(N, K)), RNG.normal(size=(M, K)), RNG.normal(size=(N, M))
    block = 2.0 * v.T @ v
    true = np.kron(np.eye(N), block)
    hessian = func.hessian(factorization, structure="auto")
    sparse = hessian(u, v, target)
    agree(sparse.toarray(), true)
    assert (sparse.nnz, hessian.report.products) == (N * K**2, K)
    print(f"| ‖T - UV'‖² | I ⊗ 2V'V | {N * K} by {N * K} | {hessian.report.pattern} | {sparse.nnz} |")

    found = func.hessian_factors(factorization)(u, v, target)
    agree(found.todense(), true)
    agree(found.factors["A"], block)
    assert (found.report.form, found.report.numbers) == ("I kron A", K**2)
    print(f"| ‖T - UV'‖² | I ⊗ 2V'V | {N * K} by {N * K} | {found.report.form} | {found.report.numbers} |")


if __name__ == "__main__":
    main()
