"""The results of compiled functions in a graph: one node, whose pullback is a program, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.autograd.engine import grad
from symgrad.carriers import numeric
from symgrad.carriers.duck import DuckArray
from symgrad.compiled.recording import Recorder, Variant, call_tree, substituted
from symgrad.engine.replay import pushforward
from symgrad.engine.saved import read_traced
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.func.rules import Rule, Some, Tensors, attach_node, close_inputs, fresh_input, is_tracked, recording, rule_op
from symgrad.graph.modes import thread
from symgrad.types.trees import flatten

__all__ = ["differentiable"]


class CompiledCall(Rule):
    """The rule of one call: the function runs again where its graph is needed, and the pullback of numbers is a program."""

    def __init__(self, recorder: Recorder, form: Any, leaves: Sequence[Any], places: Sequence[int], captured: Sequence[Tensor],
                 outputs: Sequence[int]):
        self.recorder, self.form, self.leaves, self.places = recorder, form, leaves, places
        self.tensors, self.outputs = captured, outputs
        self.values = tuple([leaves[i]._value for i in places] + [t._value for t in captured])

    def evaluate(self, tensors: Tensors) -> Tensors:
        leaves = list(self.leaves)
        for i, t in zip(self.places, tensors):
            leaves[i] = t
        with substituted(self.tensors, tensors[len(self.places):]):
            found = flatten(call_tree(self.recorder.function, self.form.unflatten(leaves)))[0]
        return [found[i] for i in self.outputs]

    def pull(self, tensors: Tensors, cotangents: Some, by: tuple[int, ...]) -> list[Tensor | None]:
        """The cotangents of some tensors, by the function's graph."""
        create = thread.modes.grad
        places = [fresh_input(t) for t in tensors]
        with recording(True):
            ys = self.evaluate(places)
        pairs = [(y, c) for y, c in zip(ys, cotangents) if c is not None and y.requires_grad]
        found = grad([y for y, _ in pairs], [places[i] for i in by], [c for _, c in pairs], create_graph=create, allow_unused=True) if pairs else ()
        close_inputs(places)
        return list(found) or [None] * len(by)

    def pullback(self, tensors: Tensors, outputs: Tensors, cotangents: Some, needs: Sequence[Any]) -> Some:
        by = tuple([i for i, need in enumerate(needs) if need is not None])
        numbers = not thread.modes.grad and not any([isinstance(t._value, DuckArray) for t in (*tensors, *cotangents) if t is not None])
        found = self._pull_program(by).call((tuple(tensors), tuple(cotangents)), {})[0] if numbers else self.pull(tensors, cotangents, by)
        known = dict(zip(by, found))
        return [known.get(i) for i in range(len(needs))]

    def _pull_program(self, by: tuple[int, ...]) -> Recorder:
        fixed = tuple([x if not isinstance(x, (Tensor, np.ndarray)) else None for x in self.leaves])
        key = self.form, tuple(map(repr, fixed)), tuple(self.places), tuple(map(id, self.tensors)), by
        known = self.recorder.pullbacks
        if key not in known:
            known[key] = Recorder(lambda tensors, cotangents: tuple(self.pull(tensors, cotangents, by)), self.recorder.subject,
                                  f"pullback of {self.recorder.name}", self.recorder.backend, self.recorder.max_programs)
        return known[key]

    def pushforward(self, tensors: Tensors, outputs: Tensors, tangents: Some) -> Some:
        tracked = thread.modes.grad
        places = [fresh_input(t) for t in tensors]
        with recording(True):
            ys = self.evaluate(places)
        starts = {x._node: t if tracked else t._value for x, t in zip(places, tangents) if t is not None}
        roots = [y._node for y in ys if y._node is not None]
        found = pushforward(traced if tracked else numeric, roots, starts, read_traced if tracked else None)  # type: ignore[arg-type]
        close_inputs(places)
        out = [found.get(y._node) for y in ys]  # type: ignore[arg-type]
        return [t if t is None or isinstance(t, Tensor) else wrap(t) for t in out]


_op = rule_op("Compiled")


def differentiable(recorder: Recorder, variant: Variant, leaves: Sequence[Any], form: Any, result: Any) -> Any:
    """The result of a call, with a node if an argument or a captured tensor requires a gradient."""
    if not thread.modes.grad:
        return result
    places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x._node is not None and is_tracked(x)]
    captured = [t for i in variant.used if is_tracked(t := variant.captures.tensors[i]())]
    if not places and not captured:
        return result
    found, shape = flatten(result)
    on = [i for i, y in enumerate(found) if isinstance(y, Tensor) and y._value.dtype.kind in "fc"]
    if not on:
        return result
    rule = CompiledCall(recorder, form, leaves, places, captured, on)
    outputs = attach_node(_op, rule, [leaves[i] for i in places] + captured, [found[i] for i in on])
    for i, y in zip(on, outputs):
        found[i] = y
    return shape.unflatten(found)
