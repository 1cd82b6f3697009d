"""Tensor methods for conversions of device and dtype, layout and memory, with torch's names."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from symgrad.arguments import check_least_rank
from symgrad.carriers.batched import Batched
from symgrad.carriers.duck import DuckArray, Unrecordable
from symgrad.dtypes.dtype import ALIASES, DTYPES, DType, dtype_of
from symgrad.engine.method_table import MethodTable
from symgrad.engine.recording import convert, core
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.errors import OUT_OF_RANGE
from symgrad.graph.op import REGISTRY
from symgrad.layouts.devices import CPU, FORMATS, LAYOUTS, check_cpu, device
from symgrad.layouts.strides import IMAGE_AXES, address

METHODS = MethodTable()

_copied = core(REGISTRY["to_copy"])


# Conversions


def _is_device(x: Any) -> bool:
    return isinstance(x, (str, device)) or isinstance(x, int) and not isinstance(x, bool)


def parse_to(args: tuple, device: Any = None, dtype: Any = None, tensor: Any = None, non_blocking: bool = False,
             copy: bool = False) -> tuple[Any, Any, bool]:
    """The device, the dtype and `copy` among the arguments of `to`. Raises TypeError where they do not match."""
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        tensor = rest.pop(0)
    elif rest and (rest[0] is None or _is_device(rest[0])):
        device = rest.pop(0)
        dtype = rest.pop(0) if rest else dtype
    elif rest:
        dtype = rest.pop(0)
    flags = [non_blocking, copy]
    flags[:len(rest)] = rest
    of_tensor = isinstance(tensor, Tensor)
    if not (len(flags) == 2 and all(isinstance(flag, bool) for flag in flags) and isinstance(dtype, (DType, type, np.dtype, type(None)))
            and (of_tensor or tensor is None)):
        raise TypeError(f"to: call it as to(device, dtype), to(dtype) or to(other), followed by the bools non_blocking and copy, not with {args}")
    return device, tensor.dtype if of_tensor else dtype, flags[1]


@METHODS.define
def to(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, tensor: Any = None, non_blocking: bool = False, copy: bool = False,
       memory_format: Any = None) -> Tensor:
    """The tensor on a device and in a dtype: itself if nothing changes and `copy` is False, else a differentiable copy.

    Called as to(device, dtype), to(dtype) or to(other), followed by `non_blocking` and `copy`. A conversion to integers ends the graph.

    Raises AssertionError for a GPU, RuntimeError for other devices than the CPU, TypeError for other arguments.

    >>> import symgrad
    >>> symgrad.tensor([1.5, 2.0]).to("cpu", symgrad.int64)
    tensor([1, 2])
    """
    if len(args) == 1 and args[0] is self.dtype and not copy and device is memory_format is None:
        return self
    where, dtype, copy = parse_to(args, device, dtype, tensor, non_blocking, copy)
    if where is not None:
        check_cpu(where)
    target = self.dtype if dtype is None else dtype_of(dtype)
    out = _copied(self, target.numpy, self._value.dtype) if copy and (target.is_floating_point or target.is_complex) else convert(self, target)
    if copy and out is self:
        out = wrap(np.array(self._value))
    return _in_memory_format(out, memory_format)


def _converter(name: str, target: DType) -> Any:
    def converted(self: Tensor, memory_format: Any = None) -> Tensor:
        return _in_memory_format(convert(self, target), memory_format)

    converted.__name__, converted.__qualname__, converted.__doc__ = name, f"Tensor.{name}", f"The tensor as {target.name}."
    return converted


for _name, _target in {**ALIASES, "bfloat16": "bfloat16", "bool": "bool", "char": "int8", "byte": "uint8"}.items():
    METHODS[_name] = _converter(_name, DTYPES[_target])


@METHODS.define
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another."""
    return convert(self, other.dtype)


