"""Tensors of memory that others own: DLPack and files, with torch's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.dtypes.dtype import dtype_of, numpy_dtype
from symgrad.engine.tensor import Tensor
from symgrad.factories.factory import check_placement, sharing


class _Given:
    """A capsule as an object that gives it, which is what NumPy takes."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares memory with an object that has `__dlpack__`, such as an array of another library, or with a capsule of `to_dlpack`.

    `copy` True copies, False raises where a copy is necessary. Raises RuntimeError for other objects, BufferError for memory that is not shared.

    >>> import numpy, symgrad
    >>> x = numpy.zeros(2)
    >>> symgrad.from_dlpack(x).fill_(3.0)
    tensor([3., 3.])
    >>> x
    array([3., 3.])
    """
    check_placement(device)
    given = ext_tensor if hasattr(ext_tensor, "__dlpack__") else _Given(ext_tensor)
    if type(ext_tensor).__name__ != "PyCapsule" and isinstance(given, _Given):
        raise RuntimeError(f"from_dlpack: {type(ext_tensor).__name__} is no capsule of DLPack, and has no __dlpack__")
    array = np.from_dlpack(given, copy=copy)
    dtype_of(array.dtype)
    return sharing(array if array.ndim else array[()])


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule of DLPack with the memory of a tensor, for one call of `from_dlpack`."""
    return tensor.__dlpack__()


def from_file(filename: str, shared: bool | None = None, size: int = 0, *, dtype: Any = None, layout: Any = None, device: Any = None,
              pin_memory: bool = False) -> Tensor:
    """A vector of `size` elements whose memory is a file: what is written to a `shared` one is written to the file, which is made if it is not there.

    Raises RuntimeError for a file that is too small, unless it is shared.
    """
    check_placement(device, layout, pin_memory)
    kind = numpy_dtype(dtype)
    if not shared:
        try:
            return sharing(np.memmap(filename, kind, "c", shape=(size,)).view(np.ndarray))
        except ValueError as error:
            raise RuntimeError(f"file <{filename}> has not the size for {size} elements of {np.dtype(kind)}: {error}") from None
    with open(filename, "ab") as file:
        if file.tell() < size * kind.itemsize:
            file.truncate(size * kind.itemsize)
    return sharing(np.memmap(filename, kind, "r+", shape=(size,)).view(np.ndarray))
