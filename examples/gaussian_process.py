"""The marginal likelihood of a Gaussian process, with the exact Hessian in its hyperparameters.

For observations y at x with the covariance K = a² exp(-(xᵢ - xⱼ)²/(2 l²)) + s² I and θ = (log a, log l, log s),

    -log p(y | θ) = yᵀ K⁻¹ y / 2 + log det K / 2 + n log(2π) / 2.

Known from elsewhere (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 5.4.1, and one derivative more): with
α = K⁻¹ y and the derivatives Kᵢ and Kᵢⱼ of K, the gradient is tr((K⁻¹ - α αᵀ) Kᵢ) / 2, and the Hessian is
αᵀ Kᵢ K⁻¹ Kⱼ α - αᵀ Kᵢⱼ α / 2 + tr(K⁻¹ Kᵢⱼ) / 2 - tr(K⁻¹ Kᵢ K⁻¹ Kⱼ) / 2. For two observations SymPy differentiates the formula itself.
"""

import math

import numpy as np
import sympy

import symgrad
from symgrad import func

PLACES = np.array([-1.5, -0.4, 1.1])
OBSERVED = np.array([-0.9, -0.5, 0.8])


def negative_log_likelihood(theta=(0.1, -0.2, -1.0)):
    """-log p(OBSERVED | θ), by the Cholesky factor of K."""
    return by_cholesky(theta, PLACES, OBSERVED)


def covariance(theta, x):
    """K, where the logarithms of the amplitude, the length and the noise are theta."""
    apart = symgrad.tensor(x)[:, None] - symgrad.tensor(x)[None, :]
    signal = symgrad.exp(2 * theta[0] - apart**2 / (2 * symgrad.exp(2 * theta[1])))
    return signal + symgrad.exp(2 * theta[2]) * symgrad.eye(len(x))


def by_cholesky(theta, x, y):
    """-log p(y | θ) with K = L Lᵀ: log det K = 2 Σ log Lᵢᵢ."""
    y, factor = symgrad.tensor(y), symgrad.linalg.cholesky(covariance(theta, x))
    alpha = symgrad.cholesky_solve(y[:, None], factor)[:, 0]
    return y @ alpha / 2 + factor.diagonal().log().sum() + len(x) / 2 * math.log(2 * math.pi)


def by_triangles(theta, x, y):
    """The same with |L⁻¹ y|²."""
    factor = symgrad.linalg.cholesky(covariance(theta, x))
    white = symgrad.linalg.solve_triangular(factor, symgrad.tensor(y)[:, None], upper=False)
    return (white**2).sum() / 2 + symgrad.logdet(factor) + len(x) / 2 * math.log(2 * math.pi)


def by_determinant(theta, x, y):
    """The same without a factor."""
    k, y = covariance(theta, x), symgrad.tensor(y)
    return y @ symgrad.linalg.solve(k, y) / 2 + symgrad.linalg.slogdet(k).logabsdet / 2 + len(x) / 2 * math.log(2 * math.pi)


def closed_forms(theta, x, y):
    """The gradient and the Hessian by the formulas of the literature."""
    distance = np.subtract.outer(x, x) ** 2 * np.exp(-2 * theta[1])
    signal, noise, zero = np.exp(2 * theta[0] - distance / 2), np.exp(2 * theta[2]) * np.eye(len(x)), np.zeros((len(x), len(x)))
    first = [2 * signal, signal * distance, 2 * noise]
    both = 2 * signal * distance
    second = [[4 * signal, both, zero], [both, signal * (distance**2 - 2 * distance), zero], [zero, zero, 4 * noise]]
    inverse = np.linalg.inv(signal + noise)
    alpha = inverse @ y
    gradient = [np.trace((inverse - np.outer(alpha, alpha)) @ k) / 2 for k in first]
    return gradient, [[alpha @ a @ inverse @ b @ alpha - alpha @ ab @ alpha / 2 + np.trace(inverse @ ab) / 2 - np.trace(inverse @ a @ inverse @ b) / 2
                       for b, ab in zip(first, row)] for a, row in zip(first, second)]


def hessian_of_two(theta, x, y):
    """The Hessian for two observations, by SymPy."""
    a, l, s = names = sympy.symbols("a l s")
    diagonal, beside = sympy.exp(2 * a) + sympy.exp(2 * s), sympy.exp(2 * a - (x[0] - x[1]) ** 2 / (2 * sympy.exp(2 * l)))
    determinant = diagonal**2 - beside**2
    square = (diagonal * (y[0] ** 2 + y[1] ** 2) - 2 * beside * y[0] * y[1]) / determinant
    found = sympy.hessian(square / 2 + sympy.log(determinant) / 2, names).evalf(30, subs=dict(zip(names, theta)))
    return np.array(found.tolist(), float)


def main():
    """Print the likelihood with its derivatives, and assert the closed forms."""
    theta = np.array(negative_log_likelihood.__defaults__[0])
    gradient, hessian = closed_forms(theta, PLACES, OBSERVED)
    print(f"-log likelihood {negative_log_likelihood(symgrad.tensor(theta)):.6f}")
    for name, slope, row in zip(("amplitude", "length", "noise"), gradient, hessian):
        print(f"log {name:10} gradient {slope:9.6f}  Hessian " + " ".join(f"{h:9.6f}" for h in row))
    for function in (by_cholesky, by_triangles, by_determinant):
        def likelihood(t, function=function):
            return function(t, PLACES, OBSERVED)

        assert np.allclose(func.grad(likelihood)(symgrad.tensor(theta)).numpy(), gradient, rtol=1e-12, atol=1e-13)
        assert np.allclose(func.hessian(likelihood)(symgrad.tensor(theta)).numpy(), hessian, rtol=1e-12, atol=1e-13)

        def pair(t, function=function):
            return function(t, PLACES[:2], OBSERVED[:2])

        assert np.allclose(func.hessian(pair)(symgrad.tensor(theta)).numpy(), hessian_of_two(theta, PLACES, OBSERVED), rtol=1e-12, atol=1e-13)


if __name__ == "__main__":
    main()
