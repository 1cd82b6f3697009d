"""Programs written by hand: each word is computed by the numeric carrier, which gives the shapes and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.program.program import LISTS, Program, Spec, Step, call


class Value:
    """A slot of a program, with its value for the inputs of the builder."""

    def __init__(self, slot: Any, value: Any):
        self.slot, self.value = slot, value


class Builder:
    """Collects steps: `b.add(x, y)` is the step of the word `add`, in which arguments that are no `Value` are parameters."""

    def __init__(self, *inputs: Any):
        self.values = inputs
        self.inputs = [Value(("input", i), x) for i, x in enumerate(inputs)]
        self.constants: list[Any] = []
        self.steps: list[tuple] = []

    def constant(self, value: Any) -> Value:
        self.constants.append(value)
        return Value(("constant", len(self.constants) - 1), value)

    def __getattr__(self, word: str) -> Any:
        return lambda *arguments: self._step(word, arguments)

    def _step(self, word: str, arguments: tuple) -> Value:
        if word in LISTS:
            place = LISTS[word]
            operands, params = arguments[place], arguments[:place] + arguments[place + 1:]
        else:
            operands, params = [x for x in arguments if isinstance(x, Value)], tuple(x for x in arguments if not isinstance(x, Value))
        step = Step(word, (), params, (), np.dtype(float))
        value = call(step, [x.value for x in operands])
        self.steps.append((word, [x.slot for x in operands], params, np.shape(value), np.asarray(value).dtype))
        return Value(("step", len(self.steps) - 1), value)

    def program(self, *outputs: Value) -> Program:
        start = {"input": 0, "constant": len(self.inputs), "step": len(self.inputs) + len(self.constants)}
        slot = lambda at: start[at[0]] + at[1]
        steps = [Step(word, tuple(map(slot, ins)), params, tuple(shape), dtype) for word, ins, params, shape, dtype in self.steps]
        return Program([Spec(np.shape(x), np.asarray(x).dtype) for x in self.values], self.constants, steps, [slot(y.slot) for y in outputs])


def chain(x: Any, y: Any, rounds: int = 20) -> tuple[Program, list[Any]]:
    """Value and gradient of a chain of x*y, + y, sin, neg, exp, tanh, and its inputs."""
    g = np.ones_like(x)
    b = Builder(x, y, g)
    a, c, gy = b.inputs
    first, saved = c, []
    x0 = a
    for _ in range(rounds):
        t1 = b.mul(x0, c)
        t2 = b.add(t1, c)
        t3 = b.sin(t2)
        t4 = b.neg(t3)
        t5 = b.exp(t4)
        t6 = b.tanh(t5)
        saved.append((x0, t2, t5))
        x0 = t6
    out, total = x0, None
    for x0, t2, t5 in reversed(saved):
        d5 = b.mul(gy, b.sech_square(t5))
        d4 = b.mul(d5, t5)
        d3 = b.neg(d4)
        d2 = b.mul(d3, b.cos(t2))
        part = b.add(d2, b.mul(d2, x0))
        total = part if total is None else b.add(total, part)
        gy = b.mul(d2, first)
    return b.program(out, gy, total), [x, y, g]
