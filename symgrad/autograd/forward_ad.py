"""Forward mode with torch's interface: dual tensors, pairs of a primal and a tangent, that exist within a level.

A dual tensor shares its primal's memory; its node is a `DualNode`. Operations on it are recorded while the level is open, even if gradients are not
recorded. Tangents are computed lazily: `unpack_dual` pushes them forward through the recorded graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.batched import Batched, levels_of, raw
from symgrad.carriers.guarding import has_nan
from symgrad.engine.replay import push
from symgrad.engine.storage.views import register_view
from symgrad.engine.storage.writes import write
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.unmoved import Masks, unmoved_behind
from symgrad.graph.modes import ImmediateScope, Modes, Recorder, in_mode, thread
from symgrad.graph.node import GRADIENT, IN_FORWARD, NAMED, REASONS, SELECTED, TANGENT, TRACKED, TRANSFORMED, Node, make_node
from symgrad.graph.op import Op
from symgrad.graph.order import upstream
from symgrad.layouts.strides import overlaps, zeros_in_layout
from symgrad.system.weakkeys import WeakKeys

__all__ = ["DualNode", "Primal", "Pushed", "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
           "set_fwd_grad_enabled", "unpack_dual"]

ndarray = np.ndarray
F = TypeVar("F", bound=Callable[..., Any])


class DualNode(Node):
    """The node of a dual tensor, at which the pushforward of the level starts."""

    __slots__ = ()
    op = Op.of("dual", "linear", lambda xp, x: x, lambda xp, g, y, args, needs: (g,), lambda xp, tangents, y, args: tangents[0], 1, ("input",), (),
            node_name="ViewBackward0", public=False, saves=False)
    vjp = staticmethod(op.vjp)  # type: ignore[arg-type]
    broadcasts = saves = selects = False
    shares_memory = True

    def __init__(self, value: Any, source: Node | None, flags: int):
        super().__init__((value,), (source,), value, flags)

    def release(self) -> None:
        """Do nothing: the node saves no arguments."""


class Primal(DualNode):
    """The node of an unpacked primal: cotangents pass through it, the tangent of the level does not."""

    __slots__ = ()


class Pushed(Primal):
    """The node of an unpacked tangent; its public face is the node that computed the tangent."""

    __slots__ = ()

    @property
    def origin(self) -> Node:
        return self._source.origin

    @property
    def output_nr(self) -> int:
        return self._source.output_nr

    @property
    def _source(self) -> Node:
        return self.parents[0]  # type: ignore[return-value]


DualNode.__name__ = DualNode.__qualname__ = "ViewBackward0"
Primal.__name__ = Primal.__qualname__ = "Identity"


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`: the primal, and the tangent (None for a tensor that depends on no dual tensor)."""

    primal: Tensor
    tangent: Tensor | None


