"""The simplest failing input: small, readable, in its domain, with the same failure; random failures and interrupts."""

import threading
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import symgrad
from symgrad.frameworks.adapter import NotApplicable
from symgrad.testing import check_op, check_pullback, shrinking
from symgrad.testing.attack import Attack, run_at_example
from symgrad.testing.checks import CHECKS
from symgrad.testing.checks.base import run
from symgrad.testing.examples import Example
from symgrad.testing.failure import Wrong
from symgrad.testing.shrinking import simplest_failure
from tests.support.failing import (
    body_check,
    failed,
    failure_of,
    multiply,
    multiply_back,
    multiply_formula,
    product,
    product_back,
    sine,
    slope_below,
    values,
)

# The simplest input

@pytest.mark.sweep
def test_an_element_of_a_long_vector_becomes_a_number():
    x = np.linspace(-2.7, 9.3, 100)
    attack = Attack((sine, slope_below), formula="sin(x)")
    example = Example((x,), np.linspace(0.3, 1.7, 100), ((np.full(100, 0.3),),) * 3)
    wrong = run_at_example(CHECKS["pullback"], attack, example)
    found = simplest_failure(CHECKS["pullback"], attack, example, wrong)
    assert found.inputs["x"].shape == () and found.inputs["x"] == -2.0 and found.given["cotangent"] == 1.0
    assert "inputs=[np.array(-2.0)])" in found.snippet and "cotangent" not in found.snippet


@pytest.mark.sweep
def test_two_arguments_become_simple_together():
    found = failure_of(check_pullback, product, formula="x*y", pullback=product_back)
    assert values(found) == [3.0, 1.0] and found.given["cotangent"].tolist() == 1.0


def where(condition, op=sine, draws="points", **claims):
    """The simplest failure of a check that refuses the arguments for which a condition holds."""
    def body(attack, example):
        if condition(*example.xs):
            raise Wrong("this one")

    return failed(body, op, draws, **claims)


SIMPLEST = {
    "above 71": (lambda x: np.any(np.abs(x) > 71), {}, [100.0]), "above 2000": (lambda x: np.any(np.abs(x) > 2000), {}, [1e4]),
    "equal elements": (lambda x: len(np.unique(x)) < x.size, {}, [[1.0, 1.0]]), "more than four": (lambda x: x.size > 4, {}, [[1.0] * 5]),
    "two axes": (lambda x: x.ndim > 1, {}, [[[1.0]]]), "positive": (lambda x: True, {"domain": "positive"}, [1.0]),
    "empty": (lambda x: True, {"draws": "empty"}, [[]]), "below the axis": (lambda x: np.any(np.imag(x) < 0), {"draws": "complex"}, [-1j]),
}


@pytest.mark.parametrize("name", SIMPLEST)
def test_the_simplest_input_has_round_numbers_and_few_elements(name):
    condition, options, expected = SIMPLEST[name]
    assert values(where(condition, **options)) == expected


def test_numbers_stay_in_their_domain():
    for condition, domain, low, high in ((lambda x: np.any(np.abs(x) > 71), (-80, -3), -80, -71), (lambda x: True, (20, 30), 20, 30)):
        (x,) = values(where(condition, domain=domain))
        assert low <= x <= high and x.is_integer()
    assert abs(values(where(lambda x: np.any((np.abs(x) < 1e-20) & (x != 0))))[0]) > 1e-100


def test_shrinking_keeps_broadcasting():
    found = where(lambda x, y: x.shape != y.shape and x.size > 1 and y.size > 1, product, "broadcast", pullback=product_back)
    x, y = found.inputs.values()
    assert x.shape != y.shape and max(x.size, y.size) <= 4 and set(x.ravel()) | set(y.ravel()) == {1.0}
    assert np.broadcast_shapes(x.shape, y.shape)


@pytest.mark.sweep
def test_the_numbers_of_matrices_become_simple():
    found = failure_of(check_pullback, multiply, formula=multiply_formula, shapes=((2, 2), (2, 3)), pullback=multiply_back)
    a, b = found.inputs.values()
    assert abs(a[0, 1]) > 1 and sum(len(repr(v)) for v in a.ravel().tolist()) <= 16 and np.all(found.given["cotangent"] == 1)
    assert "drawn with seed=0" in found.seed


