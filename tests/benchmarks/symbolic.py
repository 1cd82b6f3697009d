"""The symbolic side: a check of a real function, formulas of long graphs, identities settled, and code made from formulas."""

import statistics
import time

import numpy as np
import sympy

import symgrad
from symgrad.methods.extending import _unregister
from symgrad.symbolic.operations import op_from_sympy
from tests.benchmarks.hessians import make
from tests.benchmarks.table import Row, compare, spell

LONG = 10_000  # nodes


def median_seconds(step, timing):
    """The median time of one call, of a few: each takes seconds."""
    times = []
    for _ in range(1 if timing.block == 0 else 3):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def checked(timing):
    """Griewank's Helmholtz energy with ten components."""
    function, point = make("helmholtz-10").of(symgrad, symgrad.tensor)
    size = 3 if timing.block == 0 else 10
    if size == 3:
        function, point = make("helmholtz-3").of(symgrad, symgrad.tensor)

    def step():
        assert symgrad.check(function, point.tolist(), order=2, progress=False).ok

    found = median_seconds(step, timing)
    return Row("check of the Helmholtz energy, n = 10, order 2", "seconds", f"{found:.2f}", "5.00", spell(found))


def gradient_of_a_chain(nodes):
    """The gradient of a chain of so many operations, y ← x sin y."""
    x = symgrad.tensor(0.3, requires_grad=True, symbol="x")
    y = x
    for _ in range(nodes // 2):
        y = symgrad.sin(y) * x
    (gradient,) = symgrad.autograd.grad(y, x)
    return gradient


def let_form(timing):
    """The let-form of the gradient of a long chain, and of one twice as long."""
    nodes = LONG // 50 if timing.block == 0 else LONG
    gradient_of_a_chain(10).assignments()
    once, twice = (median_seconds(gradient_of_a_chain(n).assignments, timing) for n in (nodes, 2 * nodes))
    yield Row("let-form of the gradient of 10,000 nodes", "seconds", f"{once:.2f}", "2.00", spell(once))
    yield Row("the same by node, 20,000 nodes", "10,000 nodes", f"{twice / once / 2:.2f}", "1.30", spell(twice), spell(once))


def identities(timing):
    """The time in which 95 of 100 statements of the corpus are settled."""
    from tests.support.identities import GENERAL

    times = []
    for case in [*GENERAL[0], *GENERAL[1]][::20 if timing.block == 0 else 1]:
        start = time.perf_counter()
        symgrad.identical(case.a, case.b, case.assumptions)
        times.append(time.perf_counter() - start)
    found = float(np.quantile(times, 0.95))
    return Row("identical, 95% of the corpus within", "seconds", f"{found:.2f}", "0.20", spell(found))


def generated(timing):
    """Code made by `op_from_sympy` beside NumPy by hand, at 100,000 elements."""

    for name, (ours, by_hand) in generated_against_hand().items():
        yield compare(f"op_from_sympy, {name}, 100,000 elements", "NumPy by hand", ours, by_hand, 1.5, timing)


def rows(timing):
    """All rows of the symbolic side."""
    yield checked(timing)
    yield from let_form(timing)
    yield identities(timing)
    yield from generated(timing)


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
