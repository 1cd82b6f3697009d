"""Gradients as single nodes that refer to the function's graph, so that differentiating them again is one pass over that graph.

A gradient that is differentiated outside its transform need not be recorded as a graph. Its value is computed with numbers, at one node that
refers to the graph of the function, y. The pullback of that node is again such a node, since derivatives commute:

    ∂/∂x ⟨v, Dᵏ∇y(x)[v, ..., v]⟩ = Dᵏ⁺¹∇y(x)[v, ..., v],

the (k + 1)-th coefficient of the gradient along x + t v. One pushforward of series and one pullback with cotangents that are series compute all of
them, so that the k-th nested gradient costs k² in place of 3ᵏ. The first derivative alone is computed with dual values. If a cotangent is another
vector, or requires a gradient itself, the gradient is recorded as a graph and the cotangent is pulled back through it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.autograd.engine import grad
from symgrad.autograd.seeds import one
from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched, levels_of
from symgrad.carriers.dual import Dual, DualCarrier
from symgrad.carriers.recorded import Recorded
from symgrad.engine.replay import pushforward
from symgrad.engine.saved import read, verify_all
from symgrad.engine.tensor import Tensor, wrap
from symgrad.func.evaluation import Evaluation, InputNode, recording, unshared
from symgrad.func.recorded_series import Walk, gradient_steps, recorded_coefficients, steps_of, walk_of
from symgrad.func.rules import Rule, Some, Tensors, attach_node, close_inputs, fresh_input, rule_op
from symgrad.graph.modes import thread
from symgrad.graph.node import Node

_dual = DualCarrier(numeric)
Direction = Sequence[Any]  # a vector for each end, None for zero


class ScalarGradient(Walk):
    """A recorded scalar whose gradient is to be differentiated `depth` more times."""

    def __init__(self, root: Node, path: Sequence[Node], ends: Sequence[Node], count: int, depth: int):
        super().__init__(root, path, ends, count)
        self._steps: Any = steps_of(gradient_steps, self, depth)
        self._run: Any = None
        self._direction: Direction | None = None

    def gradient(self) -> list[Any]:
        """The derivatives by the inputs, None for zero."""
        if self._steps is not None:
            return self._by_steps(0)
        found = self.pullback(numeric, one(self.root.value), range(self.count))
        return [None if (g := found.pop(end, None)) is None else unshared(g) for end in self.ends[:self.count]]

    def along(self, direction: Direction, order: int, needs: Sequence[int]) -> list[Any] | None:
        """The derivative of the gradient of an order, by some of the ends, along a vector; None if an op does not support it."""
        steps, count = self._steps, self.count
        if thread.modes.program is not None and self.is_real and [*needs] == [*range(count)] and not any([
                t is not None and (i >= count or type(t) is Batched) for i, t in enumerate(direction)]):
            found = recorded_coefficients(self, direction, order)
            return [None if t is None else t * float(math.factorial(order)) for t in found]
        if steps is not None and order < steps.rows and [*needs] == [*range(count)] and not any([
                t is not None and (i >= count or type(t) is Batched) for i, t in enumerate(direction)]):
            if self._direction is None or not _are_equal(direction, self._direction):
                self._direction = direction
                vectors = [np.zeros_like(x.value) if t is None else t for t, x in zip(direction, self.ends[:count])]
                self._started(vectors).restart(vectors, 1)
            return self._by_steps(order)
        return self._by_dual_values(direction, needs) if order == 1 else None

    def _started(self, vectors: Sequence[Any]) -> Any:
        """The run of the recorded steps for this walk."""
        if self._run is None:
            self._run = self._steps.start(self.path, vectors, self.ends)
        else:
            verify_all(self.path)
        return self._run

    def _by_steps(self, order: int) -> list[Any]:
        """The derivative of an order, by the recorded steps that have not run yet."""
        found = self._started([None] * self.count).row(order)
        return [None if t is None else t * float(math.factorial(order)) for t in found]

    def _by_dual_values(self, direction: Direction, needs: Sequence[int]) -> list[Any]:
        """The first derivative along any vector: a pullback with dual values."""
        moved = pushforward(numeric, (), {end: t for end, t in zip(self.ends, direction) if t is not None}, read, self.path)

        def dual(node: Node) -> tuple[Any, tuple]:
            value, args = read(node)
            parents = node.parents
            along = tuple([Dual(a, moved[p]) if p in moved else a for a, p in zip(args, parents)]) + args[len(parents):]
            return Dual(value, moved[node]) if node in moved else value, along

        found = self.pullback(_dual, one(self.root.value), needs, dual)
        return [g.tangent if type(g) is Dual else None for g in (found.get(self.ends[i]) for i in needs)]


def _are_equal(a: Direction, b: Direction) -> bool:
    """Whether two vectors are equal, by a cheap comparison that may be False for equal ones."""
    if thread.modes.program is not None:
        return all([x is y or type(x) is type(y) is Recorded and x.entry is y.entry for x, y in zip(a, b)])
    return all([x is y or x is not None and y is not None and Batched not in (type(x), type(y)) and x.shape == y.shape and bool(np.all(x == y))
                for x, y in zip(a, b)])


class Derivative(Rule):
    """The derivative of order k of a program's gradient along a vector: Dᵏ∇y(x)[v, ..., v], by the ends with the numbers `by`."""

    records_content = True

    def __init__(self, program: ScalarGradient, by: Sequence[int], direction: Direction, order: int):
        self.program, self.by, self.direction, self.order = program, by, direction, order
        self.values = tuple([end.value for end in program.ends])

    def recorded(self, tensors: Tensors) -> tuple[list[Tensor], list[Tensor]]:
        places = [fresh_input(t) for t in tensors]
        with recording(True):
            y = self.program.replay(places)
            for _ in range(self.order):
                along = [(x, wrap(v)) for x, v in zip(places, self.direction) if v is not None]
                found = grad(y, [x for x, _ in along], create_graph=True, materialize_grads=True)
                y = sum([(g * v).sum() for g, (_, v) in zip(found, along)], wrap(np.zeros_like(self.program.root.value)))
            return list(grad(y, [places[i] for i in self.by], create_graph=True, materialize_grads=True)), places

    def evaluate(self, tensors: Tensors) -> Tensors:
        outputs, places = self.recorded(tensors)
        close_inputs(places)
        return outputs if thread.modes.grad else [wrap(t._value) for t in outputs]

    def _next_direction(self, moving: Some) -> Direction | None:
        """The vector for one more derivative; None if it requires a gradient or differs from the former vector."""
        direction: list[Any] = [None] * len(self.values)
        for i, t in enumerate(moving):
            if t is not None:
                if thread.modes.grad and (t._node is not None or not {*levels_of(t._value)} <= {*levels_of(self.values[i])}):
                    return None
                direction[i] = t._value
        return direction if not self.order or _are_equal(direction, self.direction) else None

    def _differentiate(self, tensors: Tensors, moving: Some, by: Sequence[int]) -> Some | None:
        """One more derivative, by some of the ends: values, or a node of the same kind; None if the gradient must be recorded as a graph."""
        direction = self._next_direction(moving)
        if direction is None:
            return None
        values = self.program.along(direction, self.order + 1, by)
        if values is None:
            return None
        found: Any = [wrap(np.zeros_like(self.values[i]) if v is None else v) for i, v in zip(by, values)]
        return attach_node(_op, Derivative(self.program, by, direction, self.order + 1), tensors, found) if thread.modes.grad else found

    def pullback(self, tensors: Tensors, outputs: Tensors, cotangents: Some, needs: Sequence[Any]) -> Some:
        by = [i for i, need in enumerate(needs) if need is not None]
        found = self._differentiate(tensors, _at_positions(cotangents, self.by, len(self.values)), by)
        if found is None:
            return super().pullback(tensors, outputs, cotangents, needs)
        each = dict(zip(by, found))
        return [each.get(i) for i in range(len(needs))]

    def pushforward(self, tensors: Tensors, outputs: Tensors, tangents: Some) -> Some:
        known = self._differentiate(tensors, tangents, self.by)
        return super().pushforward(tensors, outputs, tangents) if known is None else known


