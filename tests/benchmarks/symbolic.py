"""The symbolic side: a check of a real function, formulas of long graphs, identities settled, code made from formulas; and the testing kit."""

import functools
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import sympy

import symgrad
from symgrad.methods.extending import _unregister
from symgrad.symbolic.operations import op_from_sympy
from symgrad.testing import check_op
from tests.benchmarks.hessians import make
from tests.benchmarks.table import Row, compare, spell
from tests.support.claims import CASES, attack_on

LONG, SIZE = 10_000, 100_000  # nodes of a chain, elements of generated code
STARTS = ("-p", "no:cacheprovider", "-q", "--no-header", "--collect-only", "-c", os.devnull, os.devnull)


def timed(step, clock=time.perf_counter):
    """The seconds of one call."""
    start = clock()
    step()
    return clock() - start


def median_seconds(step, timing):
    """The median time of one call, of a few: each takes seconds."""
    return statistics.median(timed(step) for _ in range(1 if timing.block == 0 else 3))


def checked(timing):
    """Griewank's Helmholtz energy with ten components."""
    function, point = make("helmholtz-3" if timing.block == 0 else "helmholtz-10").of(symgrad, symgrad.tensor)

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

    cases = [*GENERAL[0], *GENERAL[1]][::20 if timing.block == 0 else 1]
    found = float(np.quantile([timed(functools.partial(symgrad.identical, case.a, case.b, case.assumptions)) for case in cases], 0.95))
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


def swish_slope(x):
    s = 1 / (1 + np.exp(-x))
    return s * (1 + x * (1 - s))


def planck_slope(x, y):
    u = np.expm1(x / y)
    return 3 * x**2 / u - x**3 * np.exp(x / y) / (y * u**2)


def sine_over_slope(x):
    small = np.abs(x) < 1e-2
    far = np.where(small, 1.0, x)
    return np.where(small, -x / 3 * (1 - x**2 / 10), (np.cos(far) - np.sin(far) / far) / far)


x, y = sympy.symbols("x y", real=True)
p, q = sympy.symbols("x y", positive=True)
FORMULAS = {
    "softsign": (x / (1 + sympy.Abs(x)), (x,), lambda x: x / (1 + np.abs(x)), lambda x: 1 / (1 + np.abs(x)) ** 2),
    "gaussian": (sympy.exp(-x**2 / 2), (x,), lambda x: np.exp(-0.5 * x**2), lambda x: -x * np.exp(-0.5 * x**2)),
    "logistic loss": (sympy.log(1 + sympy.exp(-x * y)), (x, y), lambda x, y: np.logaddexp(0.0, -x * y), lambda x, y: -y / (1 + np.exp(x * y))),
    "swish": (x / (1 + sympy.exp(-x)), (x,), lambda x: x / (1 + np.exp(-x)), swish_slope),
    "planck": (p**3 / (sympy.exp(p / q) - 1), (p, q), lambda x, y: x**3 / np.expm1(x / y), planck_slope),
    "sin(x)/x": (sympy.sin(x) / x, (x,), lambda x: np.where(x == 0, 1.0, np.sin(x) / np.where(x == 0, 1.0, x)), sine_over_slope),
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


def attacked(case, profile):
    """The seconds of CPU time that all checks of one op with one tuple of parameters take."""
    def step():
        assert check_op(attack_on(*CASES[case], profile))

    return timed(step, time.process_time)


def start_of_pytest(*options):
    """Seconds from the start of pytest to its end, with nothing to do."""
    return timed(functools.partial(subprocess.run, [sys.executable, "-m", "pytest", *STARTS, *options], capture_output=True, check=False))


def kit(timing):
    """The median time of `check_op` at the default profile, the time for the whole registry at the profile of continuous integration, the plugin."""
    quick = timing.block == 0
    single = [k for k, (op, _) in enumerate(CASES) if op.kind == "elementwise" and op.differentiable]
    single = [next(k for k in single if CASES[k][0].name == "exp")] if quick else single
    attacked(single[0], "dev")
    found = statistics.median(attacked(k, "dev") for k in single)
    yield Row("check_op, profile dev, elementwise ops of the registry", "seconds", f"{found:.2f}", "1.50", spell(found))
    cases = single if quick else range(len(CASES))
    with ProcessPoolExecutor(2) as pool:
        whole = timed(lambda: list(pool.map(attacked, cases, ["ci"] * len(cases))))
    yield Row("the registry under attack, profile ci, two processes", "seconds", f"{whole:.0f}", "480")
    pairs = [(start_of_pytest(), start_of_pytest("-p", "no:symgrad")) for _ in range(1 if quick else timing.rounds)]
    cost = statistics.median(a - b for a, b in pairs)
    ours, theirs = (statistics.median(side) for side in zip(*pairs))
    yield Row("start of pytest with the plugin, unused", "without it", f"{cost:+.3f} s", "+0.05 s", spell(ours), spell(theirs))
