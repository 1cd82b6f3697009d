"""Groups of processes."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import functools
import importlib.util
import os
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from symgrad.distributed.communicators import Alone, Communicator, OverMPI
from symgrad.reports.streams import Output
from symgrad.system.restoring import restored

__all__ = ["GroupMember", "ProcessGroup", "destroy_process_group", "get_backend", "get_global_rank", "get_group_rank", "get_process_group_ranks",
           "get_rank", "get_world_size", "group", "init_process_group", "is_available", "is_backend_available", "is_initialized", "is_mpi_available",
           "new_group"]

LAUNCHED = "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS"  # variables in which `mpiexec` says how many processes it starts
TIMEOUT = 1800.0  # seconds in which all processes must have started, as in torch
LAST = 60.0  # seconds in which they must have where one has failed
EXTRA = "several processes need mpi4py and an MPI: pip install 'symgrad[mpi]'"


class ProcessGroup:
    """Some processes, with their ranks among all."""

    def __init__(self, communicator: Communicator, ranks: Sequence[int]):
        self.communicator, self.ranks = communicator, list(ranks)

    def rank(self) -> int:
        """The rank of this process in the group."""
        return self.communicator.rank

    def size(self) -> int:
        """The number of processes in the group."""
        return self.communicator.size

    def __repr__(self) -> str:
        return f"ProcessGroup(ranks={self.ranks})"


class GroupMember:
    """What `new_group` returns in processes that are not in the group."""

    NON_GROUP_MEMBER = -100


class _World:
    """All processes: `group.WORLD`."""

    WORLD: ProcessGroup | None = None


_world = group = _World()


def is_available() -> bool:
    """True: with one process nothing more is needed."""
    return True


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def is_backend_available(backend: str) -> bool:
    """Whether a backend is there: "mpi", where mpi4py is installed."""
    return backend.lower() == "mpi" and is_mpi_available()


def is_initialized() -> bool:
    """Whether `init_process_group` was called."""
    return _world.WORLD is not None


def init_process_group(backend: str | None = None, init_method: Any = None, timeout: Any = None, world_size: int = -1, rank: int = -1,
                       store: Any = None, group_name: str = "", pg_options: Any = None, device_id: Any = None) -> None:
    """Make the group of all processes: those that `mpiexec` has started, or this one alone.

    The backend is "mpi", or None for it. A `world_size` and a `rank` that are given must be those of MPI. The process ends where the others have not
    come here in `timeout` (seconds, or a timedelta; half an hour by default). `init_method`, `store`, `group_name`, `pg_options` and `device_id` have
    no effect. An exception that ends one of several processes is printed with its rank, and ends all; where one leaves by `sys.exit`, those that wait
    for it raise RuntimeError.

    Raises ValueError for another backend, for other numbers than MPI's, and for a second call; ImportError where several processes, or the backend
    "mpi", are asked for and there is no mpi4py, or no MPI for it.
    """
    if is_initialized():
        raise ValueError("init_process_group: there is a default process group; call destroy_process_group first")
    if backend not in (None, "mpi", "cpu:mpi"):
        raise ValueError(f"Unknown backend '{backend}'. The backend is 'mpi': start the processes by mpiexec -n 2 python program.py")
    if world_size == -1 and "WORLD_SIZE" in os.environ:  # of a launcher that is not MPI's
        world_size = int(os.environ["WORLD_SIZE"])
    several = world_size > 1 or _launched()
    try:
        with _ending_after(timeout) if several else contextlib.nullcontext():
            from mpi4py import MPI

            communicator: Communicator = OverMPI(MPI.COMM_WORLD, _seconds(timeout))
    except (ImportError, RuntimeError) as error:  # mpi4py raises RuntimeError where it finds no MPI
        if several or backend is not None:
            raise ImportError(f"init_process_group: {EXTRA}") from error
        communicator = Alone()
    for name, asked, found in ("world_size", world_size, communicator.size), ("rank", rank, communicator.rank):
        if asked not in (-1, found):
            raise ValueError(f"{name} is {asked}, but MPI says {found}: start the processes by mpiexec -n {max(world_size, 2)} python program.py")
    _world.WORLD = ProcessGroup(communicator, range(communicator.size))
    if communicator.size > 1:
        atexit.register(communicator.leave)


def _launched() -> bool:
    """Whether `mpiexec` has started several processes."""
    return any(int(os.environ.get(name) or 1) > 1 for name in LAUNCHED)


def _seconds(timeout: Any) -> float:
    """A timeout as seconds; it may be a timedelta, or None for half an hour."""
    return float(TIMEOUT if timeout is None else getattr(timeout, "total_seconds", lambda: timeout)())


@contextlib.contextmanager
def _ending_after(timeout: Any) -> Iterator[None]:
    """A context, as one that waits in MPI itself, that ends the process with its traceback where it takes longer than a timeout."""
    with open(os.devnull, "w") as nowhere:
        file = nowhere if Output(sys.stderr).descriptor() is None else sys.stderr
        with restored(faulthandler.cancel_dump_traceback_later,
                      functools.partial(faulthandler.dump_traceback_later, _seconds(timeout), exit=True, file=file)):
            yield


def _end_all(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Print an exception that nobody handled with the rank, and end all processes, which would wait for this one without end."""
    who = "A process outside of its group" if _world.WORLD is None else f"Rank {get_rank()} of {get_world_size()}"
    interrupted = issubclass(kind, KeyboardInterrupt) and _world.WORLD is not None and get_rank() > 0  # as all are; rank 0 says where
    lines = "" if interrupted else "".join(traceback.format_exception(kind, error, trace))
    Output(sys.stdout).flush()
    errors = Output(sys.stderr)
    errors.write(f"{who} has failed, and ends the job:\n{lines}" if lines else f"{who} was interrupted.\n")
    errors.flush()
    time.sleep(0.3)  # `mpiexec` forwards what was written, and no more after the abort
    with contextlib.suppress(ImportError, RuntimeError), _ending_after(LAST):  # without MPI there is nothing to end
        from mpi4py import MPI  # joins the others, which may wait for this one to start

        MPI.COMM_WORLD.Abort(1)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """End a group, or the group of all processes.

    Raises ValueError if there is none.
    """
    found = member_of(group)
    found.communicator.free()
    if found is _world.WORLD:
        _world.WORLD = None