class Level(Recorder):
    """The recorder of a level. `tangents` has the tangents of dual nodes, None for unpacked primals, and a cache of computed tangents.

    `provisional` are the nodes whose cached tangents have elements that are NaN: they are computed anew, guarded, behind an op that selects.
    `dropped` has the arguments and parents of nodes that may have elements which stay, as far as `unmoved` reads them.
    """

    flags = TRACKED | IN_FORWARD

    def __init__(self, outer: Recorder) -> None:
        self.outer = outer
        self.tangents: WeakKeys[Node, Tensor | None] = WeakKeys()
        self.provisional: WeakKeys[Node, bool] = WeakKeys()
        self.dropped: WeakKeys[Node, tuple[tuple, tuple]] = WeakKeys()

    def record(self, op: Op, args: tuple, parents: tuple, value: Any) -> Node | None:
        """The node of an operation, recorded for the tangent even if gradients are not recorded.

        A node that carries only a tangent computes it at once, so that its arguments can be released.
        """
        flags, modes = 0, thread.modes
        for p in parents:
            if p is not None:
                flags |= p.flags
        flags &= (TRACKED if op.differentiable else NAMED) if modes.grad else TANGENT | SELECTED if op.differentiable and not modes.inference else 0
        if not modes.forward:
            flags &= ~TANGENT
        if not flags & REASONS:
            return None
        node = make_node(op, args, parents, value, flags)
        if flags & REASONS == TANGENT and ((t := _tangent(node)) is None or t._node is None):
            if t is not None and not node.flags & SELECTED and has_nan(numeric, t._value):
                self.provisional[node] = True
                return node
            op = node.op  # that of a power may be another one
            if node.flags & SELECTED or op.kind == "linear" or op.partials and not any(op.partials):
                self.dropped[node] = node.args if op.may_drop and node.args else (), node.parents
            node.args = node.parents = ()
        return node

    def masks(self, known: Mapping[Node, Tensor | None]) -> Masks:
        """The masks of nodes with tangents: of their elements that do not depend on dual tensors."""
        return unmoved_behind([node for node, t in known.items() if t is not None], self.dropped, self.provisional, self.tangents.get, DualNode)

    def after_write(self, tensor: Tensor, former: Node | None) -> None:
        """Write the new tangent of a tensor that was written in place into the memory of its former tangent."""
        node = tensor._node
        if former is not None and node is not None and not node.calls_code:
            self.renew(node, former)

    def renew(self, node: Node, former: Node) -> None:
        """Write the tangent of a node into the memory of that of the former node of its tensor, if neither has a graph."""
        if (held := self.tangents.get(former)) is None or held._node is not None or (t := _tangent(node)) is None or t._node is not None:
            return
        if t._value is not held._value and t._value.dtype == held._value.dtype and (array := held._array()).flags.writeable:
            self.keep(former, held)
            write(array, t._value, "the tangent of a write in place")
            self.tangents[node] = held

    def keep(self, former: Node, held: Tensor) -> None:
        """Copy the tangent of a node before it is written: results whose tangents are not computed yet need it."""
        self.tangents[former] = wrap(held._value.copy())

    def tangent_of(self, tensor: Tensor) -> Tensor | None:
        """The tangent of a tensor, None if it depends on no dual tensor of this level."""
        return unpack_dual(tensor).tangent


def _tangent(node: Node) -> Tensor | None:
    """The tangent of a node in the open level."""
    level: Level = thread.modes.level
    tangents: Any = level.tangents
    if node in tangents:
        return tangents[node]
    again = level.provisional if node.flags & SELECTED else ()
    path = upstream([node])
    known = {each: tangents[each] for each in path if each in tangents and each not in again}
    starts = [t for t in known.values() if t is not None]
    recorded = node.flags & (GRADIENT | NAMED) or any(t._node is not None for t in starts)
    t = push([wrap(node.value, node)], known, bool(recorded), path, level.masks)[0] if starts else None
    if t is None and starts:
        t = wrap(numeric.zeros_like(node.value))
    elif t is not None and t._node is None and isinstance(t._value, np.ndarray) and not node.op.view:
        t = wrap(t._value.copy("K"))  # it may be a tangent that was given; only that of a view shares memory
    elif t is not None and t._node is None and node.op.view and (held := tangents.get(node.parents[0])) is not None and held._node is None:
        if type(t._value) is ndarray and np.may_share_memory(t._value, held._value):
            register_view(t, held)
    if t is None or t._node is None:  # one with a graph refers to the node
        tangents[node] = t
    return t


