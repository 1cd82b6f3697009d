"""Methods that call a Python function for each element, and others that torch has for its own memory and modules."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.arguments import check_kind, check_option
from symgrad.engine.method_table import MethodTable
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS, traced
from symgrad.layouts.strides import order_of_strides, row_major
from symgrad.methods.inplace import in_place
from symgrad.ops.rules import axes, sizes
from symgrad.system.errorstate import quietly

METHODS = MethodTable()


def _mapped(name: str, self: Tensor, function: Callable[..., Any], *others: Tensor) -> Tensor:
    """Write the results of a function of one number from each tensor, broadcast."""
    if any(x.requires_grad for x in (self, *others)):
        raise RuntimeError(f"{name}: a tensor requires grad, but a function of Python has no derivative. Call it on x.detach()")
    for x in others:
        if x.dtype is not self.dtype:
            raise TypeError(f"{name}: the tensors must have the dtype {self.dtype}, not {x.dtype}")
    arrays = np.broadcast_arrays(self._value, *(x._value for x in others))
    if arrays[0].shape != tuple(self.shape):
        raise RuntimeError(f"{name}: the shape {list(arrays[0].shape)} of the arguments does not fit into the shape {list(self.shape)}")
    found = [function(*numbers) for numbers in zip(*(x.ravel().tolist() for x in arrays))]
    return self.copy_(quietly(np.array(found).reshape(self.shape).astype, self._value.dtype))


@METHODS.define
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by the result of a function of one number; returns the tensor.

    Raises RuntimeError for a tensor that requires grad: the function has no derivative.

    >>> import symgrad
    >>> symgrad.tensor([1.0, 2.0]).apply_(lambda x: x + 1)
    tensor([2., 3.])
    """
    return _mapped("apply_", self, callable)


@METHODS.define
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by the result of a function of it and of that of another tensor; as `apply_`."""
    return _mapped("map_", self, callable, tensor)


@METHODS.define
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by the result of a function of it and of those of two other tensors; as `apply_`."""
    return _mapped("map2_", self, callable, x, y)


@METHODS.define
def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the one with the largest stride to the one with the smallest, as they lie in memory.

    With `ambiguity_check` raises RuntimeError where dimensions of size one leave the order open.
    """
    steps = self.stride()
    order = order_of_strides(self.shape, [steps])
    if ambiguity_check and (len(set(steps)) < len(steps) or any(n == 1 for n in self.shape)):
        raise RuntimeError(f"dim_order: the strides {steps} of the shape {list(self.shape)} leave the order open")
    return tuple(order)


def _resized(self: Tensor, size: tuple[int, ...]) -> Tensor:
    if int(np.prod(size, dtype=np.int64)) != self.numel():
        raise RuntimeError(f"resize: the shape {list(size)} does not have the {self.numel()} elements of the tensor. Call resize_")
    return traced.reshape(self, size)


@METHODS.define
def resize(self: Tensor, *sizes_: int) -> Tensor:
    """The tensor in another shape, as `reshape`; deprecated, with a warning.

    Raises RuntimeError for another number of elements.
    """
    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=2)
    return _resized(self, sizes(sizes_))


@METHODS.define
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """The tensor in the shape of another, as `view_as`; deprecated, with a warning.

    Raises RuntimeError for another number of elements.
    """
    warnings.warn("non-inplace resize_as is deprecated", UserWarning, stacklevel=2)
    return _resized(self, tuple(tensor.shape))


@METHODS.define
@taking_tensors
def hash_tensor(input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """The exclusive or of the bits of the elements over `dim`, or over all elements, as unsigned integers: of floats those of float64.

    Raises RuntimeError for another mode, NotImplementedError for complex numbers, IndexError for dimensions without elements.

    >>> import symgrad
    >>> symgrad.hash_tensor(symgrad.tensor([1, 4, 8])).item()
    13
    """
    check_option("hash_tensor", "mode", mode, (0,))
    check_kind("hash_tensor", input, "fiub")
    along = axes(tuple(dim) if isinstance(dim, (tuple, list)) else dim, input.ndim)
    if not input._value.size and (dim in ((), []) or not all(input.shape[i] for i in along)):
        raise (RuntimeError if dim in ((), []) else IndexError)(f"hash_tensor: dim {dim} of a shape {list(input.shape)} has no elements")
    whole = input._value.dtype.kind in "biu"
    bits = np.asarray(input._value).astype(np.int64 if whole else np.float64).view(np.uint64)
    return wrap(row_major(np.asarray(np.bitwise_xor.reduce(bits, axis=tuple(along), keepdims=bool(keepdim)))))  # type: ignore[call-overload]


@METHODS.define
@taking_tensors
def slice_inverse(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """The tensor of which the input is a slice, given another tensor of its shape and strides: a view of the input's memory."""
    return input.as_strided(src.shape, src.stride(), src.storage_offset())


@METHODS.define
def polygamma(self: Tensor, n: int) -> Tensor:
    """The derivative of order n of digamma, ψ⁽ⁿ⁾; as `symgrad.polygamma(n, self)`."""
    return FUNCTIONS["polygamma"](n, self)


@METHODS.define
def __dlpack__(self: Tensor, **options: Any) -> Any:
    """The memory as a capsule of DLPack, for other libraries. Raises BufferError for a tensor that requires grad."""
    if self.requires_grad:
        raise BufferError("__dlpack__: the tensor requires grad. Export x.detach()")
    return np.asarray(self._shared_array()).__dlpack__(**{word: given for word, given in options.items() if given is not None})


@METHODS.define
def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    """The kind and number of the device in DLPack: the CPU."""
    return 1, 0


METHODS["polygamma_"] = in_place("polygamma_", polygamma)