def test_another_failure_is_not_the_same():
    def two(attack, example):
        if np.any(example.xs[0] > 1.5):
            raise Wrong("large", order=1)
        raise ZeroDivisionError("small")

    x = np.array([0.25, 3.7])
    attack, example = Attack(sine, framework="numpy"), Example((x,), np.ones(2), ((np.ones(2),),) * 3)
    found = simplest_failure(body_check(two), attack, example, run_at_example(body_check(two), attack, example))
    assert (found.wrong.what, values(found)) == ("large", [2.0])


def test_given_inputs_are_reported_as_they_are():
    x = np.array([-3.7, 0.25])
    found = failure_of(check_pullback, (sine, slope_below), formula="sin(x)", inputs=[x])
    assert np.array_equal(found.inputs["x"], x) and found.wrong.index == (0,)


def test_without_shrinking_the_first_example_is_reported():
    found = failure_of(check_pullback, (sine, slope_below), formula="sin(x)", shrink=False)
    assert found.inputs["x"].size > 1


# What is random, has a state, or is interrupted

def test_a_failure_that_does_not_repeat_is_noted_and_not_shrunk():
    calls = []

    def third(attack, example):
        calls.append(1)
        if len(calls) == 3:
            raise Wrong("the third time")

    found = failed(third)
    assert found.wrong.what == "the third time" and "did not fail again at the same input" in found.note and "note: it did" in str(found)
    assert len(calls) == 4


@pytest.mark.sweep
def test_random_failures_do_not_break_the_report():
    rng = np.random.default_rng(0)

    def sometimes(attack, example):
        if rng.random() < 0.5:
            raise Wrong("by chance")

    for _ in range(5):
        assert failed(sometimes).wrong.what == "by chance"
        assert failed(sometimes, multiply, shapes=((2, 2), (2, 2))).wrong.what == "by chance"


def test_an_interrupt_goes_through():
    seen = []

    def interrupted(attack, example):
        seen.append(1)
        if len(seen) > 3:
            raise KeyboardInterrupt
        raise Wrong("wrong")

    for claims in ({}, {"op": multiply, "shapes": ((2, 2), (2, 2))}):
        seen.clear()
        with pytest.raises(KeyboardInterrupt):
            failed(interrupted, **claims)


def test_a_check_that_does_not_apply_raises_with_the_reason():
    def refuses(attack, example):
        raise NotApplicable("because")

    result = run(body_check(refuses), Attack(sine))
    assert (result.verdict, result.reason) == ("not applicable", "because") and result


@pytest.mark.sweep
@settings(max_examples=1, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 3))
def test_inside_a_test_of_hypothesis_all_is_as_outside(n):
    assert values(failure_of(check_pullback, (sine, slope_below), formula="sin(x)")) == [-2.0]
    found = failure_of(check_pullback, multiply, formula=multiply_formula, shapes=((1, 2), (2, 1)), pullback=multiply_back)
    assert "Flaky" not in str(found)


def test_in_threads_all_is_as_outside():
    found = []
    threads = [threading.Thread(target=lambda: found.append(where(lambda x: np.any(x < -1)))) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [values(f) for f in found] == [[-2.0]] * 3


@pytest.mark.sweep
def test_a_search_ends_after_as_many_examples_as_are_allowed(monkeypatch):
    monkeypatch.setattr(shrinking, "EXAMPLES", 1)
    found = failure_of(check_pullback, multiply, formula=multiply_formula, shapes=((2, 2), (2, 3)), pullback=multiply_back)
    assert found.inputs["a"].shape == (2, 2) and not found.note


@pytest.mark.parametrize("op, claims", [
    ((np.sin, np.sin), {"formula": "sin(x)"}), (lambda x: np.sin(x) / 3, {"formula": "sin(x)/3.000001", "framework": "numpy"}),
    (lambda x: symgrad.tanh(x) * (1 + 1e-9), {"formula": "tanh(x)"}), (lambda x: symgrad.sqrt(x * x + 1), {"formula": "sqrt(x**2 + 1)"})],
    ids=range(4))
def test_a_report_is_the_same_under_any_clock_and_in_a_thread(op, claims, monkeypatch):
    def report():
        found = check_op(op, checks=["value", "pullback", "second", "linearity"], raise_exception=False, **claims)
        return [(r.check, r.verdict, r.reason, r.examples, r.compared, str(r.failure)) for r in found.results]

    first = report()
    real = time.process_time
    for factor in (20.0, 0.05):
        for name in ("process_time", "perf_counter", "monotonic", "time"):
            monkeypatch.setattr(time, name, lambda factor=factor: factor * real())
        assert report() == first
    other = []
    thread = threading.Thread(target=lambda: other.append(report()))
    thread.start()
    thread.join()
    assert other == [first]
