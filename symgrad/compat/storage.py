"""The memory of a tensor: as bytes, and as elements of a dtype."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from symgrad.carriers.duck import Unrecordable
from symgrad.carriers.recorded import is_recorded
from symgrad.dtypes.dtype import DTYPES, SCALAR_TYPES, DType, dtype_of, get_default_dtype
from symgrad.engine.graph_breaks import refuse_array
from symgrad.engine.method_table import MethodTable
from symgrad.engine.tensor import Tensor
from symgrad.layouts.devices import CPU, device
from symgrad.layouts.strides import address, bytes_of
from symgrad.methods.layout import owner

METHODS = MethodTable()


class _Storage:
    """What storages have in common: an array of elements in `_elements`. Writes count no version, as in torch."""

    __slots__ = ("_elements",)
    _elements: np.ndarray
    is_cuda, is_sparse, is_hpu = False, False, False

    @property
    def device(self) -> device:
        """The device of the memory."""
        return CPU

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return address(self._elements)

    def size(self) -> int:
        """The number of elements; of bytes, for an untyped storage."""
        return int(self._elements.size)

    def nbytes(self) -> int:
        """The number of bytes."""
        return int(self._elements.nbytes)

    def element_size(self) -> int:
        """The size of an element in bytes."""
        return int(self._elements.itemsize)

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        return self._elements.tolist()

    def is_shared(self) -> bool:
        """Whether processes share the memory; they do not."""
        return False

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is pinned; it is not."""
        return False

    def get_device(self) -> int:
        """The index of the GPU that the memory is on: -1, for it is on the CPU."""
        return -1

    def cpu(self) -> Any:
        """The storage itself: it is on the CPU."""
        return self

    def clone(self) -> Any:
        """A copy."""
        return self._like(self._elements.copy())

    def copy_(self, source: Any, non_blocking: bool = False) -> Any:
        """Write the elements of a storage of the same size."""
        if source.size() != self.size():
            raise RuntimeError(f"copy_: the source has the size {source.size()}, the storage {self.size()}. Copy into one of the same size.")
        self._elements[...] = source._elements
        return self

    def fill_(self, value: Any) -> Any:
        """Write a number everywhere."""
        self._elements[...] = value
        return self

    def resize_(self, size: int) -> Any:
        """Memory cannot change its size.

        Raises RuntimeError unless the size is the present one.
        """
        if size != self.size():
            raise RuntimeError(f"resize_: the storage has the size {self.size()}, and memory that arrays share keeps it. Use Tensor.resize_.")
        return self

    def _like(self, elements: np.ndarray) -> Any:
        out = object.__new__(type(self))
        out._elements = elements
        return out

    def _place(self, index: Any) -> Any:
        if isinstance(index, slice):
            return index
        if isinstance(index, bool) or not isinstance(index, int):
            raise RuntimeError(f"storage: the index is {index!r}. Give an integer or a slice.")
        if not -self.size() <= index < self.size():
            raise IndexError(f"storage: the index {index} is out of range. The size is {self.size()}.")
        return index

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[self._place(index)] = value

    def __len__(self) -> int:
        return self.size()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Storage) or type(self) is not type(other):
            return NotImplemented
        return (self.data_ptr(), self.nbytes(), self._elements.dtype) == (other.data_ptr(), other.nbytes(), other._elements.dtype)

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.nbytes()))


class UntypedStorage(_Storage):
    """The memory of a tensor as bytes: of an array, of a list of bytes, or new memory of a number of bytes.

    Tensors that share memory have equal storages.

    >>> storage = UntypedStorage([1, 2, 3])
    >>> storage.nbytes(), storage[0], storage[1:].tolist()
    (3, 1, [2, 3])
    """

    __slots__ = ()

    def __init__(self, source: Any = 0):
        if isinstance(source, np.ndarray):
            self._elements = bytes_of(source)
        else:
            self._elements = np.empty(source, np.uint8) if isinstance(source, int) else np.array(source, np.uint8).reshape(-1)

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def __getitem__(self, index: Any) -> Any:
        """A byte, or a part of the storage."""
        found = self._elements[self._place(index)]
        return self._like(found) if isinstance(index, slice) else int(found)

    def __repr__(self) -> str:
        lines = "\n".join(f" {byte}" for byte in self.tolist())
        return f"{lines}\n[torch.storage.UntypedStorage(device=cpu) of size {self.nbytes()}]"


