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

from symgrad.distributed.collectives import (
    Work,
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    broadcast_object_list,
    gather,
    gather_object,
    irecv,
    isend,
    recv,
    recv_object_list,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
    scatter_object_list,
    send,
    send_object_list,
)
from symgrad.distributed.communicators import ReduceOp
from symgrad.distributed.groups import (
    GroupMember,
    ProcessGroup,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_initialized,
    is_mpi_available,
    new_group,
)

__all__ = ["GroupMember", "ProcessGroup", "ReduceOp", "Work", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce",
           "all_to_all", "all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "destroy_process_group", "gather", "gather_object",
           "get_backend", "get_global_rank", "get_group_rank", "get_process_group_ranks", "get_rank", "get_world_size", "group",
           "init_process_group", "irecv", "is_available", "is_backend_available", "is_initialized", "is_mpi_available", "isend", "new_group", "recv",
           "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send", "send_object_list"]
