"""`Tensor`: a NumPy value, its node in the graph, and its gradient."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import DType, dtype_of
from symgrad.engine.storage.versions import promote
from symgrad.errors import GRAD_OF_NON_LEAF, kind_name
from symgrad.graph.modes import special, thread
from symgrad.graph.node import BARRED, INFERENCE, Leaf, Node

new = object.__new__
NOT_A_LEAF = "requires_grad is changed of leaves alone; use detach() where a computed tensor is meant as a constant"


class Size(tuple):
    """The shape of a tensor: a tuple of integers that prints as torch prints it."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        out = 1
        for n in self:
            out *= n
        return out

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


class Tensor:
    """A NumPy value with the graph of its computation, made by `symgrad.tensor` and other factories.

    `x.backward()` computes the gradient of a scalar with respect to every leaf that requires grad; if a leaf has a symbol, `expr` is the formula.
    """

    __slots__ = ("_value", "_node_slot", "_view", "_grad", "_formula", "_retained", "_former_leaf", "__weakref__")
    _value: Any
    _node_slot: Node | None  # the node; a `Stale` node for a view whose base was written
    _view: Any  # the metadata of a view, or of a tensor that has views
    _former_leaf: Any  # a weak reference to the node of a former leaf, for a later requires_grad_

    @property
    def _node(self) -> Node | None:
        """The node in the graph; the node of a stale view is regenerated."""
        node = self._node_slot
        return node if node is None or node.flags is not BARRED else node.current()

    @_node.setter
    def _node(self, node: Node | None) -> None:
        self._node_slot = node

    # Value, shape and place in the graph

    @property
    def value(self) -> Any:
        """The NumPy value: an array, or a NumPy scalar for a tensor of no dimensions. It must not be written."""
        if special:
            self._escape(shared=True)
        return self._value

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        return Size(self._value.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._value.ndim

    @property
    def dtype(self) -> DType:
        """The data type."""
        return dtype_of(self._value.dtype)

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to or through this tensor."""
        node = self._node_slot
        return node is not None and node.requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.requires_grad_(flag)  # type: ignore[attr-defined]

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad is not deleted; set it to False")

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor was not computed by a recorded operation."""
        node = None if self._node_slot is None else self._node_slot.current(True)
        return node is None or isinstance(node, Leaf) or not node.requires_grad

    @property
    def grad_fn(self) -> Node | None:
        """The node that computed this tensor; None for a leaf."""
        node = None if self._node_slot is None else self._node_slot.current(True)
        return None if node is None or isinstance(node, Leaf) or not node.requires_grad else node.public_node

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this tensor is."""
        return 0 if self._node_slot is None else self._node_slot.output_nr

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient, after `backward`; None before."""
        try:
            return self._grad
        except AttributeError:
            pass
        if not self._is_leaf_unrefreshed() and not hasattr(self, "_retained"):
            warnings.warn(GRAD_OF_NON_LEAF, UserWarning, stacklevel=2)
        return None

    @grad.setter
    def grad(self, other: Tensor | None) -> None:
        if other is None:
            if hasattr(self, "_grad"):
                del self._grad
            return
        if not isinstance(other, Tensor):
            raise TypeError(f"grad must be a Tensor or None, not {kind_name(other)}")
        if other.shape != self.shape or other._value.dtype != self._value.dtype:
            raise RuntimeError(f"grad must have the shape and dtype of the tensor, {list(self.shape)} and {self.dtype}, not {list(other.shape)} and "
                               f"{other.dtype}; reshape it, or convert it with .to()")
        if other is self:
            raise RuntimeError("grad must be another tensor than the tensor itself")
        self._grad = other

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def _set_requires_grad(self, requires_grad: bool) -> None:
        if requires_grad == self.requires_grad:
            return
        if not self.is_leaf:
            raise RuntimeError(NOT_A_LEAF)
        if requires_grad and not (self.is_floating_point() or self.is_complex()):
            raise RuntimeError(f"requires_grad: a tensor of {self.dtype} has no gradient. Convert it with .to(symgrad.float64)")
        self._make_leaf(requires_grad, self._node.symbol if isinstance(self._node, Leaf) else None)

    def _make_leaf(self, requires_grad: bool, symbol: Any = None) -> None:
        self._node = Leaf(self, self._value, requires_grad, symbol) if requires_grad or symbol is not None else None

    def _array(self) -> np.ndarray:
        """The value as an array that can be shared; a scalar is replaced by an array of no dimensions on the first call."""
        if isinstance(self._value, np.generic):
            self._rebind(promote(self._value))
        return self._value

    def _shared_array(self) -> np.ndarray:
        """As `_array`, of which another tensor or an array gets the memory: a program that is recorded cannot write it any more."""
        array = self._array()
        if special and thread.modes.program is not None:
            thread.modes.program.share_value(array)
        return array

    def _rebind(self, value: Any) -> None:
        self._value = value
        place = self._node_slot  # the node of a stale view may be refused, and is no leaf
        if isinstance(place, Leaf) or place is not None and place.in_inference and isinstance(self._node, Leaf):
            self._node.value = value

    # Detaching, and conversion to NumPy

    def detach(self) -> Tensor:
        """A tensor outside of the graph that shares memory with this one."""
        inference = INFERENCE if self._node_slot is not None and self._node_slot.in_inference else None
        if not special:
            return wrap(self._array(), inference)
        if thread.modes.program is not None:
            out = wrap(self._array(), thread.modes.recorder.detach(self))
            thread.modes.program.share_memory(self, out)
            return out
        for observer in thread.modes.observers:
            observer.detach(self)
        return wrap(self._array(), thread.modes.recorder.detach(self) or inference)

    def _escape(self, shared: bool = False) -> None:
        """Notify the recorder and the observers that the value is converted to plain numbers, or its memory shared."""
        modes = thread.modes
        for recorder in (modes.recorder, *modes.observers):
            recorder.escape(self, shared)
        if shared:
            self._shared_array()

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating-point one."""
        return self._value.dtype.kind == "f" or self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self._value.dtype.kind == "c"

    __hash__ = object.__hash__


def wrap(value: Any, node: Node | None = None) -> Tensor:
    """A Tensor of a NumPy value, with its node in the graph if there is one."""
    out = new(Tensor)
    out._value, out._node_slot, out._view = value, node, None
    return out
