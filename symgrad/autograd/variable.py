"""`Variable`: torch's former type of tensors with a gradient, kept for old programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.engine.data import as_value
from symgrad.engine.tasks import queue_callback
from symgrad.engine.tensor import Tensor, wrap

__all__ = ["Variable", "variable"]


class ExecutionEngine:
    """torch's name of what runs a backward."""

    queue_callback = staticmethod(queue_callback)


class VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """A leaf that shares the memory of a tensor, with the given `requires_grad`. Every tensor is an instance.

    Raises TypeError for data that is not a tensor.

    >>> import symgrad
    >>> x = symgrad.autograd.Variable(symgrad.ones(2), requires_grad=True)
    >>> x
    tensor([1., 1.], requires_grad=True)
    >>> isinstance(x, symgrad.autograd.Variable)
    True
    """

    _execution_engine = ExecutionEngine

    def __new__(cls, data: Any = None, requires_grad: bool = False) -> Any:
        if data is None:
            data = wrap(as_value([]))
        if not isinstance(data, Tensor):
            raise TypeError(f"data must be a Tensor, not {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)


def variable(data: Any, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor with a copy of the data, as `symgrad.tensor` makes it.

    >>> import symgrad
    >>> symgrad.autograd.variable([1.0, 2.0])
    tensor([1., 2.])
    """
    return wrap(np.array(as_value(data, dtype))).requires_grad_(requires_grad)
