"""Programs: formulas as a list of steps, each of which is one op of the registry; every subexpression is computed once.

`from_sympy` runs a program with Tensors; `to_python` and similar functions write it as source.

>>> import sympy
>>> x, y = sympy.symbols("x y", real=True)
>>> program = program_of([sympy.sin(x) * y + sympy.sin(x)], [x, y])
>>> [(step.name, step.inputs) for step in program.steps]
[('input', ()), ('input', ()), ('sin', (0,)), ('mul', (1, 2)), ('add', (3, 2))]
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sympy
from sympy.tensor.indexed import Indexed

from symgrad.algebra.stable import stable_form_to_differentiate
from symgrad.algebra.values import Unknown
from symgrad.symbolic.carrier_function import Call
from symgrad.symbolic.catalogue import plan


class Place(NamedTuple):
    """An input: the number of the parameter, and the index of the element in it."""

    parameter: int
    at: tuple[int, ...]


class OpStep(NamedTuple):
    """One value: `name` is that of an op, "input" or "constant"; `inputs` are the numbers of the steps of its operands.

    `value` is the Place of an input, and the SymPy number of a constant.
    """

    name: str
    inputs: tuple[int, ...] = ()
    value: Any = None


@dataclass
class OpProgram:
    """Steps, and the step numbers of the results."""

    steps: list[OpStep] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)


def places_of(symbols: Sequence[Any]) -> dict[Any, Place]:
    """The symbols of the parameters, each a symbol or an array of symbols, with their places."""
    out: dict[Any, Place] = {}
    for k, symbol in enumerate(symbols):
        cells = {(): symbol} if not hasattr(symbol, "cells") else symbol.cells
        for index, cell in cells.items():
            if cell in out:
                raise ValueError(f"the symbol {cell} is given twice")
            out[cell] = Place(k, index)
    return out


def is_constant(e: Any) -> bool:
    """Whether an expression is a number or a boolean."""
    return not e.free_symbols and (isinstance(e, sympy.Expr) or e in (sympy.true, sympy.false)) and not e.has(Indexed)


def _undefined_elsewhere(e: Any, known: Mapping[Any, int]) -> Any:
    """A choice without a default times 1 where a condition holds, and NaN elsewhere; None for one that has a value everywhere.

    Its derivatives are NaN there, too, which those of a selected NaN are not. By zero times a function of all symbols those of a constant or a
    linear branch depend on the symbols.
    """
    defined = sympy.Or(*[condition for _, condition in e.args])
    if defined == sympy.true:
        return None
    *pairs, (out, _) = e.args
    for value, condition in reversed(pairs):
        out = Call("where", (condition, value, out))
    symbols = sorted([symbol for symbol in e.free_symbols if symbol in known], key=str)  # and not the bases of elements
    flat = [Call("mul", (sympy.Integer(0), Call("tanh", (symbol,)))) for symbol in symbols]
    return Call("mul", (functools.reduce(lambda a, b: Call("add", (a, b)), flat, out), Call("where", (defined, sympy.Integer(1), sympy.nan))))


class Writer:
    """A builder of one program from expressions; equal expressions become one step.

    `accepted(op)` returns whether an op may be used. With `stable` an expression is first rewritten into a stable form. In a `differentiable`
    program the derivatives of a choice are NaN where it has no value.
    """

    def __init__(self, inputs: Mapping[Any, Place], accepted: Callable[[str], bool] = lambda op: True, stable: bool = True,
                 differentiable: bool = False):
        self.program, self.accepted, self.stable, self.differentiable = OpProgram(), accepted, stable, differentiable
        self.known: dict[Any, int] = {}
        self.calls: dict[Any, int] = {}
        for symbol, place in inputs.items():
            self.known[symbol] = self.step(OpStep("input", value=place))

    def step(self, step: OpStep) -> int:
        """The number of a step; an equal step is reused."""
        found = self.calls.get(step)
        if found is None:
            found = self.calls[step] = len(self.program.steps)
            self.program.steps.append(step)
        return found

    def let(self, symbol: Any, e: Any) -> None:
        """Name the value of an expression for use in later expressions."""
        self.known[symbol] = self.add(e)

    def add(self, e: Any) -> int:
        """The number of the step that computes an expression.

        Raises Unknown for a function that is not in the catalogue, and for a symbol without a value.
        """
        if self.stable and e not in self.known and not is_constant(e):
            with contextlib.suppress(RecursionError):  # a deeply nested formula is not rewritten
                e = stable_form_to_differentiate(e)
        stack = [e]
        plans: dict[Any, Any] = {}
        while stack:
            top = stack[-1]
            if top in self.known:
                stack.pop()
                continue
            if is_constant(top):
                self.known[top] = self.step(OpStep("constant", value=top))
                continue
            if top.is_Symbol or isinstance(top, Indexed):
                raise Unknown(f"the symbol {top} has no value")
            if top not in plans:
                plans[top] = plan(top, self.accepted)
                if self.differentiable and isinstance(top, sympy.Piecewise) and isinstance(plans[top], Call) and plans[top].op == "where":
                    plans[top] = _undefined_elsewhere(top, self.known) or plans[top]
            missing = [part for part in _parts(plans[top]) if part not in self.known]
            if missing:
                stack += missing
            else:
                self.known[top] = self._step_of(plans.pop(top))
        return self.known[e]

    def _step_of(self, call: Any) -> int:
        if not isinstance(call, Call):
            return self.known[call]
        inputs = tuple(self._step_of(arg) for arg in call.args)
        if not self.accepted(call.op):
            raise Unknown(f"{call.op} cannot be written here")
        if call.op == "neg" and self.program.steps[inputs[0]].name == "neg":
            return self.program.steps[inputs[0]].inputs[0]
        return self.step(OpStep(call.op, inputs))


def _parts(call: Any) -> list[Any]:
    return [part for arg in call.args for part in _parts(arg)] if isinstance(call, Call) else [call]


def program_of(expressions: Sequence[Any], symbols: Sequence[Any], stable: bool = True) -> OpProgram:
    """The program that computes expressions from the symbols."""
    writer = Writer(places_of(symbols), stable=stable)
    writer.program.outputs = [writer.add(e) for e in expressions]
    return writer.program