class TypedStorage(_Storage):
    """The memory of a tensor as elements of a dtype (of the default one, if none is given): of a list, of another storage, or new memory.

    >>> TypedStorage([1, 2], dtype=DTYPES["float32"]).untyped().nbytes()
    8
    """

    __slots__ = ()

    def __init__(self, source: Any = 0, *, wrap_storage: UntypedStorage | None = None, dtype: Any = None, device: Any = None):
        target = get_default_dtype() if dtype is None else dtype_of(dtype)
        if wrap_storage is not None:
            size = wrap_storage.nbytes() // target.itemsize * target.itemsize
            self._elements = wrap_storage._elements[:size].view(target.numpy)
        else:
            self._elements = np.empty(source, target.numpy) if isinstance(source, int) else np.array(source, target.numpy).reshape(-1)

    @property
    def dtype(self) -> DType:
        """The data type of the elements."""
        return dtype_of(self._elements.dtype)

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return self.untyped()

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._elements)

    def pickle_storage_type(self) -> str:
        """The name of the class of storages of the dtype."""
        return f"{SCALAR_TYPES[self.dtype.name]}Storage"

    def type(self, dtype: Any = None) -> Any:
        """The name of the class with its module, or the elements converted to a dtype."""
        return f"torch.{self.pickle_storage_type()}" if dtype is None else self._like(self._elements.astype(dtype_of(dtype).numpy))

    def __getitem__(self, index: Any) -> Any:
        """An element."""
        if isinstance(index, slice):
            raise RuntimeError("storage: slices are those of bytes. Call untyped() first.")
        return self._elements[self._place(index)].item()

    def __repr__(self) -> str:
        lines = "\n".join(f" {number}" for number in self.tolist())
        return f"{lines}\n[torch.storage.TypedStorage(dtype={self.dtype}, device=cpu) of size {self.size()}]"


class _OfDtype(type):
    """The class of the storages of one dtype, such as FloatStorage: calls give a TypedStorage."""

    dtype: DType

    def __call__(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        return TypedStorage(*args, dtype=cls.dtype, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype


STORAGES: dict[str, Any] = {}
for _name, _word in SCALAR_TYPES.items():
    if not _name.startswith("uint") or _name == "uint8":
        STORAGES[f"{_word}Storage"] = _OfDtype(f"{_word}Storage", (), {"dtype": DTYPES[_name], "__module__": "torch",
                                                                        "__doc__": f"The storages of {_name}."})
for _name, _method in {"float64": "double", "float32": "float", "float16": "half", "bfloat16": "bfloat16", "int64": "long", "int32": "int",
                       "int16": "short", "int8": "char", "uint8": "byte", "bool": "bool", "complex64": "complex_float",
                       "complex128": "complex_double"}.items():
    setattr(TypedStorage, _method, functools.partialmethod(TypedStorage.type, DTYPES[_name]))


def is_storage(obj: Any) -> bool:
    """Whether an object is the memory of a tensor."""
    return isinstance(obj, _Storage)


@METHODS.define
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The storage of the tensor, which all its views share.

    >>> import symgrad
    >>> x = symgrad.zeros(4)
    >>> x[1:3].untyped_storage() == x.untyped_storage(), x.untyped_storage().nbytes()
    (True, 32)
    """
    refuse_array(self, "untyped_storage()")
    if is_recorded(self._value):
        raise Unrecordable("the storage of a tensor that is computed: values in a program have no memory")
    return UntypedStorage(owner(self._shared_array()))


@METHODS.define
def storage(self: Tensor) -> TypedStorage:
    """The storage of the tensor as elements of its dtype: of `symgrad.zeros(4)[1:3]` four elements."""
    return TypedStorage(wrap_storage=untyped_storage(self), dtype=self.dtype)


@METHODS.define
def storage_type(self: Tensor) -> Any:
    """The class of storages of the tensor's dtype, such as FloatStorage."""
    return STORAGES[f"{self.dtype.scalar_type}Storage"]
