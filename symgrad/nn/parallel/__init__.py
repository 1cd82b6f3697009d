"""Modules that compute in parallel: in the threads of this process, and in several processes."""

from symgrad.nn.parallel.data_parallel import DataParallel, data_parallel, gather, scatter
from symgrad.nn.parallel.distributed import DistributedDataParallel
from symgrad.types.absent import explained as _explained

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "scatter"]


__getattr__ = _explained(__name__)
