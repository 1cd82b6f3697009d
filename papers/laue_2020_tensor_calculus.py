"""Laue, Mitterreiter and Giesen's Hessians of matrix expressions: x'Ax, logistic regression, and a factorisation whose Hessian compresses.

Every Hessian is compared with its formula; that of the factorisation, nk by nk, is also found from k products, as a k by k matrix.
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


def show(name, formula, found, true):
    """Print a row, and assert that the Hessian found is the true one, up to rounding."""
    assert found.shape == true.shape
    assert np.abs(found - true).max() < 2e-15 * np.abs(true).max()
    print(f"| {name} | {formula} | {found.shape[0]} by {found.shape[1]} |")


def main():
    """Print the Hessians found beside the formulas, and assert that they agree."""
    print("| f | Hessian | size |")
    a = RNG.normal(size=(FEATURES, FEATURES))
    found = func.hessian(quadratic)(RNG.normal(size=FEATURES), a)
    show("x'Ax", "A' + A", found.numpy(), a + a.T)

    features, labels, w = RNG.normal(size=(ROWS, FEATURES)), RNG.choice([-1.0, 1.0], ROWS), RNG.normal(size=FEATURES)
    found = func.hessian(logistic)(w, features, labels)
    s = 1.0 / (1.0 + np.exp(-features @ w))
    show("logistic regression", "X' diag(s (1 - s)) X", found.numpy(), features.T @ ((s * (1.0 - s))[:, None] * features))

    u, v, target = RNG.normal(size=(N, K)), RNG.normal(size=(M, K)), RNG.normal(size=(N, M))
    found = func.hessian(factorization)(u, v, target)
    show("‖T - UV'‖², by U", "2 I ⊗ V'V", found.numpy().reshape(N * K, N * K), np.kron(np.eye(N), 2.0 * v.T @ v))


if __name__ == "__main__":
    main()
