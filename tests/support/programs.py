"""Programs written by hand: `Builder` evaluates every word when it is added, which gives the shapes and dtypes of the steps."""

from typing import Any, NamedTuple

import numpy as np

from symgrad.carriers import ELEMENTWISE
from symgrad.program.program import LISTS, ArraySpec, Program, Step, call

WITH_NUMBERS = {"exp2_derivative", "log_derivative", "softplus", "sinc_derivative"}  # elementwise words with a number among the parameters


class Slot(NamedTuple):
    """A value of the program that is built: its kind (0 an input, 1 a constant, 2 a step), its place among those, and the value."""

    kind: int
    place: int
    value: Any

    @property
    def shape(self):
        return np.shape(self.value)


class Builder:
    """`b = Builder(); x = b.input(array); b.program(b.sin(b.mul(x, 2.0)))`; numbers among the operands of elementwise words become constants."""

    def __init__(self):
        self.values = ([], [], [])
        self.calls = []

    def _add(self, kind, value):
        self.values[kind].append(value)
        return Slot(kind, len(self.values[kind]) - 1, value)

    def input(self, value):
        return self._add(0, np.float64(value) if type(value) is float else value)

    def constant(self, value):
        return self._add(1, value)

    def __getattr__(self, word):
        def add(*args):
            if word in LISTS:
                place = LISTS[word]
                ins, params = list(args[place]), (*args[:place], *args[place + 1:])
            else:
                numbers = word in ELEMENTWISE and word not in WITH_NUMBERS
                args = tuple(self.constant(x) if numbers and not isinstance(x, Slot) else x for x in args)
                ins, params = [x for x in args if isinstance(x, Slot)], tuple(x for x in args if not isinstance(x, Slot))
            return self.step(word, ins, params)

        return add

    def step(self, word, ins, params):
        """A step whose parameters may contain an `Operand`."""
        with np.errstate(all="ignore"):
            value = call(Step(word, tuple(range(len(ins))), params, (), np.dtype(float)), [x.value for x in ins])
        self.calls.append((word, ins, params))
        return self._add(2, value)

    def program(self, *outputs):
        starts = (0, len(self.values[0]), len(self.values[0]) + len(self.values[1]))
        steps = [Step(word, tuple(starts[x.kind] + x.place for x in ins), params, np.shape(value), np.asarray(value).dtype)
                 for (word, ins, params), value in zip(self.calls, self.values[2], strict=True)]
        inputs = [ArraySpec(np.shape(x), np.asarray(x).dtype) for x in self.values[0]]
        return Program(inputs, self.values[1], steps, [starts[x.kind] + x.place for x in outputs])


def chain(shape, rounds=20):
    """The chain of the benchmarks, `x = tanh(exp(-sin(x y + y)))` in rounds, with its value and its gradients; and its inputs."""
    b = Builder()
    x, y, g = (b.input(np.full(shape, value)[()]) for value in (0.7, 0.3, 1.0))
    kept, gradient = [], None
    for _ in range(rounds):
        before = x
        inner = b.add(b.mul(x, y), y)
        e = b.exp(b.neg(b.sin(inner)))
        x = b.tanh(e)
        kept.append((before, inner, e))
    for before, inner, e in reversed(kept):
        g = b.mul(g, b.sech_square(e))
        g = b.neg(b.mul(g, e))
        g = b.mul(g, b.cos(inner))
        gradient = g if gradient is None else b.add(gradient, g)
        gradient = b.add(gradient, b.mul(g, before))
        g = b.mul(g, y)
    assert gradient is not None
    return b.program(x, g, gradient), list(b.values[0])
