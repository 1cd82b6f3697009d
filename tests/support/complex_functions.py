"""Real functions that are computed through complex numbers: a corpus, each with a point."""

import numpy as np

import symgrad

HAMILTONIAN = np.array([[0.5, 0.3 - 0.2j], [0.3 + 0.2j, -1.0]])
FOURIER = np.exp(-2j * np.pi * np.outer(np.arange(3), np.arange(3)) / 3)


def expectation(t, p):
    """⟨ψ|H|ψ⟩ for a qubit that was rotated twice."""
    psi = symgrad.stack([symgrad.cos(t / 2) + 0j, symgrad.exp(1j * p) * symgrad.sin(t / 2)])
    return (psi.conj() * (symgrad.tensor(HAMILTONIAN) @ psi)).sum().real


def power_spectrum(x):
    """The weighted power spectrum of a signal, by an explicit Fourier sum."""
    spectrum = (symgrad.tensor(FOURIER) * x).sum(1)
    return (spectrum.abs() ** 2 * symgrad.tensor([1.0, 2.0, 3.0])).sum()


def mandelbrot(a, b):
    """The distance from 0 after two steps of z² + c."""
    c = z = symgrad.complex(a, b)
    for _ in range(2):
        z = z * z + c
    return z.abs()


def _pair(x):
    return symgrad.stack([symgrad.exp(1j * x), x * 1j + 1])


PAIR = np.array([0.3, 0.4])
CASES = {
    "real part of exp": (lambda x: symgrad.exp(1j * x).real, (0.7,)),
    "imaginary part of exp": (lambda x: symgrad.exp((0.3 + 1j) * x).imag, (0.7,)),
    "abs of a sum": (lambda x: symgrad.abs(symgrad.exp(1j * x) + 2 * x), (0.7,)),
    "imaginary part of log": (lambda x: symgrad.log(x + 1j).imag, (0.7,)),
    "real part of log": (lambda x: symgrad.log(x + 1j).real, (0.7,)),
    "angle": (lambda x: symgrad.angle(x + 1j * x**2), (0.7,)),
    "complex": (lambda x: symgrad.complex(x, 2 * x).abs(), (0.7,)),
    "polar": (lambda r, t: (symgrad.polar(r, t) ** 2).imag, (1.2, 0.4)),
    "expectation": (expectation, (0.7, 0.4)),
    "power spectrum": (power_spectrum, (np.array([0.3, -0.5, 1.1]),)),
    "Mandelbrot": (mandelbrot, (0.3, 0.4)),
    "division": (lambda x, y: ((x + 1j) / (y - 2j * x)).real, (0.7, 0.4)),
    "reciprocal": (lambda x: (1 / (x + 1j)).imag, (0.7,)),
    "product with a conjugate": (lambda x, y: ((x + 2j * y) * (x * y + 1j).conj()).imag, (0.7, 0.4)),
    "sqrt": (lambda x: symgrad.sqrt(x + 0.5j).real, (0.7,)),
    "sqrt of a negative number": (lambda x: symgrad.sqrt(x.to(symgrad.complex128)).imag, (-0.7,)),
    "power": (lambda x: ((x + 1j) ** 2.5).real, (0.7,)),
    "complex exponent": (lambda x: (symgrad.complex(x, x * x) ** (1 + 2j)).imag, (0.7,)),
    "power of both": (lambda x, y: (symgrad.complex(x, y) ** symgrad.complex(y, x)).imag, (0.7, 0.4)),
    "sin": (lambda x, y: symgrad.sin(symgrad.complex(x, y)).imag, (0.7, 0.4)),
    "tanh": (lambda x: symgrad.tanh((1 + 0.5j) * x).real, (0.7,)),
    "atan": (lambda x: symgrad.atan(x + 0.5j).imag, (0.7,)),
    "asinh": (lambda x: symgrad.asinh(x + 0.5j).real, (0.7,)),
    "cube of a vector": (lambda v: ((v[0] + 1j * v[1]) ** 3).imag, (PAIR,)),
    "matmul": (lambda v: (symgrad.tensor(HAMILTONIAN) @ (v * (1 + 1j))).abs().sum(), (PAIR,)),
    "real steps before": (lambda x: (symgrad.sqrt(x) * symgrad.exp(1j * symgrad.log(x))).real, (0.7,)),
    "float32": (lambda x: symgrad.exp(1j * x.to(symgrad.float32)).real.to(symgrad.float64), (0.75,)),
    "conversion": (lambda x: x.to(symgrad.complex128).exp().abs(), (0.7,)),
    "conversion back": (lambda x: symgrad.exp(1j * x).to(symgrad.float64), (0.7,)),
    "norm": (lambda x: symgrad.norm(_pair(x)) * x, (0.7,)),
    "variance": (lambda x: symgrad.var(_pair(x)), (0.7,)),
    "mean": (lambda x: _pair(x).mean().imag, (0.7,)),
    "sgn": (lambda x: symgrad.sgn(x + 1j).real, (0.7,)),
    "pairs of parts": (lambda x: symgrad.view_as_real(symgrad.exp(1j * x)).prod(), (0.7,)),
    "dot": (lambda x: symgrad.dot(_pair(x), symgrad.stack([x * x + 0j, x - 1j])).real, (0.7,)),
    "prod": (lambda x: symgrad.stack([x + 1j, 2j * x, x - 1j]).prod().real, (0.7,)),
    "choice": (lambda x: symgrad.where(x > 0, symgrad.exp(1j * x), x + 2j).abs() * x, (0.7,)),
}
