"""Several processes that compute together, with torch's names: groups of processes, and collective calls on tensors and objects.

The processes are those of MPI: `mpiexec -n 4 python program.py` starts four, each with its rank. This needs the extra `mpi`, which brings mpi4py and,
with MPICH, `mpiexec`. Without `mpiexec` a program is the only process of its group, and runs as it is.

    >>> from symgrad import distributed
    >>> distributed.init_process_group()
    >>> distributed.get_rank(), distributed.get_world_size()
    (0, 1)
    >>> distributed.destroy_process_group()

Of torch's names those of its own servers are absent (stores, `torchrun`, remote calls, device meshes, sharded tensors): MPI starts the processes
and knows them.
"""

from typing import TYPE_CHECKING

from symgrad.distributed import collectives, groups
from symgrad.distributed.collectives import *
from symgrad.distributed.communicators import ReduceOp as ReduceOp
from symgrad.distributed.groups import *
from symgrad.system.lazy import lazy, other_names

other_names(__name__, {__name__: "distributed_c10d"})  # torch's place for the functions

if not TYPE_CHECKING:  # a list that is computed hides all names from mypy
    __all__ = sorted(["ReduceOp", *collectives.__all__, *groups.__all__])
    __getattr__, __dir__ = lazy(__name__, {})  # an absent name says what to use instead
