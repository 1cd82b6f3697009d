"""PyTorch's older ways of making tensors: `Tensor(2, 3)`, `FloatTensor([1, 2])`, `x.new(...)`, `x.new_zeros(...)`, and types by name."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import DTYPES, SCALAR_TYPES, DType, dtype_of, get_default_dtype, set_default_dtype
from symgrad.engine.data import as_value
from symgrad.engine.graph_breaks import constant_made
from symgrad.engine.method_table import MethodTable
from symgrad.engine.recording import convert
from symgrad.engine.tensor import Size, Tensor
from symgrad.engine.tensor import new as bare
from symgrad.factories import creation
from symgrad.factories.factory import is_integer, new_leaf, sizes_of
from symgrad.layouts.devices import check_cpu
from symgrad.layouts.devices import device as device_of

METHODS = MethodTable()
FLOAT64, INT64 = np.dtype(np.float64), np.dtype(np.int64)


def _legacy_value(target: DType, args: tuple, device: Any) -> Any:
    """The value of an old-style constructor: uninitialized elements, or data in the dtype."""
    if device is not None and device_of(device).type != "cpu":
        raise RuntimeError(f"new: the device is {device}. symgrad computes on the CPU; leave it out.")
    if not args:
        return np.empty(0, target.numpy)
    first = args[0]
    if isinstance(first, Size) or is_integer(first) and not isinstance(first, Tensor):
        return np.empty(sizes_of("new", args), target.numpy)
    if len(args) > 1 or isinstance(first, str) or not isinstance(first, (Sequence, np.ndarray)):
        raise TypeError(f"new: got {len(args)} arguments, the first of type {type(first).__name__}. Give sizes, or data as one sequence.")
    return np.array(creation.read_data(first, target))


def _new_tensor(cls: type, *args: Any, device: Any = None, **words: Any) -> Tensor:
    """An uninitialized tensor of the given sizes, a tensor of the given data in the default dtype, or an alias of another tensor.

    Raises TypeError for other arguments, such as `requires_grad`, which belongs to `symgrad.tensor`.
    """
    if len(words) == 1 and not args and next(iter(words)) in ("size", "data", "other"):
        (given,) = words.values()
        args = (Size(given),) if "size" in words else (given,)
    elif words:
        raise TypeError(f"new: got {', '.join(words)}. Call Tensor(*sizes), Tensor(data) or Tensor(other), or use symgrad.tensor(data, "
                        f"{next(iter(words))}=...).")
    if len(args) == 1 and isinstance(args[0], Tensor):
        args[0]._shared_array()
        return _as_class(cls, args[0].view(args[0].shape))
    out = bare(cls)
    out._value, out._node, out._view = _legacy_value(get_default_dtype(), args, device), None, None
    return out


def _as_class(cls: type, t: Tensor) -> Any:
    """A tensor as an instance of a subclass, with the same value, memory and node."""
    out = bare(cls)
    out._value, out._node, out._view = t._shared_array(), t._node, None
    return out


def _make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
    """A leaf of a subclass with the memory of a tensor."""
    return _as_class(cls, data.detach()).requires_grad_(require_grad)


def as_subclass(self: Tensor, cls: type) -> Any:
    """This tensor as an instance of a subclass, with the same memory and node."""
    return _as_class(cls, self)


METHODS["__new__"] = _new_tensor
METHODS["_make_subclass"] = staticmethod(_make_subclass)
METHODS["as_subclass"] = as_subclass


# Types by name


class tensortype(type):
    """The metaclass of `FloatTensor` and similar types: constructors for one dtype, whose instances are all tensors of that dtype."""

    dtype: DType
    is_cuda: bool

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        if cls.is_cuda:
            raise TypeError(f"{cls.__module__}.{cls.__name__}: there is no CUDA. Use {cls.__name__} of the package.")
        if len(args) == 1 and isinstance(args[0], Tensor):
            if args[0].dtype is not cls.dtype:
                raise TypeError(f"expected a tensor of {cls.dtype} (got one of {args[0].dtype}); convert it with .to({cls.dtype})")
            return args[0].view(args[0].shape)
        return new_leaf(_legacy_value(cls.dtype, args, device))

    def __instancecheck__(cls, instance: Any) -> bool:
        return not cls.is_cuda and isinstance(instance, Tensor) and instance.dtype is cls.dtype


def _make_type(dtype: DType, module: str) -> tensortype:
    name = f"{dtype.scalar_type}Tensor"
    doc = f"Tensors of {dtype.name}: called as {name}(2, 3) or {name}([1, 2]), and the type in isinstance(x, {name})."
    return tensortype(name, (), {"dtype": dtype, "__module__": module, "__doc__": doc, "is_cuda": module != "torch", "is_sparse": False})


TYPES = {f"{word}Tensor": _make_type(DTYPES[name], "torch") for name, word in SCALAR_TYPES.items()}
CUDA_TYPES = {name: _make_type(t.dtype, "torch.cuda") for name, t in TYPES.items()}
_BY_NAME = {f"{t.__module__}.{name}": t for table in (TYPES, CUDA_TYPES) for name, t in table.items()}


def _dtype_named(kind: Any) -> DType:
    """The dtype of a type, the name of a type, or a dtype."""
    kind = _BY_NAME.get(kind, kind) if isinstance(kind, str) else kind
    if kind is Tensor or kind == "torch.Tensor":
        return get_default_dtype()
    if isinstance(kind, tensortype):
        if kind.is_cuda:
            check_cpu("cuda")
        return kind.dtype
    if not isinstance(kind, (DType, np.dtype)):
        raise (ValueError if isinstance(kind, (str, type)) else TypeError)(f"type: {kind!r} is no type of tensors. Give a dtype, such as float32.")
    return dtype_of(kind)


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type, such as 'torch.FloatTensor'; with `dtype` (a dtype, a type or its name) the tensor converted to it.

    Raises ValueError for an unknown name, TypeError for other arguments.
    """
    return f"torch.{self.dtype.scalar_type}Tensor" if dtype is None else convert(self, _dtype_named(dtype))


