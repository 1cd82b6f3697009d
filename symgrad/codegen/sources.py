"""Source code of functions: `to_python`, `to_torch`, `to_jax` and `to_c`.

A formula becomes a program of ops, in which every subexpression is computed once; a value that is used more than once, or is long, gets a
line of its own. No text of a user becomes part of the source: names are made into identifiers.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Sequence
from itertools import count
from typing import Any

import sympy

from symgrad.codegen.lines import Lines, Result, lines
from symgrad.codegen.targets import JAX, NUMPY, TORCH, C, Target
from symgrad.symbolic.conversion import number_of
from symgrad.symbolic.parameters import sanitised
from symgrad.symbolic.programs import Place, Program, Step, Writer

__all__ = ["to_c", "to_jax", "to_python", "to_torch"]

WIDE = 70  # characters up to which an expression is written inside another
RESERVED = frozenset("np jnp jax torch math double float int long short char void const static struct union enum signed unsigned auto register "
                     "volatile extern typedef sizeof goto switch case default do inline restrict main".split())
OUTPUTS = frozenset("value gradient hessian out".split())  # the arguments that a C function writes to
FUNCTIONS = frozenset(re.findall(r"[a-z]\w+", " ".join(C.ops.values())))  # names of C's header that would collide with variables


class _Text(str):
    """An expression as text, which is put in parentheses if it binds less tightly than the format requires."""

    precedence: int
    depth: int

    @classmethod
    def of(cls, text: str, precedence: int = 9, depth: int = 0) -> _Text:
        out = cls(text)
        out.precedence, out.depth = precedence, depth
        return out

    def __format__(self, least: str) -> str:
        return f"({self!s})" if self.precedence < int(least or 0) else str(self)


class _Printer:
    """A writer of one program in one language."""

    def __init__(self, target: Target, program: Program, names: Sequence[str], shapes: Sequence[tuple[int, ...]]):
        self.target, self.program, self.names, self.shapes = target, program, names, shapes
        self.lines: list[str] = []
        self.used: set[str] = set()
        self.fresh = (name for name in (f"v{i}" for i in count(1)) if name not in names)
        self.texts = self._all()

    def _all(self) -> list[_Text]:
        steps = self.program.steps
        needed = [0] * len(steps)
        for i in self.program.outputs:
            needed[i] += 1
        for i in reversed(range(len(steps))):
            if needed[i]:
                for k in steps[i].inputs:
                    needed[k] += self.target.ops[steps[i].what].count(f"{{{steps[i].inputs.index(k)}")
        texts: list[Any] = []
        for i, step in enumerate(steps):
            text = self._text(step, texts) if needed[i] else _Text.of("")
            if step.inputs and needed[i] and (needed[i] > 1 or len(text) > WIDE or text.depth > 8):
                text = self._line(text)
            texts.append(text)
        return texts

    def _line(self, text: str) -> _Text:
        name = next(self.fresh)
        self.lines.append(f"const double {name} = {text};" if self.target is C else f"{name} = {text}")
        return _Text.of(name)

    def _text(self, step: Step, texts: Sequence[Any]) -> _Text:
        if step.what == "input":
            return self._input(step.value)
        if step.what == "constant":
            return self.constant(step.value)
        operands = [self._tensor(texts[i], self.program.steps[i]) if step.what in self.target.tensors else texts[i] for i in step.inputs]
        while len(operands) > 2 and step.what in ("maximum", "minimum"):
            operands = [self._op(step.what, operands[:2]), *operands[2:]]
        return self._op(step.what, operands)

    def _op(self, op: str, operands: Sequence[_Text]) -> _Text:
        precedence, _, text = self.target.ops[op].partition(" ")
        self._use(text)
        return _Text.of(text.format(*operands), int(precedence), 1 + max(o.depth for o in operands))

    def _use(self, text: str) -> None:
        self.used.update(name for name in self.target.helpers if re.search(rf"\b{name}\b", text))

    def _input(self, place: Place) -> _Text:
        name, shape = self.names[place.parameter], self.shapes[place.parameter]
        if not place.at:
            return _Text.of(name)
        if self.target is C:
            at = 0
            for i, n in zip(place.at, shape):
                at = at * n + i
            return _Text.of(f"{name}[{at}]")
        return _Text.of(f"{name}[{', '.join(map(str, place.at))}]")

    def constant(self, constant: Any) -> _Text:
        """A number: an integer or a fraction if it is one, else with all its digits."""
        known = self.target.constants
        if str(constant) in known:
            return _Text.of(known[str(constant)])
        if constant in (sympy.true, sympy.false):
            return _Text.of(str(int(constant == sympy.true)) if self.target is C else str(constant == sympy.true))
        if str(-constant) in known:
            return _Text.of("-" + known[str(-constant)], 6)
        if constant.is_Rational and not constant.is_Integer and max(abs(constant.p), constant.q) < 2**53:
            point = ".0" if self.target is C else ""
            return _Text.of(f"{constant.p}{point} / {constant.q}{point}", 5)
        number = number_of(constant)
        if isinstance(number, complex) and self.target is C:
            raise TypeError(f"to_c: {constant} is complex, and C's double is real")
        if isinstance(number, float) and not math.isfinite(number):
            key = "nan" if math.isnan(number) else "oo"
            return _Text.of("-" + known[key], 6) if number < 0 else _Text.of(known[key])
        text = repr(float(number)) if self.target is C else repr(number)
        return _Text.of(text, 6 if text.startswith("-") else 9)

    def _tensor(self, text: _Text, step: Step | None) -> _Text:
        """A number as a tensor, for functions that take only tensors."""
        if step is not None and step.what != "constant":
            return text
        first = next((name for name in self.names), None)
        dtype = f"{first}.dtype" if first else "torch.float64"
        return _Text.of(f"torch.as_tensor({text}, dtype={dtype})")

    def result(self, result: Result, outputs: Sequence[int]) -> str:
        """The expression of one result, which may be an array."""
        if not result.shape:
            return str(self.texts[outputs[0]])
        self._use("_array")
        elements = [self._tensor(self.texts[i], self.program.steps[i]) if "_array" in self.target.tensors else self.texts[i] for i in outputs]
        shape = f"({', '.join(map(str, result.shape))}{',' * (len(result.shape) == 1)})"
        return f"_array({', '.join([shape, *elements])})"


def _written(found: Lines, target: Target, derivatives: int) -> tuple[Program, list[tuple[Result, list[int]]]]:
    """The program of equations, and the places of the results in it.

    Derivatives are kept as they were computed: merged into one expression, SymPy would rewrite them into forms that overflow.
    """
    flat = None if derivatives else found.flat
    inputs = {cell: Place(k, index) for k, p in enumerate(found.parameters) for index, cell in p.cells.items()}
    writer = Writer(inputs, target.__contains__)
    for symbol, e in found.equations if flat is None else ():
        writer.let(symbol, e)
    results = found.valid(found.results if flat is None else flat)
    placed = [(result, [writer.add(e) for e in result.elements]) for result in results]
    writer.program.outputs = [i for _, outputs in placed for i in outputs]
    return writer.program, placed


def _names(found: Lines) -> list[str]:
    """The parameters' names, changed where they are reserved in a language."""
    taken = RESERVED | FUNCTIONS | OUTPUTS
    return sanitised([p.name + "_" if p.name in taken or p.name.startswith(("_", "symgrad_")) else p.name for p in found.parameters])


