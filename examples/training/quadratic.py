"""The minimum of a parabola and a linear regression, by gradient descent and by Newton's method.

The parabola is x² - 2x + 1, whose minimum is 0 at x = 1. The regression is y = w₁x₁ + w₂x₂ + b with Gaussian noise; its answer is that of the normal
equations, computed by NumPy. The Hessian of both is constant, so that one Newton step from anywhere gives the answer to the last digits, where
gradient descent takes hundreds.
"""

import numpy as np

import symgrad
from symgrad import nn

ROWS, SLOPES, OFFSET, NOISE = 200, (2.0, -3.4), 4.2, 0.01


def parabola(x):
    """x² - 2x + 1."""
    return x**2 - 2.0 * x + 1.0


def descend(params, loss, rate, steps):
    """Gradient descent on a loss."""
    optimizer = symgrad.optim.SGD(params, lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


def minimum():
    """The parabola's minimum from x = 0: where 500 steps of gradient descent come, and where one Newton step comes."""
    def start():
        return symgrad.tensor(0.0, dtype=symgrad.float64, requires_grad=True)

    slow, exact = start(), start()
    descend([slow], lambda: parabola(slow), 0.01, 500)
    symgrad.optim.Newton([exact]).step(lambda: parabola(exact))  # computes the derivatives itself
    return slow.item(), exact.item()


def regression():
    """Largest differences from the coefficients of the normal equations, after 300 steps of gradient descent and after one Newton step."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 2))
    y = x @ SLOPES + OFFSET + NOISE * rng.normal(size=ROWS)
    answer = np.linalg.lstsq(np.column_stack([x, np.ones(ROWS)]), y, rcond=None)[0]
    inputs, targets = symgrad.tensor(x), symgrad.tensor(y)[:, None]

    def loss(model):
        return nn.functional.mse_loss(model(inputs), targets)

    def distance(model):
        return np.abs(np.append(model.weight.detach().numpy(), model.bias.detach().numpy()) - answer).max()

    slow, exact = (nn.Linear(2, 1, dtype=symgrad.float64) for _ in range(2))
    descend(slow.parameters(), lambda: loss(slow), 0.1, 300)
    symgrad.optim.Newton(exact.parameters()).step(lambda: loss(exact))
    return distance(slow), distance(exact)


def main():
    """Print both, and assert that one Newton step is exact."""
    symgrad.manual_seed(0)
    slow, exact = minimum()
    print(f"minimum of x² - 2x + 1: {slow:.6f} after 500 steps of gradient descent, {exact:.15g} after one Newton step")
    assert abs(slow - 1) < 1e-4 and abs(exact - 1) < 1e-15
    slow, exact = regression()
    print(f"linear regression, distance from the normal equations: {slow:.1e} after 300 steps of gradient descent, {exact:.1e} after one Newton step")
    assert slow < 1e-6 and exact < 1e-12


if __name__ == "__main__":
    main()
