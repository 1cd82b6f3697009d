"""Blondel et al.'s implicit differentiation, on ridge regression: the error of the Jacobian, unrolled and implicit, iteration by iteration.

Gradient descent is stopped after t steps, and the solution is differentiated by the ridge penalty θ: through the steps, or by the implicit function
theorem at the point where they stopped. Both errors have a closed form here.
"""

import numpy as np

import symgrad
from symgrad import func

THETA = 10.0
ERRORS = {  # after t steps: of the solution, of the unrolled Jacobian and of the implicit one
    1: ("1.3e-01", "4.9e-03", "2.8e-03"),
    5: ("1.7e-02", "1.6e-03", "4.1e-04"),
    10: ("1.9e-03", "3.0e-04", "5.1e-05"),
    20: ("5.2e-05", "1.4e-05", "1.6e-06"),
    40: ("8.3e-08", "4.3e-08", "2.7e-09"),
}
RNG = np.random.default_rng(0)
FEATURES, TARGETS = RNG.normal(size=(50, 10)), RNG.normal(size=50)
HESSIAN = FEATURES.T @ FEATURES + THETA * np.eye(10)
CURVATURES = np.linalg.eigvalsh(HESSIAN)
STEP = 1.0 / CURVATURES[-1]


def objective(x, theta):
    """f(x, θ) = ½ ‖Φx - y‖² + ½ θ ‖x‖²."""
    return 0.5 * symgrad.sum((symgrad.mv(FEATURES, x) - TARGETS) ** 2) + 0.5 * theta * symgrad.sum(x**2)


def descent(theta, steps):
    """x after so many steps x - η ∂f/∂x from 0."""
    x = symgrad.zeros(10)
    for _ in range(steps):
        x = x - STEP * func.grad(objective)(x, theta)
    return x


# The same as a function of θ whose derivative is -(∂₁F)⁻¹ ∂₂F with F = ∂f/∂x, wherever the steps ended.
minimiser = func.implicit_argmin(objective, descent, tolerance=None)


def by_theta(solver, steps):
    """x after so many steps, and ∂x/∂θ."""
    return (y.numpy() for y in func.jvp(lambda theta: solver(theta, steps=steps), (THETA,), (1.0,)))


def main():
    """Print the errors by iteration, and assert them with their closed forms."""
    solution = np.linalg.solve(HESSIAN, FEATURES.T @ TARGETS)
    jacobian = -np.linalg.solve(HESSIAN, solution)
    shrink = np.eye(10) - STEP * HESSIAN
    print("| t | error of x | of the unrolled Jacobian | of the implicit one | unrolled / implicit |")
    for t, expected in ERRORS.items():
        x, unrolled = by_theta(descent, t)
        same, implicit = by_theta(minimiser, t)
        assert np.abs(x - same).max() < 1e-15
        short, long, at_end = x - solution, unrolled - jacobian, implicit - jacobian
        left = -np.linalg.matrix_power(shrink, t) @ solution
        late = t * STEP * np.linalg.matrix_power(shrink, t - 1) @ solution
        assert np.abs(short - left).max() < 1e-15
        assert np.abs(at_end + np.linalg.solve(HESSIAN, left)).max() < 1e-15
        assert np.abs(long + np.linalg.solve(HESSIAN, left) - late).max() < 1e-15
        found = [np.linalg.norm(error) for error in (short, long, at_end)]
        assert found[2] <= found[0] / CURVATURES[0]
        assert tuple(f"{error:.1e}" for error in found) == expected
        print(f"| {t} | {' | '.join(expected)} | {found[1] / found[2]:.1f} |")


if __name__ == "__main__":
    main()
