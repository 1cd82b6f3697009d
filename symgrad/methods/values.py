"""Conversions of a tensor: detached tensors, Python numbers, NumPy arrays; and its size."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from symgrad.carriers.duck import DuckArray
from symgrad.engine.branches import branched
from symgrad.engine.data import as_value
from symgrad.engine.escapes import refuse_number
from symgrad.engine.storage.versions import Alias, carry_over
from symgrad.engine.tables import MethodTable
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.modes import special, thread
from symgrad.graph.node import NAMED
from symgrad.types.absent import Absent

__all__ = ["METHODS", "PropertyOfNamed"]

METHODS = MethodTable()
OPERATORS = "scipy.sparse.linalg._interface"


def _data(self: Tensor) -> Tensor:
    """A detached tensor that shares memory, but not the version counter."""
    if special:
        self._escape(shared=True)
    return wrap(Alias.of(self._array()))


def _set_data(self: Tensor, other: Any) -> None:
    if not isinstance(other, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(other).__name__}")
    if self.requires_grad and not (other.is_floating_point() or other.is_complex()):
        raise RuntimeError(f"data set to a tensor that requires gradients must be floating point or complex dtype, not {other.dtype}")
    value, old = other._array(), self._array()
    self._rebind(Alias.of(value))
    carry_over(old, self._value)


def _delete_data(self: Tensor) -> None:
    raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")


METHODS["data"] = property(_data, _set_data, _delete_data)


class PropertyOfNamed(property):
    """A property that only a tensor computed from named leaves has."""


def _names(self: Tensor) -> list[str]:
    """The names of the attributes that the tensor has: without those of torch that are refused."""
    found = [(name, inspect.getattr_static(type(self), name, None)) for name in object.__dir__(self)]
    named = self._node is not None and bool(self._node.flags & NAMED)
    return [name for name, member in found if not isinstance(member, Absent) and (named or not isinstance(member, PropertyOfNamed))
            and (not inspect.ismemberdescriptor(member) or hasattr(self, name))]


METHODS["__dir__"] = _names


def _volatile(self: Tensor) -> bool:
    """False: the name of old programs for a tensor without a graph."""
    warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2)
    return False


METHODS["volatile"] = property(_volatile)


@METHODS.define
def item(self: Tensor) -> Any:
    """The only element, as a Python number."""
    if self._value.size != 1:
        raise RuntimeError(f"a Tensor with {self._value.size} elements cannot be converted to Scalar; index it first")
    if thread.modes.rule and self._node is not None:
        refuse_number(self)
    if special:
        self._escape()
    return self._value.item()


@METHODS.define
def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers."""
    if thread.modes.rule and self._node is not None:
        refuse_number(self)
    if special:
        self._escape()
    return self._value.tolist()


@METHODS.define
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The value as a NumPy array that shares memory.

    Raises RuntimeError in grad mode for a tensor that requires grad; use `detach` first, or `force`.
    """
    if self.requires_grad and not force and thread.modes.grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if special:
        self._escape(shared=True)
    return self._array() if not isinstance(self._value, DuckArray) else self._value.__array__()


@METHODS.define
def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    caller: Any = sys._getframe(1)
    if caller.f_code.co_name == "_matmul_dispatch" and caller.f_back.f_code.co_name == "__matmul__":
        array = np.empty((), object)  # a sparse matrix of SciPy leaves its product with an object to the object's own method
        array[()] = self
        return array
    if caller.f_code.co_name == "asarray":  # of SciPy, from 1.18 on
        caller = caller.f_back
    if caller.f_globals.get("__name__") == OPERATORS and (self.requires_grad or isinstance(self._value, DuckArray)):
        raise TypeError("a LinearOperator of SciPy converts what stands to its right to an array; write symgrad.sparse.matmul(A, x)")
    return np.array(self.numpy(), dtype=dtype, copy=copy)


# Shape and memory


@METHODS.define
def dim(self: Tensor) -> int:
    """The number of dimensions."""
    return self._value.ndim


@METHODS.define
def numel(self: Tensor) -> int:
    """The number of elements."""
    return int(self._value.size)


METHODS["nelement"], METHODS["ndimension"] = numel, dim


@METHODS.define
def shares_memory_with(self: Tensor, other: Tensor) -> bool:
    """Whether the memory of two tensors may overlap."""
    return np.shares_memory(self._array(), other._array()) if self._value.size else False


@METHODS.define
def __len__(self: Tensor) -> int:
    if not self._value.ndim:
        raise TypeError("len() of a 0-d tensor")
    return len(self._value)


@METHODS.define
def __iter__(self: Tensor) -> Iterator[Tensor]:
    if not self._value.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


@METHODS.define
def __bool__(self: Tensor) -> bool:
    if self._value.size != 1:
        raise RuntimeError(f"Boolean value of Tensor with {'more than one value' if self._value.size else 'no values'} is ambiguous; "
                           f"use .any() or .all()")
    truth = bool(self._value)
    if self._node is not None:
        branched(self._node, truth)
    return truth


@METHODS.define
def _single_element(self: Tensor) -> Any:
    if self._value.size != 1:
        raise ValueError(f"only one element tensors can be converted to Python scalars; this one has shape {list(self.shape)}")
    return self.item()


@METHODS.define
def __float__(self: Tensor) -> float:
    return float(self._single_element())


@METHODS.define
def __int__(self: Tensor) -> int:
    return int(self._single_element())


@METHODS.define
def __complex__(self: Tensor) -> complex:
    return complex(self._single_element())


@METHODS.define
def __index__(self: Tensor) -> int:
    if self._value.dtype.kind not in "iub" or self._value.size != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(self.item())


@METHODS.define
def __contains__(self: Tensor, element: Any) -> bool:
    return bool(np.any(self._value == as_value(element)))
