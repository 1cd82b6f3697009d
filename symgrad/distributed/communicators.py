"""What carries arrays and objects between processes: MPI, or nothing where there is one process."""

from __future__ import annotations

import enum
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.distributed.agreement import HEAD, CallComparison, Farewells, MessageProbe, Request, described, packed, unpack


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

    def object_of(self, x: Any, root: int, what: str = "") -> Any:
        """The object of one process; `what` is compared across processes."""
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

    def subset(self, ranks: Sequence[int], timeout: float | None = None) -> Alone | None:
        """The communicator of some of the processes, None in the others."""
        return self if 0 in ranks else None

    def leave(self) -> None:
        """Tell the other processes that this one ends."""

    def free(self) -> None:
        """End the communicator."""


Communicator = Alone


class OverMPI(Alone):
    """Some processes of an MPI job; `ranks` are theirs among all. Waiting ends with RuntimeError where one of them has ended."""

    def __init__(self, comm: Any, timeout: float, farewells: Farewells | None = None, number: int = 0, ranks: Sequence[int] | None = None):
        self.comm, self.rank, self.size, self.number, self.timeout = comm, comm.Get_rank(), comm.Get_size(), number, timeout
        self.ranks = range(self.size) if ranks is None else ranks
        self.farewells = Farewells(comm) if farewells is None else farewells
        self.agreement = CallComparison(comm, self.farewells, number, self.ranks, timeout)
        self.subsets = 0

    def _agree(self, name: str, array: np.ndarray | None = None, failure: str = "") -> None:
        """Begin a collective call, which all processes make with arrays of one dtype and shape."""
        calls = self.farewells.calls
        calls[self.number] = calls.get(self.number, 0) + 1
        self._name = name if array is None else f"{name} of {described(array)}"
        self.agreement.check(self._name, failure)

    def _all(self, request: Any) -> Request:
        """The request of the collective call that was begun."""
        out, name = Request(self.farewells, request, self.number, self.ranks, self.farewells.calls[self.number]), self._name
        out.limit = self.timeout, lambda: f"{name} was not completed by all processes within {self.timeout:g} s"
        return out

    def _one(self, request: Any, peer: int | None, name: str) -> Request:
        """A message from or to one process, or from any other."""
        peers = [r for k, r in enumerate(self.ranks) if k == peer or peer is None and k != self.rank]
        out = Request(self.farewells, request, self.number, peers)
        out.limit = self.timeout, lambda: f"{name}: rank {', '.join(map(str, peers))} has not answered within {self.timeout:g} s"
        return out

    def _named(self, name: str, root: int | None, preposition: str) -> str:
        return f"all_{name}" if root is None else f"{name} {preposition} rank {self.ranks[root]}"

    def reduce(self, array: np.ndarray, op: ReduceOp, root: int | None = None) -> Any:
        from mpi4py import MPI

        kind = {ReduceOp.SUM: MPI.SUM, ReduceOp.AVG: MPI.SUM, ReduceOp.PRODUCT: MPI.PROD, ReduceOp.MIN: MPI.MIN, ReduceOp.MAX: MPI.MAX,
                ReduceOp.BAND: MPI.BAND, ReduceOp.BOR: MPI.BOR, ReduceOp.BXOR: MPI.BXOR}[op]
        self._agree(f"{self._named('reduce', root, 'to')} ({op.name})", array)
        array = array.reshape(-1)
        if root is None:
            return self._all(self.comm.Iallreduce(MPI.IN_PLACE, array, kind))
        given, out = (MPI.IN_PLACE, array) if root == self.rank else (array, None)
        return self._all(self.comm.Ireduce(given, out, kind, root))

    def broadcast(self, array: np.ndarray, root: int) -> Any:
        self._agree(self._named("broadcast", root, "from"), array)
        return self._all(self.comm.Ibcast(_bytes(array), root))

    def gather(self, array: np.ndarray, out: np.ndarray | None, root: int | None = None) -> Any:
        self._agree(self._named("gather", root, "to"), array)
        if root is None:
            return self._all(self.comm.Iallgather(_bytes(array), _bytes(out)))
        return self._all(self.comm.Igather(_bytes(array), _bytes(out), root))

    def scatter(self, rows: np.ndarray | None, out: np.ndarray, root: int) -> Any:
        self._agree(self._named("scatter", root, "from"), out)
        return self._all(self.comm.Iscatter(_bytes(rows), _bytes(out), root))

    def send(self, array: np.ndarray, to: int, tag: int) -> Any:
        return self._one(_Outgoing(self.comm, packed(array), to, tag), to, f"send of {described(array)}")

    def receive(self, array: np.ndarray, source: int | None, tag: int) -> Any:
        from mpi4py import MPI

        incoming = _Incoming(self.comm, array, MPI.ANY_SOURCE if source is None else source, tag, self.ranks)
        return self._one(incoming, source, f"recv of {described(array)}")

    def receive_from_any(self, array: np.ndarray, tag: int) -> int:
        probe = self._probe(None, tag, f"recv of {described(array)}")
        source, data = int(probe.status.Get_source()), np.empty(probe.status.Get_count(), np.uint8)
        probe.message.Recv(data)
        unpack(data, len(data), array, self.ranks[source])
        return source

    def _probe(self, source: int | None, tag: int, name: str) -> Any:
        from mpi4py import MPI

        probe = MessageProbe(self.comm, MPI.ANY_SOURCE if source is None else source, tag)
        self._one(probe, source, name).Wait()
        return probe

    def barrier(self) -> Any:
        self._agree("barrier")
        return self._all(self.comm.Ibarrier())

    def _begin(self, name: str, x: Any = None, here: bool = True) -> bytes:
        """Begin a call that waits in MPI itself; returns the pickle of an object. Raises RuntimeError in all processes if one cannot be pickled."""
        data, failure = b"", ""
        if here:
            try:
                data = pickle.dumps(x)
            except Exception as error:  # an object may raise anything
                failure = f"{name}: an object of type {type(x).__name__} cannot be pickled: {type(error).__name__}: {error}"
        self._agree(name, failure=failure)
        self._all(self.comm.Ibarrier()).Wait()
        return data

    def objects(self, x: Any, root: int | None = None) -> list[Any] | None:
        data = self._begin(self._named("gather_object", root, "to"), x)
        found = self.comm.allgather(data) if root is None else self.comm.gather(data, root)
        return None if found is None else [pickle.loads(each) for each in found]

    def object_of(self, x: Any, root: int, what: str = "") -> Any:
        data = self.comm.bcast(self._begin(self._named("broadcast_object", root, "from") + what, x, self.rank == root), root)
        return x if self.rank == root else pickle.loads(data)

    def object_from(self, xs: Sequence[Any] | None, root: int) -> Any:
        here = self.rank == root
        data, name = None, self._named("scatter_object", root, "from")
        self._begin(name, xs, here)
        if here and xs is not None:
            data = [pickle.dumps(x) for x in xs]
        return pickle.loads(self.comm.scatter(data, root))

    def send_object(self, x: Any, to: int) -> None:
        self._one(self.comm.isend(x, to), to, "send_object").Wait()

    def receive_object(self, source: int | None) -> tuple[int, Any]:
        probe = self._probe(source, 0, "recv_object")
        return probe.status.Get_source(), probe.message.recv()

    def subset(self, ranks: Sequence[int], timeout: float | None = None) -> Alone | None:
        from mpi4py import MPI

        self._begin(f"new_group {list(ranks)}")
        self.subsets += 1  # the same in all processes
        comm = self.comm.Split(0 if self.rank in ranks else MPI.UNDEFINED, ranks.index(self.rank) if self.rank in ranks else 0)
        if comm == MPI.COMM_NULL:
            return None
        return OverMPI(comm, self.timeout if timeout is None else timeout, self.farewells, self.subsets, list(ranks))

    def leave(self) -> None:
        self.farewells.send()

    def free(self) -> None:
        """End the communicator, but that of all processes."""
        if self.number:
            self._begin("destroy_process_group")
            self.agreement.free()
            self.comm.Free()