def _title(name: str | None, found: Lines) -> str:
    if name is None:
        return found.name if found.name.isidentifier() and not keyword.iskeyword(found.name) and found.name not in RESERVED | FUNCTIONS else "f"
    taken = isinstance(name, str) and (name in RESERVED | FUNCTIONS or keyword.iskeyword(name))
    if taken or not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise ValueError(f"a function is named by an identifier such as 'loss', not {name!r}")
    return name


def _literal(tree: Any) -> str:
    """The text of a tree of texts."""
    if isinstance(tree, _Text):
        return str(tree)
    if tree is None:
        return "None"
    if type(tree) is tuple:
        return "(" + ", ".join(map(_literal, tree)) + ("," if len(tree) == 1 else "") + ")"
    if type(tree) is list:
        return "[" + ", ".join(map(_literal, tree)) + "]"
    if type(tree) is dict and all(type(key) in (str, int) for key in tree):
        return "{" + ", ".join(f"{key!r}: {_literal(value)}" for key, value in tree.items()) + "}"
    raise TypeError(f"the function returns a {type(tree).__name__}; source is written for tensors, tuples, lists and dicts of them")


RETURNS = ("", "The value, and the gradient as a tuple by argument.", "The value, the gradient and the Hessian, as tuples by argument.")


def _python(target: Target, found: Lines, name: str | None, derivatives: int) -> str:
    program, placed = _written(found, target, derivatives)
    names = _names(found)
    printer = _Printer(target, program, names, [p.least for p in found.parameters])
    texts = [_Text.of(printer.result(result, outputs)) for result, outputs in placed]
    body = [f'"""{RETURNS[derivatives]}"""'] * (derivatives > 0) + printer.lines + [f"return {_literal(found.form.unflatten(texts))}"]
    helpers = "".join("\n" + target.helpers[h] for h in target.helpers if h in printer.used)
    code = "\n".join("    " + line for line in body)
    text = f"{helpers}\n\ndef {_title(name, found)}({', '.join(names)}):\n{code}\n"
    header = target.header if "math." in text else target.header.replace("import math\n\n", "")
    header = header if re.search(r"\bjax\.", text) else header.replace("import jax\n", "")
    return header + text


