"""A parser of formulas and values in text, with a whitelist of functions and without `eval`.

A formula is compiled to a program of a stack machine with numbers, variables, arithmetic and the elementwise functions of the
registry. It cannot contain attributes, strings or imports. Length, nesting and powers are limited, which bounds the time of parsing and evaluation.
"""

from __future__ import annotations

import difflib
import inspect
import keyword
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from symgrad.engine.tensor import wrap
from symgrad.engine.traced import FUNCTIONS, lift, public_signature
from symgrad.graph.op import REGISTRY
from symgrad.types.domains import FIXED

__all__ = ["ParsedFormula", "ParseError", "parse", "parse_values"]

MAX_LENGTH, MAX_DEPTH, MAX_DEGREE = 10_000, 100, 1000
CONSTANTS = {"pi": math.pi, "e": math.e}
TOKEN = re.compile(r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][A-Za-z_0-9]*(?:\[\s*\d+(?:\s*,\s*\d+)*\s*\])*)"
                   r"|(?P<sign>\*\*|<=|>=|==|!=|[-+*/^(),<>=\[\]]))")
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
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

    def __call__(self, *args: Any, **values: Any) -> Any:
        """The value: a number for numbers, a Tensor with its graph for Tensors."""
        known, values = _functions(), dict(zip(self.names, args)) | values
        with np.errstate(all="ignore"):
            return self.evaluate_with(lambda x: x, values, lambda step, operands: self._apply(
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
            out = _called(function, operands)
            out = out.item() if constant else out
        if not constant:
            return out
        if not math.isfinite(out):
            raise ParseError(f"this constant is {float(out)}, not a finite number", self.text, step.at)
        return bool(out) if function in COMPARISONS else float(out)


def apply_step(step: Instruction, operands: list[Any], function: Callable[[str], Callable[..., Any]]) -> Any:
    """The result of an instruction by Python's operators; `function` returns the function of a name."""
    if step.kind == "negate":
        return -operands[0]
    return (OPERATIONS[step.value] if step.kind == "operation" else function(step.value))(*operands)


def _functions() -> dict[str, Callable[..., Any]]:
    """The functions that a formula may call: the elementwise functions of the registry, composites among them, and `where`."""
    out = {}
    for op in REGISTRY.values():
        elementwise = op.kind == "elementwise" and op.public and op.name != "pow" and any(p is not None for p in op.partials)
        if elementwise or op.elementwise or op.name == "where":
            function = FUNCTIONS.get(op.name) or lift(op)
            out.update(dict.fromkeys((op.name, *op.aliases), function))
    return out


def _arity(function: Callable[..., Any]) -> int:
    """The number of arguments: those that are needed."""
    parameters = public_signature(function.op).parameters.values()  # type: ignore[attr-defined]
    return 3 if function.op.name == "where" else sum(p.default is p.empty for p in parameters)  # type: ignore[attr-defined]


WHOLE = ("n", "p")  # the names of degrees, orders and dimensions, which are whole numbers


def _called(function: Callable[..., Any], operands: list[Any]) -> Any:
    """The value of a function; a composite takes numbers only where it takes no tensors."""
    op = function.op  # type: ignore[attr-defined]
    if not op.elementwise:
        return function(*operands)
    given = []
    for i, (name, x) in enumerate(zip(public_signature(op).parameters, operands)):
        if isinstance(x, float):
            x = int(x) if name in WHOLE and x.is_integer() else wrap(np.asarray(x)) if i < op.arity and FIXED not in op.domain[i:i + 1] else x
        given.append(x)
    return function(*given)


class _Reader:
    """A precedence-climbing parser that emits instructions. `degrees` has bounds for the polynomial degrees of the values on the stack."""

    def __init__(self, text: str):
        self.text, self.at, self.depth = text, 0, 0
        if len(text) > MAX_LENGTH:
            raise ParseError(f"the text is longer than {MAX_LENGTH} characters", text, MAX_LENGTH)
        self.steps: list[Instruction] = []
        self.degrees: list[float] = []
        self.names: dict[str, None] = {}
        self.functions = _functions()
        self.advance()

    def fail(self, problem: str, at: int | None = None) -> NoReturn:
        raise ParseError(problem, self.text, self.start if at is None else at)

    def advance(self) -> None:
        """Advance to the next token: its kind, text and start."""
        match = TOKEN.match(self.text, self.at)
        if match is None:
            rest = self.text[self.at:]
            self.start = self.at + len(rest) - len(rest.lstrip())
            self.kind, self.token = "end", ""
            if rest.strip():
                self.fail(f"{rest.strip()[0]!r} is not allowed here: a formula is made of numbers, names, + - * / ** ( ) , and functions")
            return
        self.kind, self.token = match.lastgroup or "", match[match.lastgroup or 0]
        self.start, self.at = match.start(match.lastgroup or 0), match.end()
        if self.token.endswith("]") and self.kind == "name":
            self.token = "_".join(re.findall(r"\w+", self.token))

    def expect(self, sign: str, what: str) -> None:
        if self.token != sign:
            self.fail(f"expected {what}" + (f" before {self.token!r}" if self.token else ", but the text ends"))
        self.advance()

    def push(self, step: Instruction, degree: float) -> None:
        self.steps.append(step)
        del self.degrees[len(self.degrees) - step.count:]
        if degree > MAX_DEGREE:
            self.fail(f"the powers here multiply to more than {MAX_DEGREE}", step.at)
        self.degrees.append(degree)

    def expression(self) -> None:
        self.product()
        while self.token in ("+", "-"):
            sign, at = self.token, self.start
            self.advance()
            self.product()
            self.push(Instruction("operation", sign, at, 2), max(self.degrees[-2:]))

    def product(self) -> None:
        self.signed_power()
        while self.token in ("*", "/"):
            sign, at = self.token, self.start
            self.advance()
            self.signed_power()
            self.push(Instruction("operation", sign, at, 2), sum(self.degrees[-2:]))

    def signed_power(self) -> None:
        """A power with preceding signs: -x**2 is -(x**2)."""
        signs = []
        while self.token in ("+", "-"):
            signs.append((self.token, self.start))
            self.advance()
        self.power()
        for sign, at in signs:
            if sign == "-":
                self.push(Instruction("negate", None, at, 1), self.degrees[-1])

    def power(self) -> None:
        self.deeper()
        self.atom()
        if self.token in ("**", "^"):
            at, first = self.start, len(self.steps)
            self.advance()
            self.signed_power()
            base, exponent = self.degrees[-2:]
            constant = self.constant(first)
            self.push(Instruction("operation", "**", at, 2), base * max(1.0, abs(constant)) if constant is not None else base + exponent)
        self.depth -= 1

    def constant(self, first: int) -> float | None:
        """The value of the steps from `first` on, None if they contain a variable."""
        steps = tuple(self.steps[first:])
        return None if any(step.kind == "name" for step in steps) else ParsedFormula(self.text, steps, ())()

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"more than {MAX_DEPTH} parentheses, calls or powers inside one another")

    def atom(self) -> None:
        kind, token, at = self.kind, self.token, self.start
        if kind == "number":
            self.advance()
            if self.kind in ("name", "number"):
                self.fail(f"expected an operator before {self.token!r}; a product is written with *")
            value = float(token)
            if not math.isfinite(value):
                self.fail("this number is too large for a float", at)
            self.push(Instruction("number", value, at), 0)
        elif kind == "name":
            self.advance()
            self.name(token, at)
        elif token == "(":
            self.advance()
            self.expression()
            self.expect(")", "a closing parenthesis")
        else:
            self.fail("expected a number, a name or '('" + (f", not {token!r}" if token else ", but the text ends"))

    def name(self, name: str, at: int) -> None:
        if self.token == "(":
            self.call(name, at)
        elif name in CONSTANTS:
            self.push(Instruction("number", CONSTANTS[name], at), 0)
        elif keyword.iskeyword(name) or name.startswith("_"):
            self.fail(f"{name!r} cannot be a variable", at)
        elif name in self.functions:
            self.fail(f"{name} is a function: write {name}(...)", at)
        else:
            if self.kind in ("name", "number"):
                self.fail(f"expected an operator before {self.token!r}; a product is written with *")
            self.names[name] = None
            self.push(Instruction("name", name, at), 1)

    def call(self, name: str, at: int) -> None:
        if name not in self.functions:
            close = difflib.get_close_matches({"ln": "log"}.get(name, name), self.functions, 1, 0.6)
            advice = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(self.functions))}"
            self.fail(f"there is no function {name!r}; {advice}", at)
        self.deeper()
        self.advance()
        count = 0
        while True:
            self.expression()
            if name == "where" and not count:
                sign, place = self.token, self.start
                if sign not in COMPARISONS:
                    self.fail("the first argument of where is a comparison, such as x > 0")
                self.advance()
                self.expression()
                self.push(Instruction("operation", sign, place, 2), max(self.degrees[-2:]))
            count += 1
            if self.token != ",":
                break
            self.advance()
        self.expect(")", "',' or ')'")
        arity = _arity(self.functions[name])
        if count != arity:
            self.fail(f"{name} takes {arity} argument{'s' * (arity != 1)}, not {count}", at)
        degree = max(self.degrees[-count:], default=0)
        if name in ("mul", "multiply", "div", "divide", "true_divide"):
            degree = sum(self.degrees[-2:])
        elif name == "square":
            degree *= 2
        self.push(Instruction("call", name, at, count), degree)
        self.depth -= 1

    def end(self) -> None:
        if self.kind != "end":
            self.fail(f"expected an operator before {self.token!r}" if self.kind != "sign" else f"{self.token!r} is not expected here")

    # Values: name = number, or nested lists of numbers

    def value(self) -> Any:
        if self.token != "[":
            first = len(self.steps)
            at = self.start
            self.expression()
            steps = tuple(self.steps[first:])
            if any(step.kind == "name" for step in steps):
                self.fail("a value cannot contain variables", next(step.at for step in steps if step.kind == "name"))
            out = ParsedFormula(self.text, steps, ())()
            if isinstance(out, bool):
                self.fail("a value is a number", at)
            return out
        self.deeper()
        self.advance()
        out, shapes = [], set()
        while self.token != "]":
            at = self.start
            out.append(self.value())
            shapes.add(np.shape(out[-1]))
            if len(shapes) > 1:
                self.fail("the rows of a list have one length", at)
            if self.token != ",":
                break
            self.advance()
        if not out:
            self.fail("a list holds at least one number")
        self.expect("]", "',' or ']'")
        self.depth -= 1
        return out


