"""Inference tensors, and recording off the hot path."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.engine.saved import _needed
from symgrad.engine.storage.views import RefusedView
from symgrad.engine.storage.writes import InferenceError
from symgrad.engine.tensor import Tensor
from symgrad.graph.modes import DEFAULT, observed, thread
from symgrad.graph.node import BARRED, GRADIENT, INFERENCE, InferenceNode, Leaf, Node
from symgrad.graph.op import Op

CANNOT_BE_SAVED = "an inference tensor is not saved for a derivative; clone() it first, or use no_grad() in place of inference_mode()"
COPIES = frozenset(("clone", "to_copy"))  # these write into a new tensor, which is an ordinary one
_leaves: weakref.WeakSet[Leaf] = weakref.WeakSet()  # of inference tensors that require grad


class InferenceLeaf(InferenceNode):
    """The content of the node slot of an inference tensor that requires grad, with its node, at which gradients accumulate."""

    __slots__ = ("leaf",)
    flags = BARRED  # the hot path stops there

    def __init__(self, leaf: Leaf):
        self.leaf = leaf

    @property
    def requires_grad(self) -> bool:
        return self.leaf.requires_grad

    def current(self, always: bool = False) -> Leaf:
        """The node itself."""
        return self.leaf


def recorded(op: Op, args: tuple, parents: tuple, value: Any) -> Node | None:
    """The node of an operation by the recorder of this thread, after the calls of its observers; None if it is not recorded."""
    modes = thread.modes
    if not (modes.grad or modes.inference or op.view) and modes.recorder is DEFAULT:
        return None
    parents = tuple([_current(op, p) if p is not None and p.flags is BARRED else p for p in parents])
    marked = [_is_inference_node(p) for p in parents]
    if modes.inference or any(marked):
        return _with_inference(op, args, parents, value, marked)
    return observed(modes.recorder.record(op, args, parents, value))


def _current(op: Op, node: Node) -> Node | None:
    """The regenerated node of a stale view; None if it has none and the operation has no derivative."""
    try:
        return node.current()
    except RefusedView:
        if op.differentiable:
            raise
        return None


def _is_inference_node(node: Node | None) -> bool:
    return node is INFERENCE or isinstance(node, Leaf) and node in _leaves


def _with_inference(op: Op, args: tuple, parents: tuple, value: Any, marked: Sequence[bool]) -> Node | None:
    modes = thread.modes
    if op.view and isinstance(value, np.ndarray) and value.base is not None and (value.base is args[0] or value.base is args[0].base):
        if modes.inference or marked[0]:
            return INFERENCE if marked[0] else None
    elif modes.inference:
        return INFERENCE if value.dtype.kind in "fcV" else None
    if not modes.grad and modes.recorder is DEFAULT:
        return None
    alone = all([m or not hasattr(a, "dtype") for m, a in zip(marked, args)])  # whether no ordinary tensor takes part, except for numbers
    if all(marked) and op.name not in COPIES:
        return None  # among themselves inference tensors are constants, also those that require grad
    known = tuple(None if p is INFERENCE else p for p in parents)
    node = observed(modes.recorder.record(op, args, known, value))
    if node is not None and node.flags & GRADIENT:
        needed = _needed(node, tuple(p if p is not None and p.flags & GRADIENT and p.public_node is not None else None for p in known))
        if any(place >= 0 and marked[place] for _, place in needed):
            if alone:
                return None
            raise InferenceError(CANNOT_BE_SAVED)
    return node


def made_in_inference(tensor: Tensor) -> Tensor:
    """Make a new tensor an inference tensor."""
    if isinstance(tensor._node, Leaf):
        _leaves.add(tensor._node)
        tensor._node_slot = InferenceLeaf(tensor._node)
    elif tensor._node is None and tensor._value.dtype.kind in "fcV":
        tensor._node = INFERENCE
    return tensor


def is_inference(self: Tensor) -> bool:
    """Whether the tensor was created in inference mode; False for integers and booleans."""
    node = self._node_slot
    return node is not None and node.in_inference
