"""The results of compiled functions in a graph: one node, whose pullback is a program, too."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from symgrad.autograd.engine import grad
from symgrad.carriers import numeric
from symgrad.carriers.duck import DuckArray
from symgrad.compiled.recording import Specializer, call_tree, substituted
from symgrad.compiled.variants import Variant
from symgrad.engine.replay import pushforward
from symgrad.engine.saved import read_traced
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.func.rules import Rule, Some, Tensors, attach_node, check_unwritten, close_inputs, fresh_input, is_tracked, recording, rule_op
from symgrad.graph.modes import thread
from symgrad.graph.node import next_sequence
from symgrad.trees import flatten

__all__ = ["differentiable"]


class CompiledCall(Rule):
    """The rule of one call: the function runs again where its graph is needed, and the pullback of numbers is a program."""

    def __init__(self, recorder: Specializer, variant: Variant, form: Any, leaves: Sequence[Any], places: Sequence[int], captured: Sequence[Tensor],
                 outputs: Sequence[int]):
        self.recorder, self.variant, self.form, self.places, self.outputs = recorder, variant, form, places, outputs
        # where the function reads the captured tensors that are differentiated, and the others
        tracked = [is_tracked(t) for t in captured]
        self.tensors = [t for t, there in zip(captured, tracked) if there]
        fixed = [t for t, there in zip(captured, tracked) if not there]
        self.paths = tuple([i for i, there in zip(variant.used, tracked) if there] + [i for i, there in zip(variant.used, tracked) if not there])
        self.others = tuple([x for i, x in enumerate(leaves) if i not in places] + fixed)
        self.values = tuple([leaves[i]._value for i in places] + [t._value for t in self.tensors])
        self.since = next_sequence()

    def evaluate(self, tensors: Tensors, others: Sequence[Any] | None = None) -> Tensors:
        self._check_unchanged()
        rest, given = iter(self.others if others is None else others), dict(zip(self.places, tensors))
        leaves = [given[i] if i in given else next(rest) for i in range(self.form.count)]
        now = [self.variant.captures.tensors[i]() for i in self.paths]  # other tensors than in the call, if a variable got another one
        if len(set(map(id, now))) < len(now):
            raise self._changed("tensor")
        with substituted(now, [*tensors[len(self.places):], *rest]):
            found = flatten(call_tree(self.recorder.function, self.form.unflatten(leaves)))[0]
        return [found[i] for i in self.outputs]

    def _check_unchanged(self) -> None:
        """Raise an error if the function, which runs again for its graph, would read other values than in the call."""
        if thread.modes.program is None:
            if (name := self.variant.captures.changed()) is not None:
                raise self._changed(name)
            check_unwritten(self.others, self.since)

    def _changed(self, name: str) -> RuntimeError:
        return RuntimeError(f"{self.recorder.label}: the captured value {name} was changed between the call of the compiled function and its "
                            f"derivative. Compute the derivative first, or pass the value as an argument")

    def pull(self, tensors: Tensors, others: Sequence[Any], cotangents: Some, by: tuple[int, ...]) -> list[Tensor | None]:
        """The cotangents of some tensors, by the function's graph."""
        create = thread.modes.grad
        places = [fresh_input(t) for t in tensors]
        with recording(True):
            ys = self.evaluate(places, others)
        pairs = [(y, c) for y, c in zip(ys, cotangents) if c is not None and y.requires_grad]
        found = grad([y for y, _ in pairs], [places[i] for i in by], [c for _, c in pairs], create_graph=create, allow_unused=True) if pairs else ()
        close_inputs(places)
        return list(found) or [None] * len(by)

    def pullback(self, tensors: Tensors, outputs: Tensors, cotangents: Some, needs: Sequence[Any]) -> Some:
        by = tuple([i for i, need in enumerate(needs) if need is not None])
        numbers = not thread.modes.grad and not any([isinstance(t._value, DuckArray) for t in (*tensors, *cotangents) if t is not None])
        if numbers:
            self._check_unchanged()
            there = tuple([c is not None for c in cotangents])
            found = self._pull_program(by, there).call((*tensors, *self.others, *[c for c in cotangents if c is not None]), {})[0]
        else:
            found = self.pull(tensors, self.others, cotangents, by)
        known = dict(zip(by, found))
        return [known.get(i) for i in range(len(needs))]

    def _pull_program(self, by: tuple[int, ...], there: tuple[bool, ...]) -> Specializer:
        """The programs of a pullback by some tensors, from the cotangents that are there; all arguments are leaves, for which a call is fastest."""
        key = self.form, tuple(self.places), tuple(self.outputs), self.paths, len(self.tensors), id(self.variant), by, there
        known = self.recorder.pullbacks
        if key not in known:
            bare, first, last = copy.copy(self), len(self.values), len(self.values) + len(self.others)
            bare.others, bare.tensors, bare.values = (), [], ()  # without the values of this call

            def pull(*leaves: Any) -> tuple:
                cotangents = iter(leaves[last:])
                return tuple(bare.pull(leaves[:first], leaves[first:last], [next(cotangents) if c else None for c in there], by))

            known[key] = Specializer(pull, self.recorder.subject, f"pullback of {self.recorder.name}", self.recorder.backend,
                                  self.recorder.max_programs)
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


def differentiable(recorder: Specializer, variant: Variant, leaves: Sequence[Any], form: Any, result: Any) -> Any:
    """The result of a call, with a node if an argument or a captured tensor requires a gradient."""
    if not thread.modes.grad:
        return result
    places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x._node is not None and is_tracked(x)]
    captured = [variant.captures.tensors[i]() for i in variant.used]
    if not places and not any([t._node_slot is not None and is_tracked(t) for t in captured]):
        return result
    found, shape = flatten(result)
    on = [i for i, y in enumerate(found) if isinstance(y, Tensor) and y._value.dtype.kind in "fcV"]
    if not on:
        return result
    rule = CompiledCall(recorder, variant, form, leaves, places, captured, on)
    outputs = attach_node(_op, rule, [leaves[i] for i in places] + rule.tensors, [found[i] for i in on])
    for i, y in zip(on, outputs):
        found[i] = y
    return shape.unflatten(found)
