"""Functions that are no functions of their inputs: chance, however rare, and states; each has a sentence of its own."""

import gc
import random
import time

import numpy as np
import pytest

import symgrad
from symgrad.checks.cross import cross_check


def rarely(draw, p=0.01):
    """The function 2 x, but 0 with a small probability."""
    return lambda x: 2 * x * float(draw() > p)


RARE = {
    "symgrad's dropout": lambda x: symgrad.nn.functional.dropout(x, p=0.01) * 2,
    "symgrad's rand": lambda x: 2 * x * (symgrad.rand(()) > 0.01),
    "Python's random": rarely(random.random),
    "NumPy's generator of all": rarely(np.random.random),
    "chance in the second of two terms": lambda x: x + x * float(np.random.standard_normal() < 2.2),
    "one in seventy": rarely(random.random, 1 / 70),
}


@pytest.mark.parametrize("name", RARE)
def test_rare_chance_is_noticed(name):
    report = symgrad.check(RARE[name], 0.7, points=2, order=1, progress=False)
    assert report.verdict == "not checkable" and "is random: with the same seed it gives the same" in report.reason, str(report)


@pytest.mark.parametrize("draw", [random.random, np.random.random, lambda: float(symgrad.rand(()))])
def test_rare_chance_is_noticed_in_functions_of_numpy(draw):
    report = cross_check((rarely(draw), lambda x: 2.0 + 0 * x), formula="2*x", points=3, order=1)
    assert report.verdict == "not checkable" and "is random: with the same seed it gives the same" in report.reason, str(report)


@pytest.mark.parametrize("draw", [random.random, np.random.random, lambda: float(symgrad.rand(()))])
def test_a_seed_inside_a_function_makes_it_one(draw):
    def seeded(x):
        random.seed(3), np.random.seed(3), symgrad.manual_seed(3)
        return x * (1 + draw())

    assert symgrad.check(seeded, 0.7, points=2, order=1, progress=False).ok


def test_the_states_of_the_generators_are_as_before():
    before = random.getstate(), np.random.get_state()[1].tolist(), symgrad.get_rng_state().tolist()
    symgrad.check(lambda x: x * x, 0.7, points=2, order=1, progress=False)
    cross_check((np.sin, np.cos), formula="sin(x)", points=2, order=1)
    assert before == (random.getstate(), np.random.get_state()[1].tolist(), symgrad.get_rng_state().tolist())


class Counter:
    def __init__(self, limit):
        self.calls, self.limit = 0, limit

    def __call__(self, x):
        self.calls += 1
        return x * (2 if self.calls % self.limit else 3)


@pytest.mark.parametrize("limit", [2, 3, 7, 11, 30])
def test_a_state_is_noticed_at_some_call(limit):
    for check in (lambda f: symgrad.check(f, 0.7, points=12, order=1, progress=False),
                  lambda f: cross_check((f, lambda x: 2 + 0 * x), formula="2*x", points=12, order=1)):
        report = check(Counter(limit))
        assert report.verdict == "not checkable" and "keeps a state that its calls change" in report.reason, str(report)


def test_a_generator_of_ones_own_is_noticed_at_other_points():
    rng = np.random.default_rng(1)
    report = symgrad.check(lambda x: x * float(rng.random() > 0.02), 0.7, points=40, order=1, progress=False)
    assert report.verdict == "not checkable" and "two calls at the same point gave the value" in report.reason


# Bad input


def test_a_function_that_raises_at_all_other_points_or_at_the_inputs():
    def narrow(x):
        if abs(float(x.detach()) - 0.7) > 1e-12:
            raise ValueError("too far")
        return x * 1.0

    report = symgrad.check(narrow, 0.7, points=2, order=1, progress=False)
    assert report.points.compared <= 12 and report.points.outside > 3
    with pytest.raises(ZeroDivisionError):
        symgrad.check(lambda x: x / (1 / 0), 0.7)
    report = cross_check((lambda x: 1 / 0, np.cos), formula="sin(x)", points=2, order=1)
    assert report.verdict == "not checkable" and "raises at every point, ZeroDivisionError" in report.reason, str(report)


def forever(x):
    while True:
        x = x + 0.0
        if isinstance(x, str):
            return x


def sometimes(x):
    while float(np.asarray(x.detach() if hasattr(x, "detach") else x)) > 5:
        pass
    return x * x


def busy(x):
    end = time.process_time() + 100
    while time.process_time() < end:
        sum(range(1000))
    return x


@pytest.mark.parametrize("function", [forever, busy, sometimes])
def test_a_function_that_never_returns_is_interrupted_after_the_seconds(function):
    checks = (lambda: symgrad.check(function, 0.7, points=2, order=1, progress=False, seconds=0.6),
              lambda: cross_check((function, lambda x: 2 * x), formula="x*x", points=2, order=1, seconds=0.6))
    for check in checks:
        report = check()
        assert report.verdict == "not checkable" and report.reason.startswith("aborted after 0.6 seconds: "), str(report)
        assert report.reason.endswith(f"planned points were compared, and a call of {function.__name__} had not returned"), str(report)


def test_an_abort_is_not_lost_in_a_callback_of_the_garbage_collector(recwarn):
    """The timer is set again until the exception arrives where it can be seen."""
    def slow(phase, info):
        end = time.process_time() + 0.003
        while time.process_time() < end:
            pass

    def collecting(x):
        while True:
            gc.collect(0)
            sum(range(10**5))

    gc.callbacks.append(slow)
    try:
        report = symgrad.check(collecting, 0.7, points=2, order=1, progress=False, seconds=0.3)
    finally:
        gc.callbacks.remove(slow)
    assert report.verdict == "not checkable" and "had not returned" in report.reason and not recwarn.list
