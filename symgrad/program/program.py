"""Programs: a computation of fixed shapes and dtypes as a list of steps, each of which is one word of the carriers' protocol.

A program has no values of the call that was recorded, and no function objects: the back ends interpret it, write it as Python source that
calls NumPy, or as C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.carriers import numeric

LISTS = {"cat": 0, "stack": 0, "einsum": 1}  # words whose operands are one list, with its place among the arguments
Runner = Callable[[Sequence[Any]], list[Any]]  # from the values of the inputs to those of the outputs


class ArraySpec(NamedTuple):
    """The shape and the dtype of a value."""

    shape: tuple[int, ...]
    dtype: np.dtype


class Operand(NamedTuple):
    """A place inside a parameter, such as an index, that an operand of the step fills: `ins[number]`."""

    number: int


class Step(NamedTuple):
    """The call of a word: `name(*operands, *params)`, whose operands are the values in the slots `ins`.

    The words in `LISTS` take their operands as one list. An operand that an `Operand` in the parameters names is passed there alone.
    """

    name: str
    ins: tuple[int, ...]
    params: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: np.dtype


class Program:
    """Steps from inputs and constants to outputs, which are slots: first those of the inputs, then those of the constants, then one of each step.

    A constant is an array, a NumPy number, or a Python number, which does not determine the dtype of a result.
    """

    def __init__(self, inputs: Sequence[ArraySpec], constants: Sequence[Any], steps: Sequence[Step], outputs: Sequence[int]):
        self.inputs, self.constants, self.steps, self.outputs = tuple(inputs), tuple(constants), tuple(steps), tuple(outputs)

    @property
    def first_constant(self) -> int:
        """The slot of the first constant."""
        return len(self.inputs)

    @property
    def first_step(self) -> int:
        """The slot of the first step."""
        return len(self.inputs) + len(self.constants)

    def spec(self, slot: int) -> ArraySpec:
        """The shape and the dtype of the value in a slot; a Python number has those of its NumPy number."""
        if slot < len(self.inputs):
            return self.inputs[slot]
        if slot < self.first_step:
            value = np.asarray(self.constants[slot - len(self.inputs)])
            return ArraySpec(value.shape, value.dtype)
        step = self.steps[slot - self.first_step]
        return ArraySpec(step.shape, step.dtype)

    def is_number(self, slot: int) -> bool:
        """Whether a slot has a Python number."""
        return self.first_constant <= slot < self.first_step and type(self.constants[slot - self.first_constant]) in (bool, int, float, complex)

    def uses(self, times: Sequence[int] = ()) -> list[int]:
        """How often the value in each slot is used by the outputs and by steps that they need; `times` is how often each step reads its operands."""
        out = [0] * (self.first_step + len(self.steps))
        for slot in self.outputs:
            out[slot] += 1
        for number in reversed(range(len(self.steps))):
            if out[self.first_step + number]:
                for slot in self.steps[number].ins:
                    out[slot] += times[number] if times else 1
        return out

    def with_constants(self, values: Sequence[Any]) -> Program:
        """The program with fixed values in place of its last inputs."""
        return Program(self.inputs[:len(self.inputs) - len(values)], [*values, *self.constants], self.steps, self.outputs)

    @property
    def nbytes(self) -> int:
        """The memory of the constants."""
        return sum(x.nbytes for x in self.constants if isinstance(x, (np.ndarray, np.generic)))

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for slot in range(self.first_step):
            shape, dtype = self.spec(slot)
            what = "input" if slot < self.first_constant else f"constant {_brief(self.constants[slot - self.first_constant])}"
            yield f"%{slot} = {what}  # {dtype}{list(shape)}"
        for slot, step in enumerate(self.steps, self.first_step):
            arguments = [f"%{i}" for i in step.ins] + [_brief(x) for x in step.params]
            yield f"%{slot} = {step.name}({', '.join(arguments)})  # {step.dtype}{list(step.shape)}"
        yield f"return {', '.join(f'%{slot}' for slot in self.outputs)}"


def _brief(x: Any) -> str:
    if type(x) in (tuple, list):
        return f"({', '.join(map(_brief, x))})"
    return f"array{list(x.shape)}" if isinstance(x, np.ndarray) and x.size > 4 else repr(x)


def arguments(step: Any, operands: Sequence[Any]) -> list[Any]:
    """The arguments of a word, from the values of its operands."""
    if any(map(has_operand, step.params)):
        named: set[int] = set()
        params = [_filled(x, operands, named) for x in step.params]
        return [*(x for i, x in enumerate(operands) if i not in named), *params]
    place = LISTS.get(step.name)
    if place is None:
        return [*operands, *step.params]
    return [*step.params[:place], list(operands), *step.params[place:]]


def has_operand(x: Any) -> bool:
    """Whether a parameter names an operand."""
    return type(x) is Operand or type(x) in (tuple, list) and any(map(has_operand, x))


def _filled(x: Any, operands: Sequence[Any], named: set[int]) -> Any:
    if type(x) is Operand:
        named.add(x.number)
        return operands[x.number]
    if type(x) is slice:
        return x
    return type(x)(_filled(part, operands, named) for part in x) if type(x) in (tuple, list) else x


def call(step: Step, operands: Sequence[Any]) -> Any:
    """The value of a step, computed by the numeric carrier."""
    return getattr(numeric, step.name)(*arguments(step, operands))


def interpreter(program: Program) -> Runner:
    """The back end that calls the words of the numeric carrier one after the other."""
    def run(inputs: Sequence[Any]) -> list[Any]:
        values = [*inputs, *program.constants]
        for step in program.steps:
            values.append(call(step, [values[i] for i in step.ins]))
        return own([values[i] for i in program.outputs], [*inputs, *program.constants])

    return run


def own(outputs: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The outputs in memory of their own: writeable, and shared neither with each other nor with the other values."""
    out: list[Any] = []
    for y in outputs:
        y = np.asarray(y)
        if not y.flags.writeable or 0 in y.strides or any(isinstance(x, np.ndarray) and np.may_share_memory(x, y) for x in (*others, *out)):
            y = y.copy()
        out.append(y if y.ndim else y[()])
    return out
