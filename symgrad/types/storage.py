"""The memory of a tensor as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.types.devices import CPU, device

__all__ = ["UntypedStorage"]


class UntypedStorage:
    """The storage of a tensor as bytes; tensors that share memory have equal storages."""

    __slots__ = ("_bytes",)

    def __init__(self, owner: np.ndarray):
        low, high = np.lib.array_utils.byte_bounds(owner) if owner.size else (owner.__array_interface__["data"][0],) * 2
        if owner.flags.c_contiguous or owner.flags.f_contiguous:
            self._bytes = owner.ravel(order="K").view(np.uint8)
        else:
            origin = owner.__array_interface__["data"][0] - low
            first = owner[tuple(slice(-1, None) if s < 0 else slice(0, 1) for s in owner.strides)] if origin else owner
            self._bytes = np.lib.stride_tricks.as_strided(first.reshape(-1)[:1].view(np.uint8), (high - low,), (1,))

    @property
    def device(self) -> device:
        """The device of the memory."""
        return CPU

    is_cuda, is_sparse = False, False

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return int(self._bytes.__array_interface__["data"][0])

    def nbytes(self) -> int:
        """The number of bytes."""
        return int(self._bytes.size)

    size = nbytes

    def element_size(self) -> int:
        """The size of an element: one byte."""
        return 1

    def tolist(self) -> list[int]:
        """The bytes as integers."""
        return self._bytes.tolist()

    def __len__(self) -> int:
        return self.nbytes()

    def __getitem__(self, index: Any) -> Any:
        return self._bytes[index].tolist()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and (self.data_ptr(), self.nbytes()) == (other.data_ptr(), other.nbytes())

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.nbytes()))

    def __repr__(self) -> str:
        lines = "\n".join(f" {byte}" for byte in self.tolist())
        return f"{lines}\n[torch.storage.UntypedStorage(device=cpu) of size {self.nbytes()}]"
