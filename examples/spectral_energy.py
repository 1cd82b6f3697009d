"""The gradient energy of a periodic function by the fast Fourier transform, with its exact gradient and Hessian.

The energy E(u) = ½ ∫ u'(x)² dx over a period 2π is, for n samples with the transform û(k), by Parseval's theorem

    E = (π/n²) Σ k² |û(k)|²,

and with the step h = 2π/n the gradient in the samples is -h u''(x), and the Hessian is the circulant matrix with the eigenvalues h k² (Trefethen,
Spectral Methods in MATLAB, 2000, chapter 3).

Known from elsewhere: for u = sin(x) + cos(3x)/2 the energy is 13π/8 and -u'' = sin(x) + 9 cos(3x)/2.
"""

import math

import numpy as np

import symgrad
from symgrad import fft, func

COUNT = 32
POINTS = 2 * math.pi / COUNT * np.arange(COUNT)
SAMPLES = tuple(np.sin(POINTS) + np.cos(3 * POINTS) / 2)
WAVES = fft.fftfreq(COUNT, 1 / COUNT)  # whole wave numbers


def energy(u=SAMPLES):
    """The energy of the samples of a function."""
    transform = fft.fft(u)
    return math.pi / COUNT**2 * symgrad.sum(WAVES**2 * (transform.real**2 + transform.imag**2))


def main():
    """Print the energy and the largest curvature, and assert the closed forms."""
    u = symgrad.tensor(SAMPLES)
    step = 2 * math.pi / COUNT
    value, gradient, hessian = energy(u).item(), func.grad(energy)(u).numpy(), func.hessian(energy)(u).numpy()
    print(f"energy {value:.15f}, 13π/8 = {13 * math.pi / 8:.15f}")
    assert abs(value - 13 * math.pi / 8) < 1e-14
    assert np.abs(gradient / step - np.sin(POINTS) - 4.5 * np.cos(3 * POINTS)).max() < 1e-13

    eigenvalues = np.linalg.eigvalsh(hessian)
    print(f"the largest curvature is {eigenvalues[-1]:.12f}, h (n/2)² = {step * (COUNT / 2) ** 2:.12f}")
    assert np.abs(eigenvalues - np.sort(step * WAVES.numpy() ** 2)).max() < 1e-12


if __name__ == "__main__":
    main()
