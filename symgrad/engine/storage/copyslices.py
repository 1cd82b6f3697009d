"""The node of a tensor after a write in place: its own, or `CopySlices` where a view of it was written; leaves that start or stop to require grad.

The memory is written first, then the graph. If an exception, such as an interrupt, arrives in between, the node of the tensor is `INTERRUPTED`,
so that a derivative raises instead of being wrong.
"""

from __future__ import annotations

import weakref
from typing import Any

from symgrad.engine.hooks import hooks_of, move_hooks, move_retained, unhooked
from symgrad.engine.method_table import MethodTable
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.storage.versions import written_since
from symgrad.engine.storage.views import Base, Stale, UnrecordedLeaf, View, base_of, recast
from symgrad.engine.tensor import NOT_A_LEAF, Tensor, new
from symgrad.graph.modes import thread
from symgrad.graph.node import BARRED, DETACHED, INFERENCE, Leaf, Node, all_threads, next_sequence, node_class
from symgrad.graph.op import REGISTRY


class CopySlices(node_class(REGISTRY["strided_put"])):  # type: ignore[misc]
    """The node of a tensor after a view of it was written in place; it refers to that view weakly."""

    __slots__ = ("view",)
    saves = True  # as in torch, a pullback releases it
    skips_undefined = True
    view: weakref.ref[Tensor]

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        piece = self.parents[1]
        return (super().next_functions[0], *piece.next_functions[1:]) if piece is not None else super().next_functions


class _Interrupted(Node):
    """The node of a tensor whose write was interrupted before it was recorded."""

    __slots__ = ()
    flags = BARRED

    @property
    def requires_grad(self) -> bool:
        return True

    def current(self, always: bool = False) -> None:
        if always or thread.modes.grad:
            raise RuntimeError("a write in place was interrupted before it was recorded, so the value of this tensor and its graph no longer agree: "
                               "compute it again, or use detach()")


INTERRUPTED = new(_Interrupted)


def interrupt(t: Tensor) -> None:
    """Make derivatives of a tensor, and of all tensors that share its memory, raise."""
    base = t._view.base if type(t._view) is View else t
    base._node_slot = INTERRUPTED
    if base._view is not None:
        base._view.make_stale()


def rebase_history(t: Tensor, old: Node | None, node: Node, before: Any = None) -> None:
    """Set the new node of a tensor that was written, or of its base; all views of the memory become stale.

    `before` is the value of an unrecorded base before the write.
    """
    meta, base, piece = t._view, t, node
    if type(meta) is View:
        base = meta.base
        if all_threads.hooked and old is not None and node.parents and node.parents[0] is old:
            node.parents = (_without_hooks(old, base._node_slot), *node.parents[1:])
        node = _copy_slices(meta, node, t, before)
    former, recorder = base._node_slot, thread.modes.recorder
    recorder.rebase_history((t, old), (base, former))
    if not recorder.restores_nodes:
        move_retained(base, former, node)
    base._node_slot = node
    if isinstance(base._view, Base):
        base._view.make_stale()
    if base is not t and isinstance(t._node_slot, Stale) and not recorder.restores_nodes:
        t._node_slot.last = piece  # so that the view is not a leaf before its node is regenerated
        if hasattr(t, "_retained"):
            move_retained(t, old, t._node)
    recorder.after_write(base, former)


def _without_hooks(node: Node, end: Node | None) -> Node:
    """The nodes of a view down to that of its base, without their hooks: these stay on the former nodes of views, as in torch."""
    path, below = list[Node](), node
    while below is not end and below.parents and below.parents[0] is not None:
        path.append(below)
        below = below.parents[0]
    if not any(map(hooks_of, path)):
        return node
    for each in reversed(path):
        duplicate = unhooked(each)
        duplicate.parents = (below, *each.parents[1:])
        below = duplicate
    return below


