"""`symgrad.check` refutes wrong rules with a simple counterexample that names the op, and each of its parts can fail alone."""

import dataclasses
import gc
import time

import mpmath
import numpy as np
import pytest
import sympy

import symgrad
from symgrad.algebra import limits
from symgrad.algebra.identity import Identity, identical
from symgrad.algebra.ladder import agreeing_digits
from symgrad.autograd import grad
from symgrad.dtypes.ulp import ulp_of
from symgrad.graph.op import REGISTRY
from symgrad.methods import extending
from symgrad.proofs import formulas as proof
from symgrad.reference import certify
from symgrad.sampling.points import shrink_values
from tests.support.lines import lines

WRONG = {what: tuple(map(eval, rules)) for what, *rules in lines("wrong_elementwise_rules")}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("order", [1, 2])
def test_a_wrong_rule_is_refuted(what, order, declare):
    wrong = declare("wrong", *WRONG[what])
    report = symgrad.check(lambda x, y: wrong(x) * y + x, 1.3, 2.7, order=order)
    assert report.verdict == "refuted", report
    found = report.counterexample
    assert found.op == "wrong" and found.where.startswith("df/dx") and found.rule != found.truth
    assert set(found.point) == {"x", "y"}
    assert f"{found.where}" in report.reason


def test_a_derivative_that_is_wrong_only_at_the_second_order_is_refuted_there(monkeypatch):
    """sin hands its derivative to cos: with a wrong rule for cos, sin is right at order 1 and wrong at order 2."""
    right, x = REGISTRY["cos"], symgrad.ones((), requires_grad=True)
    grad(grad(symgrad.sin(x), x, create_graph=True), x)  # what is built at first use, and kept, is built of the right rule
    monkeypatch.setitem(REGISTRY, "cos", dataclasses.replace(right, vjp=lambda xp, g, y, args, needs: (-g * xp.sin(args[0]) * (1 + 1e-9),)))
    assert symgrad.check(symgrad.sin, 1.0, order=1, points=3).ok
    report = symgrad.check(symgrad.sin, 1.0, order=2, points=3)
    assert report.verdict == "refuted" and report.counterexample.where == "d2f/dinput dinput"
    assert "sin by itself has a wrong derivative of order 2" in report.reason


@pytest.mark.sweep
def test_the_counterexample_is_simple(declare):
    wrong = declare("wrong", *WRONG["wrong only below -1"])
    found = symgrad.check(lambda x, y, z: wrong(x) + y * z + z.sin(), 1.317, 2.718, -0.577).counterexample
    assert {name: float(v) for name, v in found.point.items()} == {"x": -2.0, "y": 0.0, "z": 0.0}
    assert (found.rule, found.truth) == (-6.0, -4.0)
    assert str(found.difference) == "Piecewise((x, x < -1), (0, True))"


@pytest.mark.sweep
def test_a_wrong_op_inside_arrays_is_found(declare):
    wrong = declare("wrong", lambda xp, a, b: a * xp.exp(b), lambda xp, y, a, b: xp.exp(b), lambda xp, y, a, b: y + 1e-9 * a)
    report = symgrad.check(lambda x: (wrong(x, x.flip(0)) * x).sum(), np.linspace(0.3, 1.7, 10))
    assert report.verdict == "refuted" and report.counterexample.op == "wrong"


def test_a_wrong_transpose_is_refuted():
    wrong = symgrad.linear("wrong_roll", lambda xp, x: xp.roll(x, 1, (0,)), lambda xp, g, shape: xp.roll(g, 1, (0,)))
    try:
        report = symgrad.check(lambda x: wrong(x) * x, [1.0, 2.0, 3.0])
        assert report.verdict == "refuted" and report.counterexample.op == "wrong_roll"
    finally:
        extending._unregister("wrong_roll")


def test_a_rounded_constant_in_a_rule_is_named(declare):
    wrong = declare("wrong", lambda xp, x: x**3 / 3, lambda xp, y, x: x**2 * (1 / 3 * 3 - 2.0**-53))
    report = symgrad.check(lambda x: wrong(x), 2.0)
    assert report.verdict == "refuted" and any("rounded" in note for note in report.notes)


@pytest.mark.sweep
def test_each_way_can_fail_by_itself(monkeypatch, declare):
    """A verdict depends on the proof and on the agreement of digits."""
    right = lambda x: x.tanh() * x  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(proof, "identical", lambda *pair, **limits: Identity("verified", ""))
        assert symgrad.check(right, 1.0).verdict == "verified"
    wrong = declare("wrong", *WRONG["scaled by 1 + 1e-6"])
    with monkeypatch.context() as patch:
        patch.setattr(proof, "identical", lambda *pair, **limits: Identity("proved", ""))  # a silent 0
        assert symgrad.check(lambda x: wrong(x), 1.0).verdict == "refuted"
    with monkeypatch.context() as patch:
        patch.setattr(certify, "_compare_balls", lambda a, b: (0, 50.0))  # numbers that cannot disagree
        assert symgrad.check(lambda x: wrong(x), 1.0).verdict == "verified"


