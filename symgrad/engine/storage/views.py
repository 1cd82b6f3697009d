"""Views: tensors that share the memory of another, and what becomes of their place in the graph when one of the family is written.

A view remembers its base, and the base its views. A write that is recorded gives the base a new node; the views then have none
until they are asked, and get one that reads them from the base. A tensor without a family pays nothing for this.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.engine.hooks import DETOURS, detour_of, move_retained
from symgrad.engine.storage.versions import first_write_after, owner, tell
from symgrad.engine.tensor import NOT_A_LEAF, Tensor, new, wrap
from symgrad.graph.node import DETACHED, GRADIENT, INFERENCE, SHADOW, TRACKED, Leaf, Node, board, kept, make_node, mode, next_sequence, node_class
from symgrad.graph.op import REGISTRY
from symgrad.types.strides import Geometry, address

__all__ = ["KIN", "Kin", "adopt", "as_strided", "base_of", "CUSTOM", "MANY", "Unheard", "own", "rebase", "refuse_in_place"]

ref = weakref.ref
NO_GRAD, MANY, CUSTOM, INFERRED = "no_grad", "many", "custom", "inference"
REMEDY = " Write under no_grad(), which keeps it a leaf, or compute a new tensor."


class RefusedView(RuntimeError):
    """A view has no place in the graph any more, or cannot be written."""


class Kin:
    """What a tensor knows of its family: a view its base and how it was made, a base the views whose nodes are current."""

    __slots__ = ("reference", "base", "made", "since", "__dict__", "__weakref__")
    reference: weakref.ref[Tensor]
    base: Tensor | None
    made: str
    since: int  # the newest write when the view's node was made
    array: Any = None  # of a base: in which views have their places
    fresh: dict[int, weakref.ref[Tensor]] = {}  # of a base, which has its own
    source: tuple[int, str] | None = None  # the output and the op that a view came of, once its node is gone
    before: weakref.ref[Node] | None = None  # that node
    start: int | None = None  # of a base: the address of its memory
    geometry: tuple[Geometry, Any] | None = None  # of a view: its place in the base
    mixed = False  # whether a view is in a graph that its base is not in
    asked = False  # whether a view whose node is out of date was asked to require grad

    def outdate(self) -> None:
        """After a write: take the nodes of this base's views away, so that they are asked for anew."""
        base = self.reference()
        if base is None or not self.fresh or base._node is None and not self.mixed or base._node is INFERENCE:
            return
        untracked = base._node is None
        for reference in list(self.fresh.values()):
            view = reference()
            if view is not None and (kin := KIN.get(id(view))) is not None:
                node = view._node
                if untracked and (node is None or isinstance(node, Leaf)):
                    continue
                kin.source = None if node is None or isinstance(node, Leaf) or not node.flags & TRACKED else (node.output_nr, node.short_name())
                kin.before = None if node is None else weakref.ref(node)
                if isinstance(node, Leaf) and not isinstance(node, Unheard):
                    kin.asked = True
                del view._place
                if _hidden():
                    mode.watcher.outdated.append(reference)
        if untracked:
            self.fresh = {key: r for key, r in self.fresh.items() if (view := r()) is not None and _has_node(view)}
        else:
            self.fresh.clear()


KIN: dict[int, Kin] = {}  # by the identity of a living tensor


def _has_node(t: Tensor) -> bool:
    try:
        _ = t._place
    except AttributeError:
        return False
    return True


def base_of(t: Tensor) -> Tensor | None:
    """The tensor whose memory a view shows; None for what is no view."""
    kin = KIN.get(id(t))
    return None if kin is None else kin.base


def adopt(view: Tensor, source: Tensor, made: str = "") -> Tensor:
    """Note that one tensor is a view of another, or of the other's base; `made` says how, if not by an op that gives one recorded view."""
    kin = KIN.get(id(source))
    if kin is None and view._place is not None and type(source._value) is np.ndarray and not source._value.flags.writeable:
        return view  # nobody can write through either, as in an argument of a transform
    if board.paused and not mode.grad:
        made = INFERRED if mode.inference else NO_GRAD
    if kin is None:
        base, kin = source, _found(source)
    elif kin.base is not None:
        base, made = kin.base, made or kin.made
        kin = KIN[id(base)]
    else:
        base = source
    if base._value is not kin.array:  # it was given other memory
        kin.array, kin.start = base._value, None
        kin.fresh.clear()
    key, root = id(view), id(base)

    def gone(_: Any) -> None:
        KIN.pop(key, None)
        if (family := KIN.get(root)) is not None:
            family.fresh.pop(key, None)

    own = new(Kin)
    own.base, own.made, own.since = base, made, board.written
    own.reference = kin.fresh[key] = ref(view, gone)
    KIN[key] = own
    if view._place is None:
        if base._node is not None and base.requires_grad:
            view._place = Unheard(view, view._value, True)
    elif base._node is None:
        kin.mixed = True
    return view


