"""A machine that captures values of every kind, changes them between calls, and compares compiled functions with eager ones.

`python -m tests.routes.captures --seconds 3600` looks for an hour.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import symgrad
from symgrad.carriers.duck import Unrecordable
from symgrad.func import grad, hessian

from .captured import EFFECTS, KINDS, REFUSED, weigh

NUMBERS = st.sampled_from([1, 1.0, True, 0, 0.0, -0.0, False, 1 / 3, -0.7, 2.5, np.pi, 17.25, -3, float("nan"), np.float64(1), np.float32(0.1),
                           np.int64(1)])
X = (symgrad.tensor([0.3, -0.7, 1.9]), symgrad.tensor([1.1, 0.4, -0.2]))
WAYS = ("value", "value", "gradient", "hessian", "pattern", "compiled grad", "compiled hessian", "backward")
counted = {"calls": 0, "refused": 0, "changes": 0, "examples": 0}


def total(reads, x):
    """A scalar in which each captured value shows, in the derivatives as well."""
    out = (x * x).sin().sum()
    for k, read in enumerate(reads):
        out = out + weigh(read(x)) * (x * (k + 0.7)).cos().sum()
    return out


def backward(f, x, *rest):
    """The gradient by `backward` of the value."""
    x = x.clone().requires_grad_()
    f(x, *rest).backward()
    return x.grad


def outcome(function, *args):
    """What a call returns or raises."""
    try:
        with np.errstate(all="ignore"):
            return function(*args)
    except Exception as error:
        return error


def check_equal(found, expected):
    """Compare two outcomes, up to a few units in the last place."""
    if isinstance(expected, Exception) or isinstance(found, Exception):
        assert type(found) is type(expected), f"compiled {found!r}, eager {expected!r}"
        return
    a, b = (y.toarray() if hasattr(y, "toarray") else y.detach().numpy() for y in (found, expected))
    np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


class Captures(RuleBasedStateMachine):
    """Functions that capture a few values, which change between the calls."""

    @initialize(kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3), data=st.data(),
                other=st.sampled_from([None] * 60 + [*REFUSED] + [*EFFECTS] * 2), held=st.sampled_from(["closure", "argument", "self"]))
    def begin(self, kinds, data, other, held):
        counted["examples"] += 1
        self.slots = [KINDS[kind](data.draw(NUMBERS)) for kind in kinds]
        self.effect = EFFECTS[other](1.5) if other in EFFECTS else None
        self.refused = other in REFUSED
        self.fills = any("cache" in kind for kind in kinds)  # a cache that is emptied again and again is filled by the function each time
        reads = [slot.read for slot in self.slots]
        if other is not None:
            reads.append(self.effect.read if self.effect else REFUSED[other](1.5).read)

        def f(x):
            return total(reads, x)

        class Holder:
            def __init__(self):
                self.reads = reads

            def __call__(self, x):
                return total(self.reads, x)

        holder = Holder()
        function, rest = {"closure": (f, ()), "argument": (lambda x, o: total(o.reads, x), (holder,)), "self": (holder, ())}[held]
        self.function = lambda x: function(x, *rest)
        self.compiled = symgrad.compile(function, max_programs=30, backend="numpy")
        of_pattern = symgrad.compile(function, structure="auto", derivatives=("hessian",), backend="interpreter")
        ways = {
            "value": (self.compiled, function), "gradient": (self.compiled.gradient, grad(function)),
            "hessian": (self.compiled.hessian, hessian(function)), "pattern": (of_pattern.hessian, hessian(function, structure="auto")),
            "compiled grad": (symgrad.compile(grad(function), max_programs=30, backend="interpreter"), grad(function)),
            "compiled hessian": (symgrad.compile(hessian(function), max_programs=30, backend="interpreter"), hessian(function)),
            "backward": (lambda *args: backward(self.compiled, *args), lambda *args: backward(function, *args)),
        }
        self.ways = {name: [lambda x, way=way: way(x, *rest) for way in pair] for name, pair in ways.items()}

    @rule(data=st.data())
    def change(self, data):
        slot = data.draw(st.sampled_from(self.slots))
        how = data.draw(st.sampled_from(sorted(slot.changes)))
        counted["changes"] += 1
        try:
            slot.changes[how](data.draw(NUMBERS))
        except (NameError, AttributeError, KeyError, IndexError, TypeError, StopIteration, UnboundLocalError, RuntimeError):
            pass  # what is not there cannot be changed

    @rule(way=st.sampled_from(WAYS), place=st.sampled_from(X), data=st.data())
    def call_before_and_after_a_change(self, way, place, data):
        self.call(way=way, place=place)
        self.change(data=data)
        self.call(way=way, place=place)

    @rule(way=st.sampled_from(WAYS), place=st.sampled_from(X))
    def call(self, way, place):
        compiled, eager = self.ways[way]
        counted["calls"] += 1
        state = self.effect.state() if self.effect else None
        found = outcome(compiled, place)
        if self.refused:
            expected = outcome(self.function, place)
            assert isinstance(found, Unrecordable) or type(found) is type(expected) and isinstance(found, Exception), f"not refused: {found!r}"
            counted["refused"] += 1
            return
        after = self.effect.state() if self.effect else None
        if self.effect:
            self.effect.restore(state)
        expected = outcome(eager, place)
        check_equal(found, expected)
        if self.effect and not isinstance(expected, Exception):
            assert after == self.effect.state(), "the function did not run once"

    @precondition(lambda self: hasattr(self, "compiled") and not self.refused)
    @rule()
    def nothing_is_lost(self):
        reasons = [row["reason"] for row in self.compiled.report.uncompiled]
        expected = ("max_programs", "mask", "Error", "may read", *["the function changes"] * self.fills)
        assert self.effect or all(any(word in reason for word in expected) for reason in reasons), reasons


def main(arguments=None):
    """Run a hundred examples, and further hundreds until the time is over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    end, seed = time.monotonic() + options.seconds, options.seed
    while seed == options.seed or time.monotonic() < end:
        wanted = settings(max_examples=100, stateful_step_count=25, deadline=None, database=None, suppress_health_check=list(HealthCheck),
                          phases=[Phase.generate, Phase.shrink], print_blob=False)
        run_state_machine_as_test(with_seed(seed)(Captures), settings=wanted)
        seed += 1
    print(f"seeds {options.seed} to {seed - 1}: {counted}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
