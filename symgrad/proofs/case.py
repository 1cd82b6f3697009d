"""One case of a proof: an op with symbolic arguments, its derivatives by its rules and by SymPy.

For an elementwise op these are the partial derivatives by each sequence of arguments. For an op on arrays they are directional derivatives
of φ = Σ g y, ψ = Σ t ∂φ/∂x and χ = Σ u ∂ψ/∂x + Σ v ∂ψ/∂g, with a different symbol for every component of a direction, so that no term vanishes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import sympy

from symgrad.carriers import symbolic
from symgrad.graph.domains import REAL, Domain
from symgrad.graph.node import Leaf
from symgrad.graph.op import Op
from symgrad.proofs.tape import Tape
from symgrad.reference.recorder import Box, RecordingCarrier

Supply = Callable[[str, tuple[int, ...]], Any]
Claims = Iterator[tuple["Key", list[Any]]]


class Key(NamedTuple):
    """The name of a derivative: its order, and a text with its rule and its variables."""

    order: int
    what: str


def domain_of(op: Op, i: int) -> Domain:
    """The domain of one tensor argument."""
    return op.domain[i] if i < len(op.domain) else op.domain[0] if op.arity is None and op.domain else REAL


@dataclass
class Case:
    """One op with one tuple of parameters, on real or complex arguments of some shapes."""

    op: Op
    parameters: tuple[Any, ...]
    shapes: tuple[tuple[int, ...], ...]
    complex: bool = False
    domains: dict[sympy.Symbol, Domain] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = self.op.argument_names or tuple(f"x{i}" for i in range(len(self.shapes)))
        self.names = names if len(names) == len(self.shapes) else tuple(f"{names[0]}{i}" for i in range(len(self.shapes)))
        self.single = self.op.kind == "elementwise"
        self.constants = {i: np.resize([True, False], shape) for i, shape in enumerate(self.shapes) if domain_of(self.op, i).name == "BOOLEAN"}
        self.active = [i for i in range(len(self.shapes)) if i not in self.constants
                       and not (self.op.partials and self.op.partials[i] is None)]
        self.symbols: dict[str, Any] = {}
        for i in self.active:
            d = domain_of(self.op, i)
            facts = {"complex": True} if self.complex else d.assumptions
            self.symbols[self.names[i]] = symbol_array(self.names[i], self.shapes[i], facts)
            if not self.complex:
                self.domains |= dict.fromkeys(self.symbols[self.names[i]].ravel().tolist(), d)

    def __str__(self) -> str:
        inside = ", ".join([*(list(map(str, self.shapes)) if not self.single else ()), *map(_short_text, self.parameters)])
        return " ".join(["complex"] * self.complex + [f"({inside})"] * bool(inside))

    highest_order = 3

    @property
    def variables(self) -> list[sympy.Symbol]:
        return [s for i in self.active for s in self.symbols[self.names[i]].ravel().tolist()]

    def supply(self, name: str, shape: tuple[int, ...]) -> Any:
        if name not in self.symbols:
            self.symbols[name] = symbol_array(name, shape, {"real": True})
        return self.symbols[name]

    # The derivatives by the rules

    def claims(self, recorder: RecordingCarrier, supply: Supply, order: int) -> Claims:
        """The derivatives up to an order by the op's rules, in a recording carrier; `supply` returns the value for a name."""
        boxes: list[Any] = []
        for i, (name, shape) in enumerate(zip(self.names, self.shapes)):
            if i in self.active:
                boxes.append(self._leaf(recorder, supply, name, shape))
            else:
                boxes.append(Box(recorder, recorder.lift(self.constants.get(i, np.float64(1)))))
        rest = tuple(recorder.box(p) if type(p) is float else p for p in self.parameters)
        y = recorder.apply(self.op, boxes, rest)
        yield from (self._rule_partials if self.single else self._rule_chain)(recorder, supply, boxes, y, rest, order)

    def _leaf(self, recorder: RecordingCarrier, supply: Supply, name: str, shape: tuple[int, ...]) -> Box:
        box = Box(recorder, recorder.lift(supply(name, shape)))
        box.node = Leaf(box, box.value, True)
        return box

    def _cotangents(self, recorder: RecordingCarrier, boxes: Sequence[Box], g: Box, y: Box, rest: tuple) -> list[Box]:
        """The cotangents by the op's vjp, in the shapes of the arguments."""
        assert self.op.vjp is not None
        given = self.op.vjp(recorder, g, y, (*boxes, *rest), (True,) * len(boxes))
        out = []
        for i in self.active:
            c = given[i]
            if c is None:
                c = recorder.zeros_like(boxes[i])
            c = c if isinstance(c, Box) else recorder.box(c)
            out.append(c if tuple(c.shape) == tuple(boxes[i].shape) else recorder.sum_to_size(c, tuple(boxes[i].shape)))
        return out

    def _tangent(self, recorder: RecordingCarrier, supply: Supply, boxes: Sequence[Box], y: Box, rest: tuple) -> Box:
        assert self.op.jvp is not None
        tangents = [Box(recorder, recorder.lift(supply(f"t_{self.names[i]}", self.shapes[i]))) if i in self.active else None
                    for i in range(len(boxes))]
        out = self.op.jvp(recorder, tangents, y, (*boxes, *rest))
        if out is None:
            return recorder.zeros_like(y)
        return out if tuple(out.shape) == tuple(y.shape) else recorder.broadcast_to(out, tuple(y.shape))

    def _rule_partials(self, recorder: RecordingCarrier, supply: Supply, boxes: Sequence[Box], y: Box, rest: tuple, order: int) -> Claims:
        g = self._leaf(recorder, supply, "g", ())
        for i, c in zip(self.active, self._cotangents(recorder, boxes, g, y, rest)):
            yield Key(1, f"vjp by {self.names[i]}"), elements(c)
        yield Key(1, "jvp"), elements(self._tangent(recorder, supply, boxes, y, rest))
        level: dict[tuple[int, ...], Box] = {(): y}
        leaves = [boxes[i] for i in self.active]
        for k in range(1, order + 1):
            level = {(*path, i): found for path, box in level.items()
                     for i, found in zip(self.active, recorder.gradients([(box, 1)], leaves))}
            if k > 1:
                for path, box in level.items():
                    yield Key(k, "by " + ", ".join(self.names[i] for i in path)), elements(box)

    def _rule_chain(self, recorder: RecordingCarrier, supply: Supply, boxes: Sequence[Box], y: Box, rest: tuple, order: int) -> Claims:
        g = self._leaf(recorder, supply, "g", tuple(y.shape))
        pulled = self._cotangents(recorder, boxes, g, y, rest)
        names = [self.names[i] for i in self.active]
        for name, c in zip(names, pulled):
            yield Key(1, f"vjp by {name}"), elements(c)
        pushed = self._tangent(recorder, supply, boxes, y, rest)
        yield Key(1, "jvp"), elements(pushed)
        if order == 1:
            return
        leaves = [*(boxes[i] for i in self.active), g]

        def directional(letter: str, cotangents: Sequence[Box]) -> Box:
            parts = [recorder.sum(recorder.mul(Box(recorder, recorder.lift(supply(f"{letter}_{name}", tuple(c.shape)))), c))
                     for name, c in zip([*names, "g"], cotangents)]
            total = parts[0]
            for part in parts[1:]:
                total = recorder.add(total, part)
            return total

        below = directional("t", pulled)
        for k in range(2, order + 1):
            found = recorder.gradients([(below, 1)], leaves)
            for name, c in zip([*names, "the cotangent"], found):
                yield Key(k, f"vjp of vjp by {name}" if k == 2 else f"vjp of vjp of vjp by {name}"), elements(c)
            below = directional("u", found)
        through = recorder.gradients([(recorder.sum(recorder.mul(g, pushed)), 1)], leaves[:-1])
        for name, c in zip(names, through):
            yield Key(2, f"vjp of jvp by {name}"), elements(c)

    # The derivatives by SymPy

    def forward(self) -> list[Any]:
        cells = [self.supply(name, shape) if i in self.active else symbolic.lift_value(self.constants.get(i, np.float64(1)), exact=True)
                 for i, (name, shape) in enumerate(zip(self.names, self.shapes))]
        y = self.op.forward(symbolic, *((cells,) if self.op.arity is None else cells), *map(_exact, self.parameters))
        self.output = tuple(y.shape)
        return [sympy.sympify(e) for e in symbolic.lift_value(y, exact=True).ravel().tolist()]

    def reference_derivatives(self, order: int, region: Any, tape: Tape) -> Iterator[tuple[Key, list[Any]]]:
        """The same derivatives on a tape: sweeps over the forward rule inside a region, with `sympy.diff` of each step."""
        ys = [tape.cut(region(y)) for y in self.forward()]
        if self.single:
            yield from self._reference_partials(ys[0], order, region, tape)
            return
        names = [self.names[i] for i in self.active]

        def gradients(of: Any, names: Sequence[str]) -> dict[str, list[Any]]:
            found = iter(region.gradient(tape, of, [s for name in names for s in self._symbols(name)]))
            return {name: [next(found) for _ in self._symbols(name)] for name in names}

        def directional(letter: str, parts: Mapping[str, list[Any]]) -> Any:
            return tape.cut(sympy.Add(*(t * e for name, es in parts.items() for t, e in zip(self._symbols(f"{letter}_{name}", name), es))))

        phi = tape.cut(sympy.Add(*(a * b for a, b in zip(self._symbols("g"), ys))))
        first = gradients(phi, names)
        for name in names:
            yield Key(1, f"vjp by {name}"), first[name]
        below = directional("t", first)
        yield Key(1, "jvp"), gradients(below, ["g"])["g"]
        for k in range(2, order + 1):
            found = gradients(below, [*names, "g"])
            for name, es in found.items():
                by = "the cotangent" if name == "g" else name
                yield Key(k, f"vjp of vjp by {by}" if k == 2 else f"vjp of vjp of vjp by {by}"), es
                if k == 2 and name != "g":
                    yield Key(2, f"vjp of jvp by {name}"), es
            below = directional("u", found)

    def _symbols(self, name: str, like: str = "") -> list[Any]:
        """The symbols of an argument, of the cotangent, or of a direction of the shape of one of these, in order."""
        shape = self.output if (like or name) == "g" else tuple(self.symbols[like or name].shape)
        return list(self.supply(name, shape).ravel().tolist())

    def _reference_partials(self, y: Any, order: int, region: Any, tape: Tape) -> Iterator[tuple[Key, list[Any]]]:
        g = self.supply("g", ()).item()
        at = {i: self.symbols[self.names[i]].item() for i in self.active}
        known: dict[tuple[int, ...], Any] = {(): y}
        for k in range(order):
            for path in [path for path in known if len(path) == k]:
                later = [i for i in self.active if not path or i >= path[-1]]
                found = region.gradient(tape, known[path], [at[i] for i in later])
                known |= {(*path, i): e for i, e in zip(later, found)}
        for i in self.active:
            yield Key(1, f"vjp by {self.names[i]}"), [tape.cut(g * known[(i,)])]
        yield Key(1, "jvp"), [tape.cut(sympy.Add(*(self.supply(f"t_{self.names[i]}", ()).item() * known[(i,)] for i in self.active)))]
        for k in range(2, order + 1):
            for path in itertools.product(self.active, repeat=k):
                yield Key(k, "by " + ", ".join(self.names[i] for i in path)), [known[tuple(sorted(path))]]


def elements(box: Any) -> list[Any]:
    """The elements of a box, in order."""
    return box.value.ravel().tolist()


def symbol_array(name: str, shape: tuple[int, ...], facts: Mapping[str, bool]) -> Any:
    """An array of symbols whose names contain their indices."""
    symbols = [sympy.Symbol("_".join([name, *map(str, at)]), **facts) for at in np.ndindex(shape)]
    return symbolic.ExactExpressions.fill(symbols, shape)


def _exact(x: Any) -> Any:
    """A parameter of an exact formula: floats become rational numbers of the same value."""
    return sympy.Rational(*x.as_integer_ratio()) if type(x) is float and np.isfinite(x) else x


def _short_text(x: Any) -> str:
    text = " ".join(str(x).split())
    return text if len(text) < 30 else text[:28] + "…"
