"""The O-rings of the space shuttle before Challenger: logistic regression by Newton steps on the exact Hessian.

The probability that some O-ring shows thermal distress at temperature t is 1 / (1 + exp(-(b₀ + b₁ t))), and with z = b₀ + b₁ t

    -log likelihood = Σ log(1 + exp(z)) - y z.

Known from elsewhere: for the 23 flights of `data/challenger.csv` (Dalal, Fowlkes and Hoadley 1989), b = (15.0429, -0.2322), with standard errors
(7.3786, 0.1082) from the inverse of the Hessian, residual deviance 20.315 and, without the temperature, 28.267.
"""

from pathlib import Path

import numpy as np

import symgrad

TEMPERATURE, DISTRESS = np.loadtxt(Path(__file__).parent / "data" / "challenger.csv", delimiter=",", skiprows=5, unpack=True)
LAUNCH = 31.0  # degrees Fahrenheit, on the morning of 28 January 1986


def negative_log_likelihood(b=(15.0, -0.23)):
    """-log likelihood of the intercept b[0] and the slope b[1]."""
    z = b[0] + b[1] * symgrad.tensor(TEMPERATURE)
    return symgrad.sum(symgrad.softplus(z) - DISTRESS * z)


def newton(b, steps):
    """Newton's method on the likelihood: the coefficients, and the Hessian there."""
    for _ in range(steps):
        x = symgrad.tensor(b, requires_grad=True)
        (gradient,) = symgrad.autograd.grad(negative_log_likelihood(x), x, create_graph=True)
        hessian = np.array([symgrad.autograd.grad(g, x, retain_graph=True)[0].numpy() for g in gradient])
        b = b - np.linalg.solve(hessian, gradient.detach().numpy())
    return b, hessian


def main():
    """Fit the model, print it as a table, and assert the published figures."""
    b, hessian = newton(np.zeros(2), steps=10)
    errors = np.sqrt(np.diag(np.linalg.inv(hessian)))
    for name, coefficient, error in zip(("intercept", "temperature"), b, errors, strict=True):
        print(f"{name:12}{coefficient:10.4f}  standard error {error:.4f}")
    assert np.round(b, 4).tolist() == [15.0429, -0.2322]
    assert np.round(errors, 4).tolist() == [7.3786, 0.1082]

    share = DISTRESS.mean()
    deviances = [2.0 * negative_log_likelihood(symgrad.tensor(at)).item() for at in (b, [np.log(share / (1.0 - share)), 0.0])]
    print("deviance {:.3f}, without the temperature {:.3f}".format(*deviances))
    assert np.round(deviances, 3).tolist() == [20.315, 28.267]

    print(f"probability of distress at {LAUNCH:.0f} degrees: {symgrad.sigmoid(symgrad.tensor(b[0] + b[1] * LAUNCH)):.4f}")


if __name__ == "__main__":
    main()
