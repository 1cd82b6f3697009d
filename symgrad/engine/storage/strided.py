"""Views of a tensor's storage by sizes, strides and an offset."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.carriers.batched import Batched
from symgrad.engine.method_table import MethodTable
from symgrad.engine.recording import core
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.storage.versions import owner
from symgrad.engine.storage.views import reading, register_view
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.modes import thread
from symgrad.graph.node import INFERENCE, TRACKED
from symgrad.graph.op import REGISTRY
from symgrad.layouts.strides import Geometry, address, bytes_of


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
METHODS = MethodTable(as_strided=as_strided)
