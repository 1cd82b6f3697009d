"""Copies of tensors: `copy.copy`, `copy.deepcopy` and `pickle`, as torch has them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from symgrad.engine.graph_breaks import refuse_array
from symgrad.engine.method_table import MethodTable
from symgrad.engine.tensor import Tensor
from symgrad.engine.tensor import new as bare
from symgrad.graph.modes import special
from symgrad.graph.node import Leaf
from symgrad.methods.layout import owner

METHODS = MethodTable()


def _symbol(t: Tensor) -> Any:
    return t._node.symbol if isinstance(t._node, Leaf) else None


def _attributes(t: Tensor) -> dict[str, Any]:
    """The instance attributes of a subclass."""
    return getattr(t, "__dict__", {})


def rebuilt(cls: type, value: Any, requires_grad: bool, symbol: Any = None, attributes: dict[str, Any] | None = None) -> Any:
    """A leaf of a class, from its parts."""
    out = bare(cls)
    out._value, out._node, out._view = value, None, None
    if requires_grad or symbol is not None:
        out._make_leaf(requires_grad, symbol)
    if attributes:
        out.__dict__.update(attributes)
    return out


@METHODS.define
def __copy__(self: Tensor) -> Any:
    """A leaf with the same memory, symbol and `requires_grad`, and no gradient.

    Raises RuntimeError within a transform of `symgrad.func` for a tensor that depends on what is differentiated.
    """
    refuse_array(self, "copy.copy()")
    if special:
        self._escape(shared=True)
    return rebuilt(type(self), self._array(), self.requires_grad, _symbol(self), _attributes(self))


@METHODS.define
def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Any:
    """A leaf with new memory, and a copy of the gradient; copies of tensors that share memory share memory.

    Raises RuntimeError for a non-leaf.
    """
    if not self.is_leaf:
        raise RuntimeError("deepcopy: a tensor that was computed has a graph, which is not copied. Copy a leaf, or x.detach()")
    if id(self) in memo:
        return memo[id(self)]
    if special:
        self._escape()
    value = self._value
    out = rebuilt(type(self), _copy_within_storage(value, memo) if isinstance(value, np.ndarray) else value, self.requires_grad, _symbol(self),
                  copy.deepcopy(_attributes(self), memo))
    memo[id(self)] = out
    if self.grad is not None:
        out._grad = copy.deepcopy(self.grad, memo)
    return out


def _copy_within_storage(array: np.ndarray, memo: dict[int, Any]) -> np.ndarray:
    """A copy of an array within a copy of its whole storage."""
    storage = owner(array)
    if not (storage.flags.c_contiguous or storage.flags.f_contiguous) or storage.dtype != array.dtype or not array.size:
        return array.copy("K")
    if id(storage) not in memo:
        memo[id(storage)] = storage.copy("K")
    offset = array.__array_interface__["data"][0] - storage.__array_interface__["data"][0]
    flat = memo[id(storage)].reshape(-1, order="A" if storage.flags.c_contiguous else "F")
    return np.ndarray(array.shape, array.dtype, flat, offset, array.strides)


@METHODS.define
def __reduce_ex__(self: Tensor, protocol: Any) -> Any:
    """The class, value, `requires_grad` and symbol, for `pickle`; neither the graph nor the gradient is stored.

    Raises RuntimeError within a transform of `symgrad.func` for a tensor that depends on what is differentiated.
    """
    refuse_array(self, "pickle")
    if special:
        self._escape()
    parts = type(self), self._value, self.requires_grad, _symbol(self), _attributes(self) or None
    if self._value.size <= 1 or 0 not in self._value.strides:
        return rebuilt, parts
    once = self._value[tuple([slice(0, 1) if stride == 0 else slice(None) for stride in self._value.strides])]
    return _rebuilt_expanded, (self._value.shape, type(self), once, *parts[2:])


def _rebuilt_expanded(shape: tuple[int, ...], cls: type, once: np.ndarray, *parts: Any) -> Any:
    """A leaf whose elements stand in memory once, as those of an expanded tensor do."""
    strides = [0 if n == 1 else stride for n, stride in zip(once.shape, once.strides)]
    return rebuilt(cls, np.lib.stride_tricks.as_strided(once, shape, strides), *parts)
