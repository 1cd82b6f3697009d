"""The way of a cotangent from a node to its parents: what both loops of the pullback do with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Container
from heapq import heappush
from typing import Any

import numpy as np

from symgrad.carriers.batched import Batched, levels_of
from symgrad.carriers.dual import Dual
from symgrad.carriers.guarding import has_nan
from symgrad.engine.hooks import SYMBOLIC_ZERO, UNDEFINED
from symgrad.engine.tensor import Tensor
from symgrad.graph.freed import freed
from symgrad.graph.node import GRADIENT, HOOKED, NAMED, RELEASED, Node, choosing
from symgrad.types.dtypes import dtype_of

__all__ = ["MARK", "MARKED", "Cotangents", "Heap", "Read", "bare", "chosen", "conjugated", "fitted", "in_dtype", "is_complex", "mark",
           "mark_as_choosing", "receivers", "release_node", "send"]

VALUES = (np.ndarray, np.generic, Batched, Tensor, Dual)
MARKED = 128  # the flag of the mark
Read = Callable[[Node], tuple[Any, tuple]]
Cotangents = dict[Node, Any]
Heap = list[tuple[float, Node]]
mark = Node((), (), None, MARKED)  # where the clean loop hands over to the instrumented one
MARK = -math.inf, mark  # as an entry of a heap, before every node


def receivers(node: Node, wanted: Container[Node | None] | None) -> tuple[Node | None, ...]:
    """The parents that get a cotangent from a node, with None in place of the others."""
    if wanted is not None:
        return tuple([p if p in wanted else None for p in node.parents])
    return tuple([p if p is not None and p.flags & GRADIENT else None for p in node.parents]) if node.flags & GRADIENT else ()


def send(pending: Cotangents, heap: Heap, node: Node, g: Any) -> None:
    """Let a cotangent arrive at a node."""
    if node not in pending:
        pending[node] = g
        if node.parents:
            heappush(heap, (-node.sequence_nr, node))
        elif node.flags & HOOKED:
            heappush(heap, MARK)
    elif g is SYMBOLIC_ZERO:
        if pending[node] is UNDEFINED:
            pending[node] = g
    elif g is not UNDEFINED:
        pending[node] = pending[node] + g


def is_complex(g: Any) -> bool:
    """Whether a cotangent is complex, so that the rules read conjugated values."""
    dtype = (g._value if isinstance(g, Tensor) else g).dtype
    return dtype.kind == "c" if isinstance(dtype, np.dtype) else getattr(dtype, "is_complex", False)


def conjugated(xp: Any, y: Any, args: Any) -> tuple[Any, tuple]:
    """What a rule reads for a complex cotangent: the pullback of a holomorphic op is its transposed map with conjugated coefficients."""
    read = xp.conj(y) if isinstance(y, VALUES) else y
    return read, tuple([xp.conj(a) if isinstance(a, VALUES) else a.conjugate() if type(a) is complex else a for a in args])


def fitted(xp: Any, c: Any, y: Any, x: Any) -> Any:
    """The cotangent of an argument `x` that was stretched to the shape of `y`, or shared by the members of a batch: summed over these."""
    for level, count in _shared(y, x):
        c = xp.sum(xp.unbatch(c, 0, level, count), (0,), False)
    return c if tuple.__eq__(c.shape, x.shape) else xp.sum_to_size(c, tuple(x.shape))


def in_dtype(g: Any, x: Any) -> Any:
    """A cotangent, a value or a Tensor, in the dtype of the floats it belongs to: a rule may have computed it from Python numbers."""
    value = g._value if isinstance(g, Tensor) else g
    if value.dtype == x.dtype or value.dtype.kind == "c" or x.dtype.kind == "c":
        return g
    return g.to(dtype_of(x.dtype)) if isinstance(g, Tensor) else value.astype(x.dtype)  # type: ignore[attr-defined]


def bare(x: Any) -> Any:
    """The value behind Tensors and dual values, with its batch levels."""
    x = x.value if type(x) is Dual else x
    return x._value if isinstance(x, Tensor) else x


def _shared(y: Any, x: Any) -> list[tuple[int, int]]:
    """The levels, with their sizes, at which `y` is batched and `x` is not."""
    y, own, found = bare(y), levels_of(x), []
    while type(y) is Batched:
        if y.level not in own:
            found.append((y.level, y.count))
        y = y.data
    return found


def chosen(xp: Any, c: Any, g: Any) -> Any:
    """A cotangent `c` that came of `g`, with 0 where `g` is 0 and the derivative infinite or NaN.

    Where `g` is differentiated next, its zeros are so by chance, and only what is NaN is replaced.
    """
    mark_as_choosing(c)
    if c.shape != g.shape or not (has_nan(xp, c.value) or has_nan(xp, c.tangent) if type(c) is Dual else has_nan(xp, c)):
        return c
    zero = xp.eq(g, 0)
    if type(g) is Dual:
        zero = xp.logical_and(zero, xp.eq(g.tangent, 0))
    elif type(g) is Tensor and g.requires_grad:
        zero = xp.logical_and(zero, xp.isnan(c))
    return xp.where(zero, xp.zeros_like(c), c)


def mark_as_choosing(x: Any) -> None:
    """Let passes over a value that a guarded pass has recorded be guarded, too: to any order, and in both directions."""
    if type(x) is Dual:
        mark_as_choosing(x.value)
        mark_as_choosing(x.tangent)
    elif type(x) is Tensor and x._node is not None:
        node = x._node
        if getattr(getattr(type(node), "op", None), "kind", None) == "elementwise":
            node.__class__ = choosing(type(node))  # type: ignore[arg-type]


def release_node(node: Node) -> None:
    """Let a node forget what its pullback has used up."""
    if not node.saves:
        node.release()
        return
    node.flags |= RELEASED
    if not node.flags & NAMED:
        node.args, node.value = None, freed
