"""`Parameter` and `Buffer`: tensors that a module registers when they are assigned to it."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor, new
from symgrad.factories.creation import empty
from symgrad.graph.node import Leaf
from symgrad.methods.printing import text

__all__ = ["Buffer", "Parameter"]


def _shared(cls: type, data: Any, requires_grad: bool) -> Any:
    """A tensor of a class that shares the memory, and the symbol, of another."""
    if data is None:
        data = empty(0)
    if not isinstance(requires_grad, bool):
        raise TypeError(f"_make_subclass(): argument 'require_grad' (position 3) must be bool, not {type(requires_grad).__name__}")
    out = new(cls)
    out._value, out._node, out._view = data.detach()._array(), None, None
    if requires_grad and not (out.is_floating_point() or out.is_complex()):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    symbol = data._node.symbol if isinstance(data._node, Leaf) else None
    if requires_grad or symbol is not None:
        out._make_leaf(requires_grad, symbol)
    return out


def _rebuilt(cls: type, *given: Any) -> Any:
    return cls(*given)


class Parameter(Tensor):
    """A trainable tensor: assigned to a module, it is among its `parameters()`.

    It shares memory with `data` and requires grad by default. Results computed from it are plain Tensors.

    Raises RuntimeError for integers with `requires_grad`.

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.Parameter(symgrad.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        return _shared(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (type(self), self.data, self.requires_grad), *([vars(self)] if vars(self) else [])

    def __repr__(self) -> str:
        return "Parameter containing:\n" + text(self, "tensor")

    __str__ = __repr__


class Buffer(Tensor):
    """A tensor of a module that is not trained: assigned to a module, it is among its `buffers()`.

    `persistent`: whether it is part of the module's `state_dict`.
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        self = _shared(cls, data, data is not None and data.requires_grad)
        self.persistent = persistent
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (type(self), self.data)

    def __repr__(self) -> str:
        return text(self, "tensor")

    __str__ = __repr__
