"""Gradients that remember where they come from: to differentiate one again costs a pass over the function it is the gradient of.

A gradient that somebody outside differentiates by need not be recorded as a graph of its own. Its value is computed with numbers, at one node that
keeps the graph of the function, y. What a pullback of that node asks for is again of this kind, for derivatives commute:

    ∂/∂x ⟨v, Dᵏ∇y(x)[v, ..., v]⟩ = Dᵏ⁺¹∇y(x)[v, ..., v],

the (k + 1)-th coefficient of the gradient along x + t v. One pushforward of series and one pullback with cotangents that are series give all of them,
so that the k-th nested gradient costs k² in place of 3ᵏ; the first alone comes from dual values. A cotangent that is another vector, or is itself
differentiated by, is pulled back through the gradient as a recorded graph.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.autograd.engine import grad, read_traced
from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched, levels_of
from symgrad.carriers.dual import Dual, DualCarrier
from symgrad.carriers.series import Series, SeriesCarrier
from symgrad.carriers.tape import Tape, Taped, TapingCarrier, _step, _taped
from symgrad.func.evaluation import Evaluation, Input
from symgrad.func.forms import form_of
from symgrad.func.rules import Rule, Some, Tensors, attached, closed, gate, recording, rule_op
from symgrad.graph import FREED, GRADIENT, TRACKED, Node, board, mode
from symgrad.hooks import DETOURS
from symgrad.lift import traced
from symgrad.op import REGISTRY, Op
from symgrad.passes import arguments, call_rule, pullback_along, pushforward
from symgrad.recording import NUMBERS
from symgrad.saved import verify
from symgrad.tensor import Tensor, wrap

__all__ = ["Derivative", "Program", "gradient"]

_ONE = np.float64(1.0)
float64, ndarray = np.float64, np.ndarray
ROOM = 2_000_000  # elements that the values of a program may have to be carried along on a tape
LONG = 400  # nodes of a program whose steps are written down
KEPT = 64  # forms of programs whose steps are remembered
_known: dict[Any, Steps] = {}
_taping = TapingCarrier()
_dual = DualCarrier(numeric)


def one(like: Any) -> Any:
    """The cotangent of a scalar itself."""
    return _ONE if type(like) is np.float64 else np.ones_like(like)[()]


def unwatched() -> bool:
    """Whether nobody looks at cotangents on their way, or at what is recorded."""
    return not (DETOURS.data or board.anomaly is not None or board.observer is not None  # type: ignore[attr-defined]
                or board.paused and (mode.watcher is not None or mode.observers))


def _constant(x: Any) -> Any:
    return x if type(x) in NUMBERS else wrap(x)


Direction = Sequence[Any]  # a vector for each end, None for zero


def read(node: Node) -> tuple[Any, tuple]:
    """A node's value and arguments, as they were when it was recorded."""
    if node.args is None:
        raise RuntimeError(FREED)
    if node.sequence_nr < board.written and node.protects:
        verify(node, node.parents)
    return node.value, node.args


