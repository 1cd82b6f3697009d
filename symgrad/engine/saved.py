"""Saved tensors: which values a rule reads, verification of their versions, and torch's `_saved_*` attributes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched
from symgrad.carriers.duck import DuckArray
from symgrad.dtypes.dtype import SCALAR_TYPES, dtype_of
from symgrad.engine.living_tensors import tensors_with
from symgrad.engine.storage.versions import Write, first_write_after, written_since
from symgrad.engine.tensor import Tensor, wrap
from symgrad.errors import FREED, MODIFIED
from symgrad.graph.freed import DETACHED_SINCE, Released
from symgrad.graph.modes import UNCHANGED, in_mode
from symgrad.graph.node import DETACHED, GRADIENT, PACKED, RELEASED, TANGENT, Leaf, Node, all_threads
from symgrad.graph.op import Op


class _ReadTracer:
    """A tracer for an argument of a rule: it records whether the value is read, and not only shape or dtype."""

    __array_ufunc__ = None  # so that NumPy's scalars use the operators of the tracer

    def __init__(self, name: str, read: set[str]):
        self.name, self.read = name, read

    def __getattr__(self, name: str) -> Any:
        if name in ("zeros_like", "ones_like", "eye_like"):  # these read only shape and dtype
            return lambda *_: _ReadTracer("", self.read)
        return (lambda condition, like: self.note(condition)) if name == "indicator" else self.note

    def note(self, *others: Any, **kwargs: Any) -> Any:
        for tracer in (self, *others):
            if isinstance(tracer, _ReadTracer):
                self.read |= {tracer.name} - {""}
        return _ReadTracer("", self.read)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = note
    __lt__ = __gt__ = __le__ = __ge__ = __invert__ = __and__ = __getitem__ = note


@functools.cache
def saved_by(op: Op) -> tuple[frozenset[str], ...] | None:
    """For each argument, the names of the saved values (arguments, or "result") that its cotangent needs; None for all."""
    return tuple(frozenset(names.split()) for names in op.numerics.saved) if op.numerics.saved is not None else read_by(op)


@functools.cache
def _needed_by_several(op: Op) -> frozenset[str]:
    """The names of the saved values that the cotangents of several arguments need: a node saves them whichever arguments are in a graph."""
    saved = saved_by(op) or ()
    return frozenset(name for i, names in enumerate(saved) for name in names if any(name in others for others in saved[:i]))


@functools.cache
def always_saves(op: Op) -> bool:
    """Whether a node saves something whichever arguments are in a graph."""
    saved = saved_by(op)
    return saved is None or len(saved) < 2 or bool(_needed_by_several(op))


@functools.cache
def read_by(op: Op) -> tuple[frozenset[str], ...] | None:
    """For each argument, the names of the values that the rule for its cotangent reads; None for all.

    A rule may read other values if some argument is a Python number. They count, too; `read_at` tells them apart.
    """
    if not op.numerics.saves or op.kind == "linear":
        return (frozenset(),) * (op.arity or 1)
    if op.kind == "multilinear":  # no cotangent needs the result
        return (frozenset(("tensors",)),) if op.arity is None else tuple(frozenset(op.argument_names) - {name} for name in op.argument_names)
    if op.kind != "elementwise":
        return None
    count = len(op.partials)
    tensors = (None,) * count
    calls = [_read_in_call(op, tensors), *(_read_in_call(op, (*tensors[:k], GENERIC, *tensors[k + 1:])) for k in range(count))]
    return tuple(frozenset[str]().union(*names) for names in zip(*calls))


NUMBERS = (int, float, complex)  # NumPy's scalars of 64 bits among them
GENERIC = 1 / 3  # a number with no special property that a rule may ask for; neither the sum nor the difference with 1 is exact


@functools.lru_cache(1024)
def _read_in_call(op: Op, numbers: tuple) -> tuple[frozenset[str], ...]:
    """The names of the values that the partial derivatives of an elementwise op read; `numbers` are its arguments, None for tensors."""
    if op.slope:  # its derivatives are computed with dual numbers
        return (frozenset(op.argument_names),) * len(op.partials)
    out = []
    for i, partial in enumerate(op.partials):
        read: set[str] = set()
        if callable(partial) and numbers[i] is None:
            tracers = [_ReadTracer(name, read) if number is None else number for name, number in zip(op.argument_names, numbers)]
            for parameters in op.docs.examples or ((),):
                found = partial(_ReadTracer("", read), _ReadTracer("result", read), *tracers, *parameters)
                if isinstance(found, _ReadTracer):
                    found.note()
        out.append(frozenset(read))
    return tuple(out)


@functools.cache
def _depends_on_numbers(op: Op) -> bool:
    """Whether a rule reads other values if an argument is a Python number."""
    return op.kind == "elementwise" and op.numerics.saves and read_by(op) != _read_in_call(op, (None,) * len(op.partials))


def read_at(node: Node) -> tuple[frozenset[str], ...] | None:
    """As `read_by`, without what the rule reads for other kinds of arguments only."""
    op, args, parents, count = node.op, node.args, node.parents, len(node.parents)
    if not _depends_on_numbers(op) or args is None:
        return read_by(op)
    numbers = tuple([args[i] if parents[i] is None and isinstance(args[i], NUMBERS) else None for i in range(count)])
    unsure = [i for i in range(count) if parents[i] is not None and isinstance(args[i], NUMBERS)]  # a number to the rule if it has no tangent
    try:
        certain = _read_in_call(op, numbers)
    except ArithmeticError:  # a number is a pole of the rule
        return read_by(op)
    return tuple([either if any([k != i for k in unsure]) else names for i, (names, either) in enumerate(zip(certain, read_by(op) or ()))])


def _needed(node: Node, parents: Sequence[Node | None]) -> list[tuple[str, int]]:
    """The saved values that the cotangents of these parents need, as name and position; the result has position -1.

    They stand in the order in which torch unpacks them: what the first argument needs, or would need, comes first.
    """
    op, count = node.op, len(node.parents)
    saved = saved_by(op)
    names = op.argument_names if op.arity is not None else ("tensors",) * count
    if saved is None:
        return [*((name, i) for i, name in enumerate(names)), ("result", -1)]
    given = [saved[min(i, len(saved) - 1)] for i, p in enumerate(parents) if p is not None] or [_needed_by_several(op)]
    if op.arity is None:
        return [("tensors", i) for i in range(count)] if any(given) else []
    ordered = dict.fromkeys([name for each in saved for name in (*names, "result") if name in each])
    needed = frozenset[str]().union(*given)
    return [(name, -1 if name == "result" else names.index(name)) for name in ordered if name in needed]


def keeps_old(op: Op, i: int) -> bool:
    """Whether an in-place op must copy the value it overwrites, for the cotangent of argument `i`.

    It must if the rule reads that value, or reads the result without saving it, so that the result may have to be recomputed.
    """
    read, saved = read_by(op), saved_by(op)
    if read is None or saved is None:
        return True
    return "input" in read[i] or "result" in read[i] and "result" not in saved[i]


VALUES = (np.ndarray, np.generic, DuckArray)


class Changed(RuntimeError):
    """A saved value was modified in place before the pullback."""


def changed(value: Any, write: Write, now: int, expected: int, source: Node | None) -> Changed:
    """The error for a modified saved value, with the line of the write."""
    kind, origin = SCALAR_TYPES.get(dtype_of(value.dtype).name, dtype_of(value.dtype).name), ""
    if source is not None and not isinstance(source, Leaf) and source.origin is not None:
        origin = f", which is output {source.output_nr} of {source.origin.short_name()},"
    kind = f"CPU{kind}Type" if value.dtype.kind == "c" else f"torch.{kind}Tensor"
    return Changed(f"{MODIFIED.format(kind, list(value.shape), origin, now, expected)}\nIt was changed by {write.operation} at {write.line}")


def _saved_tensor(value: Any, node: Node | None) -> Tensor:
    """A saved value as the user's tensor, if that is alive, else as a new one."""
    tensor = node.variable if isinstance(node, Leaf) else None
    if tensor is None or tensor._value is not value:
        tensor = next((t for t in tensors_with(value) if t._node_slot is node), None)
    return wrap(value, node) if tensor is None else tensor


