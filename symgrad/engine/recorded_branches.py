"""Branches of the program on values of tensors, recorded on the named leaves upstream."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.freed import Released
from symgrad.graph.modes import thread
from symgrad.graph.node import NAMED, Leaf, Node, next_sequence
from symgrad.graph.order import upstream


class Branch(NamedTuple):
    """The truth value of a named tensor: its sequence number, the value, and a copy of the graph of the tensor.

    The copy has copies of the leaves, so that a leaf that holds it creates no reference cycle. `outline` is equal for two graphs that differ only
    in the values of their named leaves.
    """

    sequence_nr: int
    truth: bool
    root: Node
    outline: tuple


def branched(node: Node, truth: bool) -> None:
    """Report a branch on the tensor of a node to the observers, and record it on the named leaves upstream."""
    for observer in thread.modes.observers:
        observer.branch(node, truth)
    if node.flags & NAMED:
        _keep(node, truth)


def _keep(node: Node, truth: bool) -> None:
    """Record a branch on every named leaf upstream, unless the same condition had the same value last time."""
    copies: dict[Node, Node] = {}
    places: dict[Node | None, int] = {}
    outline, leaves = [], []
    for original in upstream([node]):
        if not original.flags & NAMED:
            continue
        args = original.args or ()
        parents = tuple(None if p is None or not p.flags & NAMED else p for p in original.parents)
        copy: Any = object.__new__(type(original))
        copy.parents = tuple(None if p is None else copies[p] for p in parents)
        copy.args = tuple(a if p is None else None for p, a in zip(parents, args)) + args[len(parents):]
        copy.sequence_nr, copy.flags = original.sequence_nr, original.flags
        copy.value = original.value if isinstance(original, DerivativeNode) else Released(original.value)
        what: Any = original.op if not isinstance(original, Leaf) else (original.symbol, original.value.shape)
        if isinstance(original, Leaf):
            copy.reference, copy.symbol, copy.conditions = original.reference, original.symbol, []
            leaves.append(original)
        outline.append((what, tuple(map(places.get, parents)), _plain(copy.args)))
        copies[original], places[original] = copy, len(places)
    branch = Branch(next_sequence(), truth, copies[node], tuple(outline))
    for leaf in leaves:
        before = next((b for b in reversed(leaf.conditions) if b.outline == branch.outline), None)
        if before is None or before.truth != truth:
            leaf.conditions.append(branch)


def _plain(x: Any) -> Any:
    """Arguments of a rule in a hashable form."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype.str, x.shape, x.tobytes()
    return tuple(map(_plain, x)) if isinstance(x, (tuple, list)) else (type(x), x)
