"""Whether the processes of a group make the same call: without this, MPI adds the bits of float32 to those of float64, and waits without end.

Before a collective call each process tells the first of the group what it calls, with the dtype and the shape of its tensor, and that one answers
all. SYMGRAD_DISTRIBUTED_CHECK=0 switches this off.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.distributed.waiting import Farewells, Request

__all__ = ["HEAD", "CallComparison", "described", "packed", "unpack"]

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
        """End the communicator."""
        if self.comm is not None:
            self.comm.Free()


class _Messages:
    """One message of a tag from each of some processes, as a request."""

    def __init__(self, comm: Any, sources: Sequence[int], tag: int):
        self.comm, self.missing, self.tag = comm, list(sources), tag
        self.found: dict[int, Any] = {}

    def Test(self) -> bool:
        """Whether all have come."""
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
