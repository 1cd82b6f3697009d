"""A parser of formulas and values in text, with a whitelist of functions and without `eval`.

A formula is compiled to a program of a stack machine with numbers, variables, arithmetic and the elementwise functions of the
registry. It cannot contain attributes, strings or imports. Length, nesting, powers and degrees are limited (`symgrad.system.limits`), which bounds
the time of parsing and evaluation.
"""

from __future__ import annotations

import difflib
import keyword
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from symgrad.formulas.programs import COMPARISONS, CONSTANTS, Instruction, ParsedFormula, ParseError, arity, fixed_places, functions
from symgrad.system.limits import DEGREE, DEPTH, LENGTH, WHOLE

__all__ = ["ParsedFormula", "ParseError", "parse", "parse_values"]

TOKEN = re.compile(r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
                   r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*(?:\[\s*[0-9]+(?:\s*,\s*[0-9]+)*\s*\])*)"
                   r"|(?P<sign>\*\*|<=|>=|==|!=|[-+*/^(),<>=\[\]]))")


class _Reader:
    """A precedence-climbing parser that emits instructions. `degrees` has bounds for the polynomial degrees of the values on the stack."""

    def __init__(self, text: str):
        self.text, self.at, self.depth = text, 0, 0
        self.steps: list[Instruction] = []
        self.degrees: list[float] = []
        self.names: dict[str, None] = {}
        self.functions = functions()
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
        if degree > DEGREE:
            self.fail(f"the powers here multiply to more than {DEGREE}", step.at)
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

    def constant(self, first: int, end: int | None = None) -> float | None:
        """The value of the steps from `first` on, None if they contain a variable."""
        steps = tuple(self.steps[first:end])
        return None if any(step.kind == "name" for step in steps) else ParsedFormula(self.text, steps, ())()

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEPTH:
            self.fail(f"more than {DEPTH} parentheses, calls or powers inside one another")

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
        count, starts = 0, []
        while True:
            starts.append(len(self.steps))
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
        needed = arity(self.functions[name])
        if count != needed:
            self.fail(f"{name} takes {needed} argument{'s' * (needed != 1)}, not {count}", at)
        degree = max(self.degrees[-count:], default=0)
        for place, fixed in zip(range(count), fixed_places(self.functions[name].op)):
            if fixed:
                number = self.constant(starts[place], (*starts, len(self.steps))[place + 1])
                if number is None:
                    self.fail(f"argument {place + 1} of {name} is a number, not a formula of variables", at)
                if abs(number) > WHOLE:
                    self.fail(f"argument {place + 1} of {name} is above {WHOLE}", at)
                degree *= max(1.0, abs(number))
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
            return float(out)
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


def _check_text(text: Any) -> None:
    """Raise TypeError for what is not text, and ParseError for long text, in which no pattern is matched."""
    if not isinstance(text, str):
        raise TypeError(f"a formula is text, not {type(text).__name__}")
    if len(text) > LENGTH:
        raise ParseError(f"the text is longer than {LENGTH} characters", text, LENGTH)


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
    symgrad.formulas.programs.ParseError: there is no function '__import__'...
    """
    _check_text(text)
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
    _check_text(text)
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