def member_of(group: Any) -> ProcessGroup:
    """The group, or that of all processes for None.

    Raises ValueError if there is none, and in a process that is not in the group.
    """
    found = _world.WORLD if group is None else group
    if found is None:
        raise ValueError("distributed: there is no default process group; call init_process_group first")
    if not isinstance(found, ProcessGroup):
        raise ValueError(f"distributed: this process is not in the group {group}; call it in the processes of the group alone")
    return found


def get_rank(group: Any = None) -> int:
    """The rank of this process in a group, -1 if it is not in the group."""
    return -1 if group == GroupMember.NON_GROUP_MEMBER else member_of(group).rank()


def get_world_size(group: Any = None) -> int:
    """The number of processes in a group, -1 if this process is not in the group."""
    return -1 if group == GroupMember.NON_GROUP_MEMBER else member_of(group).size()


def get_backend(group: Any = None) -> str:
    """The backend of a group, "mpi"."""
    member_of(group)
    return "mpi"


def new_group(ranks: Sequence[int] | None = None, timeout: Any = None, backend: Any = None, pg_options: Any = None,
              use_local_synchronization: bool = False, group_desc: Any = None, device_id: Any = None, sort_ranks: bool = True) -> Any:
    """A group of the processes of some ranks, in their order without `sort_ranks`; all processes must call this. Other options have no effect.

    In processes that are not in the group the result is `GroupMember.NON_GROUP_MEMBER`.

    Raises ValueError for ranks that are not there and for one that is there twice.
    """
    world = member_of(None)
    chosen = list(world.ranks) if ranks is None else sorted(ranks) if sort_ranks else list(ranks)
    if len(set(chosen)) < len(chosen) or not set(chosen) <= set(world.ranks):
        raise ValueError(f"new_group: the ranks {chosen} are not different numbers from 0 to {world.size() - 1}")
    communicator = world.communicator.subset(chosen, None if timeout is None else _seconds(timeout))
    return GroupMember.NON_GROUP_MEMBER if communicator is None else ProcessGroup(communicator, chosen)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in a group of the process of a rank among all.

    Raises ValueError if it is not in the group.
    """
    if global_rank not in (ranks := member_of(group).ranks):
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def rank_in(group: Any, rank: int | None, group_rank: int | None = None, default: int | None = None) -> int:
    """The rank in a group of a process that is given by its rank among all, by that in the group, or by a default rank among all.

    Raises ValueError if both or none are given, and if there is no such process in the group.
    """
    if rank is not None and group_rank is not None:
        raise ValueError("distributed: give the rank in the group or among all processes, and not both")
    if group_rank is not None:
        get_global_rank(group, group_rank)
        return group_rank
    if (rank := default if rank is None else rank) is None:
        raise ValueError("distributed: give the rank in the group or among all processes")
    return get_group_rank(group, rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank among all processes of a rank in a group.

    Raises ValueError if there is no such rank.
    """
    if not 0 <= group_rank < len(ranks := member_of(group).ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The ranks among all processes of the processes of a group."""
    return list(member_of(group).ranks)


if _launched() and sys.excepthook is sys.__excepthook__:
    sys.excepthook = _end_all  # from now on: the others wait for a process that fails before it joins them, too
