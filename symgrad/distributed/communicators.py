"""What carries arrays and objects between processes: MPI, or nothing where there is one process."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.distributed.waiting import Farewells, Probe, Request

__all__ = ["Alone", "Communicator", "OverMPI", "ReduceOp"]


class ReduceOp(enum.Enum):
    """How the elements of all processes become one: their sum, mean, product, least, greatest, or their bits by and, or, exclusive or."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = range(8)


class Alone:
    """The only process of its group. Requests are None: what would be asked for is done at once."""

    rank, size = 0, 1

    def reduce(self, array: np.ndarray, op: ReduceOp, root: int | None = None) -> Any:
        """Replace the array by that reduced over all processes: in all of them, or in one."""

    def broadcast(self, array: np.ndarray, root: int) -> Any:
        """Replace the array by that of one process."""

    def gather(self, array: np.ndarray, out: np.ndarray | None, root: int | None = None) -> Any:
        """Write the arrays of all processes into the rows of `out`: in all of them, or in one."""
        if out is not None:
            out[0] = array

    def scatter(self, rows: np.ndarray | None, out: np.ndarray, root: int) -> Any:
        """Write the row of this process of an array that one has into `out`."""
        if rows is not None:
            out[...] = rows[0]

    def send(self, array: np.ndarray, to: int, tag: int) -> Any:
        """Send an array to one process."""
        raise RuntimeError("there is no other process: start the program by mpiexec -n 2 python ...")

    def receive(self, array: np.ndarray, source: int | None, tag: int) -> Any:
        """Write an array that one process sends."""
        raise RuntimeError("there is no other process: start the program by mpiexec -n 2 python ...")

    def receive_from_any(self, array: np.ndarray, tag: int) -> int:
        """Write an array that some process sends; returns its rank."""
        return self.receive(array, None, tag)

    def barrier(self) -> Any:
        """Wait until every process has come here."""

    def objects(self, x: Any, root: int | None = None) -> list[Any] | None:
        """The objects of all processes: in all of them, or in one."""
        return [x]

    def object_of(self, x: Any, root: int) -> Any:
        """The object of one process."""
        return x

    def object_from(self, xs: Sequence[Any] | None, root: int) -> Any:
        """The object of this process, of those that one has."""
        return None if xs is None else xs[0]

    def send_object(self, x: Any, to: int) -> None:
        """Send an object to one process."""
        self.send(np.empty(0), to, 0)

    def receive_object(self, source: int | None) -> tuple[int, Any]:
        """The rank of a sender, and the object it sends."""
        return self.receive(np.empty(0), source, 0)

    def subset(self, ranks: Sequence[int]) -> Alone | None:
        """The communicator of some of the processes, None in the others."""
        return self if 0 in ranks else None

    def leave(self) -> None:
        """Tell the other processes that this one ends."""

    def free(self) -> None:
        """End the communicator."""


Communicator = Alone


