"""Views: tensors that share the memory of another, and what becomes of their place in the graph when one of the family is written.

A view remembers its base, and the base its views. A write that is recorded gives the base a new node; the views then have none
until they are asked, and get one that reads them from the base. A tensor without a family pays nothing for this.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.geometry import Geometry, address
from symgrad.graph import INFERENCE, TRACKED, Leaf, Node, board, make_node, mode, next_sequence, node_class
from symgrad.hooks import DETOURS, move_retained
from symgrad.op import REGISTRY
from symgrad.tensor import Tensor, new, wrap
from symgrad.versions import owner, tell

__all__ = ["KIN", "Kin", "adopt", "as_strided", "base_of", "CUSTOM", "MANY", "Unheard", "own", "rebase", "refuse_in_place"]

NO_GRAD, MANY, CUSTOM, INFERRED = "no_grad", "many", "custom", "inference"
REMEDY = " Write under no_grad(), which keeps it a leaf, or compute a new tensor."


class RefusedView(RuntimeError):
    """A view has no place in the graph any more, or cannot be written."""


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
        if base is None or base._node is None or not self.fresh or base._node is INFERENCE:
            return
        for reference in self.fresh.values():
            view = reference()
            if view is not None and (kin := KIN.get(id(view))) is not None:
                node = view._node
                kin.source = None if node is None or isinstance(node, Leaf) else (node.output_nr, node.short_name())
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
    if board.paused and not mode.grad:
        made = INFERRED if mode.inference else NO_GRAD
    if kin is None:
        base, kin = source, Kin(source, None)
        tell(source._value, kin)
    elif kin.base is not None:
        base, made = kin.base, made or kin.made
        kin = KIN[id(base)]
    else:
        base = source
    kin.fresh[id(view)] = Kin(view, base, made).reference
    if view._node is None and base._node is not None and base.requires_grad:
        view._node = Unheard(view, view._value, True)
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
    if t.requires_grad and leaf_so_far(t):
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation." + REMEDY)


def _refused(kin: Kin, t: Tensor, what: str) -> RefusedView:
    """torch's error for a view that was not made one by one in a graph."""
    try:
        node = object.__getattribute__(t, "_node")
        source = None if node is None or isinstance(node, Leaf) else (node.output_nr, node.short_name())
    except AttributeError:
        source = kin.source
    output = "" if source is None else f"Output {source[0]} of {source[1]} is a view"
    if kin.made == INFERRED:
        message = f"A view was created in inference mode and {what} in normal mode."
    elif kin.made == NO_GRAD or source is None:
        message = (f"{output} of a view which was created in" if output else "A view was created in") + f" no_grad mode and {what} with grad mode enabled."
    else:
        message = f"{output} and {what}."
    if kin.made == CUSTOM and source is not None:
        return RefusedView(f"{message} This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic "
                            f"to handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
                            f"gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function.")
    if kin.made == MANY:
        return RefusedView(f"{message} This view is the output of a function that returns multiple views. Such functions do not allow the output "
                            f"views to be modified inplace. You should replace the inplace operation by an out-of-place one.")
    block = "inference_mode" if kin.made == INFERRED else "no_grad"
    return RefusedView(f"{message} Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
                        f"the view and the inplace either both inside the {block} block (if you don't want the inplace to be tracked) or both "
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
    node.flags = ((0 if old is None else old.flags) | piece.flags) & kept()
    node.sequence_nr = next_sequence()
    return node


class CopySlices(node_class(REGISTRY["strided_put"])):  # type: ignore[misc]
    """The node of a tensor after a view of it was written in place."""

    __slots__ = ()

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        piece = self.parents[1]
        return (super().next_functions[0], *piece.next_functions[1:]) if piece is not None else super().next_functions


def _reading(view: np.ndarray, array: np.ndarray, parent: Node | None, flags: int) -> Node:
    """The node that reads a view from an array at a node; elements of the view that are none of the array's are constants."""
    geometry, values = Geometry.reaching(view, array)
    if values is not None:
        flat = make_node(REGISTRY["reshape"], (array, (array.size,)), (parent,), array.reshape(-1), flags)
        parent = make_node(REGISTRY["cat"], (flat.value, values, 0), (flat, None), np.concatenate([flat.value, values]), flags)
        array = parent.value
    return make_node(REGISTRY["strided"], (array, geometry), (parent,), view, flags)


def _current_node(view: Tensor) -> Node | None:
    """The node of a view whose base was written: it reads the elements from the base."""
    kin = KIN[id(view)]
    base = kin.base
    assert base is not None
    parent, node = base._node, None
    if kin.made and parent is not None and parent.requires_grad:
        if not mode.grad and not _hidden():
            return None  # no graph asks, so nobody is misled
        if mode.grad:
            raise _refused(kin, view, "its base or another view of its base has been modified inplace")
    if parent is not None and parent.flags & TRACKED:
        node = new(AsStrided)
        array = base._array()
        node.args, node.parents, node.value = (array, Geometry.of(view._value, array)), (parent,), view._value
        node.flags, node.sequence_nr = parent.flags & TRACKED, next_sequence()
    view._node = node
    KIN[id(base)].fresh[id(view)] = kin.reference
    return node


class Unheard(Leaf):
    """The node of a view that no graph knows while its base requires grad: it requires grad too, and accumulates none."""

    __slots__ = ()

    @property
    def origin(self) -> Any:
        return None

    @property
    def variable(self) -> None:
        return None


Unheard.__name__ = "AccumulateGrad"


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
    _quit(self)
    return self


def _quit(t: Tensor) -> None:
    """Take a tensor out of the graph; a leaf finds its old place again if it asks for gradients once more."""
    node = t._node
    t._node = INFERENCE if node is INFERENCE else None
    if isinstance(node, Leaf):
        FORMER[id(t)] = node
    kin = KIN.get(id(t))
    for reference in [] if kin is None else kin.fresh.values():
        view = reference()
        if view is not None and isinstance(view._node, Unheard):
            view._node = None


FORMER: weakref.WeakValueDictionary[int, Leaf] = weakref.WeakValueDictionary()
Tensor.detach_ = detach_  # type: ignore[attr-defined]
Tensor._base = property(base_of, doc="The tensor whose memory this view shows; None for what is no view.")  # type: ignore[attr-defined]
Tensor._is_view = lambda self: base_of(self) is not None  # type: ignore[attr-defined]


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Ask (or stop asking) for gradients of this leaf, in place; its views are leaves then that ask too.

    Raises RuntimeError for integers and booleans, and when a tensor that was computed is told to stop.
    """
    former = FORMER.get(id(self)) if requires_grad else None
    if requires_grad and isinstance(self._node, Unheard):
        self._make_leaf(True)
    elif not requires_grad and type(self._node) is Leaf and self._node.symbol is None:
        _quit(self)
    elif former is not None and former.reference() is self and self._node is None:
        former.value, self._node = self._value, former
    else:
        Tensor._set_requires_grad(self, requires_grad)
    kin = KIN.get(id(self))
    if kin is not None and requires_grad:
        for reference in list(kin.fresh.values()):
            view = reference()
            if view is not None and view._node is None:
                view._node = Unheard(view, view._value, True)
    return self


def _output_nr(self: Tensor) -> int:
    """Which output of `grad_fn` this tensor is."""
    try:
        node = object.__getattribute__(self, "_node")
    except AttributeError:
        source = KIN[id(self)].source
        return 0 if source is None else source[0]
    return 0 if node is None else node.output_nr


def leaf_so_far(self: Tensor) -> bool:
    """As `is_leaf`, without looking at what a write made of a view."""
    try:
        node = object.__getattribute__(self, "_node")
    except AttributeError:
        return KIN[id(self)].source is None
    return node is None or isinstance(node, Leaf) or not node.requires_grad


def own(out: Any, given: Sequence[Any]) -> Any:
    """What a function made of other functions gives: a view only if it is one of an argument, not of what was made on the way."""
    kin = KIN.get(id(out))
    if kin is not None and kin.base is not None and isinstance(out, Tensor):
        base = kin.base
        if not any(t is base or base_of(t) is base for t in given if isinstance(t, Tensor)):
            del KIN[id(out)]
            KIN[id(base)].fresh.pop(id(out), None)
    return out


Tensor._leaf_so_far = leaf_so_far  # type: ignore[attr-defined]
Tensor.output_nr = property(_output_nr)  # type: ignore[attr-defined]
Tensor.requires_grad_ = requires_grad_  # type: ignore[attr-defined]


def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the memory that a tensor's elements are part of, by sizes, strides and the offset of the first element, in elements.

    Raises RuntimeError for places outside the memory, and where a derivative would need an element that is none of the input's.

    >>> import symgrad
    >>> symgrad.arange(9.0).as_strided((3,), (4,))
    tensor([0., 4., 8.])
    """
    array = input._array()
    root, item = owner(array), array.itemsize
    offset = (address(array) - address(root)) // item if storage_offset is None else storage_offset
    size, stride = tuple(map(int, size)), tuple(map(int, stride))
    if len(size) != len(stride) or any(n < 0 for n in (*size, *stride, offset)):
        raise RuntimeError(f"as_strided: sizes {list(size)}, strides {list(stride)} and the storage offset {offset} must be as many, and not negative")
    last = offset + sum(s * (n - 1) for n, s in zip(size, stride)) if all(size) else 0
    if last >= root.nbytes // item and all(size):
        raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {item} requiring a storage "
                           f"size of {(last + 1) * item} are out of bounds for storage of size {root.nbytes}")
    view = np.ndarray(size, array.dtype, root, offset * item if all(size) else 0, tuple(s * item for s in stride))
    p = input._node
    node = None
    if p is not None and p.flags & TRACKED and mode.grad:
        try:
            node = make_node(REGISTRY["strided"], (array, Geometry.of(view, array)), (p,), view, p.flags & TRACKED)
        except ValueError as error:
            raise RuntimeError(f"as_strided: {error}; take it of the tensor that has all of them") from None
    return adopt(wrap(view, node), input)


Tensor.as_strided = as_strided  # type: ignore[attr-defined]