@METHODS.define
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself: it is on the CPU."""
    return _in_memory_format(self, memory_format)


# Memory


def _in_memory_format(t: Tensor, memory_format: Any) -> Tensor:
    """The tensor itself if it is in the memory format, else a copy in that format."""
    if memory_format is None or memory_format is FORMATS["preserve_format"] or is_contiguous(t, memory_format):
        return t
    return traced.clone(t, memory_format=memory_format)


@METHODS.define
def contiguous(self: Tensor, memory_format: Any = FORMATS["contiguous_format"]) -> Tensor:
    """The tensor itself if it is contiguous, else a contiguous copy."""
    if memory_format is FORMATS["preserve_format"] and not is_contiguous(self):
        raise RuntimeError("contiguous: memory_format must not be preserve_format")
    return _in_memory_format(self, memory_format)


@METHODS.define
def is_contiguous(self: Tensor, memory_format: Any = FORMATS["contiguous_format"]) -> bool:
    """Whether the elements are contiguous in memory, row by row or in the order of a `memory_format`."""
    value = self._value if isinstance(self._value, DuckArray) else np.asarray(self._value)
    if repr(memory_format) in IMAGE_AXES:
        order = IMAGE_AXES[repr(memory_format)]
        return value.ndim == len(order) and bool(value.transpose(order).flags.c_contiguous)
    return bool(value.flags.c_contiguous)


def strides(value: Any) -> tuple[int, ...]:
    """The strides in elements; those of a contiguous tensor if there are no elements."""
    if value.size:
        return tuple(n // value.itemsize for n in value.strides)
    out, step = [], 1
    for n in reversed(value.shape):
        out.append(step)
        step *= max(n, 1)
    return tuple(reversed(out))


@METHODS.define
def stride(self: Tensor, dim: int | None = None) -> Any:
    """The strides in elements, or the stride along one dimension.

    Raises IndexError for a `dim` out of range.
    """
    if dim is None:
        return strides(self._value)
    _check_dim(dim, self.ndim)
    return strides(self._value)[dim]


def _check_dim(dim: int, ndim: int) -> None:
    if not -ndim <= dim < ndim:
        raise IndexError(OUT_OF_RANGE.format(-ndim, ndim - 1, dim))


@METHODS.define
def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one dimension.

    Raises IndexError for a `dim` out of range.
    """
    if dim is None:
        return self.shape
    _check_dim(dim, self.ndim)
    return self.shape[dim]


def owner(array: Any) -> Any:
    """The owner of the memory of an array: the last object along `base`."""
    while (base := getattr(array, "base", None)) is not None and not isinstance(base, (bytes, memoryview)):
        if not hasattr(base, "__array_interface__") and getattr(base, "base", None) is None:
            break
        array = base
    return array


@METHODS.define
def data_ptr(self: Tensor) -> int:
    """The address of the first element; 0 for an empty tensor."""
    return int(self._array().__array_interface__["data"][0]) if self._value.size else 0


@METHODS.define
def storage_offset(self: Tensor) -> int:
    """The offset of the first element in the storage, in elements."""
    array = self._array()
    return (address(array) - address(owner(array))) // array.itemsize if array.size else 0


@METHODS.define
def element_size(self: Tensor) -> int:
    """The size of one element in bytes."""
    return int(self._value.itemsize)


