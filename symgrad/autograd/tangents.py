"""A Function in forward mode: its `jvp` is called with the tangents of its arguments together with the forward, and checked as in torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.autograd.context import FunctionNode
from symgrad.carriers.batched import Batched
from symgrad.engine.storage.versions import version
from symgrad.engine.storage.views import base_of
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.modes import in_mode, thread
from symgrad.graph.node import GRADIENT, NAMED


def held_tangents(node: FunctionNode, inputs: Sequence[Tensor]) -> list[Tensor | None] | None:
    """The tangents of the arguments before the call; None if no level is open, if no argument has one, or if the Function has no `jvp`."""
    level = thread.modes.level
    if level is None or hasattr(node.function.jvp, "undefined"):
        return None
    found = [level.tangent_of(x) for x in inputs]
    return found if any([t is not None for t in found]) and not any([t is not None and type(t._value) is Batched for t in found]) else None


def set_tangents(node: FunctionNode, inputs: Sequence[Tensor], outputs: Sequence[Any], constant: Sequence[bool], held: list[Tensor | None]) -> None:
    """Call `jvp`, check what it returns, and make that the tangents of the outputs. `constant` are the outputs without a derivative.

    If a derivative of the tangents may be asked for, these are computed later, on a copy of the recorded forward, and `jvp` is called for the checks
    only, if some output shares memory with an argument.

    Raises RuntimeError for a tangent of a constant output, for the tangent of a view that is not a view of the argument's tangent, and for that of an
    argument that was written in place and whose tangent was not.
    """
    written = [any(y is x for y in outputs) for x in inputs]
    graph = bool(node.flags & (GRADIENT | NAMED)) or any([t is not None and t._node is not None for t in held])
    shared = any(written) or any([isinstance(y, Tensor) and base_of(y) is not None for y in outputs])
    if graph and not shared or any([w and base_of(x) is not None for w, x in zip(written, inputs)]):
        return
    given = [wrap(t._value.copy()) if graph and w and t is not None else t for t, w in zip(held, written)]
    for former, t, w in zip(node.parents, held, written):
        if w and not graph and t is not None and former is not None:
            thread.modes.level.keep(former, t)
    versions = [None if t is None else version(t._value) for t in given]
    found = _returned(node, inputs, given, len(outputs))
    for k, (y, t) in enumerate(zip(outputs, found)):
        if constant[k]:
            if t is not None:
                raise RuntimeError(f"{node.name()}: jvp must return None for output {k}, which is not differentiable")
            continue
        i = next((i for i, x in enumerate(inputs) if y is x), None)
        if i is not None and given[i] is not None:
            if t is not given[i] or t is None or version(t._value) == versions[i]:
                raise RuntimeError(f"{node.name()}: where forward writes to an input, jvp must write to its tangent and return it")
            if graph:  # its tangent may have no graph
                thread.modes.level.renew(y._node, node.parents[i])
        viewed = i is None and _check_view(y, t, inputs, given)
        if not graph or viewed and t is not None and t._node is None:
            if t is None or t.shape == y.shape and t.is_complex() <= y.is_complex():
                thread.modes.level.tangents[y._node] = t


def _returned(node: FunctionNode, inputs: Sequence[Tensor], held: Sequence[Tensor | None], count: int) -> tuple:
    """What `jvp` returns for tangents of the arguments."""
    tangents: list[Any] = [None] * len(node.needs)
    for i, x, t in zip(node.places, inputs, held):
        tangents[i] = wrap(np.zeros_like(x._value)) if t is None and node.materialize and x._value.dtype.kind in "fcV" else t
    with in_mode(forward=False):
        found = node.push(tangents)
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != count:
        raise RuntimeError(f"{node.name()}: jvp must return {count} tangents, one for each output, not {len(found)}")
    for k, t in enumerate(found):
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(f"{node.name()}: jvp must return Tensors or None, but returned {type(t).__name__} at position {k}")
    return found


def _check_view(y: Tensor, t: Tensor | None, inputs: Sequence[Tensor], held: Sequence[Tensor | None]) -> bool:
    """Whether an output is a view of an argument with a tangent; raises if its tangent is not a view of that one."""
    given = next((s for x, s in zip(inputs, held) if s is not None and base_of(y) is _whole(x)), None) if base_of(y) is not None else None
    if given is None:
        return False
    if t is None or base_of(t) is None:
        raise RuntimeError("jvp: where forward returns a view of an input, jvp must return a view of its tangent")
    if base_of(t) is not _whole(given):
        raise RuntimeError("jvp: where forward returns a view of an input, jvp must return a view of the tangent that it was given")
    return True


def _whole(t: Tensor) -> Tensor:
    """The base of a view, else the tensor itself."""
    base = base_of(t)
    return t if base is None else base