def _copy_slices(meta: View, piece: Node, t: Tensor, before: Any) -> Node:
    """The node of a base after a view of it was written."""
    view, base = t._value, meta.base
    old, array, flags = base._node, meta.base_meta.array, piece.flags & thread.modes.recorder.flags
    flags |= 0 if old is None else old.flags & thread.modes.recorder.flags
    other = view.dtype != array.dtype and (view.dtype.kind == "c") == (array.dtype.kind == "c")  # not the parts of complex numbers
    place, beyond = (None, True) if other else meta.geometry(view)
    if beyond is not None:
        raise RuntimeError("a view whose base got other memory, by `.data` or set_, cannot be written in place in a graph; clone() the view first")
    units, source = recast(array if before is None else before, old, view.dtype, flags)
    node = CopySlices((units, piece.value, place), (source, piece), base._value, flags)
    node.view = weakref.ref(t)
    if view.dtype == array.dtype:
        return node
    node.value = recast(array, None, view.dtype)[0]
    return recast(node.value, node, array.dtype, flags, base._value)[1]  # type: ignore[return-value]


ref = weakref.ref


@taking_tensors
def detach_(self: Tensor) -> Tensor:
    """Leave the graph, in place: the tensor becomes a leaf that does not require grad.

    Raises RuntimeError for a view: its node follows from its base.
    """
    if base_of(self) is not None:
        raise RuntimeError("detach_: a view is not detached in place, since its graph is that of its base; use detach()")
    _leave_graph(self)
    return self


def _leave_graph(t: Tensor) -> None:
    """Detach a tensor in place; a leaf gets its former node back if it requires grad again."""
    node = t._node_slot
    if isinstance(node, Leaf):
        t._former_leaf = ref(node) if hooks_of(node) is None else (lambda: node)  # a leaf keeps its hooks
    elif node is not None and node.flags is not BARRED:
        if type(node) is CopySlices and (view := node.view()) is not None and isinstance(last := view._node_slot, Stale):
            last.current(True)  # the view that was written last keeps its history, as in torch, which renews it in the write
        node.flags |= DETACHED
        all_threads.written = next_sequence()
    t._node = INFERENCE if node is INFERENCE else None
    if isinstance(t._view, Base):
        t._view.mixed = True
        for view in t._view.current():
            if isinstance(view._node_slot, UnrecordedLeaf):
                view._node_slot = None


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set `requires_grad` of this leaf in place, and of its views, which are leaves, too.

    Raises RuntimeError for integers and booleans, and for False on a non-leaf.
    """
    if not isinstance(requires_grad, bool):
        raise TypeError(f"requires_grad_: requires_grad must be a bool, not {type(requires_grad).__name__}")
    node = self._node_slot
    if isinstance(node, Stale):  # requires grad as its base does
        if not requires_grad and node.recorded is not None:
            raise RuntimeError(NOT_A_LEAF)
        if not requires_grad or node.requires_grad:
            return self
        self._view.renew(self)
        node = self._node_slot = None
    former = self._former_leaf() if requires_grad and hasattr(self, "_former_leaf") else None
    if requires_grad and isinstance(node, UnrecordedLeaf):
        self._make_leaf(True)
        move_hooks(node, self._node)  # type: ignore[arg-type]
    elif not requires_grad and isinstance(node, UnrecordedLeaf):
        pass  # requires grad as its base does
    elif not requires_grad and type(node) is Leaf and node.symbol is None:
        _leave_graph(self)
        if (base := base_of(self)) is not None and base.requires_grad:
            self._node_slot = UnrecordedLeaf(self, self._value, True)
    elif former is not None and node is None:
        former.value, self._node = self._value, former
    else:
        Tensor._set_requires_grad(self, requires_grad)
    if requires_grad and isinstance(self._view, Base):
        for view in self._view.current():
            if isinstance(view._node_slot, (Leaf, type(None))):
                if written_since(view._value, view._view.since):
                    view._node_slot = Stale(ref(view), None)
                elif view._node_slot is None:
                    view._node_slot = UnrecordedLeaf(view, view._value, True)
    return self


METHODS = MethodTable(detach_=detach_)
