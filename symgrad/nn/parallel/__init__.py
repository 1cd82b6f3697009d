"""Modules that compute in parallel: in the threads of this process, and in several processes."""

from typing import TYPE_CHECKING

from symgrad.nn.parallel.data_parallel import DataParallel, data_parallel, gather, scatter
from symgrad.system.lazy import lazy, other_names

if TYPE_CHECKING:
    from symgrad.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "scatter"]

# Only for those who use it: `symgrad.distributed` ends jobs of MPI
__getattr__, __dir__ = lazy(__name__, dict.fromkeys(("DistributedDataParallel", "distributed"), "symgrad.nn.parallel.distributed"))
other_names(__name__, {"symgrad.nn.parallel.data_parallel": "scatter_gather"})