type_.__name__ = "type"
METHODS["type"] = type_


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by a tensor type or its name; deprecated in favour of `set_default_dtype`."""
    warnings.warn("set_default_tensor_type is deprecated. Use set_default_dtype.", UserWarning, stacklevel=2)
    set_default_dtype(_dtype_named(t))


# Like this tensor


@METHODS.define
def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """A tensor of this one's dtype, of sizes or with data as `Tensor(...)` takes them."""
    if len(args) == 1 and isinstance(args[0], Tensor):
        return args[0].view(args[0].shape)
    return new_leaf(_legacy_value(self.dtype, args, device))


@METHODS.define
def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
               pin_memory: bool = False) -> Tensor:
    """A new tensor with a copy of `data`, in this tensor's dtype unless another is asked for."""
    if device is None and not requires_grad and not pin_memory:  # what ops make of numbers and indices
        if dtype is int and type(data) is np.ndarray and data.dtype is INT64:
            return new_leaf(data.copy("K"))
        if dtype is None and type(data) is float and self._value.dtype is FLOAT64:
            return new_leaf(np.float64(data))
    if isinstance(data, Tensor):
        if not constant_made(data, "new_tensor()"):
            warnings.warn("new_tensor: the data is a Tensor; x.detach().clone() copies it", UserWarning, stacklevel=2)
        data = as_value(data)
    return creation.tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad, pin_memory=pin_memory)


def _new(name: str) -> None:
    make = getattr(creation, name)

    def method(self: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
               pin_memory: bool = False, **rest: Any) -> Tensor:
        try:
            return make(*size, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad, layout=layout, pin_memory=pin_memory, **rest)
        except TypeError as error:
            raise TypeError(str(error).replace(f"{name}()", f"new_{name}()")) from None

    method.__name__, method.__qualname__ = f"new_{name}", f"Tensor.new_{name}"
    method.__doc__ = f"As `symgrad.{name}`, in this tensor's dtype unless another is asked for."
    METHODS[method.__name__] = method


for _name in ("zeros", "ones", "empty", "full", "empty_strided"):
    _new(_name)
