"""Custom Functions in other carriers: the recorded forward and backward are replayed with expressions or with more digits."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.batched import by_members
from symgrad.autograd.recorders import BackwardRecorder
from symgrad.carriers import numeric
from symgrad.carriers.duck import is_unbatchable
from symgrad.engine.replay import arguments, call_rule, pushforward
from symgrad.engine.saved import read_traced
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.graph.common import Bundle, OutputValues, Refused
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.modes import DEFAULT, in_mode
from symgrad.graph.node import Leaf, Node
from symgrad.graph.op import Op
from symgrad.graph.order import upstream


def op_of(node: Any) -> Op:
    """The op of one call of a Function."""
    known = weakref.ref(node)  # a weak reference, since the node refers to its op

    def call() -> Any:
        found = known()
        assert found is not None
        return found

    names = [p for p in inspect.signature(node.function.forward).parameters][-len(node.needs):] if node.needs else []
    tensors = tuple(names[i] if i < len(names) else f"x{i}" for i in node.places)
    return Op.of(node.function.__name__, "function", lambda xp, *xs: forward_in(call(), xp, xs),
              lambda xp, g, y, args, needs: call().vjp(xp, g, y, args, needs), lambda xp, tangents, y, args: _tangent(call(), xp, tangents, args),
              len(node.parents), tensors, (), node_name=type(node).__name__, public=False, saves=False)


def _constant(xp: Any) -> Callable[[Any], Any]:
    """The function by which a carrier converts a number or an array."""
    return xp.box if hasattr(xp, "box") else getattr(xp, "lift_value", (lambda x: x) if xp is numeric else wrap)


def forward_in(node: Any, xp: Any, tensors: Sequence[Any]) -> Any:
    """The forward of one call in another carrier: the declared formula, or else the recorded forward.

    Raises Refused if there is neither. A precise carrier uses the forward's value if the declared formula disagrees with it.
    """
    function = node.function
    if hasattr(function, "symbolic"):
        return _constant(xp)(node.value) if node.formula_disagrees and getattr(xp, "is_precise", False) else _declared(node, xp, tensors)
    if node.inner is None or any(n is None for n in node.inner):
        raise Refused(f"{function.__name__}: this Function has no formula: its forward was not recorded with Tensors from input to output. "
                           f"Declare one with a static method symbolic(xp, ...)")
    memo = _argument_values(node, tensors)
    found = _replayed(xp, node.inner, memo)
    return OutputValues(found) if node.many else found[0]


def _declared(node: Any, xp: Any, tensors: Sequence[Any]) -> Any:
    given = list(node.call) if node.call is not None else [None] * len(node.needs)
    for i, x in zip(node.places, tensors):
        given[i] = x
    return node.function.symbolic(xp, *given)


def agrees(node: Any) -> bool:
    """Whether the declared formula and the forward have the same value, to half the digits of the dtype."""
    return _close(_declared(node, numeric, node.args), node.value)


def _close(found: Any, value: Any) -> bool:
    pairs = zip(found, value) if isinstance(value, tuple) else ((found, value),)
    return all(np.allclose(a, b, 0, np.finfo(b.dtype).eps ** 0.5 * np.max(np.abs(b), initial=0), equal_nan=True) for a, b in pairs if b is not None)


def declares_another(node: Any) -> bool:
    """Whether the declared formula and the forward have different values, at the arguments of the call or at shifted ones."""
    if not hasattr(node.function, "symbolic") or node.call is None:
        return False
    with in_mode(grad=False), contextlib.suppress(TypeError, ValueError, RuntimeError):  # shifted arguments may lie outside the domain of the forward
        for scale, shift in ((1.0, 0.0), (1.25, 0.125), (0.5, -0.25)):
            values = [a * scale + shift if a.dtype.kind in "fc" else a for a in node.args]
            given = list(node.call)
            for i, value in zip(node.places, values):
                given[i] = wrap(value)
            found = node.function.apply(*given)
            if not _close(_declared(node, numeric, values), tuple(t._value for t in found) if isinstance(found, tuple) else found._value):
                return True
    return False


def _argument_values(node: Any, tensors: Sequence[Any]) -> dict[Node, Any]:
    return {p: x for p, x in zip(node.parents, tensors) if p is not None}


def _replayed(xp: Any, roots: Sequence[Node | None], memo: dict[Node, Any]) -> list[Any]:
    """The values of nodes in a carrier, computed from those in `memo`."""
    constant = _constant(xp)
    for node in upstream(roots, stop=memo):
        if node in memo:
            continue
        if isinstance(node, Leaf):
            memo[node] = constant(node.value)
        elif type(node) is DerivativeNode:
            memo[node] = constant(node.value) if node.parents[0] is None else memo[node.parents[0]]
        elif hasattr(xp, "apply"):
            memo[node] = xp.apply(node.op, arguments(node, memo, constant), (node.args or ())[len(node.parents):])
        else:
            memo[node] = call_rule(xp, node, arguments(node, memo, constant), node.args or ())
    return [memo[root] for root in roots if root is not None]


def cotangents_in(node: Any, xp: Any, g: Any, y: Any, args: tuple, needs: Sequence) -> tuple:
    """The user's backward in another carrier: recorded with numbers, then replayed with the carrier's values."""
    values, parts = (node.value, g.parts) if node.many else ((node.value,), (g,))
    seeds = [None if c is None else wrap(np.ones_like(v)) for v, c in zip(values, parts)]
    leaves = {}
    for seed, c in zip(seeds, parts):
        if seed is not None:
            seed._node = Leaf(seed, seed._value, True)
            leaves[seed._node] = c
    with in_mode(grad=True, formula_of=node):
        found = node.recorded_on_copies(lambda: node.pulled(Bundle(seeds), needs, lambda x: x))
    if not node.many and node.value.dtype.kind == "c":  # the engine conjugates what a rule reads, but not what a user's backward reads
        y, args = xp.conj(y), tuple(map(xp.conj, args))
    memo = {**_argument_values(node, args), node: y, **leaves}
    constant = _constant(xp)
    return tuple(None if c is None else constant(c._value) if c._node is None else _replayed(xp, [c._node], memo)[0] for c in found)


def _tangent(node: Any, xp: Any, tangents: Sequence[Any], args: tuple) -> Any:
    """The tangents by the user's `jvp`, or else by the pushforward through the recorded forward."""
    if node.last_push is not None and all(t is s for t, s in zip(tangents, node.last_push[0])):
        return node.last_push[1]
    if not hasattr(node.function.jvp, "undefined") and xp in (numeric, traced):
        given: list[Any] = [None] * len(node.needs)
        values = node.value if node.many else (node.value,)
        for i, t, x, kept in zip(node.places, tangents, args, node.args):
            if t is None and node.materialize:
                t = np.zeros_like(x if xp is numeric else x._value)
            elif t is not None and any([kept is y for y in values]):
                t = t.copy() if xp is numeric else traced.clone(t)  # the argument was written in place, and so is its tangent
            given[i] = wrap(t) if t is not None and not isinstance(t, Tensor) else t

        def push() -> tuple:
            pushed = node.push(given)
            return pushed if isinstance(pushed, tuple) else (pushed,)

        try:
            out = node.recorded_on_copies(push) if xp is traced else tuple(None if t is None else t._value for t in push())
        except RuntimeError as error:
            if not is_unbatchable(error):
                raise

            def push_member(tangents: Any) -> tuple:
                found = _tangent(node, xp, tangents, args)
                return found if node.many else (found,)

            out = by_members(xp, push_member, tangents, args, error)
    elif node.inner is None or any(n is None for n in node.inner):
        return node.function.jvp(node.public_node, *tangents)
    else:
        recorder = BackwardRecorder(node.span, node.parents, DEFAULT)
        copies = [recorder.copy_of(n) for n in node.inner]
        given_tangents = {p: t for p, t in zip(node.parents, tangents) if p is not None and t is not None}
        moved = pushforward(xp, [n for n in copies if n is not None], given_tangents, read_traced if xp is traced else None)
        out = tuple(None if n is None else moved.get(n) for n in copies)
    found = out if node.many else out[0]
    if xp is numeric:
        node.last_push = tuple(tangents), found
    return found
