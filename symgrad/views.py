"""Views: tensors that share the memory of another, and what becomes of their place in the graph when one of the family is written.

A view remembers its base, and the base its views. A write that is recorded gives the base a new node; the views then have none
until they are asked, and get one that reads them from the base. A tensor without a family pays nothing for this.
"""

from __future__ import annotations

import weakref
from typing import Any

from symgrad.geometry import Geometry
from symgrad.graph import TRACKED, Leaf, Node, board, mode, next_sequence, node_class
from symgrad.hooks import DETOURS, move_retained
from symgrad.op import REGISTRY
from symgrad.tensor import Tensor, new
from symgrad.versions import tell

__all__ = ["KIN", "Kin", "adopt", "base_of", "CUSTOM", "MANY", "rebase", "refuse_in_place"]

NO_GRAD, MANY, CUSTOM = "no_grad", "many", "custom"
REMEDY = " Write under no_grad(), which keeps it a leaf, or compute a new tensor."


class Kin:
    """What a tensor knows of its family: a view its base and how it was made, a base the views whose nodes are current."""

    __slots__ = ("reference", "base", "made", "source", "fresh", "__weakref__")

    def __init__(self, t: Tensor, base: Tensor | None, made: str = ""):
        key = id(t)
        self.reference, self.base, self.made = weakref.ref(t, lambda _: KIN.pop(key, None)), base, made
        self.source: tuple[int, str] | None = None  # the output and the op that a view came of, once its node is gone
        self.fresh: dict[int, weakref.ref] = {}
        KIN[key] = self

    def outdate(self) -> None:
        """After a write: take the nodes of this base's views away, so that they are asked for anew."""
        base = self.reference()
        if base is None or base._node is None or not self.fresh:
            return
        for reference in self.fresh.values():
            view = reference()
            if view is not None and (kin := KIN.get(id(view))) is not None:
                if kin.made and (node := view._node) is not None and not isinstance(node, Leaf):
                    kin.source = node.output_nr, node.name().removesuffix("Backward0")
                del view._node
        self.fresh.clear()


KIN: dict[int, Kin] = {}  # by the identity of a living tensor


def base_of(t: Tensor) -> Tensor | None:
    """The tensor whose memory a view shows; None for what is no view."""
    kin = KIN.get(id(t))
    return None if kin is None else kin.base


def adopt(view: Tensor, source: Tensor, made: str = "") -> Tensor:
    """Note that one tensor is a view of another, or of the other's base; `made` says how, if not by an op that gives one recorded view."""
    kin = KIN.get(id(source))
    if board.paused and not mode.grad and not made:
        made = NO_GRAD
    if kin is None:
        base, kin = source, Kin(source, None)
        tell(source._value, kin)
    elif kin.base is not None:
        base, made = kin.base, kin.made or made
        kin = KIN[id(base)]
    else:
        base = source
    kin.fresh[id(view)] = Kin(view, base, made).reference
    if view._node is None and base._node is not None and base.requires_grad:
        view._make_leaf(True)  # made without a graph, it is a leaf of its own
    return view


def refuse_in_place(t: Tensor) -> None:
    """Raise torch's error where writing to this tensor in a graph has no meaning.

    Raises RuntimeError for a leaf that requires grad, a view of one, and views that were made without a graph or many at once.
    """
    kin = KIN.get(id(t))
    if kin is not None and kin.base is not None:
        if kin.made:
            raise _refused(kin, t, "is being modified inplace")
        if t.requires_grad and kin.base.is_leaf:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation." + REMEDY)
    if t.requires_grad and t.is_leaf:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation." + REMEDY)


