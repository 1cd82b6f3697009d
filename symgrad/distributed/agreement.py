"""Whether the processes of a group make the same call: without this, MPI adds the bits of float32 to those of float64, and waits without end.

Before a collective call each process tells the first of the group what it calls, with the dtype and the shape of its tensor, and that one answers
all. SYMGRAD_DISTRIBUTED_CHECK=0 switches this off.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

HEAD = 256  # bytes before the elements of a message from one process to another


def described(array: np.ndarray) -> str:
    """The dtype and the shape of an array."""
    return f"{array.dtype.name} {list(array.shape)}"


class CallComparison:
    """What compares the calls of the processes of a group, by a communicator of its own."""

    def __init__(self, comm: Any, farewells: Farewells, number: int, ranks: Sequence[int], timeout: float):
        self.is_on = os.environ.get("SYMGRAD_DISTRIBUTED_CHECK", "1") != "0"
        self.comm: Any = comm.Dup() if self.is_on else None
        self.farewells, self.number, self.ranks, self.timeout = farewells, number, ranks, timeout
        self.calls = 0
        self._sent: list[Any] = []

    def check(self, call: str, failure: str = "") -> None:
        """Raise RuntimeError in all processes if one of them makes another call, has failed before it, or makes none."""
        if not self.is_on:
            if failure:
                raise RuntimeError(failure)
            return
        self.calls += 1
        rank, size = self.comm.Get_rank(), self.comm.Get_size()
        self._sent = [request for request in self._sent if not request.Test()]
        if rank:
            self._sent.append(self.comm.isend((call, failure), 0, tag=self.calls))
            answer = _Messages(self.comm, [0], self.calls)
            self._wait(answer, call, [0], ", or a process that it waits for,")
            found = answer.found[0]
        else:
            others = _Messages(self.comm, range(1, size), self.calls)
            try:
                self._wait(others, call, range(1, size))
                found = self._verdict({0: (call, failure), **others.found})
            except RuntimeError as error:
                found = str(error)
            self._sent += [self.comm.isend(found, k, tag=self.calls) for k in range(1, size)]
        if found:
            raise RuntimeError(found)

    def _verdict(self, calls: dict[int, tuple[str, str]]) -> str:
        """What is wrong with the calls of all processes; empty if nothing is."""
        failed = [f"rank {self.ranks[k]}: {failure}" for k, (_, failure) in sorted(calls.items()) if failure]
        if failed:
            return "; ".join(failed)
        by_call: dict[str, list[int]] = {}
        for k, (call, _) in sorted(calls.items()):
            by_call.setdefault(call, []).append(self.ranks[k])
        if len(by_call) == 1:
            return ""
        said = "; ".join(f"rank {', '.join(map(str, ranks))}: {call}" for call, ranks in by_call.items())
        return f"the processes of a group make different calls ({said}): all must make the same call, with tensors of one dtype and one shape"

    def _wait(self, messages: _Messages, call: str, peers: Sequence[int], more: str = "") -> None:
        request = Request(self.farewells, messages, self.number, [self.ranks[k] for k in peers], self.calls)
        request.limit = self.timeout, lambda: (f"{call}: rank {', '.join(str(self.ranks[k]) for k in messages.missing)}{more} has not made this "
                                               f"call within {self.timeout:g} s")
        request.Wait()

    def free(self) -> None:
        if self.comm is not None:
            self.comm.Free()


class _Messages:
    """One message of a tag from each of some processes, as a request."""

    def __init__(self, comm: Any, sources: Sequence[int], tag: int):
        self.comm, self.missing, self.tag = comm, list(sources), tag
        self.found: dict[int, Any] = {}

    def Test(self) -> bool:
        for k in [*self.missing]:
            if (message := self.comm.improbe(k, self.tag)) is not None:
                self.found[k] = message.recv()
                self.missing.remove(k)
        return not self.missing


def packed(array: np.ndarray) -> np.ndarray:
    """The bytes of an array behind its description."""
    head = described(array).encode().ljust(HEAD)
    if len(head) > HEAD:
        raise ValueError(f"a tensor of {array.ndim} dimensions is too large to describe; flatten it")
    return np.concatenate([np.frombuffer(head, np.uint8), np.ascontiguousarray(array).reshape(-1).view(np.uint8)])


def unpack(data: np.ndarray, count: int, array: np.ndarray, source: Any) -> None:
    """Write the bytes of a message into an array. Raises RuntimeError for another dtype or shape."""
    sent, wanted = data[:HEAD].tobytes().decode(errors="replace").strip(), described(array)
    if sent != wanted or count != HEAD + array.nbytes:
        raise RuntimeError(f"recv: rank {source} has sent {sent}, and the tensor to receive it is {wanted}: give one of the same dtype and shape")
    array.reshape(-1).view(np.uint8)[:] = data[HEAD:count]


LOOK = 0.25  # seconds between two looks for processes that have ended
GRACE = 2.0  # seconds that a message may need after the end of its sender
YIELD = getattr(os, "sched_yield", lambda: None)


class Farewells:
    """The processes that have ended. At its exit each tells the others how many collective calls it has made in each group.

    So a process that waits knows whether the call that it waits for can still be answered: without this, one that left by `sys.exit`, or came to its
    end sooner, would leave the others waiting without end.
    """

    def __init__(self, comm: Any):
        self.comm = comm.Dup()
        self.calls: dict[int, int] = {}  # of this process, by the number of the group
        self.ended: dict[int, dict[int, int]] = {}  # those of the processes that have ended, by rank
        self._sent: list[Any] = []

    def send(self) -> None:
        """Tell the other processes that this one ends."""
        from mpi4py import MPI

        if not MPI.Is_finalized():
            self._sent = [self.comm.isend(self.calls, rank) for rank in range(self.comm.Get_size()) if rank != self.comm.Get_rank()]

    def receive(self) -> None:
        """Note the processes that have ended."""
        from mpi4py import MPI

        while (message := self.comm.improbe(status=(status := MPI.Status()))) is not None:
            self.ended[status.Get_source()] = message.recv()


class Request:
    """A request of MPI that other processes must answer: collective call number `call` of a group, or a message from or to `peers`."""

    def __init__(self, farewells: Farewells, request: Any, group: int, peers: Sequence[int], call: int | None = None):
        self.farewells, self.request, self.group, self.peers, self.call = farewells, request, group, peers, call
        self.limit: tuple[float, Callable[[], str]] = math.inf, str  # seconds to wait, and what to say after them

    def Test(self) -> bool:
        return bool(self.request.Test())

    def Wait(self) -> None:
        """Wait until it is done. Raises RuntimeError if a process that it needs has ended, and after the limit."""
        start = look = time.monotonic()
        while not self.request.Test():
            YIELD()
            if (now := time.monotonic()) > look + LOOK:
                look = now
                self.farewells.receive()
                self._check(now - start)
                if now - start > self.limit[0] and not self.request.Test():
                    raise RuntimeError(self.limit[1]())

    def _check(self, waited: float) -> None:
        ended = [rank for rank in self.peers if rank in self.farewells.ended]
        if self.call is None:
            lost = ended if waited > GRACE and len(ended) == len(self.peers) else []
        else:
            lost = [rank for rank in ended if self.farewells.ended[rank].get(self.group, 0) < self.call]
        if lost:
            raise RuntimeError(f"rank {', '.join(map(str, lost))} has ended, and this process waits for it: all processes of a group must make the "
                               f"same calls before one ends, by sys.exit or at the end of its program")


class MessageProbe:
    """A message that has not come yet, as a request."""

    def __init__(self, comm: Any, source: int, tag: int):
        self.comm, self.source, self.tag, self.message = comm, source, tag, None

    def Test(self) -> bool:
        from mpi4py import MPI

        self.status = MPI.Status()
        self.message = self.comm.improbe(self.source, self.tag, self.status)
        return self.message is not None
