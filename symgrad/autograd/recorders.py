"""The recorders of a Function's forward and backward, so that its backward can be differentiated.

While a forward runs, every operation on an input is recorded, but its results do not require grad. When the backward is recorded, the forward's
nodes that it uses are replaced by copies that carry gradients; the tensors do not change. A value that the forward computed from plain numbers
(read by `item()` or `numpy()`) has no graph, so a derivative through it is refused.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import re
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.duck import DuckArray
from symgrad.engine.saved import verify
from symgrad.engine.storage.versions import first_write_after
from symgrad.engine.storage.views import Base, Stale, base_of
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.common import REFUSAL, STOP, refusal
from symgrad.graph.modes import DEFAULT, Recorder, thread
from symgrad.graph.node import IN_FORWARD, NAMED, TRACKED, Leaf, Node, make_node, next_sequence
from symgrad.graph.op import REGISTRY, Op
from symgrad.graph.order import upstream

CLONE = REGISTRY["clone"]
REMEDY = "Save the inputs with save_for_backward and compute it in backward, or mark the backward with once_differentiable"
INEXACT = "fcV"  # the kinds of dtypes that have derivatives


class Span:
    """The interval of sequence numbers of one forward, and that of its first escape: when it first read a tensor as plain numbers."""

    __slots__ = ("name", "since", "until", "first_escape", "shared", "before", "leaked")

    def __init__(self, name: str, since: int):
        self.name, self.since, self.until = name, since, math.inf
        self.first_escape: float = math.inf
        self.shared = False  # whether NumPy has memory that it can write without a version count
        self.before: dict[str, Any] = {}
        self.leaked: str | None = None

    def __contains__(self, node: Node) -> bool:
        return self.since < node.sequence_nr < self.until

    def refusal_message(self, what: str) -> str:
        """The error text for a derivative through `what`, a value without a graph."""
        return (f"{self.name}: the second derivative would be wrong: the forward turned a tensor into plain numbers (by numpy(), item() or the like) "
                f"and left {what}, which may depend on its inputs without being recorded. {REMEDY}")


class _FunctionRecorder(Recorder):
    flags = TRACKED | IN_FORWARD
    tracks_detached = True


class ForwardRecorder(_FunctionRecorder):
    """The recorder of a Function's forward.

    `reach()` returns the values that the backward can access beside `ctx`, by name. With `keep_values` the nodes keep all that a formula needs.
    """

    restores_nodes = True

    def __init__(self, name: str, reach: Callable[[], dict[str, Any]], keep_values: bool, outer: ForwardRecorder | None = None):
        self.span: Span = Span(name, next_sequence() if outer is None else outer.span.since)
        self.reach = reach
        self.keep_values: bool = keep_values or outer is not None and outer.keep_values
        self.rebased: list[tuple[Tensor, Node]] = []  # the tensors that the forward wrote, with their former nodes
        self.stale_views: list[tuple[weakref.ref[Tensor], Node | None]] = []  # whose base was written, with their nodes before

    def tracks(self, node: Node | None) -> bool:
        """Whether a node depends on an input or on another differentiable tensor."""
        return node is not None and bool(node.flags & TRACKED or node.flags & IN_FORWARD and node in self.span)

    def record(self, op: Op, args: tuple, parents: tuple, value: Any) -> Node | None:
        """The node of an operation, if an argument depends on an input."""
        if not op.differentiable and not self.keep_values or not any(map(self.tracks, parents)):
            return None
        parents, flags = tuple(p if self.tracks(p) else None for p in parents), IN_FORWARD
        for p in parents:
            if p is not None and thread.modes.grad:
                flags |= p.flags & (TRACKED if op.differentiable else NAMED)
            if isinstance(p, Leaf) and p in self.span:  # a leaf created in the forward may hold an input's numbers
                self.span.first_escape = min(self.span.first_escape, p.sequence_nr - 1)
        return make_node(op, args, parents, value, flags)

    def escape(self, t: Tensor, shared: bool = False) -> None:
        """Record that a tensor which depends on an input was read as plain numbers, or that its memory was shared."""
        if t._value.dtype.kind in INEXACT and self.tracks(t._node):
            if self.span.first_escape == math.inf:
                self.span.first_escape, self.span.before = next_sequence(), self.reach()
            self.span.shared |= shared

    def rebase_history(self, *places: tuple[Tensor, Node | None]) -> None:
        """Store the nodes that written tensors have had."""
        for t, node in places:
            if node is not None and node.flags & TRACKED and all(t is not other for other, _ in self.rebased):
                self.rebased.append((t, node))

    def stale_view(self, view: weakref.ref[Tensor]) -> None:
        """Store a view that became stale."""
        stale: Any = None if (tensor := view()) is None else tensor._node_slot
        if stale is not None:
            self.stale_views.append((view, stale.last))

    def detach(self, t: Tensor) -> Node | None:
        """The node of a detached tensor. It still depends on the inputs: no tensor requires grad in a forward, so detaching has no effect there."""
        return make_node(CLONE, (t._value, "K"), (t._node,), t._value, IN_FORWARD) if self.tracks(t._node) else None

    def refresh_views(self) -> None:
        """Update the nodes of views whose base was written, while the base still has its node of this forward."""
        with contextlib.suppress(RuntimeError):
            for reference, _ in self.stale_views:
                if (view := reference()) is not None:
                    view._node  # noqa: B018

    def restore(self) -> None:
        """Give the tensors that the forward wrote their former nodes."""
        for t, node in self.rebased:
            if base_of(t) is None:  # the node of a view is computed from its base
                t._node = node
        for t, _ in self.rebased:
            if isinstance(t._view, Base):
                t._view.make_stale()
        for reference, last in reversed(self.stale_views):  # the nodes from before this forward say what was recorded
            if (view := reference()) is not None and isinstance(view._node_slot, Stale):
                view._node_slot.last = last
        self.rebased.clear()

    def close(self) -> Span:
        """End the forward and return its span."""
        if self.span.first_escape < math.inf and self.span.before:
            after = self.reach()
            self.span.leaked = next((name for name, found in after.items() if found != self.span.before.get(name)), None)
        self.span.before = {}
        self.span.until = next_sequence()
        return self.span


class BackwardRecorder(_FunctionRecorder):
    """The recorder of a Function's backward. It records on copies of the forward's nodes that carry gradients."""

    def __init__(self, span: Span, inputs: Sequence[Node | None], outer: Recorder, reading: bool = False):
        self.span, self.inputs, self.outer = span, inputs, outer
        self.reading = reading  # whether a formula is read; detached values have nodes there
        self.copies: dict[Node, Node | None] = {}
        self.escaped = False

    def record(self, op: Op, args: tuple, parents: tuple, value: Any) -> Node | None:
        """The node of an operation, on the copies of the forward's nodes."""
        copied = tuple(self.copy_of(p, a) for p, a in zip(parents, args)) if thread.modes.grad else parents
        if self.outer is not DEFAULT:
            return self.outer.record(op, args, copied, value)
        flags = 0
        for p in copied:
            flags |= 0 if p is None else p.flags
        flags &= TRACKED if op.differentiable else NAMED
        if thread.modes.grad and flags:
            return make_node(op, args, copied, value, flags)
        from_detached = any(p is not None and p.flags & IN_FORWARD for p in parents)  # computed from a tensor that was detached in this backward
        return make_node(op, args, parents, value, IN_FORWARD) if from_detached and op.differentiable else None

    def escape(self, t: Tensor, shared: bool = False) -> None:
        """Record that a tensor with a node was read as plain numbers."""
        self.escaped |= t._node is not None and bool(t._node.flags & (TRACKED | IN_FORWARD)) and t._value.dtype.kind in INEXACT
        self.outer.escape(t, shared)

    def detach(self, t: Tensor) -> Node | None:
        """The node of a detached tensor: a constant. Reading it as plain numbers still counts as an escape."""
        if self.outer.tracks_detached:
            return self.outer.detach(t)
        if self.reading:
            return self.record(STOP, (t._value,), (t._node,), t._value)
        return make_node(CLONE, (t._value, "K"), (t._node,), t._value, IN_FORWARD) if t._node is not None else None

    def copy_of(self, node: Node | None, value: Any = None) -> Node | None:
        """The copy of a node in the graph of the derivative; `value` is the present value of its tensor."""
        if node is None or node not in self.span:
            return node if node is not None and node.flags & TRACKED else None
        if node not in self.copies:
            for each in upstream([node], stop=_OutsideSpan(self.span)):
                if each not in self.copies:
                    self.copies[each] = self._duplicate(each)
        if isinstance(value, VALUES) and self.copies[node] is not None and _differs(node, value, next_sequence()):
            return self._refusal(value, self._written_message())
        return self.copies[node]

    def _written_message(self) -> str:
        return (f"{self.span.name}: the second derivative would be wrong: memory that the forward computed was written without being "
                f"recorded (through detach(), data or NumPy). {REMEDY}")

    def _duplicate(self, node: Node) -> Node | None:
        if node.sequence_nr > self.span.first_escape:
            return self._refusal(node.value, self.span.refusal_message("a tensor that was computed later"))
        if isinstance(node, Leaf):
            return node
        if _was_written(node, self.span):
            return self._refusal(node.value, self._written_message())
        try:
            verify(node, node.parents)
        except RuntimeError as error:
            return self._refusal(node.value, str(error))
        parents = tuple(self.copies.get(p, p) if p is not None else None for p in node.parents)
        flags = 0
        for p in parents:
            flags |= 0 if p is None else p.flags
        flags &= TRACKED if node.op.differentiable else NAMED
        if not flags:
            return None
        duplicate = copy.copy(node)
        duplicate.parents, duplicate.flags, duplicate.sequence_nr = parents, flags, next_sequence()
        return duplicate

    def _refusal(self, value: Any, why: str) -> Node:
        return refusal(value, [p for p in self.inputs if p is not None], why)

    def result(self, t: Tensor | None, why: str | None) -> Tensor | None:
        """A gradient that the backward returned, with its node; `why` is the reason if its derivative is refused."""
        if t is None:
            return None
        if t._node is not None and getattr(t._node, "op", None) is REFUSAL:
            return t
        if self.escaped and why is None:
            why = (f"{self.span.name}: the second derivative would be wrong: the backward turned a tensor into plain numbers (by numpy(), item() or "
                   f"the like). Compute with Tensors there, or mark the backward with once_differentiable")
        node = self._refusal(t._value, why) if why is not None else self.copy_of(t._node)
        return t if node is t._node else wrap(t._value, node)