class Program:
    """A recorded scalar: its node, the nodes it was computed through, oldest first, and those it was computed from, the ends.

    The first `count` ends are those by which it is differentiated, `depth` times more than once.
    """

    __slots__ = ("root", "path", "ends", "count", "_steps", "_values", "_direction", "_reached")

    def __init__(self, root: Node, path: Sequence[Node], ends: Sequence[Node], count: int, depth: int):
        self.root, self.path, self.ends, self.count = root, path, ends, count
        self._steps, self._reached, self._values = _steps_of(self, depth), -1, list[Any]()
        self._direction: Direction | None = None

    def seed(self) -> dict[Node, Any]:
        """The cotangent that a pullback starts with."""
        return {self.root: one(self.root.value)}

    def between(self, needs: Sequence[int]) -> set[Node]:
        """The nodes on the way to some of the ends."""
        out = {self.ends[i] for i in needs}
        for node in self.path:
            if not out.isdisjoint(node.parents):
                out.add(node)
        return out

    def replayed(self, tensors: Tensors) -> Tensor:
        """The scalar, recorded again from other tensors at the ends."""
        known: dict[Node, Any] = dict(zip(self.ends, tensors))
        for node in self.path:
            known[node] = call_rule(traced, node, arguments(node, known, _constant), node.args or ())
        return known[self.root]

    def gradient(self) -> list[Any]:
        """The derivatives by the first ends, None for zero."""
        if self._steps is not None:
            return self._stepped(self._steps, 0)
        found = pullback_along(numeric, self.path, self.between(range(self.count)), self.seed())
        return [found.get(end) for end in self.ends[:self.count]]

    def along(self, direction: Direction, order: int, needs: Sequence[int]) -> list[Any] | None:
        """The derivative of an order of the gradient, by some of the ends, along a vector; None where it is not known how."""
        steps, count = self._steps, self.count
        if steps is not None and order < len(steps.stages) and [*needs] == [*range(count)] and not any([
                t is not None and (i >= count or type(t) is Batched) for i, t in enumerate(direction)]):
            if self._direction is None or not _same(direction, self._direction):
                self._reached, self._direction = min(self._reached, 0), direction
                self._values[:count] = [np.zeros_like(x.value) if t is None else t for t, x in zip(direction, self.ends[:count])]
            return self._stepped(steps, order)
        return self._once(direction, needs) if order == 1 else None

    def _stepped(self, steps: Steps, order: int) -> list[Any]:
        """The derivative of an order, by the steps that lead there from those that were taken."""
        values = self._values
        if not values:
            values += [None] * self.count
            values += steps.inputs(self)
            values += [None] * len(steps.tape.calls)
        elif board.written > self.path[0].sequence_nr:
            for node in self.path:
                read(node)
        while self._reached < order:
            self._reached += 1
            for place, step in steps.stages[self._reached]:
                values[place] = step(values)
        found = [values[y.place] if type(y) is Taped else y for y in steps.outputs[order]]
        return found if order < 2 else [None if t is None else t * float(math.factorial(order)) for t in found]

    def _once(self, direction: Direction, needs: Sequence[int]) -> list[Any]:
        """The first derivative along any vector: a pullback with dual values."""
        moved = pushforward(numeric, (), {end: t for end, t in zip(self.ends, direction) if t is not None}, read, self.path)

        def dual(node: Node) -> tuple[Any, tuple]:
            value, args = read(node)
            parents = node.parents
            along = tuple([Dual(a, moved[p]) if p in moved else a for a, p in zip(args, parents)]) + args[len(parents):]
            return Dual(value, moved[node]) if node in moved else value, along

        found = pullback_along(_dual, self.path, self.between(needs), self.seed(), dual)
        return [g.tangent if type(g) is Dual else None for g in (found.get(self.ends[i]) for i in needs)]


class Steps:
    """How the coefficients of the gradient along a vector are computed for every program of one form, those of each order from those before.

    `stages` are the steps that each order adds, `outputs` what it gives for the first ends.
    """

    def __init__(self, program: Program, depth: int, constants: Sequence[tuple[int, int]], kept: Sequence[int]):
        self.tape = tape = Tape()
        carrier, ends, count = SeriesCarrier(_taping, depth), program.ends, program.count
        vectors = [tape.enter(np.ones_like(end.value)) for end in ends[:count]]
        entered: dict[Any, Any] = {end: tape.enter(end.value) for end in ends}
        self.constants, self.kept = constants, kept
        fixed = {place: tape.enter(program.path[place[0]].args[place[1]]) for place in constants}  # type: ignore[index]
        entered |= {node: tape.enter(node.value) for node in program.path}
        residuals = [tape.enter(program.path[i].residual) for i in kept]  # type: ignore[attr-defined]
        for i, residual in zip(kept, residuals):  # what keeps a residual has its derivative from that
            slope = numeric.WITH_RESIDUAL[program.path[i].op.name][1]
            tape.note(numeric.sech_square, (entered[program.path[i].parents[0]],), tape.call(slope, (residual,)))
        known: dict[Any, Any] = {end: carrier.polynomial([entered[end], v]) for end, v in zip(ends, vectors)}
        places = {node: i for i, node in enumerate(program.path)}

        def tensors(node: Node) -> tuple:
            given = enumerate(zip(node.parents, node.args))  # type: ignore[arg-type]
            return tuple([fixed.get((places[node], k), a) if p is None or p.value is not a else known.get(p, entered[p]) for k, (p, a) in given])

        def series(node: Node) -> tuple[Any, tuple]:
            return known.get(node, entered[node]), tensors(node) + node.args[len(node.parents):]  # type: ignore[index]

        for node in program.path:
            if not known.keys().isdisjoint(node.parents):
                given = [a if type(a) is Series or type(a) in NUMBERS else carrier.lift_value(a) for a in tensors(node)]
                known[node] = carrier.apply(node.op, given, node.args[len(given):], entered[node])  # type: ignore[index]
                known[node].terms[0] = entered[node]  # arithmetic computes it again

        found = pullback_along(carrier, program.path, program.between(range(count)), program.seed(), series)
        grow = carrier.schedule()
        for k in range(1, depth + 1):
            grow(k)
        self.outputs = [[_term(found.get(end), k) for end in ends[:count]] for k in range(depth + 1)]
        self.stages = self._staged()
        carrier.close()

    def _staged(self) -> list[list[tuple[int, Any]]]:
        """The steps that each order needs and none before it."""
        tape, taken, out = self.tape, set[int](), []
        same: Any = range(tape.count + len(tape.calls))
        for row in self.outputs:
            stack, stage = [y.place for y in row if type(y) is Taped], []
            while stack:
                place = stack.pop()
                if place >= tape.count and place not in taken:
                    taken.add(place)
                    stage.append(place)
                    stack += [t.place for t in _taped(tape.calls[place - tape.count][1])]
            out.append([(place, _step(*tape.calls[place - tape.count], same)) for place in sorted(stage)])
        return out

    def inputs(self, program: Program) -> list[Any]:
        """What goes onto the tape after the vectors."""
        path = [read(node) for node in program.path]
        return [*[end.value for end in program.ends], *[path[i][1][k] for i, k in self.constants], *[value for value, _ in path],
                *[program.path[i].residual for i in self.kept]]  # type: ignore[attr-defined]