def _current(value: Any, source: Node | None) -> Node | None:
    """The present node of the tensor whose value was saved, if the tensor is alive: torch names that one."""
    with in_mode(grad=True):  # so that a view that cannot get a current node raises
        found = tensors_with(value)
        if source is not None or all(t._node is not None for t in found):  # otherwise a constant that shares memory with a tensor in a graph
            for t in found:
                if t._node is not None:
                    return t._node
    return source


@functools.cache
def _watches_result(op: Op) -> bool:
    """Whether some rule reads the result, or needs its unmodified value."""
    return any(names is None or any("result" in n for n in names) for names in (read_by(op), saved_by(op)))


def verify(node: Node, parents: Sequence[Node | None]) -> None:
    """Raise RuntimeError if a value that the node saved was modified.

    A rule may read more than torch saves: the result is then recomputed from the arguments, or the argument from the result.
    A custom Function verifies its own saved tensors.
    """
    if node.none_is_undefined or node.args is None or not node.parents or not (numerics := node.op.numerics).saves:
        return
    since, args = node.sequence_nr, node.args
    for i, p in enumerate(node.parents):
        if written_since(args[i], since) or p is not None and p.flags & DETACHED:
            break
    else:
        if not _watches_result(node.op) or not written_since(node.value, since):
            return
    result_needed = False
    if len(parents) > 1:
        parents = [None if p is None or p.origin is None else p for p in parents]  # the cotangent of an unrecorded view is dropped
    for _, place in _needed(node, parents):
        value, source = (node.value, node) if place < 0 else (node.args[place], node.parents[place])
        result_needed |= place < 0
        if place >= 0 and source is not None and source.flags & DETACHED and isinstance(value, VALUES):
            raise RuntimeError(DETACHED_SINCE)
        if isinstance(value, VALUES) and (found := first_write_after(value, node.sequence_nr)) is not None:
            raise changed(value, *found, source if place < 0 else _current(value, source))
    if numerics.inverse is not None and first_write_after(node.args[0], node.sequence_nr) is not None:
        node.args = (numerics.inverse(numeric, node.value), *node.args[1:])
    read = read_at(node)
    reads_result = read is None or any("result" in read[min(i, len(read) - 1)] for i, p in enumerate(parents) if p is not None)
    if not result_needed and reads_result and isinstance(node.value, (np.ndarray, Batched)) and first_write_after(node.value, node.sequence_nr):
        count = len(node.parents)
        tensors = node.args[:count]
        node.value = node.op.forward(numeric, *((tensors,) if node.op.arity is None else tensors), *node.args[count:])


