"""Calls with their own derivative rules: custom derivatives, checkpoints and implicit functions.

Such a call is one node of the graph. The parameter of its op is a `Rule`, which holds the residuals of the call and computes with Tensors. The
numeric carrier calls the rule without recording. The traced carrier records it on the tensors of the graph. For any other carrier the rule is
recorded on fresh input nodes, and the recording is replayed in that carrier.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.engine import grad
from symgrad.autograd.formulas import _replayed
from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched, levels_of
from symgrad.carriers.dual import Dual, DualCarrier
from symgrad.engine.inference import recorded
from symgrad.engine.replay import push, pushforward
from symgrad.engine.saved import changed, read_traced
from symgrad.engine.storage.versions import first_write_after
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.func.evaluation import RERUN, InputNode, _repeat_for_level, recording
from symgrad.graph.classes import become
from symgrad.graph.common import Bundle, OutputNode, OutputValues, Refused
from symgrad.graph.modes import DEFAULT, UNCHANGED, in_mode, node_by_flags, special, thread
from symgrad.graph.node import IN_FORWARD, INFERENCE, NAMED, TRACKED, Node, all_threads, node_class
from symgrad.graph.op import Op

Tensors = Sequence[Tensor]
Some = Sequence[Tensor | None]


class NoRuleFormula(Refused, NotImplementedError):
    """The error for a formula or a Taylor series of a call that has only a value and derivative rules."""


# One call as a node


class Rule:
    """The residuals of one call and its derivative rules. `values` are those of its tensor arguments, followed by those of captured tensors."""

    values: tuple[Any, ...]
    captured: tuple[Node, ...] = ()
    vmap_levels: tuple[tuple[int, int, str], ...] = ()  # the vmap levels around the call
    records_content = False  # whether the derivatives are those of what `evaluate` records
    pullback_recorded = False  # a derivative of the pullback may then need tangents

    def evaluate(self, tensors: Tensors) -> Tensors:
        """The outputs for given arguments."""
        raise NotImplementedError

    def recorded(self, tensors: Tensors) -> tuple[Tensors, list[Tensor]]:
        """The outputs, recorded from fresh input nodes for given arguments; and these inputs."""
        inputs = [fresh_input(t) for t in tensors]
        with recording(True):
            return self.evaluate(inputs), inputs

    def pullback(self, tensors: Tensors, outputs: Tensors, cotangents: Some, needs: Sequence[Any]) -> Some:
        """The cotangents of the arguments whose entry in `needs` is not None; recorded in grad mode. Through what is recorded, if not overridden."""
        found, inputs = self.recorded(tensors)
        out = pull_back(found, [x if need is not None else None for x, need in zip(inputs, needs)], cotangents)
        close_inputs(inputs)
        return out

    def pushforward(self, tensors: Tensors, outputs: Tensors, tangents: Some) -> Some:
        """The tangents of the outputs; recorded in grad mode. Through what is recorded, if not overridden."""
        found, inputs = self.recorded(tensors)
        out = push(found, {x._node: t for x, t in zip(inputs, tangents) if t is not None}, thread.modes.grad)  # type: ignore[misc]
        close_inputs(inputs)
        return out


@functools.cache
def rule_op(name: str, reads_result: bool = False) -> Op:
    """The op of calls with rules; its only parameter is the rule."""
    rule = inspect.Parameter("rule", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return Op.of(name, "primitive", _forward, _vjp, _jvp, None, ("tensors",), (rule,), node_name=f"{name}Backward", public=False,
              saved=None if reads_result else ("tensors",), outside=True)


def is_tracked(t: Tensor) -> bool:
    """Whether operations on a tensor are recorded in the present modes."""
    node = t._node
    return node is not None and bool(node.flags & (TRACKED | IN_FORWARD)) and (thread.modes.grad or thread.modes.recorder is not DEFAULT)


def attach_node(op: Op, rule: Rule, tensors: Tensors, outputs: Tensors) -> Tensors:
    """The outputs at the node of the call; several outputs have a further node each."""
    parents, values = tuple(t._node for t in tensors), OutputValues(y._value for y in outputs)
    value = values[0] if len(values) == 1 else values
    rule.vmap_levels = thread.modes.batches
    node = (node_by_flags if not special and INFERENCE not in parents else recorded)(op, (*rule.values, rule), parents, value)
    if node is None:
        return outputs
    become(node, node_class(op, broadcasts=False))
    return [wrap(v, place) for v, place in zip(values, _output_nodes(node, len(values)))]


def _output_nodes(node: Node, count: int) -> list[Node]:
    if count == 1:
        return [node]
    nodes: list[Node] = [OutputNode(node, k) for k in reversed(range(count))]  # a pullback visits the newest first
    return nodes[::-1]


def in_vmap_levels(levels: Sequence[tuple[int, int, str]], *tensors: Tensor | None) -> contextlib.AbstractContextManager[None]:
    """Enter vmap levels, together with those of batched tensors, so that transforms compute a derivative for each member."""
    levels = merged_levels(levels, *tensors)
    return UNCHANGED if levels is thread.modes.batches else in_mode(batches=levels)


def merged_levels(levels: Sequence[tuple[int, int, str]], *tensors: Tensor | None) -> tuple[tuple[int, int, str], ...]:
    """The vmap levels together with those of batched tensors, the outermost first."""
    if not any([t is not None and type(t._value) is Batched for t in tensors]):
        return tuple(levels)
    by_number = {level: (level, count, kind) for level, count, kind in levels}
    for t in tensors:
        value = None if t is None else t._value
        while type(value) is Batched:
            by_number.setdefault(value.level, (value.level, value.count, "same"))
            value = value.data
    return tuple([by_number[level] for level in sorted(by_number)])


def repeat_for_members(t: Tensor) -> Tensor:
    """The tensor repeated for each member of the thread's vmap levels, so that its derivative has one entry per member."""
    for level, count, _ in thread.modes.batches:
        t = t if level in levels_of(t._value) else _repeat_for_level(t, level, count)
    return t


