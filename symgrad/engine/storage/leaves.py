"""Leaves that start or stop to require grad, in place, and with them their views."""

from __future__ import annotations

import weakref

from symgrad.engine.hooks import hooks_of, move_hooks
from symgrad.engine.method_table import MethodTable
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.storage.copyslices import CopySlices
from symgrad.engine.storage.versions import written_since
from symgrad.engine.storage.views import Base, Stale, UnrecordedLeaf, base_of
from symgrad.engine.tensor import NOT_A_LEAF, Tensor
from symgrad.graph.node import BARRED, DETACHED, INFERENCE, Leaf, all_threads, next_sequence

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
