"""The Helmholtz energy of a mixed fluid of ten components: value, gradient and Hessian.

Griewank's example of a function whose gradient costs a few evaluations, however many components there are (A. Griewank, "On Automatic
Differentiation", in Mathematical Programming: Recent Developments and Applications, 1989). With amounts x, volumes b, attractions A and β = b·x,

    E(x) = RT Σᵢ xᵢ log(xᵢ / (1 - β)) - xᵀAx / (√8 β) · log((1 + (1 + √2) β) / (1 + (1 - √2) β)).

Known from elsewhere: the gradient in closed form, and the curvature xᵀHx along the ray through x, both derived by hand.
"""

import numpy as np

import symgrad

COMPONENTS = 10
GAS = 8.3145 * 300.0  # gas constant times temperature, in joules per mole
VOLUME = np.arange(1, COMPONENTS + 1) / 20.0
ATTRACTION = 0.5 ** np.abs(np.subtract.outer(np.arange(COMPONENTS), np.arange(COMPONENTS)))
ROOT2 = np.sqrt(2.0)


def helmholtz(x=(0.05, 0.15, 0.1, 0.125, 0.075, 0.0625, 0.1375, 0.1125, 0.0875, 0.1)):
    """The Helmholtz energy of the amounts x, all positive, with β = b·x < 1."""
    filled = symgrad.dot(VOLUME, x)
    mixing = GAS * symgrad.sum(x * symgrad.log(x / (1.0 - filled)))
    attraction = symgrad.dot(x, symgrad.mv(ATTRACTION, x)) / (np.sqrt(8.0) * filled)
    return mixing - attraction * symgrad.log((1.0 + (1.0 + ROOT2) * filled) / (1.0 + (1.0 - ROOT2) * filled))


def gradient_by_hand(x):
    """∂E/∂xₖ; the derivative of the last logarithm with respect to β is √8 / (1 + 2β - β²)."""
    filled, attracted = VOLUME @ x, ATTRACTION @ x
    logarithm = np.log((1.0 + (1.0 + ROOT2) * filled) / (1.0 + (1.0 - ROOT2) * filled))
    mixing = GAS * (np.log(x / (1.0 - filled)) + 1.0 + VOLUME * x.sum() / (1.0 - filled))
    return mixing - ((2.0 * attracted - x @ attracted / filled * VOLUME) * logarithm / (np.sqrt(8.0) * filled)
                     + x @ attracted * VOLUME / (filled * (1.0 + 2.0 * filled - filled**2)))


def curvature_by_hand(x):
    """xᵀHx = d²E(λx)/dλ² at λ = 1: the first part from λ s (log λ - log(1 - λβ)) with s = Σ xᵢ, the other from λ · log(...)(λβ)."""
    filled, total, attracted = VOLUME @ x, x.sum(), x @ ATTRACTION @ x
    spread = 1.0 + 2.0 * filled - filled**2
    mixing = GAS * total * (1.0 + 2.0 * filled / (1.0 - filled) + (filled / (1.0 - filled)) ** 2)
    return mixing - attracted * (2.0 / spread - 2.0 * filled * (1.0 - filled) / spread**2)


def main():
    """Print the energy, its gradient and what is known of its Hessian, and assert that they agree."""
    x = symgrad.tensor(helmholtz.__defaults__[0], requires_grad=True)
    energy = helmholtz(x)
    (gradient,) = symgrad.autograd.grad(energy, x, create_graph=True)
    hessian = np.array([symgrad.autograd.grad(g, x, retain_graph=True)[0].numpy() for g in gradient])
    print(f"energy {energy:.6f}")
    print(f"gradient {gradient.detach()}")

    amounts = x.detach().numpy()
    error = np.abs(gradient.detach().numpy() / gradient_by_hand(amounts) - 1.0).max()
    print(f"largest relative error of the gradient, against the closed form: {error:.1e}")
    assert error < 1e-13

    curvature, known = amounts @ hessian @ amounts, curvature_by_hand(amounts)
    asymmetry = np.abs(hessian - hessian.T).max() / np.abs(hessian).max()
    print(f"curvature along x {curvature:.6f}, in closed form {known:.6f}; asymmetry of the Hessian {asymmetry:.1e}")
    assert abs(curvature / known - 1.0) < 1e-13 and asymmetry < 1e-14
    assert (np.linalg.eigvalsh(hessian) > 0).all(), "the mixture is stable: its energy is convex here"


if __name__ == "__main__":
    main()