class OverMPI(Alone):
    """Some processes of an MPI job; `ranks` are theirs among all. Waiting ends with RuntimeError where one of them has ended."""

    def __init__(self, comm: Any, farewells: Farewells | None = None, number: int = 0, ranks: Sequence[int] | None = None):
        self.comm, self.rank, self.size, self.number = comm, comm.Get_rank(), comm.Get_size(), number
        self.ranks = range(self.size) if ranks is None else ranks
        self.farewells = Farewells(comm) if farewells is None else farewells
        self.subsets = 0

    def _all(self, request: Any) -> Request:
        """A collective call."""
        calls = self.farewells.calls
        calls[self.number] = call = calls.get(self.number, 0) + 1
        return Request(self.farewells, request, self.number, self.ranks, call)

    def _one(self, request: Any, peer: int | None) -> Request:
        """A message from or to one process, or from any other."""
        return Request(self.farewells, request, self.number, [r for k, r in enumerate(self.ranks) if k == peer or peer is None and k != self.rank])

    def reduce(self, array: np.ndarray, op: ReduceOp, root: int | None = None) -> Any:
        """Replace the array by that reduced over all processes: in all of them, or in one."""
        from mpi4py import MPI

        kind = {ReduceOp.SUM: MPI.SUM, ReduceOp.AVG: MPI.SUM, ReduceOp.PRODUCT: MPI.PROD, ReduceOp.MIN: MPI.MIN, ReduceOp.MAX: MPI.MAX,
                ReduceOp.BAND: MPI.BAND, ReduceOp.BOR: MPI.BOR, ReduceOp.BXOR: MPI.BXOR}[op]
        array = array.reshape(-1)
        if root is None:
            return self._all(self.comm.Iallreduce(MPI.IN_PLACE, array, kind))
        given, out = (MPI.IN_PLACE, array) if root == self.rank else (array, None)
        return self._all(self.comm.Ireduce(given, out, kind, root))

    def broadcast(self, array: np.ndarray, root: int) -> Any:
        """Replace the array by that of one process."""
        return self._all(self.comm.Ibcast(_bytes(array), root))

    def gather(self, array: np.ndarray, out: np.ndarray | None, root: int | None = None) -> Any:
        """Write the arrays of all processes into the rows of `out`: in all of them, or in one."""
        if root is None:
            return self._all(self.comm.Iallgather(_bytes(array), _bytes(out)))
        return self._all(self.comm.Igather(_bytes(array), _bytes(out), root))

    def scatter(self, rows: np.ndarray | None, out: np.ndarray, root: int) -> Any:
        """Write the row of this process of an array that one has into `out`."""
        return self._all(self.comm.Iscatter(_bytes(rows), _bytes(out), root))

    def send(self, array: np.ndarray, to: int, tag: int) -> Any:
        """Send an array to one process."""
        return self._one(self.comm.Isend(_bytes(array), to, tag), to)

    def receive(self, array: np.ndarray, source: int | None, tag: int) -> Any:
        """Write an array that one process sends."""
        from mpi4py import MPI

        return self._one(self.comm.Irecv(_bytes(array), MPI.ANY_SOURCE if source is None else source, tag), source)

    def receive_from_any(self, array: np.ndarray, tag: int) -> int:
        """Write an array that some process sends; returns its rank."""
        probe = self._probe(None, tag)
        probe.message.Recv(_bytes(array))
        return int(probe.status.Get_source())

    def _probe(self, source: int | None, tag: int) -> Any:
        """Wait for a message."""
        from mpi4py import MPI

        probe = Probe(self.comm, MPI.ANY_SOURCE if source is None else source, tag)
        self._one(probe, source).Wait()
        return probe

    def barrier(self) -> Any:
        """Wait until every process has come here."""
        return self._all(self.comm.Ibarrier())

    def objects(self, x: Any, root: int | None = None) -> list[Any] | None:
        """The objects of all processes: in all of them, or in one."""
        self.barrier().Wait()  # what follows waits in MPI itself
        return self.comm.allgather(x) if root is None else self.comm.gather(x, root)

    def object_of(self, x: Any, root: int) -> Any:
        """The object of one process."""
        self.barrier().Wait()
        return self.comm.bcast(x, root)

    def object_from(self, xs: Sequence[Any] | None, root: int) -> Any:
        """The object of this process, of those that one has."""
        self.barrier().Wait()
        return self.comm.scatter(xs, root)

    def send_object(self, x: Any, to: int) -> None:
        """Send an object to one process."""
        self._one(self.comm.isend(x, to), to).Wait()

    def receive_object(self, source: int | None) -> tuple[int, Any]:
        """The rank of a sender, and the object it sends."""
        probe = self._probe(source, 0)
        return probe.status.Get_source(), probe.message.recv()

    def subset(self, ranks: Sequence[int]) -> Alone | None:
        """The communicator of some of the processes, None in the others."""
        from mpi4py import MPI

        self.barrier().Wait()
        self.subsets += 1  # the same in all processes
        comm = self.comm.Split(0 if self.rank in ranks else MPI.UNDEFINED, ranks.index(self.rank) if self.rank in ranks else 0)
        return None if comm == MPI.COMM_NULL else OverMPI(comm, self.farewells, self.subsets, list(ranks))

    def leave(self) -> None:
        """Tell the other processes that this one ends."""
        self.farewells.send()

    def free(self) -> None:
        """End the communicator, but that of all processes."""
        if self.number:
            self.barrier().Wait()
            self.comm.Free()


def _bytes(array: np.ndarray | None) -> np.ndarray | None:
    """The memory of a contiguous array, for MPI knows no bfloat16."""
    return None if array is None else array.reshape(-1).view(np.uint8)
