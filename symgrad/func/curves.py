"""Taylor coefficients as a single node that refers to the function's graph, so that differentiating them is one pass of series with cotangents.

The coefficients y₁, ..., y_K of a function along a curve are computed with numbers and have one common node. The derivative of Σ ⟨cₖ, yₖ⟩ by a
captured tensor is the K-th coefficient of its cotangent for the cotangent Σ cₖ t^(K - k) of the output. So a loss with second derivatives of a
network by its inputs is differentiated by the weights without a graph of the second derivatives.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.autograd.engine import grad
from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched
from symgrad.carriers.series import SeriesCarrier
from symgrad.engine.operands import NUMBERS
from symgrad.engine.recording import core
from symgrad.engine.replay import pushforward
from symgrad.engine.saved import read_traced, verify_all
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.func.evaluation import Evaluation
from symgrad.func.recorded_series import Walk, curve_steps, steps_of, walk_of
from symgrad.func.rules import Rule, Some, Tensors, attach_node, close_inputs, fresh_input, recording, rule_op
from symgrad.graph.modes import thread
from symgrad.graph.node import Node

__all__ = ["Curve", "coefficient_node"]

_core = functools.cache(core)


class Curve(Rule):
    """The rule of the coefficients 1 to `order` of an output, each times its factor, along curves of the inputs with numeric coefficients."""

    def __init__(self, walk: Walk, order: int, paths: Sequence[Sequence[Any]], factors: Sequence[float]):
        self.walk, self.order, self.paths, self.factors = walk, order, paths, tuple(factors)
        self.values = tuple([end.value for end in walk.ends])
        self._guess = [False] * (order - 1) + [True]  # the expected cotangents: those of a loss in the highest derivative
        self._taken: Any = None

    def started(self, present: Sequence[bool]) -> Any:
        """The run of the recorded steps for these cotangents; None if they cannot be recorded."""
        if self._taken is None or list(present) != self._guess:
            steps = steps_of(curve_steps, self.walk, self.order, tuple(map(len, self.paths)), tuple(present), self.factors)
            if steps is None:
                return None
            vectors = [c for path in self.paths for c in path] + [None] * sum(present)
            self._taken, self._guess = steps.start(self.walk.path, vectors, self.walk.ends), list(present)
        return self._taken

    def coefficients(self) -> list[Any] | None:
        """The coefficients, None for a zero one; or None if they must be recorded as a graph."""
        run = self.started(self._guess)
        return None if run is None else run.row(0)

    def evaluate(self, tensors: Tensors) -> Tensors:
        carrier, walk = SeriesCarrier(traced, self.order, _core, wrap), self.walk
        known: dict[Node, Any] = {end: carrier.lift_value(t) for end, t in zip(walk.ends, tensors)}
        for end, t, path in zip(walk.ends, tensors, self.paths):
            known[end] = carrier.polynomial([t, *map(wrap, path)])
        for node in walk.path:
            args = node.args or ()
            given = [known[p] if p is not None else a if type(a) in NUMBERS else carrier.lift_value(a) for p, a in zip(node.parents, args)]
            known[node] = carrier.apply(node.op, given, args[len(given):])
            carrier.solve()
        terms = known[walk.root].terms
        return [terms[k] * f if k < len(terms) else wrap(np.zeros_like(walk.root.value)) for k, f in enumerate(self.factors, 1)]

    def _record(self, tensors: Tensors) -> tuple[list[Tensor], Tensors]:
        """The coefficients as a recorded graph, from fresh input nodes; and these inputs."""
        places = [fresh_input(t) for t in tensors]
        with recording(True):
            return places, self.evaluate(places)

    def pullback(self, tensors: Tensors, outputs: Tensors, cotangents: Some, needs: Sequence[Any]) -> Some:
        count, by = self.walk.count, [i for i, need in enumerate(needs) if need is not None]
        plain = not thread.modes.grad and all([c is None or type(c._value) is not Batched for c in cotangents])
        run = self.started([c is not None for c in cotangents]) if plain and by and by[0] >= count else None
        if run is not None:
            verify_all(self.walk.path)
            run.row(0)
            run.restart([*[c for path in self.paths for c in path], *[c._value for c in cotangents if c is not None]], 1)
            return [None] * count + [None if c is None else wrap(c) for c in run.row(1)]
        places, ys = self._record(tensors)
        pairs = [(y, c) for y, c in zip(ys, cotangents) if c is not None and y.requires_grad]
        each = grad([y for y, _ in pairs], [places[i] for i in by], [c for _, c in pairs], create_graph=thread.modes.grad,
                    allow_unused=True) if pairs else ()
        close_inputs(places)
        known = dict(zip(by, each))
        return [known.get(i) for i in range(len(needs))]

    def pushforward(self, tensors: Tensors, outputs: Tensors, tangents: Some) -> Some:
        places, ys = self._record(tensors)
        tracked = thread.modes.grad
        starts = {x._node: t if tracked else t._value for x, t in zip(places, tangents) if t is not None}
        roots = [y._node for y in ys if y._node is not None]
        found = pushforward(traced if tracked else numeric, roots, starts, read_traced if tracked else None)  # type: ignore[arg-type]
        close_inputs(places)
        out = [found.get(y._node) for y in ys]  # type: ignore[arg-type]
        return [t if t is None or isinstance(t, Tensor) else wrap(t) for t in out]


_op = rule_op("Curve")


def coefficient_node(ev: Evaluation, y: Tensor, paths: Sequence[Sequence[Tensor]], factors: Sequence[float]) -> Tensors | None:
    """The coefficients of an output along curves, each times its factor; the given coefficients have the same factors.

    None if they must be recorded as a graph: if a given coefficient requires a gradient, or the output does not depend on an input.
    """
    if not factors or not ev.between.issuperset(ev.nodes) or y._node not in ev.between or any([c._node is not None for path in paths for c in path]):
        return None
    found = walk_of(ev, y)
    if found is None:
        return None
    walk = Walk(*found)
    given = [[c if f == 1 else c / f for c, f in zip(_without_trailing_zeros(path), factors)] for path in paths]
    rule = Curve(walk, len(factors), given, factors)
    values = rule.coefficients()
    if values is None:
        return None
    return attach_node(_op, rule, [wrap(end.value, end) for end in walk.ends], [wrap(np.zeros_like(y._value) if v is None else v) for v in values])


def _without_trailing_zeros(path: Sequence[Tensor]) -> list[Any]:
    """The values of coefficients without trailing zeros, except the first."""
    values = [c._value for c in path]
    while len(values) > 1 and not values[-1].any():
        values.pop()
    return values
