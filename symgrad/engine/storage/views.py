"""Bases and views, and the node of a view whose base was written.

A view, and a tensor that has views, has metadata in `_view`, which is None for other tensors. A recorded write gives the base a new node, and the
nodes of its views become stale: a `Stale` node takes their place until the view is used, and is then replaced by a node that reads the view from
the base. The hot path notices a `Stale` node, as it notices inference tensors, by its flags.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

import symgrad.ops  # noqa: F401  fills the registry
from symgrad.carriers import numeric
from symgrad.engine.hooks import move_retained
from symgrad.engine.method_table import MethodTable
from symgrad.engine.storage.versions import counter_of
from symgrad.engine.tensor import Tensor
from symgrad.errors import LEAF_WRITTEN
from symgrad.graph.modes import special, thread
from symgrad.graph.node import BARRED, GRADIENT, IN_FORWARD, INFERENCE, TRACKED, Leaf, Node, all_threads, make_node
from symgrad.graph.op import REGISTRY
from symgrad.layouts.strides import Geometry, address
from symgrad.system.locks import reentrant_lock

ref = weakref.ref
NO_GRAD, MANY, CUSTOM, INFERRED = "no_grad", "many", "custom", "inference"
REMEDY = "Write under no_grad(), which keeps it a leaf, or compute a new tensor."
REFUSED = {
    CUSTOM: "was made by a custom Function, whose backward would not see the write; clone the output of the Function",
    MANY: "is one of several that a function returned; compute a new tensor",
    INFERRED: "was made in inference mode, and is written outside of it; do both inside or both outside, or clone it",
    NO_GRAD: "was made under no_grad(), and is written with grad mode enabled; do both inside or both outside, or clone it"}
_lock = reentrant_lock()  # guards the creation of the metadata of a base


class RefusedView(RuntimeError):
    """The node of a view cannot be regenerated, or a view cannot be written."""


class Base:
    """The metadata of a tensor that has views.

    The weak references to views have no callbacks, which would swallow an interrupt; dead ones are pruned as the set grows. Every view whose node
    is current is in the set, also after an interrupt at any point.
    """

    __slots__ = ("tensor", "array", "views", "limit", "mixed", "start", "__weakref__")

    def __init__(self, tensor: Tensor):
        self.tensor, self.array = ref(tensor), tensor._value  # the array that the geometry of views refers to
        self.views, self.limit = set[weakref.ref[Tensor]](), 64  # the views whose nodes are current
        self.start: tuple[Any, int] = None, 0  # an array and its address, which takes long to ask for
        self.mixed = False  # whether a view is in a graph that the base is not in
        counter_of(tensor._value).notify(self)

    def prune(self) -> None:
        """Remove dead views."""
        for each in list(self.views):
            if each() is None:
                self.views.discard(each)
        self.limit = 64 + 2 * len(self.views)

    def current(self) -> list[Tensor]:
        """The live views whose nodes are current."""
        return [view for reference in list(self.views) if (view := reference()) is not None]

    def make_stale(self) -> None:
        """Make the views stale after a write, except views without a graph of a base without one."""
        base = self.tensor()
        node = None if base is None else base._node_slot
        if base is None or not self.views or node is INFERENCE or node is None and not self.mixed:
            return
        for reference in list(self.views):
            view = reference()
            last = None if view is None else view._node_slot
            if view is not None and type(last) is not Stale:
                if node is None and (last is None or isinstance(last, Leaf)):
                    continue
                view._node_slot = Stale(reference, last)
                thread.modes.recorder.stale_view(reference)
            self.views.discard(reference)


class View:
    """The metadata of a view: its base, how it was made (if not by a recorded op with one view), and the write its node is current for."""

    __slots__ = ("base", "made", "since", "_known_geometry")

    def __init__(self, base: Tensor, made: str):
        self.base, self.made, self.since = base, made, all_threads.written
        self._known_geometry: tuple[np.ndarray, np.ndarray, tuple[Geometry, np.ndarray | None]] | None = None

    @property
    def base_meta(self) -> Base:
        """The metadata of the base."""
        return self.base._view

    def renew(self, view: Tensor) -> None:
        """Mark the view's node as current."""
        self.since = all_threads.written
        self.base_meta.views.add(ref(view))

    def geometry(self, view: np.ndarray) -> tuple[Geometry, np.ndarray | None]:
        """The strides and offset of the view in its base, and the values of elements outside of the base."""
        base_meta, known = self.base_meta, self._known_geometry
        array = base_meta.array
        if known is None or known[0] is not view or known[1] is not array:
            units, _ = recast(array, None, view.dtype)
            if base_meta.start[0] is not units:
                base_meta.start = units, address(units)
            known = self._known_geometry = view, array, Geometry.of(view, units, base_meta.start[1])
        return known[2]


