"""The functions of `torch.cuda` for a system without GPUs: queries return 0, False or nothing, and requests raise the error of torch without CUDA.

>>> import symgrad
>>> symgrad.cuda.is_available(), symgrad.cuda.device_count()
(False, 0)
>>> symgrad.device("cuda:0" if symgrad.cuda.is_available() else "cpu")
device(type='cpu')
"""

from __future__ import annotations

from typing import Any

from symgrad.methods.legacy import CUDA_TYPES
from symgrad.types.absent import explained as _explained
from symgrad.types.devices import device as _device
from symgrad.types.devices import unavailable_error
from symgrad.types.queries import answers, refusals

has_half, has_magma = False, False
_QUERIES = answers(False, "Whether a GPU is available: False.", "is_available", "is_initialized", "is_bf16_supported", "is_tf32_supported",
                   "is_current_stream_capturing")
_QUERIES |= answers(0, "The number of GPUs, or of bytes in their memory: 0.", "device_count", "memory_allocated", "max_memory_allocated",
                    "memory_reserved", "max_memory_reserved", "memory_cached", "max_memory_cached")
_QUERIES |= answers([], "The architectures or compiler flags of GPUs: none.", "get_arch_list", "get_gencode_flags")
_QUERIES |= answers(None, "Do nothing, since there is no GPU.", "manual_seed", "manual_seed_all", "seed", "seed_all", "empty_cache",
                    "reset_peak_memory_stats", "reset_max_memory_allocated")
_QUERIES |= refusals(lambda: unavailable_error(_device("cuda")), "init", "current_device", "set_device", "get_device_name",
                     "get_device_capability", "get_device_properties", "can_device_access_peer", "synchronize", "current_stream",
                     "default_stream", "set_stream", "stream", "initial_seed", "get_rng_state", "set_rng_state", "get_rng_state_all",
                     "set_rng_state_all", "mem_get_info", "memory_stats", "memory_summary", "ipc_collect", "utilization", "Stream", "Event")
globals().update(CUDA_TYPES, **_QUERIES)


class device:
    """A block that selects a GPU; entering it raises AssertionError, unless the index is None or negative, which selects none."""

    def __init__(self, device: Any):
        self.index = device.index if isinstance(device, _device) else device

    def __enter__(self) -> None:
        if self.index is not None and not (isinstance(self.index, int) and self.index < 0):
            raise unavailable_error(_device("cuda"))

    def __exit__(self, *exception: Any) -> None:
        """Do nothing, since no GPU was selected."""


__getattr__, __path__ = _explained(__name__), list[str]()