def _found(base: Tensor) -> Kin:
    """The family of a tensor that has its first view."""
    key = id(base)
    kin = KIN[key] = new(Kin)
    kin.base, kin.made, kin.since, kin.array, kin.fresh = None, "", board.written, base._value, {}
    kin.reference = ref(base, lambda _: KIN.pop(key, None))
    tell(base._value, kin)
    return kin


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
        node = t._place
        source = None if node is None or isinstance(node, Leaf) else (node.output_nr, node.short_name())
    except AttributeError:
        source = kin.source
    output = "" if source is None else f"Output {source[0]} of {source[1]} is a view"
    if kin.made == INFERRED:
        message = f"A view was created in inference mode and {what} in normal mode."
    elif kin.made == NO_GRAD or source is None:
        made = f"{output} of a view which was created in" if output else "A view was created in"
        message = f"{made} no_grad mode and {what} with grad mode enabled."
    else:
        message = f"{output} and {what}."
    if kin.made == CUSTOM and source is not None:
        return RefusedView(f"{message} This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
                            f"logic to handle view+inplace would override the custom backward associated with the custom Function, leading to "
                            f"incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function.")
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
    base = t if kin is None or kin.base is None else kin.base
    if base is not t:
        if old in DETOURS:  # the hooks of a view stay with its old value, which nobody asks for now
            node.parents = (copy.copy(old), *node.parents[1:])
        node = _written(base, node, t, before)
    hidden = _hidden()
    if hidden:
        mode.watcher.moved((t, old), (base, base._node))
    else:
        move_retained(base, base._node, node)
    base._node = node
    if kin is not None:
        KIN[id(base)].outdate()
    if base is not t and not hidden:
        move_retained(t, old, t._node)


def _hidden() -> bool:
    """Whether this thread runs the forward of a Function, after which tensors return to the places they had."""
    return mode.watcher is not None and hasattr(mode.watcher, "moved")


def _written(base: Tensor, piece: Node, t: Tensor, before: Any) -> Node:
    """The node of a base after a view of it was written."""
    view = t._value
    old, array, flags = base._node, KIN[id(base)].array, piece.flags & kept()
    flags |= 0 if old is None else old.flags & kept()
    units, source = _counted_in(array if before is None else before, old, view.dtype, flags)
    place, beyond = _place_of(t, base)
    if beyond is not None:
        raise RuntimeError("a view whose base was given other memory cannot be written where a graph is recorded")
    node = new(CopySlices)
    node.args, node.parents, node.value = (units, piece.value, place), (source, piece), base._value
    node.flags, node.sequence_nr = flags, next_sequence()
    if view.dtype == array.dtype:
        return node
    node.value = _counted_in(array, None, view.dtype, 0)[0]
    return _counted_in(node.value, node, array.dtype, flags, base._value)[1]  # type: ignore[return-value]


def _counted_in(array: np.ndarray, node: Node | None, dtype: np.dtype, flags: int, value: Any = None) -> tuple[np.ndarray, Node | None]:
    """An array with its node as a view of another dtype sees it: complex numbers as pairs of real ones, or pairs as complex numbers."""
    if array.dtype == dtype:
        return array, node
    op = REGISTRY["view_as_real" if array.dtype.kind == "c" else "view_as_complex"]
    out = op.forward(numeric, array) if value is None else value
    return out, None if node is None else make_node(op, (array,), (node,), out, flags)


class CopySlices(node_class(REGISTRY["strided_put"])):  # type: ignore[misc]
    """The node of a tensor after a view of it was written in place."""

    __slots__ = ()
    saves = True  # as in torch, it is used up by a pullback

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        piece = self.parents[1]
        return (super().next_functions[0], *piece.next_functions[1:]) if piece is not None else super().next_functions


def _place_of(t: Tensor, base: Tensor) -> tuple[Geometry, Any]:
    """Where a view stands in its base, worked out once, and the values of elements that are none of the base's."""
    family = KIN[id(base)]
    kin = KIN.get(id(t))
    if kin is not None and kin.geometry is not None:
        return kin.geometry
    if family.start is None:
        family.start = address(family.array)
    found = Geometry.reaching(t._value, _counted_in(family.array, None, t._value.dtype, 0)[0], family.start)
    if kin is not None and kin.base is base:
        kin.geometry = found
    return found


def _reading(view: np.ndarray, array: np.ndarray, parent: Node | None, flags: int, place: tuple[Geometry, Any] | None = None) -> Node:
    """The node that reads a view from an array at a node; elements of the view that are none of the array's are constants."""
    array, parent = _counted_in(array, parent, view.dtype, flags)
    geometry, values = Geometry.reaching(view, array) if place is None else place
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
    if kin.made and (kin.source is not None or parent is not None and parent.requires_grad):
        if not _hidden():
            raise _refused(kin, view, "its base or another view of its base has been modified inplace")
    flags = GRADIENT * (kin.source is not None) | (0 if parent is None else parent.flags & TRACKED)
    if _hidden() and not mode.grad:
        flags = SHADOW * mode.watcher.known(parent)
    if flags:
        node = _reading(view._value, KIN[id(base)].array, parent, flags, _place_of(view, base))
        if hasattr(view, "_retained"):
            detour_of(node).retained = weakref.ref(view)
            if kin.before is not None and (old := kin.before()) is not None:
                detour_of(old).retained = None
    view._node = node
    kin.since = board.written
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