def _term(x: Any, k: int) -> Any:
    """A coefficient of what may be a series, None for zero."""
    return (x.terms[k] if k < len(x.terms) else None) if type(x) is Series else x if k == 0 else None


def _steps_of(program: Program, depth: int) -> Steps | None:
    """The steps for programs of this form, of which none looks at numbers; None where they cannot be written down, or hold too much."""
    if len(program.path) > LONG or sum([node.value.size for node in program.path]) > ROOM or not all([
            type(x.value) is float64 or type(x.value) is ndarray and x.value.dtype.kind == "f" for x in (*program.ends, *program.path)]):
        return None
    form = form_of(program.ends, program.path, program.root)
    if form is None:
        return None
    constants = tuple([(i, k) for i, node in enumerate(program.path) for k, (p, a) in enumerate(zip(node.parents, node.args))  # type: ignore[arg-type]
                       if (p is None or p.value is not a) and type(a) not in NUMBERS])
    kept = tuple([i for i, node in enumerate(program.path) if hasattr(node, "residual")])
    key = form, constants, kept, depth, program.count, program.root.value.dtype
    found = _known.get(key)
    if found is None:
        while len(_known) >= KEPT:
            _known.pop(next(iter(_known)), None)
        found = _known[key] = Steps(program, depth, constants, kept)
    return found


def _same(a: Direction, b: Direction) -> bool:
    """Whether two vectors are equal, as far as that is quickly known."""
    return all([x is y or x is not None and y is not None and Batched not in (type(x), type(y)) and x.shape == y.shape and bool(np.all(x == y))
                for x, y in zip(a, b)])