class _OutsideSpan:
    """The set of nodes outside a span, at which the search for the forward's nodes stops."""

    def __init__(self, span: Span):
        self.span = span

    def __contains__(self, node: Any) -> bool:
        return node not in self.span


VALUES: Any = (np.ndarray, np.generic, DuckArray)


def _differs(node: Node, value: Any, now: int, since: int = 0) -> bool:
    """Whether a value used at sequence number `now` differs from the one that its node computed, by a write or a replacement."""
    start = max(node.sequence_nr, since)
    found = first_write_after(value, start)
    if found is not None:
        return found[0].sequence_nr < now
    if value is node.value or not isinstance(node.value, VALUES) or first_write_after(node.value, start) is not None:
        return False
    return not np.array_equal(value, node.value, equal_nan=node.value.dtype.kind in "fc")


def _was_written(node: Node, span: Span) -> bool:
    """Whether an argument of a node was written after it was computed, or the node's value differs from that of its op."""
    for p, a in zip(node.parents, node.args or ()):
        if p is not None and isinstance(a, VALUES) and a is not node.value and _differs(p, a, node.sequence_nr, span.since):
            return True
    if not span.shared or node.op.kind == "function" or first_write_after(node.value, node.sequence_nr) is not None:
        return False
    count = len(node.parents)
    tensors, rest = node.args[:count], node.args[count:]  # type: ignore[index]
    found = node.op.forward(numeric, *((tensors,) if node.op.arity is None else tensors), *rest)
    return not np.array_equal(found, node.value, equal_nan=node.value.dtype.kind in "fc")


