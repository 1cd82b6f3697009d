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
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.autograd.engine import grad, read_traced
from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched, levels_of
from symgrad.carriers.dual import Dual, DualCarrier
from symgrad.carriers.series import Series, SeriesCarrier
from symgrad.func.evaluation import Evaluation, Input
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

    `depth` is how often its gradient is expected to be differentiated.
    """

    __slots__ = ("root", "path", "ends", "depth", "_grown")

    def __init__(self, root: Node, path: Sequence[Node], ends: Sequence[Node], depth: int):
        self.root, self.path, self.ends, self.depth = root, path, ends, depth
        self._grown: tuple[Any, ...] | None = None

    def _seed(self) -> dict[Node, Any]:
        return {self.root: one(self.root.value)}

    def _between(self, needs: Sequence[int]) -> set[Node]:
        """The nodes on the way to some of the ends."""
        out = {self.ends[i] for i in needs}
        for node in self.path:
            if any([p in out for p in node.parents]):
                out.add(node)
        return out

    def gradient(self, needs: Sequence[int]) -> list[Any]:
        """The derivatives by some of the ends, None for zero."""
        found = pullback_along(numeric, self.path, self._between(needs), self._seed())
        return [found.get(self.ends[i]) for i in needs]

    def replayed(self, tensors: Tensors) -> Tensor:
        """The scalar, recorded again from other tensors at the ends."""
        known: dict[Node, Any] = dict(zip(self.ends, tensors))
        for node in self.path:
            known[node] = call_rule(traced, node, arguments(node, known, _constant), node.args or ())
        return known[self.root]

    def along(self, direction: Direction, order: int, needs: Sequence[int]) -> list[Any]:
        """The derivative of an order of the gradient, by some of the ends, along a vector."""
        grown = self._grown
        if grown is None or grown[1] != tuple(needs) or not _same(grown[0], direction):
            if order == 1 and (self.depth < 2 or not mode.grad):
                return self._once(direction, needs)
            grown = None
        if grown is None or order > self.depth:
            self.depth = max(order, self.depth)
            grown = self._grown = direction, tuple(needs), *self._series(direction, needs), []
        _, _, found, grow, reached = grown
        while len(reached) < order:
            reached.append(grow(len(reached) + 1))
        return [_coefficient(x, order) for x in found]

    def _once(self, direction: Direction, needs: Sequence[int]) -> list[Any]:
        """The first derivative: a pullback with dual values."""
        moved = pushforward(numeric, (), {end: t for end, t in zip(self.ends, direction) if t is not None}, read, self.path)

        def dual(node: Node) -> tuple[Any, tuple]:
            value, args = read(node)
            parents = node.parents
            along = tuple([Dual(a, moved[p]) if p in moved else a for a, p in zip(args, parents)]) + args[len(parents):]
            return Dual(value, moved[node]) if node in moved else value, along

        found = pullback_along(_dual, self.path, self._between(needs), self._seed(), dual)
        return [g.tangent if type(g) is Dual else None for g in (found.get(self.ends[i]) for i in needs)]

    def _series(self, direction: Direction, needs: Sequence[int]) -> tuple[list[Any], Any]:
        """The series of the gradient along a vector, of which only the first coefficient is there; and what adds the one of an order to all."""
        carrier = SeriesCarrier(numeric, self.depth)
        known: dict[Any, Any] = {end: carrier.polynomial([end.value, t]) for end, t in zip(self.ends, direction) if t is not None}

        def moving(node: Node, args: tuple) -> tuple:
            return tuple([known[p] if p in known else a for p, a in zip(node.parents, args)])

        for node in self.path:
            value, args = read(node)
            if any([p in known for p in node.parents]):
                tensors = [a if type(a) is Series or type(a) in NUMBERS else carrier.lift_value(a) for a in moving(node, args)]
                known[node] = carrier.apply(node.op, tensors, args[len(tensors):], value)

        def series(node: Node) -> tuple[Any, tuple]:
            return known.get(node, node.value), moving(node, node.args) + node.args[len(node.parents):]  # type: ignore[arg-type, index]

        found = pullback_along(carrier, self.path, self._between(needs), self._seed(), series)
        return [found.get(self.ends[i]) for i in needs], carrier.schedule()


def _coefficient(x: Any, k: int) -> Any:
    """The derivative of an order of a series, None for zero."""
    if type(x) is not Series or k >= len(x.terms):
        return None
    found = x.terms[k] * float(math.factorial(k))
    return np.float64(found) if type(found) is float else found


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
                y = sum(((g * v).sum() for g, (_, v) in zip(found, along)), wrap(np.zeros_like(self.program.root.value)))
            return places, list(grad(y, [places[i] for i in self.by], create_graph=True, materialize_grads=True))

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

    def _differentiated(self, tensors: Tensors, direction: Direction, by: Sequence[int]) -> list[Tensor | None]:
        """One derivative more, by some of the ends: values, or a node of the same kind."""
        values = self.program.along(direction, self.order + 1, by)
        found: Any = [wrap(np.zeros_like(self.values[i]) if v is None else v) for i, v in zip(by, values)]
        return attached(_op, Derivative(self.program, by, direction, self.order + 1), tensors, found) if mode.grad else found

    def pulled(self, tensors: Tensors, outputs: Tensors, cotangents: Some, needs: Sequence[Any]) -> Some:
        by = [i for i, need in enumerate(needs) if need is not None]
        direction = self._next(_at(cotangents, self.by, len(self.values)))
        if direction is not None:
            found = self._differentiated(tensors, direction, by)
        else:
            places, ys = self._recorded(tensors)
            pairs = [(y, g) for y, g in zip(ys, cotangents) if g is not None]
            found = list(grad([y for y, _ in pairs], [places[i] for i in by], [g for _, g in pairs], create_graph=mode.grad, allow_unused=True))
            closed(places)
        each = dict(zip(by, found))
        return [each.get(i) for i in range(len(needs))]

    def pushed(self, tensors: Tensors, outputs: Tensors, tangents: Some) -> Some:
        direction = self._next(tangents)
        if direction is not None:
            return self._differentiated(tensors, direction, self.by)
        places, ys = self._recorded(tensors)
        tracked = mode.grad
        starts = {x._node: t if tracked else t._value for x, t in zip(places, tangents) if t is not None}
        found = pushforward(traced if tracked else numeric, [y._node for y in ys], starts, read_traced if tracked else None)  # type: ignore[arg-type]
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
    """The gradient of a scalar by the inputs of an evaluation that somebody outside differentiates by, None for zero; or None where it must be recorded.

    It is recorded where hooks, anomaly mode, names or tangents look on, and where an op of the program has no pushforward of its own.
    """
    if not unwatched():
        return None
    root, since = y._node, ev.nodes[0].sequence_nr
    assert root is not None
    inputs, path, ends = set(ev.nodes), list[Node](), [x for x in ev.nodes if x in ev.between]
    seen, stack = {root, *inputs}, [root]
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
        new = [p for p in node.parents if p is not None and p not in seen]
        seen.update(new)
        stack += new
    path.sort(key=lambda node: node.sequence_nr)
    rule = Derivative(Program(root, path, ends, _depth(ev.nodes)), [i for i, x in enumerate(ends) if x in inputs], (), 0)
    values = rule.program.gradient(rule.by)
    found = [wrap(np.zeros_like(ends[i].value) if v is None else v) for i, v in zip(rule.by, values)]
    each = dict(zip([ends[i] for i in rule.by], attached(_op, rule, [wrap(end.value, end) for end in ends], found)))
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