def fresh_input(t: Tensor, flags: int = 0) -> Tensor:
    """The tensor with a fresh input node, where a pass starts or ends. The node is open: transforms called on it return tracked results."""
    node = InputNode(t._value, t._node)
    node.flags |= flags
    return wrap(node.value, node)


def nodes_before(outputs: Sequence[Any], since: int) -> list[Node]:
    """The differentiable nodes older than a sequence number from which tensors were computed."""
    found: list[Node] = []
    stack = [y._node for y in outputs if isinstance(y, Tensor)]
    seen = set(stack) | {None}
    while stack:
        node = stack.pop()
        if node is None or not node.flags & TRACKED:
            continue
        if node.sequence_nr < since:
            found.append(node)
        else:
            stack += [p for p in node.parents if p not in seen]
            seen.update(node.parents)
    return found


# The op of a rule, in every carrier


def _forward(xp: Any, tensors: Sequence[Any], rule: Rule) -> Any:
    """The value, from the arguments in any carrier."""
    if xp is numeric:
        with recording(False, True):
            found = [t._value for t in rule.evaluate([wrap(x) for x in tensors])]
    else:
        starts = [fresh_input(wrap(v), NAMED) for v in rule.values]
        with recording(True, True):
            outputs = rule.evaluate(starts)
        found = _replay_in(xp, outputs, [*zip(starts, tensors), *_captured_values(rule, tensors)])
    return found[0] if len(found) == 1 else OutputValues(found)


def _captured_values(rule: Rule, tensors: Sequence[Any]) -> Iterator[tuple[Tensor, Any]]:
    return zip(map(tensor_at, rule.captured), tensors[len(tensors) - len(rule.captured):])


def tensor_at(node: Node) -> Tensor:
    """A tensor with a given node."""
    return wrap(node.value, node)


def close_inputs(nodes: Some) -> None:
    """Close input nodes after a recording, so that transforms do not treat their results as tracked; those of a call that is repeated stay open."""
    for t in nodes:
        if t is not None and isinstance(t._node, InputNode) and t._node.open is not RERUN:
            t._node.open = False


def _replay_in(xp: Any, found: Some, known: Sequence[tuple[Tensor, Any]]) -> list[Any]:
    """Recorded tensors replayed in another carrier, from the given values of some of them."""
    memo = {t._node: x for t, x in known if t._node is not None}
    lift = xp.box if hasattr(xp, "box") else getattr(xp, "lift_value", wrap if xp is traced else lambda x: x)
    return [None if t is None else lift(t._value) if t._node is None else _replayed(xp, [t._node], memo)[0] for t in found]


def _vjp(xp: Any, g: Any, y: Any, args: tuple, needs: Sequence) -> tuple:
    *tensors, rule = args
    many = type(g) is Bundle
    parts = list(g.parts) if many else [g]
    rule.pullback_recorded |= xp is traced
    if not many and xp in (numeric, traced) and getattr(g, "_value", g).dtype.kind == "c":  # the pass has conjugated the arguments of rules
        tensors, y = [xp.conj(x) for x in tensors], xp.conj(y)
    found = _rule_results(xp, rule.pullback, rule, tensors, y, parts, needs)
    return tuple(None if need is None else c for need, c in zip(needs, found))


def _jvp(xp: Any, tangents: Sequence, y: Any, args: tuple) -> Any:
    *tensors, rule = args
    found = _rule_results(xp, rule.pushforward, rule, tensors, y, list(tangents))
    return OutputValues(found) if isinstance(getattr(y, "_value", getattr(y, "value", y)), tuple) else found[0]


def _uncached_carrier(xp: Any) -> Any:
    """The carrier itself; for a caching carrier the one that it wraps."""
    return getattr(xp, "__dict__", {}).get("carrier", xp)