def read(node: Node, by: Sequence[Node | None] | None = None) -> tuple[Any, tuple]:
    """A node's value and arguments as recorded. `by` are the parents that need a cotangent, by default all.

    Raises RuntimeError if the node was freed, or if a value that its rule reads was modified.
    """
    if node.args is None or node.flags & (RELEASED | PACKED):
        if node.args is None or node.flags & RELEASED:
            raise RuntimeError(FREED)
        with in_mode(grad=False):
            return _unpacked(node)
    if node.reads_saved and node.sequence_nr < all_threads.written:
        verify(node, tuple([p if p is not None and p.flags & (GRADIENT | TANGENT) else None for p in node.parents]) if by is None else by)
    return node.value, node.args


def _unpacked(node: Node) -> tuple[Any, tuple]:
    """The value and the arguments of a node, where the unpack hooks return those that the pack hooks have got.

    A value that the rule reads but torch does not save is computed from the others.
    """
    op, args = node.op, node.args or ()
    kept = getattr(args, "kept", None)
    if not kept:
        return node.value, args
    values = {position: each.unpack() for position, each in kept.items()}
    if op.numerics.inverse is not None and 0 not in values:
        values[0] = op.numerics.inverse(numeric, values[-1])
    if -1 not in values and op.numerics.saved is not None and op.arity is not None:
        given = [values.get(i, a) for i, a in enumerate(args)]
        if not any([isinstance(a, Released) for a in given]):
            values[-1] = op.forward(numeric, *given)
    return values.get(-1, node.value), tuple([values.get(i, a) for i, a in enumerate(args)])


class Unpacking:
    """The identity of a pass that unpacks saved tensors: a hook may compute those of many nodes at the first one that the pass unpacks."""

    __slots__ = ("__weakref__",)


def unpacking() -> AbstractContextManager[None]:
    """A scope for one pass that may unpack saved tensors, each of them once."""
    return in_mode(unpacking=Unpacking()) if all_threads.packed else UNCHANGED


def hold_unpacked(nodes: Sequence[Node]) -> None:
    """Unpack the saved tensors of nodes for good, for passes that read the values of nodes by themselves."""
    with unpacking():
        for node in nodes:
            if node.flags & PACKED:
                node.value, node.args = read(node)
                node.flags &= ~PACKED


def verify_all(path: Sequence[Node]) -> None:
    """Raise if a value that a node of a path saved, oldest first, was written since."""
    if path and path[0].sequence_nr < all_threads.written:
        for node in path:
            read(node)


def traced_args(node: Node) -> tuple[Any, tuple]:
    """A node's value and arguments as Tensors with their nodes, not verified.

    Raises RuntimeError if the node was freed.
    """
    value, args = node.value, node.args
    if args is None or node.flags & (RELEASED | PACKED):
        if args is None or node.flags & RELEASED:
            raise RuntimeError(FREED)
        with in_mode(grad=True):
            value, args = _unpacked(node)
    tensors = tuple([a if p is None and not isinstance(a, VALUES) else wrap(a, p) for a, p in zip(args, node.parents)])
    return wrap(value, node), tensors + args[len(tensors):]


def read_traced(node: Node, by: Sequence[Node | None] | None = None) -> tuple[Any, tuple]:
    """As `read`, with Tensors at their nodes."""
    if not node.flags & PACKED:  # else `read` would call the unpack hooks, too
        read(node, by)
    return traced_args(node)
