"""Ops from formulas beside NumPy code for the same that a person would write: `generated_against_hand` gives the pairs that are timed."""

import numpy as np
import sympy

from symgrad.methods.extending import _unregister
from symgrad.symbolic.operations import op_from_sympy

SIZE = 100_000


def softsign(x):
    return x / (1 + np.abs(x))


def softsign_slope(x):
    return 1 / (1 + np.abs(x)) ** 2


def gaussian(x):
    return np.exp(-0.5 * x**2)


def gaussian_slope(x):
    return -x * np.exp(-0.5 * x**2)


def logistic_loss(x, y):
    return np.logaddexp(0.0, -x * y)


def logistic_loss_slope(x, y):
    return -y / (1 + np.exp(x * y))


def swish(x):
    return x / (1 + np.exp(-x))


def swish_slope(x):
    s = 1 / (1 + np.exp(-x))
    return s * (1 + x * (1 - s))


def planck(x, y):
    return x**3 / np.expm1(x / y)


def planck_slope(x, y):
    u = np.expm1(x / y)
    return 3 * x**2 / u - x**3 * np.exp(x / y) / (y * u**2)


def sine_over(x):
    return np.where(x == 0, 1.0, np.sin(x) / np.where(x == 0, 1.0, x))


def sine_over_slope(x):
    small = np.abs(x) < 1e-2
    far = np.where(small, 1.0, x)
    return np.where(small, -x / 3 * (1 - x**2 / 10), (np.cos(far) - np.sin(far) / far) / far)


x, y = sympy.symbols("x y", real=True)
p, q = sympy.symbols("x y", positive=True)
FORMULAS = {
    "softsign": (x / (1 + sympy.Abs(x)), (x,), softsign, softsign_slope),
    "gaussian": (sympy.exp(-x**2 / 2), (x,), gaussian, gaussian_slope),
    "logistic loss": (sympy.log(1 + sympy.exp(-x * y)), (x, y), logistic_loss, logistic_loss_slope),
    "swish": (x / (1 + sympy.exp(-x)), (x,), swish, swish_slope),
    "planck": (p**3 / (sympy.exp(p / q) - 1), (p, q), planck, planck_slope),
    "sin(x)/x": (sympy.sin(x) / x, (x,), sine_over, sine_over_slope),
}


def generated_against_hand():
    """By name, two functions without arguments that compute 100,000 values: the generated code, and the code by hand; and so for the derivative."""
    rng = np.random.default_rng(0)
    out = {}
    for name, (formula, symbols, value, slope) in FORMULAS.items():
        plain = "by_hand_" + "".join(c if c.isalpha() else "_" for c in name)
        op = op_from_sympy(plain, formula, symbols, check=False)
        _unregister(plain)
        points = [np.abs(rng.normal(size=SIZE)) + 0.1 if s.is_positive else 3 * rng.normal(size=SIZE) for s in symbols]
        for order, (what, hand) in enumerate(((name, value), (name + ", derivative", slope))):
            form = op._formula.form((order, *(0,) * (len(symbols) - 1)))
            given = [points[i] for i in form.places]
            out[what] = (lambda form=form, given=given: form.code(*given)), (lambda hand=hand, points=points: hand(*points))
    return out
