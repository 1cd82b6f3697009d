"""Helpers in C, translated from those in Python: a text of `symgrad.carriers.special` is run once, with values that record how they are computed.

Sums along an axis of points become loops, and so do loops over whole numbers. Numbers that are known, such as an order, become part of the name of
the function in C.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symgrad.codegen.c_tracer import Arrays, Loops, Value, known, made, run_loop
from symgrad.codegen.texts import LONGEST, Text, number_in_name, number_of_name


def _reached(roots: Sequence[Value], cut: tuple[Value, int] | None = None) -> dict[Value, int]:
    """The values that others are computed from, and how often each is read; without one operand of one value."""
    found, pending = dict.fromkeys(roots, 1), [*roots]
    while pending:
        value = pending.pop()
        for i, a in enumerate(value.operands):
            if cut is not None and cut[0] is value and cut[1] == i:
                continue
            if a not in found:
                pending.append(a)
            found[a] = found.get(a, 0) + 1
    return found


class Block:
    """The statements of a block; `of` is the counter of its loop, or the values that are computed in it alone."""

    def __init__(self, of: Value | set[Value], names: dict[Value, Text]) -> None:
        self.of, self.names = of, names
        self.lines: list[str] = []

    def holds(self, value: Value) -> bool:
        return value in self.of if isinstance(self.of, set) else self.of in value.inside


class CWriter:
    """The statements that compute a value."""

    def __init__(self, ops: Mapping[str, str], parameters: Mapping[Value, str], result: Value) -> None:
        self.ops, self.result, self.reads = ops, result, _reached([result])
        self.taken = set(parameters.values())
        self.blocks = [Block(set(), {value: Text(name) for value, name in parameters.items()})]
        self.blocks[0].lines.append(f"return {self.text(result)};")

    def name(self, wanted: str = "") -> str:
        new = next(n for n in itertools.chain([wanted] * bool(wanted), (f"{wanted or 'v'}{i}" for i in itertools.count(1))) if n not in self.taken)
        self.taken.add(new)
        return new

    def text(self, value: Value) -> Text:
        """A value as an expression; what is read often or is long, and what a loop does not change, has a variable."""
        if value.op == "constant":
            number = value.args[0]
            text = {math.inf: "INFINITY", -math.inf: "-INFINITY"}.get(number, "NAN" if math.isnan(number) else repr(number))
            return Text(text, 6 if text[0] == "-" else 9)
        for block in self.blocks:
            if value in block.names:
                return block.names[value]
        home = self.home(value)
        here = home == len(self.blocks) - 1
        inner, self.blocks = self.blocks[home + 1:], self.blocks[:home + 1]
        text = self.computed(value)
        if not text.isidentifier() and (not here or self.reads[value] > 1 or len(text) > LONGEST and text.precedence < 9):
            text = self.assigned(text)
        self.blocks[-1].names[value] = text
        self.blocks += inner
        return text

    def home(self, value: Value) -> int:
        """The block that a value is computed in."""
        return max((i for i, block in enumerate(self.blocks) if block.holds(value)), default=0)

    def assigned(self, text: str) -> Text:
        name = self.name()
        self.blocks[-1].lines.append(f"double {name} = {text};")
        return Text(name)

    def computed(self, value: Value) -> Text:
        if value.op in ("sum", "cumprod", "after", "call"):
            return Text(getattr(self, f"of_{value.op}")(value))
        if value.op == "where" and any(a.op in ("sum", "after", "call") and not self.has(a) for a in _reached(value.args[1:])):
            return self.of_branches(value)
        precedence, _, text = self.ops[value.op].partition(" ")
        return Text(text.format(*map(self.text, value.args)), int(precedence))

    def has(self, value: Value) -> bool:
        return any(value in block.names for block in self.blocks)

    def of_call(self, value: Value) -> str:
        return f"{value.args[0]}({', '.join(map(self.text, value.args[1:]))})"

    def within(self, of: Value | set[Value], names: dict[Value, Text], head: str, write: Callable[[list[str]], None]) -> list[str]:
        """A block of statements, which `write` ends; what can be computed before it is written before it."""
        block = Block(of, names)
        self.blocks.append(block)
        write(block.lines)
        self.blocks.pop()
        return [f"{head} {{", *(f"    {line}" for line in block.lines), "}"]

    def loop(self, index: Value, names: dict[Value, Text], write: Callable[[list[str]], None]) -> None:
        k = "kji"[sum(isinstance(block.of, Value) for block in self.blocks)]
        steps = index.args[0]
        step = {1: "++", -1: "--"}.get(steps.step, f" += {steps.step}")
        head = f"for (int {k} = {steps.start}; {k} {'<' if steps.step > 0 else '>'} {steps.stop}; {k}{step})"
        self.blocks[-1].lines += self.within(index, {index: Text(k), **names}, head, write)

    def of_sum(self, value: Value) -> str:
        """A sum, in one loop with others over the same points, by the algorithm of Kahan: a thousand terms would lose a digit."""
        index, home = value.args[0], len(self.blocks)
        sums = [v for v in self.reads if v.op == "sum" and v.args[0] is index and self.home(v) == home - 1 and not self.has(v)]
        sums = [v for v in sums if v is value or not any(w in _reached([v]) or v in _reached([w]) for w in sums if w is not v)]
        names, lost = [[self.assigned("0.0") for _ in sums] for _ in range(2)]

        def write(lines: list[str]) -> None:
            for name, rest, total in zip(names, lost, sums):
                term = self.assigned(f"{self.text(total.args[1]):4} - {rest}")
                new = self.assigned(f"{name} + {term}")
                lines += [f"{rest} = {new} - {name} - {term};", f"{name} = {new};"]

        self.loop(index, {}, write)
        self.blocks[-1].names.update(zip(sums, names))
        return self.blocks[-1].names[value]

    def of_cumprod(self, value: Value) -> str:
        inner = self.blocks.pop()
        name = self.assigned("1.0")
        self.blocks.append(inner)
        inner.lines.append(f"{name} = {name} * {self.text(value.args[0]):6};")
        return name

    def of_after(self, value: Value) -> str:
        loop, place = value.args
        index, carried, first, results = loop.args
        wanted: list[int] = []
        while len(wanted) != len(wanted := [i for i, v in enumerate(carried) if self.needed(loop, i) or v in _reached([results[k] for k in wanted])]):
            pass
        carried, first, results = ([row[i] for i in wanted] for row in (carried, first, results))
        names = []
        for start, variable in zip(first, carried):
            names.append(self.name(variable.args[0]))
            self.blocks[-1].lines.append(f"double {names[-1]} = {self.text(start)};")

        def write(lines: list[str]) -> None:
            texts = [str(self.text(result)) for result in results]
            for i, name in enumerate(names):
                if any(re.search(rf"\b{name}\b", later) for later in texts[i + 1:]):
                    texts[i + 1:] = [self.assigned(later) if re.search(rf"\b{name}\b", later) and later not in names[i + 1:] else later
                                     for later in texts[i + 1:]]
            for name, text in zip(names, texts):
                lines.append(f"{name} = {text};")

        self.loop(index, {v: Text(n) for v, n in zip(carried, names)}, write)
        for i, name in zip(wanted, names):
            self.blocks[-1].names.update({v: Text(name) for v in self.reads if v.op == "after" and v.args[0] is loop and v.args[1] == i})
        return names[wanted.index(place)]

    def needed(self, loop: Value, place: int) -> bool:
        """Whether a number is read after its loop."""
        return any(v.op == "after" and v.args[0] is loop and v.args[1] == place for v in self.reads)

    def of_branches(self, value: Value) -> Text:
        condition, *sides = value.args
        test, name = self.text(condition), self.name()
        self.blocks[-1].lines.append(f"double {name};")
        written = []
        for i, (head, side) in enumerate(zip((f"if ({test})", "else"), sides), 1):
            elsewhere = _reached([self.result], (value, i))
            alone = {v for v in _reached([side]) if v not in elsewhere}

            def write(lines: list[str], side: Value = side) -> None:
                lines.append(f"{name} = {self.text(side)};")

            written += self.within(alone, {}, head, write)
        self.blocks[-1].lines += written
        return Text(name)


class Translated(dict[str, str]):
    """Helpers in C by name, with those that are translated when they are asked for: `symgrad_f_1_m0p5` is f with the last parameters 1 and -0.5."""

    def __init__(self, texts: Mapping[str, str], written: Mapping[str, str], ops: Mapping[str, str]) -> None:
        super().__init__(written)
        self.ops = ops
        self.functions: dict[str, Any] = {}
        self.texts = texts

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self._parts(str(name)) is not None

    def _parts(self, name: str) -> tuple[str, list[int | float]] | None:
        match = re.fullmatch(r"symgrad(_\w+?)((?:_m?\d[\dpem]*)*)", name)
        return (match[1], [number_of_name(n) for n in match[2].split("_")[1:]]) if match and match[1] in self.texts else None

    def __missing__(self, name: str) -> str:
        parts = self._parts(name)
        assert parts is not None, name
        function = self.function(parts[0])
        count = len(inspect.signature(function).parameters) - len(parts[1])
        self.translate(name, function, [None] * count + parts[1])
        return self[name]

    def function(self, name: str) -> Any:
        """The function of a text, which calls the others."""
        if name not in self.functions:
            tree = Loops().visit(ast.parse(self.texts[name].replace("{m}", "arrays")))
            space = {"math": math, "arrays": Arrays(), "run_loop": run_loop}
            space |= {other: self.caller(other) for other in re.findall(r"\b_[a-z]\w+", self.texts[name]) if other != name}
            exec(compile(ast.fix_missing_locations(tree), name, "exec"), space)
            self.functions[name] = space[name]
        return self.functions[name]

    def translate(self, name: str, function: Any, given: Sequence[Any]) -> Any:
        """Write the function of given numbers, None for those that are not known; what it returns, if this is not one number."""
        names = inspect.signature(function).parameters
        values = {p: Value("parameter") for p, g in zip(names, given) if g is None}
        result = function(*[values.get(p, g) for p, g in zip(names, given)])
        if not isinstance(result, Value) or result.inside:
            return result
        lines = CWriter(self.ops, {v: p for p, v in values.items()}, result).blocks[0].lines
        body = "".join(f"    {line}\n" for line in lines)
        self[name] = f"\nstatic double {name}({', '.join(f'double {p}' for p in values)})\n{{\n{body}}}\n"
        return None

    def caller(self, name: str) -> Callable[..., Any]:
        """A helper as the texts of others call it: as a function of C, or in place if it gives points or several numbers."""
        def call(*args: Any) -> Any:
            if super(Translated, self).__contains__(f"symgrad{name}"):
                return known("call", f"symgrad{name}", *[a if isinstance(a, Value) else made("constant", a) for a in args])
            function = self.function(name)
            bound = inspect.signature(function).bind(*args)
            bound.apply_defaults()
            args = bound.args
            new = "symgrad" + "_".join([name, *(number_in_name(str(+a)) for a in args if not isinstance(a, Value))])
            if not super(Translated, self).__contains__(new):
                if self.translate(new, function, [None if isinstance(a, Value) else a for a in args]) is not None:
                    return function(*args)
            return known("call", new, *[a for a in args if isinstance(a, Value)])

        return call
