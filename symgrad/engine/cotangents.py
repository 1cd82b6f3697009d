"""Steps that both loops of the pullback share: accumulating, reducing and guarding cotangents."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Container, Sequence
from heapq import heappush
from typing import Any

import numpy as np

from symgrad.carriers.batched import Batched, levels_of
from symgrad.carriers.dual import Dual, DualCarrier
from symgrad.carriers.duck import DuckArray
from symgrad.carriers.guarding import guarded, has_nan, not_finite, truth, unselected
from symgrad.dtypes.dtype import dtype_of
from symgrad.engine.hooks import SYMBOLIC_ZERO, UNDEFINED
from symgrad.engine.operands import is_complex
from symgrad.engine.recording import core
from symgrad.engine.saved import always_saves
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.graph.classes import become
from symgrad.graph.freed import freed
from symgrad.graph.node import GRADIENT, HOOKED, NAMED, RELEASED, SELECTED, Node, guarded_class
from symgrad.graph.op import REGISTRY
from symgrad.system.errorstate import quietly

VALUES = (np.ndarray, np.generic, DuckArray, Tensor, Dual)
MARKED = 4096  # the flag of `mark`
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


def any_recorded(node: Node, parents: Sequence[Node | None]) -> bool:
    """Whether a node has saved something: not all of its parents are views that no operation recorded, or there is something it always saves."""
    return any([p is not None and p.origin is not None for p in parents]) or always_saves(node.op)


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
        pending[node] = quietly(operator.add, pending[node], g)


def conjugated(xp: Any, node: Any, y: Any, args: Any) -> tuple[Any, tuple]:
    """The conjugated value and arguments: the pullback of a holomorphic op is its transposed map with conjugated coefficients.

    A linear op has them in its parameters alone, and its transpose does not read the value.
    """
    if node.op.kind == "linear":
        return y, tuple([a.conjugate() if type(a) is complex else a for a in args])
    read = xp.conj(y) if isinstance(y, VALUES) else y
    count = len(node.parents) if node.op.kind == "elementwise" else 0
    return read, tuple([_conjugate(xp, a, i < count) for i, a in enumerate(args)])


def _conjugate(xp: Any, a: Any, below: bool) -> Any:
    """A conjugated argument. A real operand of an elementwise op becomes complex, `below` the real line, on which a logarithm may have its cut."""
    if isinstance(a, VALUES):
        number: Any = a
        return xp.conj(number * (1 + 0j) if below and not is_complex(a) else a)
    return complex(a).conjugate() if below and type(a) in (int, float) else a.conjugate() if type(a) is complex else a


def fitted(xp: Any, c: Any, y: Any, x: Any) -> Any:
    """The cotangent of an argument `x`, summed over the dimensions that were broadcast to `y` and over the batches that share `x`."""
    for level, count in () if type(bare(y)) is np.ndarray else _shared(y, x):
        c = xp.sum(xp.unbatch(c, 0, level, count), (0,), False)
    return c if tuple.__eq__(c.shape, x.shape) else xp.sum_to_size(c, tuple(x.shape))


def in_dtype(g: Any, x: Any) -> Any:
    """A cotangent, a value or a Tensor, in the dtype of the floats it belongs to: a rule may have computed it from Python numbers.

    A narrower one stays as it is: its rule has lost digits, and `gradcheck` says so.
    """
    value, dtype = g._value if isinstance(g, Tensor) else g, x.dtype
    if value.dtype is dtype or value.dtype.itemsize <= dtype.itemsize or value.dtype.kind == "c" or dtype.kind == "c":
        return g
    return g.to(dtype_of(dtype)) if isinstance(g, Tensor) else quietly(value.astype, dtype)


def bare(x: Any) -> Any:
    """The NumPy value of a Tensor or a dual number, batch levels included."""
    x = x.value if type(x) is Dual else x
    return x._value if isinstance(x, Tensor) else x


def shape_of(c: Any, y: Any) -> Any:
    """The shape of a cotangent that a node of value `y` passes on; without batches that of a dual one does not need its value, a thunk."""
    return c.shape if type(c) is Dual and type(y.value if type(y) is Dual else y) is np.ndarray else bare(c).shape


def _shared(y: Any, x: Any) -> list[tuple[int, int]]:
    """The levels, with their sizes, at which `y` is batched and `x` is not."""
    y, own, found = bare(y), levels_of(x), []
    while type(y) is Batched:
        if y.level not in own:
            found.append((y.level, y.count))
        y = y.data
    return found


def guarded_vjp(xp: Any, node: Node, g: Any, y: Any, args: Any, parents: Sequence[Node | None], unreached: Callable[..., Any]) -> list[Any]:
    """The cotangents of a node's arguments, where `g` times a local derivative that is infinite or NaN is 0 for an element that does not reach
    the outputs, of which `unreached(node)` is the mask.

    So is an infinite or NaN element of `g` times the derivative 0 of an op that selects.
    """
    out, op = list(node.vjp(xp, g, y, args, parents)), node.op
    kind = op.kind
    for i, c in enumerate(out):
        if c is None or parents[i] is None:
            continue
        mark_as_guarded(c)
        dual = type(c) is Dual
        if kind == "linear" or c.shape is None or not (  # the coefficients of a linear op are finite, and a bundle has no shape
                has_nan(xp, c.value) or has_nan(xp, c.tangent) if dual else has_nan(xp, c)):
            continue
        mask = unreached(node)
        fits = tuple.__eq__(c.shape, g.shape)  # whatever is batched
        if kind != "elementwise" and REGISTRY.get(op.name) is op:
            if (part := None if mask is None else unreached(node, i)) is not None:
                c = out[i] = _without(xp, c, part)
            out[i] = _guarded_rule(xp, node, g, args, i, c, mask)
            continue
        if op.name == "mul":  # a factor that is always 0
            mask = unreached(node, i)
        if mask is not None and fits:
            c = out[i] = _without(xp, c, mask)
        if op.selects and kind == "elementwise" and callable(op.partials[i]):
            out[i] = _guarded_partial(xp, op, i, y, args, c)
        elif dual and kind == "elementwise" and fits:
            slope = node.vjp(xp, xp.ones_like(_parts(g)[0]), y, args, [p if k == i else None for k, p in enumerate(node.parents)])[i]
            out[i] = _guarded_dual(xp.base, g, slope, mask)
    return out


def _without(xp: Any, c: Any, mask: Any) -> Any:
    """A cotangent that is 0 where a mask, which is an array, is true; what is 0 there already may depend on what another pass moves."""
    base = xp.base if isinstance(xp, DualCarrier) else xp
    dropped = wrap(mask) if base is traced else mask
    return xp.where(dropped if type(c) is Dual else base.logical_and(dropped, base.isnan(c)), xp.zeros_like(c), c)


def _guarded_partial(xp: Any, op: Any, i: int, y: Any, args: tuple, c: Any) -> Any:
    """The cotangent `c` of argument `i` of an elementwise op that selects: 0 where the value does not depend on the argument."""
    base, read = xp, (y, *args)
    if isinstance(xp, DualCarrier):
        base, read = xp.base, tuple([x.value if type(x) is Dual else x for x in read])
    return xp.where(unselected(base, op, i, read[0], read[1:]), xp.zeros_like(c), c)


def _guarded_rule(xp: Any, node: Node, g: Any, args: tuple, i: int, c: Any, mask: Any) -> Any:
    """The cotangent `c` of argument `i` of an op that is not elementwise, guarded."""
    dual, count, op = type(c) is Dual, len(node.parents), node.op
    needs = [p if k == i else None for k, p in enumerate(node.parents)]
    base, rest = xp.base if dual else xp, args[count:]
    call = core(op) if base is traced else functools.partial(op.forward, base)
    if mask is not None and truth(mask).all():
        return xp.zeros_like(c)
    parts = _flat([g])
    infinite, multilinear = [bool(not_finite(base, part)) for part in parts], op.kind == "multilinear"
    if infinite[0] and not op.selects and not multilinear:
        return c
    unsure = multilinear and not op.selects and any(infinite)  # 0 times an infinite cotangent
    given = _flat([_unknown_zeros(base, a) if unsure and p is not None else a for p, a in zip(node.parents, args)])
    own = [_not_selected(base, parts[0], mask), *parts[1:]]

    def compute(given: list[Any]) -> list[Any]:
        parts, y = iter(given), None
        along = Dual(next(parts), next(parts)) if type(g) is Dual else next(parts)
        read = [Dual(next(parts), next(parts)) if type(a) is Dual else next(parts) for a in args[:count]]
        if op.kind != "multilinear":
            y = xp.apply(op, read, rest, call) if dual else call(*([read] if op.arity is None else read), *rest)
        return _flat([node.vjp(xp, along, y, (*read, *rest), needs)[i]])

    found = guarded(base, compute, [*own, *given], _flat([c]))
    return Dual(*found) if dual else found[0]


def _not_selected(base: Any, g: Any, mask: Any) -> Any:
    """A part of a cotangent, with NaN in place of zeros that are not of the mask: products with them may be anything."""
    zero = base.eq(g, 0)
    if mask is not None:
        zero = base.logical_and(zero, base.logical_not(wrap(mask) if base is traced else mask))
    return base.where(zero, base.zeros_like(g) * math.nan, g) if truth(zero).any() else g


def _unknown_zeros(base: Any, a: Any) -> Any:
    """A factor, with NaN in place of its zeros, which may be zeros at this point only."""
    value = a.value if type(a) is Dual else a
    if getattr(getattr(value, "dtype", None), "kind", "") not in "fc":
        return a
    value = _not_selected(base, value, None)
    return Dual(value, a.tangent) if type(a) is Dual else value


def _guarded_dual(base: Any, g: Any, slope: Any, mask: Any) -> Dual:
    """The product of dual values, in which each term is 0 where the mask is true."""
    (value, tangent), (plain, moved) = _parts(g), _parts(slope)
    terms = [] if moved is None else [_kept(base, moved * value, mask)]
    if tangent is not None:
        terms.append(_kept(base, plain * tangent, mask))
    return Dual(_kept(base, plain * value, mask), functools.reduce(operator.add, terms))


def _kept(base: Any, c: Any, mask: Any) -> Any:
    return c if mask is None else _without(base, c, mask)


def _parts(x: Any) -> tuple[Any, Any]:
    """The value and the tangent of a dual value; the tangent of another value is None."""
    return (x.value, x.tangent) if type(x) is Dual else (x, None)


def _flat(values: Sequence[Any]) -> list[Any]:
    """Values, with the value and the tangent of each dual value."""
    return [part for x in values for part in ((x.value, x.tangent) if type(x) is Dual else (x,))]


def mark_as_guarded(x: Any) -> None:
    """Mark a value recorded by a guarded pass, so that passes over it are guarded, too, in both modes and to any order."""
    if type(x) is Dual:
        mark_as_guarded(x.value)
        mark_as_guarded(x.tangent)
    elif type(x) is Tensor and x._node is not None:
        node = x._node
        if getattr(getattr(type(node), "op", None), "kind", None) == "elementwise":
            become(node, guarded_class(type(node)))  # type: ignore[arg-type]
            node.flags |= SELECTED


def release_node(node: Node) -> None:
    """Release the saved values of a node after its pullback."""
    if not node.saves:
        node.release()
        return
    node.flags |= RELEASED
    if not node.flags & NAMED:
        node.args, node.value = None, freed
