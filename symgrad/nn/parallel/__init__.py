"""Modules that compute in parallel: in the threads of this process, and in several processes."""

from typing import Any

from symgrad.nn.parallel.data_parallel import DataParallel, data_parallel, gather, scatter
from symgrad.nn.parallel.distributed import DistributedDataParallel
from symgrad.types.absent import missing as _missing

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "scatter"]


def __getattr__(name: str) -> Any:
    raise _missing(__name__, name)
