"""The program of a parsed formula: instructions of a stack machine, which numbers, Tensors and exact expressions run through."""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.engine.tensor import wrap
from symgrad.engine.traced import FUNCTIONS, lift, public_signature
from symgrad.graph.domains import FIXED
from symgrad.graph.op import REGISTRY, Op


class NamedNumber(float):
    """The float of a constant that a formula names, such as pi, so that exact readers tell it from a decimal of the same value."""

    name: str


def _named(name: str, value: float) -> NamedNumber:
    out = NamedNumber(value)
    out.name = name
    return out


CONSTANTS = {"pi": _named("pi", math.pi), "e": _named("e", math.e)}
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
# The weights of operations, where a sum counts once and a function eight times; SymPy compares the arguments of a maximum with one another.
WEIGHTS = {"*": 4.0, "/": 4.0, "**": 16.0} | dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), 24.0)
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class ParseError(ValueError):
    """The error for text that is not a formula; its message marks the position with a caret."""

    def __init__(self, problem: str, text: str, at: int):
        start = max(at - 40, 0)
        shown = text[start:at + 40].replace("\n", " ").replace("\t", " ")
        shown = "".join(c if c.isprintable() else "?" for c in shown)
        super().__init__(f"{problem}\n  {shown}\n  {' ' * (at - start)}^")
        self.problem, self.text, self.at = problem, text, at


@dataclass(frozen=True)
class Instruction:
    """One instruction: push a number or a variable, or apply an operation to the topmost values of the stack."""

    kind: str
    value: Any
    at: int
    count: int = 0


@dataclass(frozen=True)
class ParsedFormula:
    """A parsed formula as a function: `names` are its variables, and its parameters, in order of appearance.

    >>> from symgrad.formulas.parsing import parse
    >>> formula = parse("x**2 + 2*y")
    >>> formula.names, formula(x=3.0, y=0.5)
    (('x', 'y'), 10.0)
    """

    text: str
    steps: tuple[Instruction, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        object.__setattr__(self, "__signature__", inspect.Signature([inspect.Parameter(name, kind) for name in self.names]))
        object.__setattr__(self, "__name__", "formula")

    @property
    def weight(self) -> float:
        """The operations, weighted by about the times in which their derivatives are compared with many digits."""
        return sum({"operation": WEIGHTS.get(step.value, 1.0), "call": WEIGHTS.get(step.value, 8.0)}.get(step.kind, 0.0) for step in self.steps)

    def __call__(self, /, *args: Any, **values: Any) -> Any:
        """The value: a number for numbers, a Tensor with its graph for Tensors."""
        known, values = functions(), dict(zip(self.names, args)) | values
        with np.errstate(all="ignore"):
            return self.evaluate_with(float, values, lambda step, operands: self._apply(
                known[step.value] if step.kind == "call" else step.value, operands, step))

    def evaluate_with(self, number: Callable[[Any], Any], values: Mapping[str, Any], apply_step: Callable[[Instruction, list[Any]], Any]) -> Any:
        """The result of the program: `number` converts constants, `values` are those of the variables, `apply_step` performs an operation."""
        stack: list[Any] = []
        for step in self.steps:
            if step.kind == "number":
                stack.append(number(step.value))
            elif step.kind == "name":
                stack.append(values[step.value])
            else:
                operands = stack[len(stack) - step.count:]
                del stack[len(stack) - step.count:]
                stack.append(apply_step(step, operands))
        return stack.pop()

    def _apply(self, function: Any, operands: list[Any], step: Instruction) -> Any:
        constant = all(isinstance(x, (float, bool)) for x in operands)
        if step.kind == "negate":
            return -operands[0]
        if step.kind == "operation":
            # NumPy's floats give inf or NaN where Python's would raise an exception or become complex.
            out = OPERATIONS[function](*([np.float64(x) for x in operands] if constant else operands))
        else:
            try:
                out = _called(function, operands)
            except (TypeError, ValueError, RuntimeError, ArithmeticError) as error:
                if constant or any(fixed_places(function.op)):  # not an error of the tensors
                    raise ParseError(str(error), self.text, step.at) from None
                raise
            out = out.item() if constant else out
        if not constant:
            return out
        if not math.isfinite(out):
            raise ParseError(f"this constant is {float(out)}, not a finite number", self.text, step.at)
        return bool(out) if function in COMPARISONS else float(out)


def apply_step(step: Instruction, operands: list[Any], xp: Any, known: Mapping[str, Any]) -> Any:
    """The result of an instruction for values of a recording carrier; `known` are the functions by name."""
    if step.kind == "negate":
        return -operands[0]
    if step.kind == "operation":
        return OPERATIONS[step.value](*operands)
    op = known[step.value].op
    given = [fixed_number(float(x.item())) if fixed else x for x, fixed in zip(operands, fixed_places(op))]
    return getattr(xp, op.name)(*given)


def functions() -> dict[str, Any]:
    """The functions that a formula may call: the elementwise functions of the registry, composites among them, and `where`."""
    return _functions_of(tuple(REGISTRY.values()))


@functools.lru_cache(maxsize=1)
def _functions_of(ops: tuple[Op, ...]) -> dict[str, Any]:
    out = {}
    for op in ops:
        elementwise = op.kind == "elementwise" and op.surface.public and op.name != "pow" and any(p is not None for p in op.partials)
        if elementwise or op.elementwise and op.name != "clamp" or op.name == "where":  # a clamp without ends is an error
            function = FUNCTIONS.get(op.name) or lift(op)
            out.update(dict.fromkeys((op.name, *op.surface.aliases), function))
    return out


def arity(function: Any) -> int:
    """The number of arguments: those that are needed."""
    parameters = public_signature(function.op).parameters.values()
    return 3 if function.op.name == "where" else sum(p.default is p.empty for p in parameters)


WHOLE = ("n", "p")  # the names of degrees, orders and dimensions, which are whole numbers


def fixed_places(op: Any) -> list[bool]:
    """For each argument of an op whether it is a degree, an order or a dimension: a number, and not a formula."""
    return [op.elementwise and (name in WHOLE or FIXED in op.domain[i:i + 1]) for i, name in enumerate(public_signature(op).parameters)]


def _called(function: Any, operands: list[Any]) -> Any:
    """The value of a function; a composite takes numbers only where it takes no tensors."""
    op = function.op
    if not op.elementwise:
        return function(*operands)
    given = []
    for i, (x, fixed) in enumerate(zip(operands, fixed_places(op))):
        if isinstance(x, float):
            x = fixed_number(x) if fixed else wrap(np.asarray(x)) if i < op.arity else x
        given.append(x)
    return function(*given)


def fixed_number(x: float) -> int | float:
    """A degree, an order or a dimension as a Python number."""
    return int(x) if x.is_integer() else x