def enter_dual_level() -> int:
    """Open the level in which dual tensors can be made; returns its number, 0.

    Raises RuntimeError if one is open in this thread: levels do not nest.
    """
    thread.modes = dual_level()._changed(thread.modes)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level: all tangents of it are gone.

    Raises RuntimeError if none is open, or another one than `level`.
    """
    modes = thread.modes
    if modes.level is None and level is None:
        raise RuntimeError(f"exit_dual_level: the level must be 0, not {level}")
    if level not in (None, 0) or modes.level is None:
        raise RuntimeError("exit_dual_level: that level is not the open one")
    opened: Level = modes.level
    opened.tangents.clear()
    thread.modes = modes.changed({"level": None, "recorder": opened.outer if modes.recorder is opened else modes.recorder})


class dual_level(in_mode):
    """The level in which dual tensors can be made, as a context manager or decorator; with its end their tangents are gone.

    >>> import symgrad
    >>> from symgrad.autograd import forward_ad
    >>> x, direction = symgrad.tensor([1.0, 2.0]), symgrad.tensor([1.0, 0.0])
    >>> with forward_ad.dual_level():
    ...     y = forward_ad.make_dual(x, direction) ** 3
    ...     forward_ad.unpack_dual(y)
    UnpackedDualTensor(primal=tensor([1., 8.]), tangent=tensor([3., 0.]))
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(level=None, recorder=None)

    def _changed(self, state: Modes) -> Modes:
        if state.level is not None:
            raise RuntimeError("dual_level: the levels are not nested; nest symgrad.func.jvp")
        level = Level(state.recorder)
        return state.changed({"level": level, "recorder": level})

    def __enter__(self) -> int:
        return super().__enter__() or 0

    def _leave(self, kind: type[BaseException] | None = None) -> None:
        if self._entered is not None:
            self._entered[1].level.tangents.clear()
        super()._leave(kind)

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with dual_level():
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]


class set_fwd_grad_enabled(ImmediateScope, in_mode):
    """Switch forward mode on or off: at once, or as a context manager until its end. While it is off, no tensor has a tangent.

    >>> import symgrad
    >>> from symgrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(symgrad.tensor(2.0), symgrad.tensor(1.0))
    ...     with forward_ad.set_fwd_grad_enabled(False):
    ...         y = x * x
    ...     forward_ad.unpack_dual(y).tangent is None, forward_ad.unpack_dual(x).tangent
    (True, tensor(1.))
    """

    __slots__ = ()

    def __init__(self, mode: bool):
        super().__init__(forward=bool(mode))


def _is_fwd_grad_enabled() -> bool:
    return thread.modes.forward