def _at_positions(parts: Some, places: Sequence[int], count: int) -> Some:
    """A list of `count` entries with the parts at the given positions."""
    out: list[Tensor | None] = [None] * count
    for i, part in zip(places, parts):
        out[i] = part
    return out


def _vjp(xp: Any, g: Any, y: Any, args: tuple, needs: Sequence) -> tuple:
    """The pullback with the short path for plain arrays."""
    rule = args[-1]
    if xp is numeric and type(g) in (np.float64, np.ndarray) and len(rule.by) == 1 and not rule.vmap_levels:
        direction: list[Any] = [None] * len(needs)
        direction[rule.by[0]] = g
        if not rule.order or _are_equal(direction, rule.direction):
            by = [i for i, need in enumerate(needs) if need is not None]
            found = rule.program.along(direction, rule.order + 1, by)
            if found is not None:
                each = {i: np.zeros_like(rule.values[i]) if v is None else v for i, v in zip(by, found)}
                return tuple([each.get(i) for i in range(len(needs))])
    return _rule.vjp(xp, g, y, args, needs)  # type: ignore[misc]


_rule = rule_op("Derivative")
_op = _rule.but(vjp=_vjp)


def gradient_node(ev: Evaluation, y: Tensor) -> list[Tensor | None] | None:
    """The gradient of a scalar by the inputs of a tracked evaluation, None for zero; or None if it must be recorded as a graph."""
    found = walk_of(ev, y)
    if found is None:
        return None
    program = ScalarGradient(*found, _nesting_depth(ev.nodes))
    ends = program.ends
    values = [wrap(np.zeros_like(end.value) if v is None else v) for end, v in zip(ends, program.gradient())]
    each = dict(zip(ends, attach_node(_op, Derivative(program, range(program.count), (), 0), [wrap(end.value, end) for end in ends], values)))
    return [each.get(x) for x in ev.nodes]


def _nesting_depth(nodes: Sequence[Node]) -> int:
    """The number of unfinished evaluations around the one with these inputs."""
    deepest = 0
    for node in nodes:
        count = 0
        while node.parents and type(node := node.parents[0]) is InputNode and node.open:  # type: ignore[assignment]
            count += 1
        deepest = max(deepest, count)
    return max(deepest, 1)
