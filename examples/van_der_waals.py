"""The critical point of the van der Waals gas, in reduced units.

    p(v, T) = 8 T / (3 v - 1) - 3 / v²

Known from elsewhere: at the critical point v = T = 1 the pressure is 1 and the isotherm has a horizontal inflection, ∂p/∂v = ∂²p/∂v² = 0.
By hand, ∂³p/∂v³ = -1296 T / (3 v - 1)⁴ + 72 / v⁵ = -81 + 72 = -9 and ∂p/∂T = 8 / (3 v - 1) = 4 there.
"""

import numpy as np

import symgrad


def pressure(v=1.0, T=1.0):
    """The pressure at volume v > 1/3 and temperature T, all divided by their values at the critical point."""
    return 8.0 * T / (3.0 * v - 1.0) - 3.0 / v**2


def derivatives(v, T, order):
    """The pressure and its first `order` derivatives by volume, each the gradient of the one before."""
    out = [pressure(v, T)]
    for _ in range(order):
        out += symgrad.autograd.grad(out[-1], v, create_graph=True)
    return out


def critical_point(v, T):
    """The point where the first two derivatives by volume vanish, by Newton's method from a guess."""
    for _ in range(10):
        x, t = symgrad.tensor(v, requires_grad=True), symgrad.tensor(T, requires_grad=True)
        _, first, second = derivatives(x, t, 2)
        jacobian = [[g.item() for g in symgrad.autograd.grad(y, [x, t], retain_graph=True)] for y in (first, second)]
        v, T = np.array([v, T]) - np.linalg.solve(jacobian, [first.item(), second.item()])
    return float(v), float(T)


def main():
    """Print the derivatives at the critical point, find that point again by Newton's method, and assert what is known."""
    v, T = symgrad.tensor(1.0, requires_grad=True), symgrad.tensor(1.0, requires_grad=True)
    found = [y.item() for y in derivatives(v, T, 3)]
    print("at v = T = 1: p = {:g}, p' = {:g}, p'' = {:g}, p''' = {:g}".format(*found))
    assert found == [1.0, 0.0, 0.0, -9.0]

    (by_temperature,) = symgrad.autograd.grad(pressure(v, T), T)
    print(f"dp/dT = {by_temperature:g}")
    assert by_temperature.item() == 4.0

    volume, temperature = critical_point(1.1, 1.05)
    print(f"Newton's method finds p' = p'' = 0 at v = {volume:.12f}, T = {temperature:.12f}")
    assert abs(volume - 1.0) < 1e-12 and abs(temperature - 1.0) < 1e-12


if __name__ == "__main__":
    main()
