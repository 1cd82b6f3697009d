"""Modules that compute in parallel: in the threads of this process, and in several processes."""

from symgrad.nn.parallel.data_parallel import DataParallel, gather, scatter
from symgrad.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "gather", "scatter"]
