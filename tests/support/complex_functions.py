"""Real functions that are computed through complex numbers, each with a point: the lines of `corpus/complex_functions.txt`."""

import numpy as np

import symgrad
from tests.support.lines import lines

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


def pair(x):
    return symgrad.stack([symgrad.exp(1j * x), x * 1j + 1])


KNOWN = {**{name: getattr(symgrad, name) for name in symgrad.__all__}, **globals()}
CASES = {name: (eval(f"lambda {arguments}: {value}", KNOWN), tuple(np.array(x) if isinstance(x, list) else x for x in eval(f"[{point}]")))
         for name, arguments, point, value in lines("complex_functions")}
