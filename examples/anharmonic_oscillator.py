"""The spectrum of the anharmonic oscillator, with second and third derivatives of its energies by the coupling.

    H = p²/2 + x²/2 + g x⁴

in the basis of the harmonic oscillator's states, where √2 x has the elements √n beside the diagonal.

Known from elsewhere: perturbation theory gives the energy of state n as n + 1/2 + (3/4)(2n² + 2n + 1) g - (1/8)(34n³ + 51n² + 59n + 21) g² + ...,
with (333/16) g³ next for n = 0, and second-order perturbation theory at any g gives E'' = 2 Σ |<m|x⁴|n>|² / (Eₙ - Eₘ) (Bender and Wu, Physical
Review 184, 1231-1260 (1969)). At g = 1/10 the lowest energy is 0.559146327184.
"""

import numpy as np

import symgrad
from symgrad import func


def ground_state(g=0.1):
    """The lowest energy, with eight states."""
    return energies(g, 8)[0]


def operators(states):
    """x⁴ and the harmonic Hamiltonian, between the first states."""
    root = np.sqrt(np.arange(1, states + 4) / 2)
    x = np.diag(root, 1) + np.diag(root, -1)
    return np.linalg.matrix_power(x, 4)[:states, :states], np.diag(np.arange(states) + 0.5)


def energies(g, states):
    """The eigenvalues of H, ascending."""
    quartic, harmonic = operators(states)
    return symgrad.linalg.eigvalsh(symgrad.tensor(harmonic) + g * symgrad.tensor(quartic))


def by_perturbation(g, states):
    """E' and E'' of every state, from the eigenvectors of H."""
    quartic, harmonic = operators(states)
    energy, vectors = np.linalg.eigh(harmonic + g * quartic)
    elements = vectors.T @ quartic @ vectors
    gaps = np.subtract.outer(energy, energy) + np.diag(np.full(states, np.inf))
    return np.diag(elements), 2 * np.sum(elements**2 / gaps, axis=1)


def main():
    """Print the coefficients of perturbation theory and the lowest energy, and assert that they are the known ones."""
    zero, n = symgrad.tensor(0.0), np.arange(6)
    first = func.jacrev(lambda g: energies(g, 20))
    second = func.jacfwd(first)
    found = [energies(zero, 20).numpy()[n], first(zero).numpy()[n], second(zero).numpy()[n] / 2]
    known = [n + 0.5, 0.75 * (2 * n**2 + 2 * n + 1), -(34 * n**3 + 51 * n**2 + 59 * n + 21) / 8]
    for row in zip(n, *found):
        print("state {}: {:.1f} + {:.4g} g - {:.6g} g²".format(*row[:3], -row[3]))
    assert np.allclose(found, known, rtol=1e-13)
    third = func.grad(func.grad(func.grad(ground_state)))(0.0).item()
    assert abs(third / 6 - 333 / 16) < 1e-11

    g = symgrad.tensor(0.1)
    slopes, curvatures = by_perturbation(0.1, 20)
    assert np.allclose(first(g).numpy(), slopes, rtol=1e-12) and np.allclose(second(g).numpy(), curvatures, rtol=1e-9)
    lowest = energies(g, 60)[0].item()
    print(f"lowest energy at g = 0.1: {lowest:.12f}")
    assert abs(lowest - 0.559146327184) < 1e-12


if __name__ == "__main__":
    main()
