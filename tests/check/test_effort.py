"""A check is a function of the function, its inputs, the seed and the effort: no clock, load, thread or progress bar changes its report."""

import dataclasses
import re
import threading
import time

import numpy as np
import pytest

import symgrad
from symgrad.algebra import limits
from symgrad.checks.cross import cross_check
from symgrad.sampling.points import random_points


def kernel(x, y):
    return symgrad.where(x > 1.7, y, x * y) * y / 3


def branches(x):
    return symgrad.relu(x - 1 / 3) ** 2 + (x / 7).floor() * x


class Wrong(symgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos() * 1.1


def pressure(v, t):
    return 8 * t / (3 * v - 1) - 3 / v**2


CHECKS = {
    "branches": lambda **options: symgrad.check(branches, 0.7, points=3, order=1, **options),
    "two inputs": lambda **options: symgrad.check(kernel, 0.3, 1.1, points=4, order=1, **options),
    "fractions": lambda **options: symgrad.check(pressure, 1.0, 1.0, points=3, order=1, **options),
    "refuted": lambda **options: symgrad.check(lambda x: Wrong.apply(x).sum(), [0.3, -2.7], **options),
    "digits": lambda **options: symgrad.check(lambda x: 1 - x.cos(), 1.0, ulp=100, points=6, **options),
    "pair": lambda **options: cross_check((np.tanh, lambda x: 1 - np.tanh(x) ** 2), formula="tanh(x)", order=1, points=8, **options),
    "differences": lambda **options: cross_check((lambda x: np.sin(x) / x, lambda x: np.cos(x) / x - np.sin(x) / x**2), points=4, order=1,
                                                 **options),
}


def told(report):
    """All that a report says, without its duration."""
    found = report.to_dict()
    for part in (found, found.get("comparison") or {}):
        part.pop("seconds", None)
    return found


@pytest.mark.parametrize("name", CHECKS)
def test_clocks_threads_and_progress_change_no_report(name, monkeypatch):
    check = CHECKS[name]
    report = told(check(progress=False))
    seen = []
    assert told(check(progress=lambda what, done, total: seen.append(what))) == report and seen
    in_thread = []
    thread = threading.Thread(target=lambda: in_thread.append(told(check(progress=False))))
    thread.start()
    thread.join()
    assert in_thread == [report]
    real = {clock: getattr(time, clock) for clock in ("process_time", "monotonic", "perf_counter", "time")}
    for factor in (20, 1 / 20):
        with monkeypatch.context() as patch:
            for clock, read in real.items():
                patch.setattr(time, clock, lambda read=read, factor=factor: factor * read())
            patch.setattr(limits, "clock", time.process_time)
            assert told(check(progress=False)) == report


@pytest.mark.parametrize("name", CHECKS)
def test_seconds_that_are_not_reached_change_nothing_and_those_that_are_leave_no_verdict(name):
    check = CHECKS[name]
    assert told(check(progress=False, seconds=1000)) == told(check(progress=False))
    report = check(progress=False, seconds=1e-9)
    assert report.verdict == "not checkable" and re.match("aborted after 1e-09 seconds: [01] of ", report.reason), str(report)
    assert report.counterexample is None


def test_an_abort_counts_the_points_that_were_compared(monkeypatch):
    """The clock jumps after some points: the sentence names them, and the number of the planned ones."""
    for check in CHECKS["two inputs"], CHECKS["pair"]:
        whole = check(progress=False)
        with monkeypatch.context() as patch:
            compared = []

            def clock(compared=compared):
                return 100.0 if len(compared) > 9 else 0.0

            patch.setattr(limits, "clock", clock)
            report = check(progress=lambda what, done, total, compared=compared: compared.append(what) if what.startswith("comparing") else None,
                           seconds=50)
        assert report.verdict == "not checkable"
        done, planned = report.points.compared, report.points.planned
        assert 3 <= done <= 12 and planned > 20
        assert report.reason == f"aborted after 50 seconds: {done} of {planned} planned points were compared"
        assert whole.verdict in ("proved", "verified", "imprecise") and whole.points.compared > done


def test_all_planned_points_are_compared_and_those_left_out_are_counted():
    report = CHECKS["two inputs"](progress=False)
    points = report.points
    assert points.random == 4 and points.planned == points.compared + points.outside + points.singular + points.kinks
    assert f"points: {points.compared} of {points.planned} planned (4 random, {points.special} special)" in str(report)
    half = symgrad.check(lambda x: x.log() + (3 - x).log(), 0.7, order=1, progress=False)  # random points outside the domain are replaced
    assert half.points.random == 20 and half.points.outside > 9
    narrow = symgrad.check(lambda x: (x - 0.69).log() + (0.71 - x).log(), 0.7, progress=False)
    assert narrow.points.random < 20 and narrow.points.planned == narrow.points.compared + narrow.points.outside
    assert f"{narrow.points.outside} outside the domain" in str(narrow)


def test_random_points_depend_on_the_seed_and_the_inputs_alone():
    def random_part(function, **options):
        seen = []

        def watched(x):
            seen.append(float(x.detach()))
            return function(x)

        symgrad.check(watched, 0.7, progress=False, **options)
        return set(seen)

    smooth, cornered = (random_part(f, points=12) for f in (lambda x: x.sin(), lambda x: (x - 3).relu() + x.cosh() * 1e-3))
    drawn = {float(x) for _, (x,) in zip(range(12), random_points([np.array(0.7)], np.random.default_rng(0)))}
    assert drawn <= smooth and drawn <= cornered
    assert random_part(lambda x: x.sin(), points=12, seed=1) != smooth


def test_effort_multiplies_the_points_of_conditions_and_the_tries():
    counts = [symgrad.check(kernel, 0.3, 1.1, effort=effort, points=4, progress=False).points.special for effort in (0.1, 1.0, 3.0)]
    assert counts[0] < counts[1] < counts[2], counts
    assert dataclasses.asdict(symgrad.check(kernel, 0.3, 1.1, effort=0.1, points=4, progress=False).points)["random"] == 4


def test_the_programs_of_a_compiled_function_are_compared():
    compiled = symgrad.compile(lambda x: x.sin() * x)
    assert symgrad.check(compiled, 0.7, points=2, order=1, progress=False).comparison is not None
    assert symgrad.check(lambda x: x.sin() * x, 0.7, points=2, order=1, progress=False).comparison is None