def __getattr__(name: str) -> Any:
    """torch's `_current_level`: the number of the open level, -1 if none is open."""
    if name == "_current_level":
        return -1 if thread.modes.level is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_set_fwd_grad_enabled = set_fwd_grad_enabled


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A dual tensor: a view of `tensor` with a tangent of the same shape.

    `unpack_dual` of a result computed from it gives the derivative in the direction of the tangent. Gradients flow back
    to `tensor` and to `tangent` if they require them.

    Raises RuntimeError outside a level, for a tangent of another shape, and if either is a dual tensor already; ValueError for
    integers and booleans; TypeError for arguments that are not Tensors.

    >>> import symgrad
    >>> from symgrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(symgrad.tensor(2.0), symgrad.tensor(1.0))
    ...     forward_ad.unpack_dual(1 / x).tangent
    tensor(-0.2500)
    """
    tangents = _open_tangents(level, "make_dual")
    if tangents is None:
        raise RuntimeError("make_dual: no level is open; enter dual_level() first")
    for each, name in (tensor, "primal"), (tangent, "tangent"):
        if not isinstance(each, Tensor):
            raise TypeError(f"make_dual: the {name} must be a Tensor, not {type(each).__name__}")
        if not (each.is_floating_point() or each.is_complex()):
            raise ValueError(f"make_dual: the {name} must be floating-point or complex, not {each.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(f"make_dual: the tangent must have the shape {list(tensor.shape)} of the tensor, not {list(tangent.shape)}")
    if unpack_dual(tensor).tangent is not None or unpack_dual(tangent).tangent is not None:
        raise RuntimeError("make_dual: the tensor and the tangent must not have tangents of this level")
    if not _same_layout(tensor, tangent):
        tangent = _in_layout_of(tensor, tangent)
    value, source = tensor._array(), tensor._node
    node = DualNode(value, source, TANGENT if source is None else source.flags & (GRADIENT | NAMED | SELECTED | TRANSFORMED) | TANGENT)
    tangents[node] = tangent
    return wrap(value, node)


def _same_layout(tensor: Tensor, tangent: Tensor) -> bool:
    """Whether the views of the tensor exist for the tangent, too: both have the same strides, and storages of one size, which batches do not have."""
    x, t = tensor._value, tangent._value
    if type(x) is ndarray is type(t) and x.base is t.base is None and x.strides == t.strides and x.dtype == t.dtype:
        return True
    if type(x) is not ndarray or type(t) is not ndarray:
        return not x.ndim or all([n == 1 or s * t.itemsize == r * x.itemsize for n, s, r in zip(x.shape, x.strides, t.strides)])
    return (tensor.stride() == tangent.stride() and tensor.untyped_storage().nbytes() == tangent.untyped_storage().nbytes()
            and (tensor.storage_offset() == tangent.storage_offset() or not tensor.numel()))


def _in_layout_of(tensor: Tensor, tangent: Tensor) -> Tensor:
    """A copy of the tangent in memory like that of the tensor; in any memory if elements of the tensor share theirs."""
    x, out = tensor._value, tangent.clone()
    strides = tuple([s // x.itemsize for s in x.strides])
    if any([s < 0 for s in strides]) or type(x) is ndarray and overlaps(x):
        return out
    offset, room = 0, 1 + sum([s * (n - 1) for n, s in zip(x.shape, strides)])
    if type(x) is ndarray is type(out._value):
        offset, room = tensor.storage_offset(), tensor.untyped_storage().nbytes() // x.itemsize
    value, levels = raw(out._value), levels_of(out._value)
    array: Any = zeros_in_layout(value.shape[:len(levels)], tuple(x.shape), strides, offset, room, value.dtype)
    array[...] = value
    out._value = functools.reduce(Batched, reversed(levels), array)
    if out._node is not None:
        out._node.value = out._value
    return out


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal of a tensor, and its tangent: the derivative in the direction of all dual tensors that it depends on.

    The tangent is None outside the level and for a tensor that depends on no dual tensor. Both can be differentiated in reverse mode
    if the primals or tangents that they were computed from require it.

    Raises RuntimeError for a level that is not open, TypeError for an argument that is not a Tensor.

    >>> import symgrad
    >>> from symgrad.autograd import forward_ad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> with forward_ad.dual_level():
    ...     slope = forward_ad.unpack_dual(forward_ad.make_dual(x, symgrad.tensor(1.0)) ** 3).tangent
    >>> symgrad.autograd.grad(slope, x)
    (tensor(18.),)
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"unpack_dual: tensor must be a Tensor, not {type(tensor).__name__}")
    tangents, node = _open_tangents(level, "unpack_dual"), tensor._node
    if tangents is None or not thread.modes.forward or node is None or not node.flags & TANGENT:
        return UnpackedDualTensor(tensor, None)
    t = _tangent(node)
    if t is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(_without_tangent(tensor, tangents), _without_tangent(t, tangents, Pushed))


def _open_tangents(level: int | None, caller: str) -> Any:
    """The table of tangents of the open level; None if no level is open and none was given."""
    opened = thread.modes.level
    if level is not None and (level != 0 or opened is None):
        raise RuntimeError(f"{caller}: there is no level {level}")
    return None if opened is None else opened.tangents


def _without_tangent(tensor: Tensor, tangents: Any, kind: type[Primal] = Primal) -> Tensor:
    """A tensor at a node that stops the tangent."""
    node = tensor._node
    if node is None or not node.flags & TANGENT:
        return tensor
    flags = node.flags & (GRADIENT | NAMED | SELECTED)
    if not flags & REASONS:
        return wrap(tensor._value)
    stop = kind(tensor._value, node, flags)
    tangents[stop] = None
    return wrap(tensor._value, stop)