class Derivative(Rule):
    """The derivative of an order of the gradient of a program along a vector: Dᵏ∇y(x)[v, ..., v], by the ends whose numbers are `by`."""

    def __init__(self, program: Program, by: Sequence[int], direction: Direction, order: int):
        self.program, self.by, self.direction, self.order = program, by, direction, order
        self.values = tuple([end.value for end in program.ends])

    def _recorded(self, tensors: Tensors) -> tuple[list[Tensor], list[Tensor]]:
        """The outputs as a graph of its own, from arguments at places of their own."""
        places = [gate(t) for t in tensors]
        with recording(True):
            y = self.program.replayed(places)
            for _ in range(self.order):
                along = [(x, wrap(v)) for x, v in zip(places, self.direction) if v is not None]
                found = grad(y, [x for x, _ in along], create_graph=True, materialize_grads=True)
                y = sum([(g * v).sum() for g, (_, v) in zip(found, along)], wrap(np.zeros_like(self.program.root.value)))  # type: ignore[operator]
            return places, list(grad(y, [places[i] for i in self.by], create_graph=True, materialize_grads=True))  # type: ignore[arg-type]

    def evaluate(self, tensors: Tensors) -> Tensors:
        places, outputs = self._recorded(tensors)
        closed(places)
        return outputs if mode.grad else [wrap(t._value) for t in outputs]

    def _next(self, moving: Some) -> Direction | None:
        """The vector for one derivative more; None where that is no matter of numbers, or another one than before."""
        direction: list[Any] = [None] * len(self.values)
        for i, t in enumerate(moving):
            if t is not None:
                if mode.grad and (t._node is not None or not {*levels_of(t._value)} <= {*levels_of(self.values[i])}):
                    return None
                direction[i] = t._value
        return direction if not self.order or _same(direction, self.direction) else None

    def _differentiated(self, tensors: Tensors, moving: Some, by: Sequence[int]) -> Some | None:
        """One derivative more, by some of the ends: values, or a node of the same kind; None where it takes a recorded graph."""
        direction = self._next(moving)
        if direction is None:
            return None
        values = self.program.along(direction, self.order + 1, by)
        if values is None:
            return None
        found: Any = [wrap(np.zeros_like(self.values[i]) if v is None else v) for i, v in zip(by, values)]
        return attached(_op, Derivative(self.program, by, direction, self.order + 1), tensors, found) if mode.grad else found

    def pulled(self, tensors: Tensors, outputs: Tensors, cotangents: Some, needs: Sequence[Any]) -> Some:
        by = [i for i, need in enumerate(needs) if need is not None]
        found = self._differentiated(tensors, _at(cotangents, self.by, len(self.values)), by)
        if found is None:
            places, ys = self._recorded(tensors)
            pairs = [(y, g) for y, g in zip(ys, cotangents) if g is not None]
            found = list(grad([y for y, _ in pairs], [places[i] for i in by], [g for _, g in pairs], create_graph=mode.grad, allow_unused=True))
            closed(places)
        each = dict(zip(by, found))
        return [each.get(i) for i in range(len(needs))]

    def pushed(self, tensors: Tensors, outputs: Tensors, tangents: Some) -> Some:
        known = self._differentiated(tensors, tangents, self.by)
        if known is not None:
            return known
        places, ys = self._recorded(tensors)
        tracked = mode.grad
        starts = {x._node: t if tracked else t._value for x, t in zip(places, tangents) if t is not None}
        found = pushforward(traced if tracked else numeric, [y._node for y in ys], starts, read_traced if tracked else None)  # type: ignore[misc, arg-type]
        closed(places)
        out = [found.get(y._node) for y in ys]  # type: ignore[arg-type]
        return [t if t is None or isinstance(t, Tensor) else wrap(t) for t in out]


def _at(parts: Some, places: Sequence[int], count: int) -> Some:
    """The parts at their places among so many."""
    out: list[Tensor | None] = [None] * count
    for i, part in zip(places, parts):
        out[i] = part
    return out


_op = rule_op("Derivative")


def gradient(ev: Evaluation, y: Tensor) -> list[Tensor | None] | None:
    """The gradient of a scalar by the inputs of an evaluation whose result is differentiated, None for zero; or None where it must be recorded.

    It is recorded where hooks, anomaly mode, names or tangents look on, and where an op of the program has no pushforward of its own.
    """
    if not unwatched():
        return None
    root, since = y._node, ev.nodes[0].sequence_nr
    assert root is not None
    inputs, path, ends = set(ev.nodes), list[Node](), [x for x in ev.nodes if x in ev.between]
    seen: set[Node | None] = {None, root, *inputs}
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        if node.flags & TRACKED != GRADIENT:
            return None
        if node.sequence_nr < since or not node.parents:
            ends.append(node)
            continue
        if not _plain(node):
            return None
        path.append(node)
        for p in node.parents:
            if p not in seen:
                seen.add(p)
                stack.append(p)
    path.sort(key=operator.attrgetter("sequence_nr"))
    count = len([x for x in ev.nodes if x in ev.between])
    program = Program(root, path, ends, count, _depth(ev.nodes))
    found = [wrap(np.zeros_like(end.value) if v is None else v) for end, v in zip(ends, program.gradient())]
    each = dict(zip(ends, attached(_op, Derivative(program, range(count), (), 0), [wrap(end.value, end) for end in ends], found)))
    return [each.get(x) for x in ev.nodes]


def _plain(node: Node) -> bool:
    """Whether a node's op is one of the tables', with both rules, that looks at no sign or order of its arguments."""
    op = getattr(type(node), "op", None)
    return isinstance(op, Op) and not op.chooses and op.jvp is not None and op.vjp is not None and REGISTRY.get(op.name) is op


def _depth(nodes: Sequence[Node]) -> int:
    """How many evaluations that are still going on are around the one that has these inputs."""
    deepest = 0
    for node in nodes:
        count = 0
        while node.parents and type(node := node.parents[0]) is Input and node.open:  # type: ignore[assignment]
            count += 1
        deepest = max(deepest, count)
    return max(deepest, 1)