# Plain numbers

SIMPLE = (bool, int, type(None), type, np.dtype, np.bool_, np.integer)


def suspect(value: Any, name: str, trusted: Callable[[Any], bool], seen: set[int] | None = None) -> str | None:
    """The name of a float, an array or a tensor without a node inside a value, at any depth; None if there is none."""
    seen = set() if seen is None else seen
    if isinstance(value, SIMPLE) or id(value) in seen or trusted(value):
        return None
    seen.add(id(value))
    if isinstance(value, (float, complex, np.inexact)):
        return name
    if isinstance(value, (str, bytes)):
        return name if re.search(r"\d\.\d|\de[-+]\d|^[\s\d.,e+-]+$", str(value)) else None
    if isinstance(value, np.ndarray):
        return name if value.dtype.kind in "fcOV" else None
    if isinstance(value, Tensor):
        return name if value._node is None and value._value.dtype.kind in INEXACT else None
    for part, each in _parts(value, name):
        found = suspect(each, part, trusted, seen)
        if found is not None:
            return found
    return None


def _parts(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield f"{name}[{key!r}]", each
    elif isinstance(value, (list, tuple, set, frozenset)) or type(value).__module__ == "collections":
        for i, each in enumerate(value):
            yield f"{name}[{i}]", each
    elif isinstance(value, functools.partial):
        yield from ((name, each) for each in (value.func, value.args, value.keywords))
    elif hasattr(value, "__code__"):
        yield from _closure(value, name)
    elif hasattr(value, "__func__") or hasattr(value, "__self__"):
        yield from ((name, each) for each in (getattr(value, "__func__", None), getattr(value, "__self__", None)))
    elif not hasattr(value, "__spec__"):
        for key, each in getattr(value, "__dict__", {}).items():
            yield f"{name}.{key}", each
        for key in getattr(type(value), "__slots__", ()):
            if hasattr(value, key):
                yield f"{name}.{key}", getattr(value, key)


def _closure(function: Any, name: str) -> Iterator[tuple[str, Any]]:
    for cell, key in zip(function.__closure__ or (), function.__code__.co_freevars):
        try:
            yield key, cell.cell_contents
        except ValueError:  # not bound yet
            continue
    for each in (function.__defaults__ or (), function.__kwdefaults__ or {}):
        yield name, each


def reach_of(cls: type, function: Any, base: type) -> dict[str, Any]:
    """Snapshots of the values that a backward can access beside ctx, by name: globals, closure variables and attributes of its class."""
    function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None)
    found = dict(_closure(function, function.__name__)) if code is not None else {}
    for name in code.co_names if code is not None else ():
        if name in function.__globals__:
            found[name] = function.__globals__[name]
    for each in cls.__mro__[:cls.__mro__.index(base)]:
        found.update({f"{cls.__name__}.{name}": value for name, value in vars(each).items() if not name.startswith("_")})
    return {name: _Snapshot(value, name) for name, value in found.items()}


