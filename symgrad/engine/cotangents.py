"""Steps that both loops of the pullback share: accumulating, reducing and guarding cotangents."""

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
from symgrad.graph.node import GRADIENT, HOOKED, NAMED, RELEASED, Node, guarded_class
from symgrad.types.dtypes import dtype_of

__all__ = ["MARK", "MARKED", "Cotangents", "Heap", "Read", "bare", "conjugated", "fitted", "in_dtype", "is_complex", "mark", "mark_as_guarded",
           "receivers", "release_node", "send", "zero_unselected"]

VALUES = (np.ndarray, np.generic, Batched, Tensor, Dual)
MARKED = 128  # the flag of `mark`
Read = Callable[[Node], tuple[Any, tuple]]
Cotangents = dict[Node, Any]
Heap = list[tuple[float, Node]]
mark = Node((), (), None, MARKED)  # a sentinel: the clean loop stops here and the instrumented one goes on
MARK = -math.inf, mark  # its heap entry, which sorts before every node


def receivers(node: Node, wanted: Container[Node | None] | None) -> tuple[Node | None, ...]:
    """The parents of a node that need a cotangent, with None in place of the others."""
    if wanted is not None:
        return tuple([p if p in wanted else None for p in node.parents])
    return tuple([p if p is not None and p.flags & GRADIENT else None for p in node.parents]) if node.flags & GRADIENT else ()


def send(pending: Cotangents, heap: Heap, node: Node, g: Any) -> None:
    """Accumulate a cotangent of a node, and schedule the node."""
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
    """Whether a cotangent is complex, so that rules get conjugated arguments."""
    dtype = (g._value if isinstance(g, Tensor) else g).dtype
    return dtype.kind == "c" if isinstance(dtype, np.dtype) else getattr(dtype, "is_complex", False)


def conjugated(xp: Any, y: Any, args: Any) -> tuple[Any, tuple]:
    """The conjugated value and arguments: the pullback of a holomorphic op is its transposed map with conjugated coefficients."""
    read = xp.conj(y) if isinstance(y, VALUES) else y
    return read, tuple([xp.conj(a) if isinstance(a, VALUES) else a.conjugate() if type(a) is complex else a for a in args])


def fitted(xp: Any, c: Any, y: Any, x: Any) -> Any:
    """The cotangent of an argument `x`, summed over the dimensions that were broadcast to `y` and over the batches that share `x`."""
    for level, count in _shared(y, x):
        c = xp.sum(xp.unbatch(c, 0, level, count), (0,), False)
    return c if tuple.__eq__(c.shape, x.shape) else xp.sum_to_size(c, tuple(x.shape))


def in_dtype(g: Any, x: Any) -> Any:
    """A cotangent, a value or a Tensor, in the dtype of the floats it belongs to: a rule may have computed it from Python numbers.

    A narrower one stays as it is: its rule has lost digits, and `gradcheck` says so.
    """
    value = g._value if isinstance(g, Tensor) else g
    if value.dtype.itemsize <= x.dtype.itemsize or value.dtype.kind == "c" or x.dtype.kind == "c":
        return g
    return g.to(dtype_of(x.dtype)) if isinstance(g, Tensor) else value.astype(x.dtype)  # type: ignore[attr-defined]


def bare(x: Any) -> Any:
    """The NumPy value of a Tensor or a dual number, batch levels included."""
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


def zero_unselected(xp: Any, c: Any, g: Any) -> Any:
    """A cotangent `c`, computed from `g`, with 0 where `g` is 0 and the local derivative is infinite or NaN.

    If `g` is differentiable, its zeros may depend on the inputs; then only NaN is replaced.
    """
    mark_as_guarded(c)
    if c.shape != g.shape or not (has_nan(xp, c.value) or has_nan(xp, c.tangent) if type(c) is Dual else has_nan(xp, c)):
        return c
    zero = xp.eq(g, 0)
    if type(g) is Dual:
        zero = xp.logical_and(zero, xp.eq(g.tangent, 0))
    elif type(g) is Tensor and g.requires_grad:
        zero = xp.logical_and(zero, xp.isnan(c))
    return xp.where(zero, xp.zeros_like(c), c)


def mark_as_guarded(x: Any) -> None:
    """Mark a value recorded by a guarded pass, so that passes over it are guarded, too, in both modes and to any order."""
    if type(x) is Dual:
        mark_as_guarded(x.value)
        mark_as_guarded(x.tangent)
    elif type(x) is Tensor and x._node is not None:
        node = x._node
        if getattr(getattr(type(node), "op", None), "kind", None) == "elementwise":
            node.__class__ = guarded_class(type(node))  # type: ignore[arg-type]


def release_node(node: Node) -> None:
    """Release the saved values of a node after its pullback."""
    if not node.saves:
        node.release()
        return
    node.flags |= RELEASED
    if not node.flags & NAMED:
        node.args, node.value = None, freed