class Stale(Node):
    """The content of the node slot of a stale view, with the node that the view had."""

    __slots__ = ("tensor", "last")
    flags = BARRED

    def __init__(self, tensor: weakref.ref[Tensor], last: Node | None):
        self.tensor, self.last = tensor, last

    @property
    def recorded(self) -> Node | None:
        """The node of the recorded operation whose result the view was; None if there was none."""
        return self.last if self.last is not None and not isinstance(self.last, Leaf) and self.last.flags & TRACKED else None

    @property
    def requires_grad(self) -> bool:
        view, node = self.tensor(), self.recorded
        return node is not None and node.requires_grad or type(self.last) is Leaf or view is not None and view._view.base.requires_grad

    @property
    def output_nr(self) -> int:
        return 0 if (node := self.recorded) is None else node.output_nr

    @property
    def source(self) -> Node | None:
        view = self.tensor()
        node = None if view is None else view._view.base._node
        return node if node is not None and node.flags & TRACKED else self.recorded

    def current(self, always: bool = False) -> Node | None:
        """The regenerated node of the view; None if nothing is recorded, unless `always`."""
        view, grad, recorder = self.tensor(), thread.modes.grad, thread.modes.recorder
        if view is None or not (always or grad or recorder.restores_nodes):
            return None
        if (place := view._node_slot) is not self:  # an operand that stands twice in a call is regenerated once
            return place if place is None or place.flags is not BARRED else place.current(always)
        meta, base = view._view, view._view.base
        parent, recorded, node = base._node, self.recorded, None
        if meta.made and (recorded is not None or parent is not None and parent.requires_grad) and not recorder.restores_nodes:
            raise _refused(meta, view, "the base of a view was written in place")
        flags = ((0 if recorded is None else recorded.flags) | (0 if parent is None else parent.flags)) & TRACKED
        if recorder.restores_nodes and not grad:
            flags = IN_FORWARD * recorder.tracks(parent)
        if flags:
            if parent is None and flags & GRADIENT:  # the base has left the graph
                parent = UnrecordedLeaf(base, meta.base_meta.array, True)
            node = reading(view._value, meta.base_meta.array, parent, flags, meta.geometry(view._value))
            move_retained(view, self.last, node)
        meta.renew(view)
        view._node_slot = node
        return node


class UnrecordedLeaf(Leaf):
    """The node of an unrecorded view of a base that requires grad: it requires grad, too, but accumulates no gradient."""

    __slots__ = ()

    @property
    def origin(self) -> Any:
        return None

    @property
    def variable(self) -> None:
        return None


UnrecordedLeaf.__name__ = "AccumulateGrad"


def base_of(t: Tensor) -> Tensor | None:
    """The base of a view, None for a tensor that is not a view."""
    return t._view.base if type(t._view) is View else None


def register_view(view: Tensor, source: Tensor, made: str = "") -> Tensor:
    """Set the view metadata of `view`, whose base is `source` or its base; `made` is CUSTOM or MANY unless a recorded op with one view made it."""
    meta, node = source._view, view._node_slot
    if meta is None and node is not None and (node is INFERENCE or type(source._value) is np.ndarray and not source._value.flags.writeable):
        return view  # inference tensors have no graph, and arguments of transforms have read-only memory
    if special and not thread.modes.grad:
        made = INFERRED if thread.modes.inference else NO_GRAD
    base = source
    if type(meta) is View:
        base, made = meta.base, meta.made if meta.made == INFERRED else made or meta.made
        meta = base._view
    elif meta is None:
        with _lock: meta = _base_metadata(source)  # noqa: E701  on one line: no interrupt comes between its end and the release of the lock
    if base._value is not meta.array:  # `base.data` was replaced
        meta.array = base._value
        meta.views.clear()
    view._view = View(base, made)
    meta.views.add(ref(view))
    if len(meta.views) > meta.limit:
        meta.prune()
    if node is None:
        if base._node_slot is not None and base._node_slot.requires_grad:
            view._node_slot = UnrecordedLeaf(view, view._value, True)
    elif base._node_slot is None:
        meta.mixed = True
    return view


