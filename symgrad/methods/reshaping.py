"""In-place changes of shape or storage: `t_`, `squeeze_`, `as_strided_`, `resize_`, `set_` and similar methods.

They write no element, but count a version, as in torch. A tensor in a graph gets the node of the corresponding view op; its base and the other
views keep their nodes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.batched import Batched
from symgrad.engine.hooks import renew_leaf
from symgrad.engine.method_table import MethodTable
from symgrad.engine.recording import core
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.storage.copyslices import INTERRUPTED
from symgrad.engine.storage.versions import Alias, carry_over, owner, stamp
from symgrad.engine.storage.views import Base, Stale, base_of, reading, refuse_in_place, register_view, unregister_view
from symgrad.engine.storage.writes import refuse_inference
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import lift
from symgrad.graph.modes import thread
from symgrad.graph.node import BARRED, INFERENCE, TRACKED, Leaf, Node, make_node
from symgrad.graph.op import REGISTRY, Op
from symgrad.layouts.devices import FORMATS
from symgrad.layouts.strides import Geometry, address, bytes_of, order_of_format
from symgrad.ops.rules import sizes

METHODS = MethodTable()


def _check_in_place(self: Tensor, *others: Any) -> tuple[np.ndarray, Node | None]:
    """The array and the node of a tensor before an in-place change; raises if the change is not allowed."""
    if thread.modes.grad and any(isinstance(t, Tensor) and t.requires_grad for t in (self, *others)):
        refuse_in_place(self)
    x, p = self._array(), self._node
    refuse_inference(self)
    return x, p


def _replace_value(self: Tensor, value: np.ndarray, node: Node | None, name: str) -> Tensor:
    """Replace the array and the node of a tensor."""
    old = self._value
    if node is INFERENCE or isinstance(node, Leaf):
        node = None
    stamp(old, name)  # makes views stale
    place, base, moved = self._node_slot, base_of(self), owner(value) is not owner(old)
    if node is not None:
        thread.modes.recorder.rebase_history((self, place))
    self._node_slot = None if place is None and node is None else INTERRUPTED  # until both value and node are set
    self._value = value
    if moved and base is not None:
        unregister_view(self)
        place = None if isinstance(place, Stale) else place
    elif base is not None and node is not None:
        self._view.renew(self)
    elif isinstance(self._view, Base) and not moved:
        self._view.array = value
    renews = type(place) is Leaf and value.shape != old.shape
    if isinstance(place, Leaf):
        place.value = old if renews else value
    elif node is None and base is None and place is not None and place.flags is not BARRED:
        node = _resized_node(place, old, value)
    self._node_slot = place if node is None else node
    if renews and node is None:
        renew_leaf(self, place)
    return self


@functools.cache
def _resized_op(node_name: str) -> Op:
    """The op of a tensor that was reshaped under no_grad: its pullback raises for cotangents to whose shape the former one does not expand."""
    def pull(xp: Any, g: Any, y: Any, args: Any, needs: Any) -> Any:
        if len(g.shape) >= args[0].ndim and all(m in (1, n) for m, n in zip(reversed(args[0].shape), reversed(g.shape))):
            return (xp.sum_to_size(g, args[0].shape),)
        raise RuntimeError(f"{node_name}: a gradient of shape {list(g.shape)} does not fit the shape {list(args[0].shape)}: the tensor was reshaped "
                           "in place under no_grad. Reshape it with grad mode enabled")

    return Op.of("outgrown", "linear", lambda xp, input, value: value, pull, pull, 1, ("input",), (), node_name=node_name, public=False, saves=False)


def _resized_node(place: Node, old: np.ndarray, value: np.ndarray) -> Node:
    """The node of a tensor in a graph after it was reshaped under no_grad."""
    if place.op.name == "outgrown" and place.args is not None:
        (origin,), (old, _) = place.parents, place.args
        place = place if origin is None else origin
    if value.shape == old.shape:
        return place
    return make_node(_resized_op(type(place.public_node).__name__), (old, value), (place,), value, place.flags)


# Another shape of the same memory


def _squeezed(node: Any) -> str:
    dim = node.args[2]
    return f"SqueezeBackward{3 if dim is None else 4 if isinstance(dim, int) else 5}"


def _reshaping(name: str, of: str, **changes: Any) -> Callable[..., Tensor]:
    """The in-place form of an op that gives a view."""
    function = lift(REGISTRY[of].but(name=name, view=False, **changes))

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        x, p = _check_in_place(self)
        result = function(wrap(x, p), *args, **kwargs)
        return _replace_value(self, result._value, result._node, name)

    functools.update_wrapper(method, function)
    method.__doc__ = f"As `{name[:-1]}`, in place: the tensor itself gets the shape; its memory stays as it is."
    return method


for _name, _of, _changes in (("t_", "t", {"node_name": "TBackward1"}), ("transpose_", "transpose", {"node_name": "TransposeBackward1"}),
                             ("squeeze_", "squeeze", {"names": _squeezed}), ("unsqueeze_", "unsqueeze", {"node_name": "UnsqueezeBackward1"})):
    for _alias in (_name, *(f"{alias}_" for alias in REGISTRY[_of].surface.aliases)):
        METHODS[_alias] = _reshaping(_alias, _of, **_changes)

_STRIDED = REGISTRY["strided"].but(node_name="AsStridedBackward1")


@METHODS.define
@taking_tensors
def as_strided_(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """As `as_strided`, in place.

    Raises RuntimeError if the view exceeds the storage, and for a leaf that requires grad.

    >>> import symgrad
    >>> symgrad.arange(9.0).as_strided_((3,), (4,))
    tensor([0., 4., 8.])
    """
    x, p = _check_in_place(self)
    result = as_strided(wrap(x, p), size, stride, storage_offset)
    node = result._node
    if node is not None and not isinstance(node, Leaf):
        node = make_node(_STRIDED, node.args, node.parents, node.value, node.flags)  # type: ignore[arg-type]
    return _replace_value(self, result._value, node, "as_strided_")


# Other memory


def _block(array: np.ndarray) -> np.ndarray:
    """The whole storage of an array as a vector of its dtype; only the array's own elements if the storage is not contiguous."""
    root = owner(array)
    if root.flags.f_contiguous and not root.flags.c_contiguous:
        root = root.T
    if not root.flags.c_contiguous or root.nbytes % array.itemsize:
        return np.ascontiguousarray(array).reshape(-1)
    return np.ndarray((root.nbytes // array.itemsize,), array.dtype, root)


@METHODS.define
def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Change the shape in place, with new memory if the storage is too small: elements keep their order in memory, and new ones are zero.

    Views keep the old memory if the tensor gets new memory. Raises RuntimeError for a tensor that requires grad, and for negative sizes.

    >>> import symgrad
    >>> symgrad.arange(4.0).resize_(2, 3)
    tensor([[0., 1., 2.],
            [3., 0., 0.]])
    """
    if memory_format is FORMATS["preserve_format"]:
        raise RuntimeError("resize_: memory_format must be contiguous_format, channels_last or channels_last_3d")
    if self.requires_grad and not thread.modes.inference:
        raise RuntimeError("resize_: the tensor requires grad, and a change of its size has no derivative. Detach it")
    if not size:
        raise TypeError("resize_: size is missing")
    x, shape = _check_in_place(self)[0], sizes(size)
    if shape == x.shape and memory_format is None:
        return self
    order = order_of_format(shape, memory_format)
    block, count = _block(x), math.prod(shape)
    if min(shape, default=0) < 0 or math.prod(n for n in shape if n) * x.itemsize >= 2**63:
        raise RuntimeError(f"resize_: the sizes {list(shape)} are negative or larger than any memory")
    start = (address(x) - address(block)) // x.itemsize if np.may_share_memory(block, x) else 0
    kept = block[start:]
    if count > kept.size:
        kept = np.concatenate([kept, np.zeros(count - kept.size, x.dtype)])
        carry_over(x, kept)
    resized = kept[:count].reshape([shape[i] for i in order]).transpose(np.argsort(order))
    return _replace_value(self, resized, None, "resize_")


@METHODS.define
@taking_tensors
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """As `resize_`, to the shape of another tensor, with `preserve_format` also to its memory format."""
    if memory_format is FORMATS["preserve_format"]:
        formats = [FORMATS[name] for name in ("channels_last", "channels_last_3d") if the_template.is_contiguous(FORMATS[name])]
        memory_format = formats[0] if formats and not the_template.is_contiguous() else FORMATS["contiguous_format"]
    return resize_(self, the_template.shape, memory_format=memory_format)


def _no_derivative(*args: Any) -> Any:
    raise RuntimeError("set_: it has no derivative. Use copy_, or detach the tensor")


_SET = Op.of("set_", "primitive", lambda xp, input, source: source, _no_derivative, _no_derivative, 2, ("input", "source"), (),
             node_name="NotImplemented", public=False, saves=False)


@METHODS.define
def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Sequence[int] | None = None, stride: Sequence[int] | None = None) -> Tensor:
    """Make the tensor a view of the memory of another tensor, or of a storage; without a source it becomes empty.

    `size`, `stride` and `storage_offset` are as in `as_strided`. The version counter is not shared with the source.

    Raises RuntimeError for another dtype and for a leaf that requires grad; so does a backward through it, because the derivative is not defined.

    >>> import symgrad
    >>> x, y = symgrad.zeros(2), symgrad.arange(4.0)
    >>> x.set_(y)
    tensor([0., 1., 2., 3.])
    >>> x.data_ptr() == y.data_ptr()
    True
    """
    if source is not None and not isinstance(source, Tensor) and not hasattr(source, "untyped"):
        raise TypeError(f"set_: source must be a Tensor or a storage, not {type(source).__name__}")
    if getattr(source, "dtype", self.dtype) is not self.dtype:
        raise RuntimeError(f"set_: the tensor is of {self.dtype}, the source of {source.dtype}. Convert the source with .to({self.dtype}).")
    x, p = _check_in_place(self, source)
    q = None
    if source is None:
        value = np.empty(0, x.dtype)
    elif not isinstance(source, Tensor):
        raw = source.untyped()._elements
        value = Alias.of(raw[:raw.size // x.itemsize * x.itemsize].view(x.dtype))
    else:
        value, q = Alias.of(source._shared_array()), source._node
    if size is not None:
        shape = tuple(size)
        step = tuple(math.prod(shape[i + 1:]) for i in range(len(shape))) if stride is None else stride
        value = as_strided(wrap(value), shape, step, storage_offset)._value
    flags = ((0 if p is None else p.flags) | (0 if q is None else q.flags)) & TRACKED
    node = make_node(_SET, (x, value), (p, q), value, flags) if flags and thread.modes.grad else None
    carry_over(x, value)
    place = self._node_slot
    _replace_value(self, value, node, "set_")
    if type(place) is Leaf and self._node_slot is place:  # what was computed before belongs to the former leaf
        place.value = x
        renew_leaf(self, place)
    return self


@taking_tensors
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the tensor's storage by sizes, strides and the offset of the first element, counted in elements.

    Elements of the storage that the input does not contain are constants for derivatives. Inside vmap the storage of a member of a batch is the
    member in row-major order, and the result is no view. Raises RuntimeError if the view exceeds the storage.

    >>> import symgrad
    >>> symgrad.arange(9.0).as_strided((3,), (4,))
    tensor([0., 4., 8.])
    """
    if type(input._value) is Batched:
        return _strided(input, member_geometry(input, size, stride, storage_offset))
    array = input._array()
    root, item = owner(array), array.itemsize
    offset = (address(array) - address(root)) // item if storage_offset is None else storage_offset
    size, stride = _checked(size, stride, offset, root.nbytes // item, item)
    memory = root if root.flags.c_contiguous else bytes_of(root)
    view = np.ndarray(size, array.dtype, memory, offset * item if all(size) else 0, tuple(s * item for s in stride))
    p = input._node
    node = INFERENCE if p is INFERENCE else None
    if p is not None and p.flags & TRACKED and thread.modes.grad:
        node = reading(view, array, p, p.flags & TRACKED)
    return register_view(wrap(view, node), input)


def member_geometry(input: Tensor, size: Any, stride: Any, storage_offset: int | None) -> Geometry:
    """The positions of a view by sizes and strides in each member of a batch."""
    offset = storage_offset or 0
    size, stride = _checked(size, stride, offset, input._value.size, input._value.dtype.itemsize)
    return Geometry(size, input._value.size, stride, offset)


def _checked(size: Any, stride: Any, offset: int, room: int, item: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes and strides as tuples; raises unless they fit into a storage of `room` elements."""
    size, stride = tuple(map(int, size)), tuple(map(int, stride))
    if len(size) != len(stride) or min(*stride, *size, offset, 0) < 0:
        raise RuntimeError(f"as_strided: there must be one stride for each size, and no negative number, in the sizes {list(size)}, the strides "
                           f"{list(stride)} and the offset {offset}")
    last = offset + sum(s * (n - 1) for n, s in zip(size, stride)) if all(size) else 0
    if last >= room and all(size):
        raise RuntimeError(f"as_strided: sizes {list(size)}, strides {list(stride)} and offset {offset} need {(last + 1) * item} bytes, but the "
                           f"storage has {room * item}")
    return size, stride


_strided = core(REGISTRY["strided"])
METHODS["as_strided"] = as_strided