def _settled_node(self: Tensor) -> Node | None:
    """The node of a view that has none at present; where nothing is recorded nobody needs it, and it stays to be asked for."""
    return _current_node(self) if mode.grad or _hidden() else None


Tensor._settled_node = _settled_node  # type: ignore[attr-defined]


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
    elif node is not None:
        node.flags |= DETACHED
        board.written = next_sequence()
    kin = KIN.get(id(t))
    if kin is not None:
        kin.mixed = True
    for reference in [] if kin is None else list(kin.fresh.values()):
        view = reference()
        if view is not None and isinstance(view._node, Unheard):
            view._node = None


FORMER: weakref.WeakValueDictionary[int, Leaf] = weakref.WeakValueDictionary()
Tensor.detach_ = detach_  # type: ignore[attr-defined]
Tensor._base = property(base_of, doc="The tensor whose memory this view shows; None for what is no view.")  # type: ignore[attr-defined, assignment]
Tensor._is_view = lambda self: base_of(self) is not None  # type: ignore[attr-defined]


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Ask (or stop asking) for gradients of this leaf, in place; its views are leaves then that ask too.

    Raises RuntimeError for integers and booleans, and when a tensor that was computed is told to stop.
    """
    if _has_node(self):
        _change(self, requires_grad)
    elif not requires_grad and not leaf_so_far(self):
        raise RuntimeError(NOT_A_LEAF)
    else:
        KIN[id(self)].asked = requires_grad
    return self


def _change(self: Tensor, requires_grad: bool) -> None:
    former = FORMER.get(id(self)) if requires_grad else None
    if requires_grad and isinstance(self._node, Unheard):
        detour = DETOURS.pop(self._node, None)
        self._make_leaf(True)
        if detour is not None:
            DETOURS[self._node] = detour  # type: ignore[index]
    elif not requires_grad and isinstance(self._node, Unheard):
        pass  # it asks because its base does
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
            if view is not None and (view._node is None or isinstance(view._node, Leaf)):
                if view._node is not None and first_write_after(view._value, KIN[id(view)].since) is None:
                    continue
                if first_write_after(view._value, KIN[id(view)].since) is None:
                    view._node = Unheard(view, view._value, True)
                else:
                    KIN[id(view)].source = None
                    del view._place


def _output_nr(self: Tensor) -> int:
    """Which output of `grad_fn` this tensor is."""
    try:
        node = self._place
    except AttributeError:
        source = KIN[id(self)].source
        return 0 if source is None else source[0]
    return 0 if node is None else node.output_nr


def leaf_so_far(self: Tensor) -> bool:
    """As `is_leaf`, without looking at what a write made of a view."""
    try:
        node = self._place
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


def up_to_date(self: Tensor) -> Node | None:
    """The node of a tensor, even where nothing is recorded; raises RuntimeError for a view that cannot have one any more."""
    return self._node if _has_node(self) or id(self) not in KIN else _current_node(self)


Tensor._up_to_date = up_to_date  # type: ignore[attr-defined]
Tensor._asks_though_outdated = lambda self: KIN[id(self)].asked or KIN[id(self)].source is not None or self._base.requires_grad  # type: ignore[attr-defined, union-attr]
Tensor._leaf_so_far = leaf_so_far  # type: ignore[attr-defined]
Tensor.output_nr = property(_output_nr)  # type: ignore[attr-defined, assignment]
Tensor.requires_grad_ = requires_grad_  # type: ignore[attr-defined]


def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the memory that a tensor's elements are part of, by sizes, strides and the offset of the first element, in elements.

    Elements of the memory that are none of the input's are constants to a derivative. Raises RuntimeError for places outside the memory.

    >>> import symgrad
    >>> symgrad.arange(9.0).as_strided((3,), (4,))
    tensor([0., 4., 8.])
    """
    array = input._array()
    root, item = owner(array), array.itemsize
    offset = (address(array) - address(root)) // item if storage_offset is None else storage_offset
    size, stride = tuple(map(int, size)), tuple(map(int, stride))
    if len(size) != len(stride) or any(n < 0 for n in (*size, *stride, offset)):
        raise RuntimeError(f"as_strided: sizes {list(size)}, strides {list(stride)} and the storage offset {offset} must be as many, and not "
                           f"negative")
    last = offset + sum(s * (n - 1) for n, s in zip(size, stride)) if all(size) else 0
    if last >= root.nbytes // item and all(size):
        raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {item} requiring a "
                           f"storage size of {(last + 1) * item} are out of bounds for storage of size {root.nbytes}")
    view = np.ndarray(size, array.dtype, root, offset * item if all(size) else 0, tuple(s * item for s in stride))
    p = input._node
    node = None
    if p is not None and p.flags & TRACKED and mode.grad:
        node = _reading(view, array, p, p.flags & TRACKED)
    return adopt(wrap(view, node), input)


Tensor.as_strided = as_strided  # type: ignore[attr-defined, assignment]
