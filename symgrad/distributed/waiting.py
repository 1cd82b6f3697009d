"""Waiting for other processes, of which some may have ended."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Farewells", "MessageProbe", "Request"]

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
        """Whether it is done."""
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
        """Whether the message is there."""
        from mpi4py import MPI

        self.status = MPI.Status()
        self.message = self.comm.improbe(self.source, self.tag, self.status)
        return self.message is not None
