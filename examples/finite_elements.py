"""The energy of a loaded bar by finite elements, with SciPy's sparse matrices: its exact sparse Hessian, and the derivative by the stiffness.

A bar between 0 and 1 with the stiffness k(x) under the load 1, held at both ends, minimises ∫ k u'²/2 - u dx. With piecewise linear elements of
width h and D, the differences of neighbours divided by h, the energy of the values u at the inner nodes is

    E(u) = h (D u)ᵀ k (D u) / 2 - h Σ uᵢ.

Known from elsewhere (Strang and Fix, An Analysis of the Finite Element Method, 1973, chapter 1): for k = 1 the minimum is u = x (1 - x)/2 at the
nodes, with the energy -(1 - h²)/24, and the Hessian is tridiagonal with 2/h and -1/h. The derivative of the least energy by the stiffness of an
element is h u'²/2 in it, and the sum of its second derivatives is twice that energy, as the energy is proportional to 1/k.
"""

import numpy as np
import scipy.sparse

import symgrad
from symgrad import func

ELEMENTS = 8
SAMPLES = (0.05, 0.09, 0.12, 0.12, 0.11, 0.09, 0.06)


def differences(elements):
    """D, from the inner nodes to the elements."""
    ones = np.full(elements - 1, float(elements))
    return scipy.sparse.diags_array([ones, -ones], offsets=[0, -1], shape=(elements, elements - 1)).tocsr()


def energy(u=SAMPLES):
    """E(u) for k = 1."""
    elements = len(u) + 1
    slope = differences(elements) @ u
    return (slope @ slope / 2 - u.sum()) / elements


def least_energy(stiffness):
    """The minimum over u as a function of the stiffness of each element, by a sparse solve."""
    elements = len(stiffness)
    d = differences(elements)
    assembly, places = assembled(d)
    load = symgrad.full((elements - 1,), 1 / elements)
    k = symgrad.sparse.Matrix(places, assembly @ stiffness)
    return -load @ symgrad.sparse.spsolve(k, load) / 2


def assembled(d):
    """The sparse map from the stiffness to the elements of DᵀkD/n, in the order of the places of that matrix."""
    elements = d.shape[0]
    places = (d.T @ d).tocsr()
    rows, columns = places.tocoo().coords
    return (d.T.tocsr()[rows] * d.T.tocsr()[columns]).tocsr() / elements, places


def main():
    """Print the bar's displacement and energies, and assert what is known."""
    n, h = 1000, 1 / 1000
    x = h * np.arange(1, n)
    start, sparse = symgrad.zeros(n - 1), func.hessian(energy, structure="auto")
    gradient, hessian = func.grad(energy)(start).numpy(), sparse(start)
    print(f"Hessian: {sparse.report}")
    known = scipy.sparse.diags_array([2 / h, -1 / h, -1 / h], offsets=[0, 1, -1], shape=(n - 1, n - 1))
    assert abs(hessian - known).max() < 1e-9 / h
    u = scipy.sparse.linalg.spsolve(hessian.tocsc(), -gradient)
    print(f"largest displacement {u.max():.12f}, energy {energy(symgrad.tensor(u)):.12f}")
    assert np.abs(u - x * (1 - x) / 2).max() < 1e-11 and abs(energy(symgrad.tensor(u)).item() + (1 - h * h) / 24) < 1e-12

    stiffness = symgrad.ones(n)
    slopes, by_stiffness = np.diff(u, prepend=0, append=0) / h, func.grad(least_energy)(stiffness).numpy()
    assert np.abs(by_stiffness - h * slopes**2 / 2).max() < 1e-13
    second = func.hvp(least_energy, stiffness, stiffness).numpy().sum()
    print(f"least energy {least_energy(stiffness):.12f}, its second derivative by the stiffness of all elements {second:.12f}")
    assert abs(second + (1 - h * h) / 12) < 1e-10


if __name__ == "__main__":
    main()