def to_python(fn: Any, *shapes: Any, symbols: Any = None, at: Any = None, domain: Any = None, derivatives: int = 0, name: str | None = None) -> str:
    """The source of a NumPy function that computes a function or a SymPy formula.

    `fn`, `shapes`, `at` and `domain` are as in `to_sympy`; `symbols` are the arguments for a formula, as in `from_sympy`. With `derivatives`
    1 the source gives the value and the gradient, with 2 the Hessian, too: tuples by argument. Common subexpressions are assigned once, and
    stable forms are used. Names are made into identifiers; the source contains no text of the user.

    Raises what `to_sympy` and `from_sympy` raise, and ValueError for derivatives of a value that is no single number.

    >>> import sympy
    >>> x, y = sympy.symbols("x y")
    >>> print(to_python(y * sympy.sin(x) + sympy.exp(sympy.sin(x)), name="energy"))
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def energy(x, y):
        v1 = np.sin(x)
        return y * v1 + np.exp(v1)
    <BLANKLINE>
    """
    return _python(NUMPY, lines(fn, shapes, symbols, at, domain, derivatives, stable=True), name, derivatives)


def to_torch(fn: Any, *shapes: Any, symbols: Any = None, at: Any = None, domain: Any = None, derivatives: int = 0, name: str | None = None) -> str:
    """The source of a PyTorch function of tensors, as `to_python` writes it for NumPy; torch need not be installed.

    >>> print(to_torch(lambda x: x.sigmoid() * x, name="swish"))
    import torch
    <BLANKLINE>
    <BLANKLINE>
    def swish(x):
        return x * torch.sigmoid(x)
    <BLANKLINE>
    """
    return _python(TORCH, lines(fn, shapes, symbols, at, domain, derivatives, stable=True), name, derivatives)


def to_jax(fn: Any, *shapes: Any, symbols: Any = None, at: Any = None, domain: Any = None, derivatives: int = 0, name: str | None = None) -> str:
    """The source of a JAX function of arrays, as `to_python` writes it for NumPy; JAX need not be installed.

    >>> print(to_jax(lambda x: x.exp() / 3, name="third"))
    import jax.numpy as jnp
    <BLANKLINE>
    <BLANKLINE>
    def third(x):
        return jnp.exp(x) / 3
    <BLANKLINE>
    """
    return _python(JAX, lines(fn, shapes, symbols, at, domain, derivatives, stable=True), name, derivatives)


def to_c(fn: Any, *shapes: Any, symbols: Any = None, at: Any = None, domain: Any = None, derivatives: int = 0, name: str | None = None) -> str:
    """The source of a C99 function of doubles, as `to_python` writes it for NumPy.

    A number is returned; arrays are `const double *`, row by row. With `derivatives`, and for results that are no single number, the function
    is void and writes to `double *value`, `double *gradient` by all numbers in order, and `double *hessian`, row by row; or to `double *out`.

    >>> print(to_c(lambda x, w: x.exp() * w[0] / 3, (), 2, name="f"))
    #include <math.h>
    <BLANKLINE>
    double f(double x, const double *w)
    {
        return w[0] * exp(x) / 3.0;
    }
    <BLANKLINE>
    """
    found = lines(fn, shapes, symbols, at, domain, derivatives, stable=True)
    program, placed = _written(found, C, derivatives)
    names = _names(found)
    printer = _Printer(C, program, names, [p.least for p in found.parameters])
    arguments = [("const double *" if p.shape else "double ") + n for p, n in zip(found.parameters, names)]
    body, kind = list(printer.lines), "void"
    if derivatives:
        for order, part in enumerate(_by_order(placed, len(names), derivatives)):
            target = ("value", "gradient", "hessian")[order]
            arguments.append(f"double *{target}")
            body += [f"{target}[{k}] = {printer.texts[i]};" for k, i in enumerate(part)]
    elif len(placed) == 1 and not placed[0][0].shape:
        kind = "double"
        body.append(f"return {printer.texts[placed[0][1][0]]};")
    else:
        arguments.append("double *out")
        body += [f"out[{k}] = {printer.texts[i]};" for k, i in enumerate(program.outputs)]
    helpers = "".join(C.helpers[h] for h in C.helpers if h in printer.used)
    code = "\n".join("    " + line for line in body)
    return f"{C.header}{helpers}\n{kind} {_title(name, found)}({', '.join(arguments) or 'void'})\n{{\n{code}\n}}\n"


def _by_order(placed: Sequence[tuple[Result, list[int]]], count: int, derivatives: int) -> list[list[int]]:
    """The places of the value, of the whole gradient, and of the whole Hessian row by row."""
    out = [placed[0][1], [i for _, outputs in placed[1:count + 1] for i in outputs]]
    if derivatives == 2:
        rows = []
        blocks = placed[count + 1:]
        for k in range(count):
            row = blocks[k * count:(k + 1) * count]
            height = len(placed[1 + k][1])
            for r in range(height):
                rows += [i for _, outputs in row for i in outputs[r * len(outputs) // height:(r + 1) * len(outputs) // height]]
        out.append(rows)
    return out