class _Outgoing:
    """A message that is sent, and its memory."""

    def __init__(self, comm: Any, data: np.ndarray, to: int, tag: int):
        self.data, self.request = data, comm.Isend(data, to, tag)

    def Test(self) -> bool:
        return bool(self.request.Test())


class _Incoming:
    """A message that is received into an array of the dtype and the shape that were sent."""

    def __init__(self, comm: Any, array: np.ndarray, source: int, tag: int, ranks: Sequence[int]):
        from mpi4py import MPI

        self.array, self.ranks, self.status = array, ranks, MPI.Status()
        self.data = np.empty(HEAD + array.nbytes, np.uint8)
        self.request = comm.Irecv(self.data, source, tag)

    def Test(self) -> bool:
        """Whether it has come. Raises RuntimeError if it is of another dtype or shape."""
        from mpi4py import MPI

        try:
            if not self.request.Test(self.status):
                return False
        except MPI.Exception as error:
            if error.Get_error_class() != MPI.ERR_TRUNCATE:
                raise
        unpack(self.data, min(self.status.Get_count(), len(self.data)), self.array, self.ranks[self.status.Get_source()])
        return True


def _bytes(array: np.ndarray | None) -> np.ndarray | None:
    """The memory of a contiguous array, for MPI knows no bfloat16."""
    return None if array is None else array.reshape(-1).view(np.uint8)
