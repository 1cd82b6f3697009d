"""Modules that compute in parallel: in the threads of this process, and in several processes."""

import importlib
from typing import TYPE_CHECKING, Any

from symgrad.nn.parallel.data_parallel import DataParallel, data_parallel, gather, scatter
from symgrad.types.absent import missing as _missing

if TYPE_CHECKING:
    from symgrad.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "scatter"]


def __getattr__(name: str) -> Any:
    if name not in ("DistributedDataParallel", "distributed"):
        raise _missing(__name__, name)
    module = importlib.import_module("symgrad.nn.parallel.distributed")  # only for those who use it: `symgrad.distributed` ends jobs of MPI
    return module if name == "distributed" else module.DistributedDataParallel