def parse(text: str) -> ParsedFormula:
    """Parse a formula: numbers, variables, + - * / ** ^ ( ), pi, e, the elementwise functions, and where(a < b, ..., ...).

    Elements of arrays are separate variables: x[0] is x_0, and A[0, 1] and A[0][1] are A_0_1.

    Raises ParseError with the position for other text, which is never evaluated as Python.

    >>> import symgrad
    >>> parse("exp(sin(x))*y")(x=symgrad.tensor(0.0), y=symgrad.tensor(2.0))
    tensor(2.)
    >>> parse("__import__('os')")
    Traceback (most recent call last):
        ...
    symgrad.formulas.parsing.ParseError: there is no function '__import__'...
    """
    if not text.strip():
        raise ParseError("there is no formula", text, 0)
    reader = _Reader(text)
    reader.expression()
    reader.end()
    return ParsedFormula(text, tuple(reader.steps), tuple(reader.names))


def parse_values(text: str) -> Mapping[str, Any]:
    """Parse values such as "x=1, y=[1, 2], z=pi/2": numbers and nested lists, where a number may be a constant formula.

    Raises ParseError for other text, and for a name given twice.

    >>> parse_values("x=1, y=[[1, 2], [3, 2**2]]")
    {'x': 1.0, 'y': [[1.0, 2.0], [3.0, 4.0]]}
    """
    out: dict[str, Any] = {}
    if not text.strip():
        return out
    reader = _Reader(text)
    while True:
        name = reader.token
        if reader.kind != "name" or keyword.iskeyword(name) or name.startswith("_"):
            reader.fail("expected a name, as in x=1")
        if name in out:
            reader.fail(f"{name} is given twice")
        reader.advance()
        reader.expect("=", f"'=' after {name}")
        out[name] = reader.value()
        if reader.token != ",":
            break
        reader.advance()
    reader.end()
    return out
