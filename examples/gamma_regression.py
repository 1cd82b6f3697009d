"""Gamma regression with standard errors: the clotting times of blood, by Newton steps on the exact Hessian.

Times y at the concentrations u have the gamma distribution with the mean μ = 1 / (b₀ + b₁ log u) and the shape k, so that

    -log likelihood = Σ log Γ(k) - k log(k y / μ) + k y / μ + log y.

Known from elsewhere (McCullagh and Nelder, Generalized Linear Models, 1989, section 8.4.2, and the help page of R's `glm`): b is
(-0.0165544, 0.0153431) with the standard errors (0.0009275, 0.0004150) for the dispersion 0.002446 of Pearson's residuals; the shape is 538.1315
with the standard error 253.5991 (`gamma.shape` of R's MASS). In closed form the information on b is k Σ μ² x xᵀ, and that on k is
n (ψ'(k) - 1/k), where the maximum of the likelihood has log k - ψ(k) = Σ (y/μ - 1 - log(y/μ)) / n.
"""

import numpy as np
from scipy.special import digamma, polygamma

import symgrad
from symgrad import func

CONCENTRATION = np.array([5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 60.0, 80.0, 100.0])  # of plasma, in percent
TIME = np.array([118.0, 58.0, 42.0, 35.0, 27.0, 25.0, 21.0, 19.0, 18.0])  # seconds, for the first lot of thromboplastin
ROWS = np.column_stack([np.ones(9), np.log(CONCENTRATION)])


def negative_log_likelihood(b=(-0.0165, 0.0153, 500.0)):
    """-log likelihood of the intercept b[0], the slope b[1] and the shape b[2]."""
    shape, ratio = b[2], TIME * (b[0] + b[1] * symgrad.tensor(ROWS[:, 1]))
    return symgrad.sum(symgrad.lgamma(shape) - shape * symgrad.log(shape * ratio) + shape * ratio + np.log(TIME))


def newton(b, steps):
    """Newton's method on the likelihood: the coefficients, and the Hessian there."""
    for _ in range(steps):
        x = symgrad.tensor(b)
        gradient, hessian = func.grad(negative_log_likelihood)(x).numpy(), func.hessian(negative_log_likelihood)(x).numpy()
        b = b - np.linalg.solve(hessian, gradient)
    return b, hessian


def main():
    """Fit the model, print it as a table, and assert the published figures and the closed forms."""
    b, hessian = newton(np.array(negative_log_likelihood.__defaults__[0]), steps=10)
    mean, shape = 1 / (ROWS @ b[:2]), b[2]
    errors = np.sqrt(np.diag(np.linalg.inv(hessian)))
    dispersion = np.sum((TIME / mean - 1) ** 2) / 7
    pearson = errors[:2] * np.sqrt(shape * dispersion)  # R's dispersion in place of 1/k
    for name, coefficient, error in zip(("intercept", "log(concentration)"), b, pearson):
        print(f"{name:20}{coefficient:11.7f}  standard error {error:.7f}")
    print(f"{'shape':20}{shape:11.4f}  standard error {errors[2]:.4f}")
    print(f"dispersion {dispersion:.6f}")
    assert np.round(b[:2], 7).tolist() == [-0.0165544, 0.0153431]
    assert np.round(pearson, 7).tolist() == [0.0009275, 0.0004150]
    assert round(dispersion, 6) == 0.002446
    assert np.round([shape, errors[2]], 4).tolist() == [538.1315, 253.5991]

    ratio = TIME / mean
    assert abs(np.log(shape) - digamma(shape) - np.mean(ratio - 1 - np.log(ratio))) < 1e-13
    information = np.zeros((3, 3))
    information[:2, :2], information[2, 2] = shape * (ROWS.T * mean**2) @ ROWS, 9 * (polygamma(1, shape) - 1 / shape)
    scale = np.sqrt(np.diag(information))
    assert np.abs((hessian - information) / np.outer(scale, scale)).max() < 1e-7  # 1/k and ψ'(k) cancel to seven digits


if __name__ == "__main__":
    main()