def _rule_results(*args: Any) -> list[Any]:
    """The results of a rule in a carrier."""
    with in_mode(replays_calls=True):
        return _results_in_carrier(*args)


def _results_in_carrier(xp: Any, method: Callable[..., Some], rule: Rule, tensors: Sequence[Any], y: Any, moving: Sequence[Any],
                        *rest: Any) -> list[Any]:
    xp = _uncached_carrier(xp)
    if xp is numeric:
        given, along = [wrap(x) for x in tensors], [None if c is None else wrap(c) for c in moving]
        with recording(False, True), in_vmap_levels(rule.vmap_levels):
            found = method(given, [wrap(v) for v in (y if isinstance(y, tuple) else (y,))], along, *rest)
        return [None if c is None else c._value for c in found]
    if xp is traced:
        values = y._value
        outputs = [wrap(v, p) for v, p in zip(values, _output_nodes(y._node, len(values)))] if isinstance(values, tuple) else [y]
        with in_vmap_levels(rule.vmap_levels):
            return list(method(tensors, outputs, moving, *rest))
    if type(xp) is DualCarrier:
        return _results_for_duals(_uncached_carrier(xp.base), method, rule, tensors, y, moving, *rest)
    starts = [fresh_input(wrap(v), NAMED) for v in rule.values]
    seeds = [None if c is None else fresh_input(wrap(np.ones(c.shape)), NAMED) for c in moving]
    with recording(True, True):
        found = method(starts, (), seeds, *rest)
    known = [*zip(starts, tensors), *((s, c) for s, c in zip(seeds, moving) if s is not None)]
    return _replay_in(xp, found, [*known, *_captured_values(rule, tensors)])


def _results_for_duals(base: Any, method: Callable[..., Some], rule: Rule, tensors: Sequence[Any], y: Any, moving: Sequence[Any],
                       *rest: Any) -> list[Any]:
    """The results for dual values: the rule is recorded on their primals, and pushed forward along their tangents."""
    starts: dict[Node, Any] = {}
    nodes: list[Tensor] = []

    def fresh(x: Any, t: Any = None) -> Tensor:
        x, t = (x.value, x.tangent) if type(x) is Dual else (x, t)
        nodes.append(fresh_input(x if isinstance(x, Tensor) else wrap(x)))
        if t is not None:
            starts[nodes[-1]._node] = t  # type: ignore[index]
        return nodes[-1]

    values, along = (y.value, y.tangent) if type(y) is Dual else (y, None)
    values = getattr(values, "_value", values) if isinstance(getattr(values, "_value", values), tuple) else values
    pairs = zip(values, along or (None,) * len(values)) if isinstance(values, tuple) else [(values, along)]
    given, outputs, cotangents = [fresh(x) for x in tensors], [fresh(v, t) for v, t in pairs], [None if c is None else fresh(c) for c in moving]
    with recording(True, base is numeric):
        with in_vmap_levels(rule.vmap_levels):
            found = method(given, outputs, cotangents, *rest)
        moved = pushforward(base, [c._node for c in found if c is not None and c._node is not None], starts, None if base is numeric else read_traced)
    close_inputs(nodes)
    out: list[Any] = []
    for c in found:
        value = c if c is None or base is traced else c._value
        t = None if c is None or c._node is None else moved.get(c._node)
        out.append(value if t is None else Dual(value, t))
    return out


def transpose_linear(linear: Callable[[Tensors], Some], like: Sequence[Any], cotangents: Some) -> Some:
    """The transpose of a linear map applied to cotangents, by a pullback through its recording at zero.

    `like` has the shapes of the results, and None for results that are not needed.
    """
    zeros = [None if x is None else fresh_input(repeat_for_members(wrap(np.zeros_like(x._value)))) for x in like]
    with recording(True):
        outputs = linear(zeros)  # type: ignore[arg-type]
    found = pull_back(outputs, zeros, cotangents)
    close_inputs(zeros)
    return found


def pull_back(outputs: Some, inputs: Some, cotangents: Some, retain: bool = False) -> Some:
    """The cotangents of the inputs of a recording that are not None, by those of its outputs; recorded in grad mode."""
    asked = [x for x in inputs if x is not None]
    pairs = [(y, c) for y, c in zip(outputs, cotangents) if y is not None and c is not None and y.requires_grad]
    if not asked or not pairs:
        return [None] * len(inputs)
    roots, weights = zip(*pairs)
    found = iter(grad(roots, asked, weights, retain_graph=retain or None, create_graph=thread.modes.grad, allow_unused=True))
    return [None if x is None else next(found) for x in inputs]


def check_unwritten(values: Sequence[Any], since: int) -> None:
    """Raise an error if a tensor was written in place since a sequence number."""
    for t in values if all_threads.written > since else ():
        if isinstance(t, Tensor) and (found := first_write_after(t._value, since)) is not None:
            raise changed(t._value, *found, t._node)


UNKNOWN = object()
