"""The cluster of seven Lennard-Jones atoms: its lowest energy from random starts, and the exact Hessian there.

    E = 4 Σ_{i<j} (r⁻¹² - r⁻⁶),  r = |xᵢ - xⱼ|.

Known from elsewhere: the lowest energy is -16.505384, a pentagonal bipyramid (M. R. Hoare and P. Pal, Advances in Physics 20,
161-196 (1971); D. J. Wales and J. P. K. Doye, Journal of Physical Chemistry A 101, 5111-5116 (1997)). A cluster at rest can be moved and
turned freely, in three ways each: six eigenvalues of the Hessian are zero, and at a minimum the other fifteen are positive.
"""

import numpy as np
from scipy.optimize import minimize

import symgrad

ATOMS = 7
FIRST, SECOND = np.triu_indices(ATOMS, 1)


def energy(x=(0.0, 0.0, 0.6, 0.0, 0.0, -0.5, 0.95, 0.0, 0.0, 0.3, 0.9, 0.1, -0.8, 0.55, 0.0, -0.75, -0.6, 0.0, 0.3, -0.9, 0.0)):
    """The energy of seven atoms; x is their coordinates, three for each."""
    position = symgrad.reshape(x, (ATOMS, 3))
    apart = position[FIRST] - position[SECOND]
    attraction = symgrad.sum(apart * apart, 1) ** -3
    return 4.0 * symgrad.sum(attraction * attraction - attraction)


PROBLEM = symgrad.to_scipy(energy, symgrad.zeros(3 * ATOMS))


def lowest(starts, seed):
    """The coordinates of the lowest minimum that descent finds from random starts, then made exact by Newton steps."""
    random = np.random.default_rng(seed)
    found = [minimize(PROBLEM.fun, random.uniform(-2.0, 2.0, 3 * ATOMS), jac=PROBLEM.jac, method="BFGS") for _ in range(starts)]
    x = min(found, key=lambda result: result.fun).x
    for _ in range(3):
        x = x - np.linalg.pinv(PROBLEM.hess(x), rcond=1e-6) @ PROBLEM.jac(x)
    return x


def main():
    """Find the cluster, print what was found, and assert what is known of it."""
    x = lowest(starts=20, seed=7)
    minimum, gradient, hessian = PROBLEM.fun(x), PROBLEM.jac(x), PROBLEM.hess(x)
    print(f"lowest energy {minimum:.6f}, largest component of the gradient {np.abs(gradient).max():.1e}")
    assert abs(minimum + 16.505384) < 1e-6 and np.abs(gradient).max() < 1e-10

    eigenvalues = np.sort(np.linalg.eigvalsh(hessian))
    by_size = np.sort(np.abs(eigenvalues)) / eigenvalues[-1]
    print(f"eigenvalues of the Hessian, relative to the largest ({eigenvalues[-1]:.2f}): the six smallest are at most {by_size[5]:.1e}, "
          f"the next is {by_size[6]:.1e}")
    assert by_size[5] < 1e-10 and (eigenvalues[6:] > 1e-3 * eigenvalues[-1]).all()


if __name__ == "__main__":
    main()