def _base_metadata(base: Tensor) -> Base:
    if base._view is None:
        base._view = Base(base)
    return base._view


def unregister_view(view: Tensor) -> None:
    """Remove the view metadata of a tensor, which has no base any more."""
    view._view.base_meta.views.discard(ref(view))
    view._view = None


def own(out: Any, given: Sequence[Any]) -> Any:
    """The result of a composite function, as a view only if its base is an argument and not an intermediate value."""
    if isinstance(out, Tensor) and out._view is not None and (base := base_of(out)) is not None:
        for t in given:
            if t is base or isinstance(t, Tensor) and base_of(t) is base:
                return out
        unregister_view(out)
    return out


# Errors of writes, and nodes after a write


def refuse_in_place(t: Tensor) -> None:
    """Refuse a tensor that cannot be written in a graph.

    Raises RuntimeError for a leaf that requires grad, for views of one, and for views made under no_grad or by an op with several views.
    """
    meta = t._view
    if type(meta) is View:
        if meta.made:
            raise _refused(meta, t, "a view is written in place")
        if t.requires_grad and (meta.base.is_leaf or _has_memory_of_leaf(meta.base)):
            raise RuntimeError(f"a view of {LEAF_WRITTEN} {REMEDY}")
    elif t.requires_grad and _has_memory_of_leaf(t):
        raise RuntimeError(f"a view of {LEAF_WRITTEN} {REMEDY}")
    if t.requires_grad and is_leaf_unrefreshed(t):
        raise RuntimeError(f"{LEAF_WRITTEN} {REMEDY}")


def _has_memory_of_leaf(t: Tensor) -> bool:
    """Whether a tensor that is not a view, such as a dual tensor, has the memory of a leaf that requires grad."""
    node = t._node_slot
    if node is None or not node.shares_memory:
        return False
    while node is not None and node.parents and (node.shares_memory or node.op.view):
        node = node.parents[0]
    return isinstance(node, Leaf) and node.requires_grad


def _refused(meta: View, t: Tensor, what: str) -> RefusedView:
    """The error for a write to a view made under no_grad, by a custom Function, or by an op with several views."""
    node = t._node_slot.last if isinstance(t._node_slot, Stale) else t._node_slot
    source = "" if node is None or isinstance(node, Leaf) else f", output {node.output_nr} of {node.short_name()},"
    return RefusedView(f"{what}: the view{source} {REFUSED[meta.made]}")


def recast(array: np.ndarray, node: Node | None, dtype: np.dtype, flags: int = 0, value: Any = None) -> tuple[np.ndarray, Node | None]:
    """An array and its node reinterpreted in another dtype: complex numbers as pairs of real ones, or the inverse."""
    if array.dtype == dtype:
        return array, node
    op = REGISTRY["view_as_real" if array.dtype.kind == "c" else "view_as_complex"]
    out = op.forward(numeric, array) if value is None else value
    return out, None if node is None else make_node(op, (array,), (node,), out, flags)


def reading(view: np.ndarray, array: np.ndarray, parent: Node | None, flags: int, place: tuple[Geometry, Any] | None = None) -> Node:
    """The node that reads a view from the array of a parent node; elements outside of the array are constants."""
    array, parent = recast(array, parent, view.dtype, flags)
    geometry, values = Geometry.of(view, array) if place is None else place
    if values is not None:
        flat = make_node(REGISTRY["reshape"], (array, (array.size,)), (parent,), array.reshape(-1), flags)
        parent = make_node(REGISTRY["cat"], (flat.value, values, 0), (flat, None), np.concatenate([flat.value, values]), flags)
        array = parent.value
    return make_node(REGISTRY["strided"], (array, geometry), (parent,), view, flags)


def is_leaf_unrefreshed(self: Tensor) -> bool:
    """As `is_leaf`, without regenerating the node of a stale view."""
    node = self._node_slot
    if isinstance(node, Stale):
        return node.recorded is None
    return node is None or node.in_inference or isinstance(node, Leaf) or not node.requires_grad


METHODS = MethodTable(
    _base=property(base_of, doc="The base of this view, None for a tensor that is not a view."),
    _is_view=lambda self: base_of(self) is not None,
    _is_leaf_unrefreshed=is_leaf_unrefreshed,
)
