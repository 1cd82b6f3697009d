"""A network that solves u'' = -π² sin(πx) with u(-1) = u(1) = 0, from the equation alone.

M. Raissi, P. Perdikaris and G. Karniadakis, Journal of Computational Physics 378, 686-707 (2019): the loss is the mean squared residual of the
equation at collocation points. It contains second derivatives of the network by its input, so its gradient by the weights has third ones. Here the
second derivative is a Taylor coefficient along the line (`func.jet`): one forward pass of a series in place of two backward passes. The factor
1 - x² in front of the network fulfils the boundary conditions.

Known from elsewhere: the solution is sin(πx). The largest error on a fine grid is asserted to be below 1e-3.
"""

import math

import symgrad
from symgrad import nn

HIDDEN, POINTS, STEPS = 20, 64, 60


def solution(network, x):
    """The approximation (1 - x²) N(x), which is zero at both ends."""
    return (1 - x * x) * network(x)


def residual(network, x):
    """u'' + π² sin(πx) at points x, one in each row."""
    line = symgrad.ones_like(x), symgrad.zeros_like(x)
    _, (_, curvature) = symgrad.func.jet(lambda z: solution(network, z), (x,), (line,))
    return curvature + math.pi**2 * symgrad.sin(math.pi * x)


def main():
    """Print the loss as it falls and the largest error, and assert that."""
    symgrad.manual_seed(0)
    network = nn.Sequential(nn.Linear(1, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 1)).double()
    x = symgrad.linspace(-1, 1, POINTS, dtype=symgrad.float64)[:, None]
    optimizer = symgrad.optim.LBFGS(network.parameters(), max_iter=20, history_size=50, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        value = (residual(network, x) ** 2).mean()
        value.backward()
        return value

    for step in range(STEPS):
        value = optimizer.step(loss)
        if step % 20 == 0:
            print(f"mean squared residual after {20 * step} iterations: {value.item():.1e}")
    fine = symgrad.linspace(-1, 1, 1001, dtype=symgrad.float64)[:, None]
    with symgrad.no_grad():
        error = (solution(network, fine) - symgrad.sin(math.pi * fine)).abs().max().item()
    print(f"largest error of u on [-1, 1]: {error:.1e}")
    assert error < 1e-3


if __name__ == "__main__":
    main()
