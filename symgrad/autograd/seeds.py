"""The arguments of `backward` and `grad`: outputs, inputs, and the cotangents that a pullback starts with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.autograd.graph import GradientEdge, current
from symgrad.carriers.batched import Batched, levels_of
from symgrad.engine.data import as_value
from symgrad.engine.passes import ONE
from symgrad.engine.storage.views import UnrecordedLeaf
from symgrad.engine.tensor import Tensor, wrap
from symgrad.errors import GRADIENT_SHAPE, NO_GRAPH, NOT_SCALAR
from symgrad.graph.modes import special
from symgrad.graph.node import GRADIENT, Leaf, Node

ONES = {np.float64: ONE, np.float32: np.float32(1.0)}
NUMERIC = frozenset((np.ndarray, np.float64, np.float32))


def tensors_of(what: Any, name: str) -> tuple[Tensor, ...]:
    """The tensors of an argument: one, or a sequence of tensors and gradient edges.

    Raises TypeError for anything else.
    """
    out = (what,) if isinstance(what, (Tensor, GradientEdge)) else tuple(what)
    if any(type(t) is GradientEdge for t in out):
        out = tuple(_tensor_at(t) if type(t) is GradientEdge else t for t in out)
    for i, t in enumerate(out):
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}[{i}] must be a Tensor, not {type(t).__name__}")
    return out


def _tensor_at(edge: GradientEdge) -> Tensor:
    """The tensor of a gradient edge: the leaf itself, or a new tensor with the edge's node."""
    place = edge.place
    tensor = place.variable if isinstance(place, Leaf) else None
    return wrap(place.value, place) if tensor is None or tensor._node_slot is not place else tensor


def one(like: Any) -> Any:
    """The cotangent 1 of a scalar output."""
    found = ONES.get(type(like))
    return np.ones_like(like)[()] if found is None else found


def plain_seeds(outputs: Any, cotangents: Any) -> list[tuple[Node, Any]] | None:
    """The nodes of outputs, one or several, with cotangents of the same shapes and dtypes; None for what `seeds_of` must look at."""
    if type(outputs) is Tensor:
        seed = _plain_seed(outputs, cotangents)
        return None if seed is None else [seed]
    if type(outputs) not in (list, tuple) or type(cotangents) not in (list, tuple) or len(outputs) != len(cotangents):
        return None
    seeds = []
    for y, g in zip(outputs, cotangents):
        seed = _plain_seed(y, g)
        if seed is None:
            return None
        seeds.append(seed)
    return seeds


def _plain_seed(y: Any, g: Any) -> tuple[Node, Any] | None:
    """The node of one output with its cotangent of the same shape and dtype; None for what `seeds_of` must look at."""
    if type(y) is not Tensor:
        return None
    node, value = y._node_slot, y._value
    if node is None or not node.flags & GRADIENT or not node.parents:
        return None
    if g is None:
        found = ONES.get(type(value))
        return None if found is None else (node, found)
    if type(g) is not Tensor:
        return None
    given = g._value
    if type(value) not in NUMERIC or type(given) not in NUMERIC or given.dtype is not value.dtype or given.shape != value.shape:
        return None
    return node, given


def seeds_of(outputs: Sequence[Tensor], cotangents: Any, create_graph: bool) -> list[tuple[Node, Any]]:
    """The nodes of the outputs with their cotangents: Tensors with create_graph, else NumPy values.

    Raises RuntimeError for an output without a graph, for a cotangent of another shape, and for a missing cotangent of a non-scalar.
    """
    if cotangents is None or isinstance(cotangents, (Tensor, np.ndarray, int, float)):
        cotangents = (cotangents,) if cotangents is not None else (None,) * len(outputs)
    cotangents = tuple(cotangents)
    if len(cotangents) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(cotangents)} gradients; give one gradient (or None) per tensor")
    cotangents = [g if g is None or isinstance(g, Tensor) else wrap(as_value(g, y.dtype)) for y, g in zip(outputs, cotangents)]
    for i, (y, g) in enumerate(zip(outputs, cotangents)):
        if g is None and y.requires_grad:
            if y._value.size != 1:
                raise RuntimeError(f"{NOT_SCALAR}; this one has shape {list(y.shape)}: give a gradient of that shape, or reduce it with .sum()")
            if y._value.dtype.kind == "c":
                raise RuntimeError(f"output[{i}] is complex: give a gradient, for only that of a real number is 1 without asking")
        elif g is not None and g.shape != y.shape:
            raise RuntimeError(GRADIENT_SHAPE.format(i, g.shape, i, y.shape))
    seeds = []
    for i, (y, g) in enumerate(zip(outputs, cotangents)):
        node = current(y)
        if special and not create_graph:
            y._escape()
        if node is None or not node.flags & GRADIENT or isinstance(node, UnrecordedLeaf):
            raise RuntimeError(f"{NO_GRAPH.format(i)}; make an input with requires_grad=True and compute it outside no_grad()")
        if g is None:
            g = wrap(one(y._value))
        else:
            if g.is_complex() and not y.is_complex():  # a real gradient of a complex output is a complex one
                raise RuntimeError(f"grad_output[{i}] of a real output must be real, but it has {g.dtype} and the output {y.dtype}")
            if g._value.dtype != y._value.dtype:
                g = g.to(y.dtype)
        if type(y._value) is Batched and not set(levels_of(y._value)) <= set(levels_of(g._value)):
            g = g * wrap(np.ones_like(y._value))  # one cotangent per member, so that unbatched inputs get the sum
        seeds.append((node, g if create_graph else g._value))
    return seeds
