"""Burgers' equation and its exact solution of two shocks that merge, by the Cole-Hopf transform.

Where φ solves the heat equation φ_t = ν φ_xx, u = -2 ν ∂ log φ / ∂x solves u_t + u u_x = ν u_xx (E. Hopf, Communications on Pure and
Applied Mathematics 3, 201-230 (1950); J. D. Cole, Quarterly of Applied Mathematics 9, 225-236 (1951)). A sum of exponentials
exp(aⱼ x + ν aⱼ² t + cⱼ) is such a φ; each gives a plateau u = -2 ν aⱼ, with shocks where two are equal.

Known from elsewhere: the residual u_t + u u_x - ν u_xx is zero, the plateaus are 2, 1 and 0, and the middle u = 1 moves at speed 1, for the
shocks from 2 to 1 and from 1 to 0 have speeds 3/2 and 1/2, and the shock from 2 to 0 they merge into at x = t = 1 has speed 1.
"""

import numpy as np

import symgrad

VISCOSITY = 0.05
PLATEAUS = (2.0, 1.0, 0.0)
OFFSETS = (-5.0, 0.0, -5.0)


def potential(x=0.2, t=0.4):
    """log φ at position x and time t."""
    rates = [-u / (2.0 * VISCOSITY) for u in PLATEAUS]
    return symgrad.logsumexp(symgrad.stack([a * x + VISCOSITY * a**2 * t + c for a, c in zip(rates, OFFSETS, strict=True)]), 0)


def derivative(y, x):
    """∂y/∂x at every point, to be differentiated again: each y depends on its own x only."""
    return symgrad.autograd.grad(y.sum(), x, create_graph=True)[0]


def velocity(x, t):
    """u = -2 ν ∂ log φ / ∂x."""
    return -2.0 * VISCOSITY * derivative(potential(x, t), x)


def residual(x, t):
    """u_t + u u_x - ν u_xx."""
    u = velocity(x, t)
    slope = derivative(u, x)
    return derivative(u, t) + u * slope - VISCOSITY * derivative(slope, x), slope


def main():
    """Print the residual on a grid, the plateaus and the speed of the middle, and assert what is known of them."""
    positions, times = (grid.ravel() for grid in np.meshgrid(np.linspace(-1.0, 3.0, 41), np.linspace(0.0, 2.0, 9)))
    x, t = symgrad.tensor(positions, requires_grad=True), symgrad.tensor(times, requires_grad=True)
    left, slope = residual(x, t)
    largest = np.abs(left.detach().numpy()).max()
    print(f"largest residual on {len(positions)} points: {largest:.1e}, where the steepest slope is {slope.detach().numpy().min():.3f}")
    assert largest < 1e-10

    ends = velocity(symgrad.tensor([-5.0, 5.0], requires_grad=True), symgrad.tensor(0.0)).detach()
    print(f"velocity far to the left and to the right: {ends}")
    assert np.abs(ends.numpy() - (PLATEAUS[0], PLATEAUS[-1])).max() < 1e-12

    # A level set of u moves at the speed -u_t / u_x; these points are in the middle plateau, in the merging and in the merged shock.
    middle = np.array([0.0, 1.0, 2.0, 4.0])
    x, t = symgrad.tensor(middle, requires_grad=True), symgrad.tensor(middle, requires_grad=True)
    u = velocity(x, t)
    speed = -derivative(u, t) / derivative(u, x)
    print(f"at x = t the velocity is {u.detach()}, and that level moves at speed {speed.detach()}")
    assert np.abs(u.detach().numpy() - 1.0).max() < 1e-12 and np.abs(speed.detach().numpy() - 1.0).max() < 1e-10


if __name__ == "__main__":
    main()