def _refused(kin: Kin, t: Tensor, what: str) -> RuntimeError:
    """torch's error for a view that was not made one by one in a graph."""
    try:
        node = object.__getattribute__(t, "_node")
        source = None if node is None or isinstance(node, Leaf) else (node.output_nr, node.name().removesuffix("Backward0"))
    except AttributeError:
        source = kin.source
    output = "" if source is None else f"Output {source[0]} of {source[1]} is a view"
    if kin.made == NO_GRAD or source is None:
        message = (f"{output} of a view which was created in" if output else "A view was created in") + f" no_grad mode and {what} with grad mode enabled."
    else:
        message = f"{output} and {what}."
    if kin.made == CUSTOM and source is not None:
        return RuntimeError(f"{message} This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic "
                            f"to handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
                            f"gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function.")
    if kin.made == MANY:
        return RuntimeError(f"{message} This view is the output of a function that returns multiple views. Such functions do not allow the output "
                            f"views to be modified inplace. You should replace the inplace operation by an out-of-place one.")
    return RuntimeError(f"{message} Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
                        f"the view and the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or both "
                        f"outside (if you want the inplace to be tracked).")


def rebase(t: Tensor, old: Node | None, node: Node, before: Any = None) -> None:
    """Give a tensor that was just written its node in place of the old one, and its family what follows from it.

    `before` is the value of an unrecorded base before the write.
    """
    kin = KIN.get(id(t))
    if kin is None:
        move_retained(t, old, node)
        t._node = node
        return
    base = t if kin.base is None else kin.base
    if base is not t:
        node = _written(base, node, Geometry.of(t._value, base._array()), before)
    move_retained(base, base._node, node)
    base._node = node
    KIN[id(base)].outdate()
    if base is not t and old in DETOURS:
        move_retained(t, old, t._node)


def _written(base: Tensor, piece: Node, geometry: Geometry, before: Any) -> Node:
    """The node of a base after a view of it was written."""
    old = base._node
    node = new(CopySlices)
    node.args = base._value if before is None else before, piece.value, geometry
    node.parents, node.value = (old, piece), base._value
    node.flags = ((0 if old is None else old.flags) | piece.flags) & TRACKED
    node.sequence_nr = next_sequence()
    return node


class CopySlices(node_class(REGISTRY["strided_put"])):  # type: ignore[misc]
    """The node of a tensor after a view of it was written in place."""

    __slots__ = ()

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        piece = self.parents[1]
        return (super().next_functions[0], *piece.next_functions[1:]) if piece is not None else super().next_functions


AsStrided = node_class(REGISTRY["strided"])


def _current_node(view: Tensor) -> Node | None:
    """The node of a view whose base was written: it reads the elements from the base."""
    kin = KIN[id(view)]
    base = kin.base
    assert base is not None
    parent, node = base._node, None
    if kin.made and parent is not None and parent.requires_grad:
        raise _refused(kin, view, "its base or another view of its base has been modified inplace")
    if parent is not None and parent.flags & TRACKED:
        node = new(AsStrided)
        array = base._array()
        node.args, node.parents, node.value = (array, Geometry.of(view._value, array)), (parent,), view._value
        node.flags, node.sequence_nr = parent.flags & TRACKED, next_sequence()
    view._node = node
    KIN[id(base)].fresh[id(view)] = kin.reference
    return node


def _missing(self: Tensor, name: str) -> Any:
    if name == "_node" and id(self) in KIN:
        return _current_node(self)
    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


Tensor.__getattr__ = _missing  # type: ignore[attr-defined]


def detach_(self: Tensor) -> Tensor:
    """Leave the graph, in place: the tensor becomes a leaf that does not require grad.

    Raises RuntimeError for a view, whose place in the graph is its base's affair.
    """
    if base_of(self) is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, "
                           "and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be "
                           "called on these gradients.")
    self._node = None
    return self


Tensor.detach_ = detach_  # type: ignore[attr-defined]
Tensor._base = property(base_of, doc="The tensor whose memory this view shows; None for what is no view.")  # type: ignore[attr-defined]
Tensor._is_view = lambda self: base_of(self) is not None  # type: ignore[attr-defined]


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Ask (or stop asking) for gradients of this leaf, in place; its views are leaves then that ask too.

    Raises RuntimeError for integers and booleans, and when a tensor that was computed is told to stop.
    """
    Tensor._set_requires_grad(self, requires_grad)
    kin = KIN.get(id(self))
    if kin is not None and requires_grad:
        for reference in list(kin.fresh.values()):
            view = reference()
            if view is not None and view._node is None:
                view._make_leaf(True)
    return self


Tensor.requires_grad_ = requires_grad_  # type: ignore[attr-defined]
