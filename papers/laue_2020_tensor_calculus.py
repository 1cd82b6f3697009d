"""Laue, Mitterreiter and Giesen's Hessians of matrix expressions: x'Ax, logistic regression, and a factorisation whose Hessian compresses.

Every Hessian is compared with its formula. That of the factorisation, nk by nk, is also found from k products: sparse, and as its one k by k block.
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


def show(name, formula, found, true, products):
    """Print a row, and assert that the Hessian found is the true one, up to rounding."""
    assert found.shape == true.shape
    assert np.abs(found - true).max() < 1e-14 * np.abs(true).max()
    rows, columns = found.shape
    print(f"| {name} | {formula} | {rows} by {columns} | {np.count_nonzero(found)} | {products} |")


def main():
    """Print the Hessians found beside the formulas, and assert that they agree."""
    print("| f | Hessian | size | elements that are not 0 | products with it |")
    x, a = RNG.normal(size=FEATURES), RNG.normal(size=(FEATURES, FEATURES))
    show("x'Ax", "A' + A", func.hessian(quadratic)(x, a).numpy(), a + a.T, FEATURES)

    features, labels, w = RNG.normal(size=(ROWS, FEATURES)), RNG.choice([-1.0, 1.0], ROWS), RNG.normal(size=FEATURES)
    s = 1.0 / (1.0 + np.exp(-features @ w))
    show("logistic regression", "X' diag(s(1 - s)) X", func.hessian(logistic)(w, features, labels).numpy(),
         features.T @ ((s * (1.0 - s))[:, None] * features), FEATURES)

    u, v, target = RNG.normal(size=(N, K)), RNG.normal(size=(M, K)), RNG.normal(size=(N, M))
    block = 2.0 * v.T @ v
    hessian = func.hessian(factorization, structure="auto")
    sparse = hessian(u, v, target)
    assert (sparse.nnz, hessian.report.products) == (N * K * K, K)
    dense = func.hessian(factorization)(u, v, target).numpy().reshape(N * K, N * K)
    assert np.abs(sparse.toarray() - dense).max() < 1e-14 * np.abs(block).max()
    show("‖T - UV'‖²", "I ⊗ 2V'V", sparse.toarray(), np.kron(np.eye(N), block), K)

    # A product with directions that are the same in every row of U has that row of 2V'V in every row.
    products = func.vmap(lambda row: func.hvp(lambda u: factorization(u, v, target), u, symgrad.ones(N, 1) * row))(symgrad.eye(K)).numpy()
    assert np.abs(products - products[:, :1]).max() < 1e-14 * np.abs(block).max()
    show("‖T - UV'‖², one block", "2V'V", products[:, 0], block, K)


if __name__ == "__main__":
    main()