LIBRARIES = frozenset(("symgrad", "numpy", "scipy", *sys.stdlib_module_names)) - {"__main__"}


class _Snapshot:
    """The floats and arrays inside a value, for a later comparison: by identity, because a new number may equal the old one."""

    def __init__(self, value: Any, name: str):
        self.numbers: list[Any] = []
        self._collect(value, name, 5, set())

    def _collect(self, value: Any, name: str, depth: int, seen: set[int]) -> None:
        if isinstance(value, (float, complex, np.inexact, str, bytes)):
            self.numbers.append(value)
        elif isinstance(value, np.ndarray) or isinstance(value, Tensor) and value._node is None:
            shown = value._value if isinstance(value, Tensor) else value
            if shown.dtype.kind in "fcOV":  # a writeable array is never equal, since NumPy writes are not counted
                self.numbers.append(object() if isinstance(value, np.ndarray) and value.flags.writeable else (value, shown))
        elif depth and id(value) not in seen and not isinstance(value, (bool, int, np.dtype, np.generic, Tensor)):
            seen.add(id(value))
            for part, each in _reachable(value, name):
                self._collect(each, part, depth - 1, seen)

    def __eq__(self, other: object) -> bool:
        def same(a: Any, b: Any) -> bool:
            return a is b or isinstance(a, tuple) and isinstance(b, tuple) and a[0] is b[0] and np.array_equal(a[1], b[1], equal_nan=True)

        return isinstance(other, _Snapshot) and len(self.numbers) == len(other.numbers) and all(map(same, self.numbers, other.numbers))


def _reachable(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The parts of a value as in `_parts`, the globals that a function uses, and the attributes of a user's class."""
    if str(getattr(value, "__module__", "")).partition(".")[0] in LIBRARIES:
        return
    yield from _parts(value, name)
    code = getattr(value, "__code__", None)
    for each in _used_globals(code) if code is not None else ():
        if each in value.__globals__:
            yield each, value.__globals__[each]
    if isinstance(value, type):
        yield from ((f"{name}.{key}", each) for key, each in vars(value).items() if not key.startswith("__"))


def _used_globals(code: Any) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if hasattr(each, "co_names"):
            yield from _used_globals(each)