@pytest.mark.parametrize("difference", ["1e-6", "x/10**9", "sin(x)/3000", "exp(-x)/7", "sqrt(2)*10**-12"])
def test_a_silent_zero_of_sympy_is_no_proof(monkeypatch, difference):
    """Where the algebra calls a difference 0 that is none, the numbers of the two formulas still have to agree."""
    monkeypatch.setattr("symgrad.algebra.comparison.vanishes", lambda *expressions: True)
    x = sympy.Symbol("x", real=True)
    assert symgrad.identical(sympy.cos(x) + sympy.sympify(difference, {"x": x}, rational=True), sympy.cos(x)).verdict == "refuted"


# The parts

def test_errors_count_in_last_places():
    ulps = ulp_of("float64").error
    assert ulps(1.0 + 3 * 2.0**-52, mpmath.mpf(1)) == 3.0
    assert ulps(float("nan"), mpmath.mpf(1)) == float("inf") and ulps(float("inf"), mpmath.mpf(1)) == float("inf")
    assert ulps(float("inf"), mpmath.mpf("1e400")) == 0.0 and ulps(float("-inf"), mpmath.mpf("1e400")) == float("inf")
    assert ulps(5e-324, mpmath.mpf(0)) == 1.0 and ulps(0.0, mpmath.mpf("1e-400")) < 1
    assert ulp_of("float32").error(float(np.float32(1) + np.spacing(np.float32(1))), 1) == 1.0


def test_the_number_of_digits_to_which_two_numbers_agree():
    assert agreeing_digits(mpmath.mpf(1), mpmath.mpf(1) + mpmath.mpf(10) ** -14) == pytest.approx(14, abs=0.1)
    assert agreeing_digits(mpmath.nan, mpmath.nan) == 0.0 and agreeing_digits(mpmath.inf, mpmath.inf) == 0.0
    assert agreeing_digits(0, mpmath.mpf(1)) == 0.0 and agreeing_digits(0, 0) == float("inf")


def test_shrinking_keeps_a_refuting_point_and_ends():
    asked = []

    def refutes(v):
        asked.append(v)
        return v[0] > 2.5 and abs(v[2]) >= 1

    assert shrink_values(np.array([7.382, -4.1, -6.02]), refutes).tolist() == [3.0, 0.0, 1.0]
    assert len(asked) <= 300
    start = np.array([0.1234567, 3.3])
    assert shrink_values(start, lambda v: False).tolist() == start.tolist()


@pytest.mark.sweep
def test_zero_is_decided_and_not_guessed():
    x, y = sympy.symbols("x y", real=True)
    for zero in (sympy.sin(x) ** 2 + sympy.cos(x) ** 2 - 1, sympy.exp(x + y) - sympy.exp(x) * sympy.exp(y), (x + 1) ** 2 - x**2 - 2 * x - 1,
                 sympy.tanh(x / 2) - (sympy.exp(x) - 1) / (sympy.exp(x) + 1), sympy.sqrt(x**2 + 1) ** 3 - (x**2 + 1) * sympy.sqrt(x**2 + 1)):
        assert identical(zero).verdict == "proved"
    for other in (x, sympy.sin(x) - x, sympy.Rational(1, 10**30) * x, sympy.exp(x) - sympy.exp(y), sympy.sqrt(x**2) - x):
        assert identical(other).verdict == "refuted"


def test_a_time_limit_interrupts_a_long_computation_and_is_removed_afterwards():
    x = sympy.Symbol("x")
    with pytest.raises(limits.OutOfTime):
        with limits.abort_after(0.05):
            while True:
                sympy.expand((x + 1) ** 20)
    with limits.abort_after(0.05):
        pass
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        sympy.expand((x + 1) ** 20)


def test_a_time_limit_waits_for_code_outside_the_algebra():
    """An exception in a callback of the garbage collector is lost and reported as unraisable: the alarm waits until it is over."""
    calls, x = [], sympy.Symbol("x")

    def slow(phase, info):
        if phase == "stop" and not calls:
            calls.append(phase)
            end = time.monotonic() + 0.2
            while time.monotonic() < end:
                pass

    gc.callbacks.append(slow)
    try:
        with pytest.raises(limits.OutOfTime):
            with limits.abort_after(0.05):
                gc.collect()
                while True:
                    sympy.expand((x + 1) ** 20)
    finally:
        gc.callbacks.remove(slow)
    assert calls


@pytest.mark.sweep
def test_the_load_of_the_machine_ends_no_algebra():
    """The time in which the process waits for a processor is not counted."""
    x = sympy.Symbol("x")
    with limits.abort_after(0.3):
        time.sleep(0.35)
        end = time.process_time() + 0.1
        while time.process_time() < end:
            sympy.expand((x + 1) ** 20)


def likelihood(b):
    """The sum of 23 logistic losses."""
    z = b[0] + b[1] * symgrad.tensor([53.0, *range(57, 79)])
    return (symgrad.softplus(z) - 0.5 * z).sum()


@pytest.mark.sweep
def test_second_derivatives_of_a_sum_of_fractions_are_proved():
    assert symgrad.check(likelihood, [15.0, -0.23], points=4, progress=False).verdict == "proved"


@pytest.mark.sweep
def test_identities_proved_by_the_zero_test_are_proved_by_check():
    """SymPy's own simplifications do not reduce the derivatives of these to those of the rules."""
    assert symgrad.check(lambda x, y: (x * y).tanh().sigmoid().log(), 0.5, 0.3).verdict == "proved"
    assert symgrad.check(lambda x, y: (x.sigmoid() * y.tanh()).atanh(), 0.5, 0.3).verdict == "proved"