@METHODS.define
@taking_tensors
def is_signed(self: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return self.dtype.is_signed


@METHODS.define
def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape."""
    return self.shape == other.shape


@METHODS.define
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether two tensors have the same storage, offset, shape and strides."""
    return self.data_ptr() == tensor.data_ptr() and self.shape == tensor.shape and self.stride() == tensor.stride()


def _constant(name: str, value: Any, doc: str) -> None:
    METHODS[name] = property(lambda self: value, doc=doc)


_constant("device", CPU, "Where the tensor is: on the CPU.")
_constant("layout", LAYOUTS["strided"], "How the elements are laid out: strided.")
_constant("is_cpu", True, "Whether the tensor is on the CPU; it is.")
METHODS["itemsize"] = property(lambda self: int(self._value.itemsize), doc="The size of one element in bytes.")
METHODS["nbytes"] = property(lambda self: int(self._value.size * self._value.itemsize), doc="The size of all elements in bytes.")


@METHODS.define
def _view_as_dtype(self: Tensor, dtype: Any) -> Tensor:
    """The same memory as elements of another dtype, outside of the graph: `view(dtype)`."""
    out = self.detach()
    out._value = _reinterpreted(out._value, dtype_of(dtype))
    return out


def _reinterpreted(x: Any, dtype: DType) -> Any:
    """The memory of an array as elements of a dtype: the last dimension has more elements if they are smaller, and fewer if they are larger."""
    large, small = sorted((dtype.itemsize, x.dtype.itemsize), reverse=True)
    ratio = large // small
    if ratio > 1:
        check_least_rank("view", x, 1)
    if type(x) is Batched:
        return x._with(_reinterpreted(x.data, dtype))
    if isinstance(x, DuckArray):
        raise Unrecordable("view(dtype)")
    steps = strides(x)
    if ratio == 1:
        return x.view(dtype.numpy)
    offset = (address(x) - address(owner(x))) // x.itemsize if x.size else 0
    if steps[-1] != 1 or dtype.itemsize > x.itemsize and any(n % ratio for n in (x.shape[-1], offset, *steps[:-1])):
        raise RuntimeError(f"view: elements of {dtype} do not fit into the memory of {dtype_of(x.dtype)} with shape {list(x.shape)}, strides {steps} "
                           f"and offset {offset}. Make the tensor contiguous first")
    return x.view(dtype.numpy)


# Transposes


_permute = core(REGISTRY["permute"])


def _T(self: Tensor) -> Tensor:
    """The matrix transposed."""
    if self._value.ndim == 2:
        return _permute(self, (1, 0))
    if self.ndim == 0:
        warnings.warn("T: it is deprecated for tensors without dimensions", UserWarning, stacklevel=2)
    else:
        warnings.warn("T: it is deprecated for tensors that are no matrices; use mT for batches of matrices, or permute", UserWarning, stacklevel=2)
    return traced.permute(self, tuple(reversed(range(self.ndim))))


def _matrix_property(name: str, batches: bool) -> Any:
    def transposed(self: Tensor) -> Tensor:
        if not self.ndim:
            warnings.warn(f"{name}: it is deprecated for tensors without dimensions", UserWarning, stacklevel=2)
            return traced.conj(self) if name.endswith("H") else self
        if self.ndim < 2 or self.ndim > 2 and not batches:
            raise RuntimeError(f"{name}: the tensor must be a matrix{' or a batch of them' * batches}, but its shape is {list(self.shape)}")
        out = traced.transpose(self, -2, -1)
        return traced.conj(out) if name.endswith("H") else out

    return property(transposed, doc=f"The last two dimensions exchanged{', conjugated' * name.endswith('H')}.")


METHODS["T"] = property(_T)


def _part(name: str, doc: str) -> Any:
    function = getattr(traced, name)

    def write(self: Tensor, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"{name}: only a Tensor can be assigned, not {type(value).__name__}; write x.{name}.fill_(...) for a number")
        function(self).copy_(value)

    return property(lambda self: function(self), write, doc=f"{doc} An assignment writes them in place.")


METHODS["real"] = _part("real", "The real parts: a view; the tensor itself, if it is real.")
METHODS["imag"] = _part("imag", "The imaginary parts: a view.")


@METHODS.define
def is_conj(self: Tensor) -> bool:
    """Whether conjugation is deferred; always False here."""
    return False


@METHODS.define
def is_neg(self: Tensor) -> bool:
    """Whether negation is deferred; always False here."""
    return False


for _name in ("mT", "mH", "H"):
    METHODS[_name] = _matrix_property(_name, _name != "H")
