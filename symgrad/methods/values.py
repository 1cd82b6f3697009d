"""Conversions of a tensor: detached tensors, Python numbers, NumPy arrays, copies (`copy.copy`, `copy.deepcopy` and `pickle`); and its size."""

from __future__ import annotations

import copy
import inspect
import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from symgrad.arguments import check_kind
from symgrad.carriers.duck import DuckArray
from symgrad.engine.data import as_value
from symgrad.engine.graph_breaks import array_read, array_refusal, number_read, refuse_array
from symgrad.engine.hooks import renew_leaf
from symgrad.engine.method_table import MethodTable
from symgrad.engine.recorded_branches import branched
from symgrad.engine.storage.versions import Alias, carry_over
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.tensor import new as bare
from symgrad.errors import AMBIGUOUS, ONE_ELEMENT
from symgrad.graph.modes import special, thread
from symgrad.graph.node import NAMED, Leaf
from symgrad.methods.layout import owner

METHODS = MethodTable()
OPERATORS = "scipy.sparse.linalg._interface"


def _data(self: Tensor) -> Tensor:
    """A detached tensor that shares memory, but not the version counter."""
    if special:
        self._escape(shared=True)
    return wrap(Alias.of(self._array()))


def _set_data(self: Tensor, other: Any) -> None:
    if not isinstance(other, Tensor):
        raise TypeError(f"data must be a Tensor, not {type(other).__name__}")
    if self.requires_grad:
        check_kind("data", other, "fc", "what is assigned to a tensor that requires grad")
    value, old, place = other._shared_array(), self._array(), self._node_slot
    if type(place) is Leaf and value.shape != old.shape:
        self._value = Alias.of(value)
        renew_leaf(self, place)
    else:
        self._rebind(Alias.of(value))
    carry_over(old, self._value)


def _delete_data(self: Tensor) -> None:
    raise RuntimeError("data: a tensor always has it; delete the tensor")


METHODS["data"] = property(_data, _set_data, _delete_data)


class PropertyOfNamed(property):
    """A property that only a tensor computed from named leaves has."""


def _names(self: Tensor) -> list[str]:
    """The names of the attributes that the tensor has."""
    found = [(name, inspect.getattr_static(type(self), name, None)) for name in object.__dir__(self)]
    named = self._node is not None and bool(self._node.flags & NAMED)
    return [name for name, member in found if (named or not isinstance(member, PropertyOfNamed))
            and (not inspect.ismemberdescriptor(member) or hasattr(self, name))]


METHODS["__dir__"] = _names


def _number(self: Tensor, what: str, always: bool | None = False) -> Any:
    """The only element, as a Python number that leaves the graph."""
    if self._value.size != 1:
        raise RuntimeError(f"{ONE_ELEMENT.format(self._value.size)}; index it first")
    if self._node_slot is not None or isinstance(self._value, DuckArray):
        number_read(self, what, always)
    return self._value.item()


@METHODS.define
def item(self: Tensor) -> Any:
    """The only element, as a Python number, which is a constant to every derivative.

    Within a transform of `symgrad.func` a UserWarning names the line, once, where the tensor depends on what is differentiated; `detach` before it
    says that a constant is meant. Outside, `item` is silent, as in torch, and `float(x)` warns.
    """
    return _number(self, "item()")


@METHODS.define
def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers, which are constants to every derivative: of one element as `item`.

    Raises RuntimeError within a transform of `symgrad.func` for several elements that depend on what is differentiated; use `detach` first.
    """
    if self._node_slot is not None or isinstance(self._value, DuckArray):
        if self._value.ndim:
            refuse_array(self, "tolist()")
        number_read(self, "tolist()", False)
    return self._value.tolist()


@METHODS.define
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The value as a NumPy array that shares memory.

    Raises RuntimeError in grad mode for a tensor that requires grad; use `detach` first, or `force`.
    """
    if self.requires_grad and not force and thread.modes.grad:
        raise array_refusal("numpy()")
    if special:
        self._escape(shared=True)
    if not isinstance(self._value, DuckArray):
        return self._array()
    array_read(self)
    return self._value.__array__()


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
    if self.requires_grad and thread.modes.grad:
        raise array_refusal("an array")
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
        raise TypeError("iter: a tensor without dimensions has no rows; use item() for its number")
    return iter(self.unbind(0))


@METHODS.define
def __bool__(self: Tensor) -> bool:
    if self._value.size != 1:
        raise RuntimeError(f"{AMBIGUOUS if self._value.size else 'the truth of a Tensor with no values is ambiguous'}; use .any() or .all()")
    truth = bool(self._value)
    if self._node is not None:
        branched(self._node, truth)
    return truth


def _single_element(self: Tensor, what: str, always: bool | None) -> Any:
    if self._value.size != 1:
        raise ValueError(f"{what}: a Tensor of shape {list(self.shape)} has not one element; index it first")
    return _number(self, what, always)


@METHODS.define
def __float__(self: Tensor) -> float:
    """The only element, for `float` and `math`: a constant to every derivative, for which a UserWarning names the line, as in torch."""
    return float(_single_element(self, "float()", True))


@METHODS.define
def __int__(self: Tensor) -> int:
    """The only element without its fraction: an integer has the derivative 0, and nothing is said."""
    return int(_single_element(self, "int()", None))


@METHODS.define
def __floor__(self: Tensor) -> int:
    """The largest integer that is not larger, for `math.floor`; as `__int__`."""
    return math.floor(_single_element(self, "math.floor()", None))


@METHODS.define
def __ceil__(self: Tensor) -> int:
    """The smallest integer that is not smaller, for `math.ceil`; as `__int__`."""
    return math.ceil(_single_element(self, "math.ceil()", None))


@METHODS.define
def __complex__(self: Tensor) -> complex:
    """The only element, for `complex` and `cmath`; as `__float__`."""
    return complex(_single_element(self, "complex()", True))


@METHODS.define
def __index__(self: Tensor) -> int:
    if self._value.dtype.kind not in "iub" or self._value.size != 1:
        raise TypeError(f"an index is a tensor of one integer, but this one has shape {list(self.shape)} and dtype {self.dtype}")
    return int(self.item())


@METHODS.define
def __contains__(self: Tensor, element: Any) -> bool:
    return bool(np.any(self._value == as_value(element)))


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
