"""The worker processes of a loader, as the loader sees them: tasks go out in turn, batches come in."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import signal
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, MutableSet
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any

from symgrad.system.locks import reentrant_lock
from symgrad.system.restoring import finished
from symgrad.utils.data.workers import End, Setup, WorkerFailure, serve

__all__ = ["Workers"]

GRACE = 1.0  # seconds that a worker has to finish the batch it is loading, before it is terminated
_starting = reentrant_lock()  # no process starts between the making of a pipe and its entry into the set of open ones
_open: MutableSet[Connection] = weakref.WeakSet()  # a connection that nothing refers to is closed, which ends its process


class _Worker:
    """A process, and the connection to it."""

    connection: Any = None
    process: Any = None

    def start(self, context: Any, *arguments: Any) -> None:
        """Start the process. Whoever starts it has the worker already, so that it is ended though an interrupt comes."""
        with _starting:
            self.connection, end = context.Pipe()
            try:
                _open.add(self.connection)
                # A process that is forked has the ends of the others; in a new interpreter there are none, and an empty set is sent.
                others: MutableSet[Connection] = _open if context.get_start_method() == "fork" else set()
                self.process = context.Process(target=serve, args=(end, others, *arguments), daemon=True)
                self.process.start()
            finally:
                end.close()

    def close(self) -> None:
        if self.connection is None:
            return
        with contextlib.suppress(OSError):
            self.connection.send(None)
        with _starting:  # a process that is forked meanwhile would have a connection that is half closed
            self.connection.close()
            _open.discard(self.connection)

    def send(self, task: Any) -> None:
        """Give the process a task. One that has died is found by `receive`."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(task)

    def receive(self) -> Any:
        """The next answer of the process, which is there, or its end is."""
        if self.connection.poll():
            with contextlib.suppress(EOFError, OSError):
                return self.connection.recv()
        self.process.join(GRACE)
        code = self.process.exitcode
        how = f"it was killed by {signal.Signals(-code).name}" if code is not None and code < 0 else f"it ended with exit code {code}"
        remedy = "; if the memory ran out, take fewer workers or smaller batches" if code == -9 else ""
        raise RuntimeError(f"DataLoader worker (pid(s) {self.process.pid}) exited unexpectedly: {how}{remedy}")


def _end(workers: list[_Worker], owner: int, grace: float = GRACE) -> None:
    """End the processes: with a message, by a signal after some seconds, and by one that cannot be refused."""
    if os.getpid() != owner:  # in a process that was forked from the owner
        return
    for worker in workers:
        worker.close()
    processes = [worker.process for worker in workers if worker.process is not None and worker.process.pid is not None]  # those that were started
    for end, stop in (grace, "terminate"), (1.0, "kill"):
        deadline = time.monotonic() + end
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.exitcode is None:
                getattr(process, stop)()
    for process in processes:
        process.join()
    workers.clear()


class Workers:
    """The processes of a loader. They end with `close`, and when nothing refers to this object."""

    def __init__(self, setup: Setup, count: int, prefetch: int, timeout: float, in_order: bool, context: Any, init: Callable[[int], Any] | None,
                 seed: int):
        self.prefetch, self.timeout, self.in_order, self.epoch = prefetch, timeout, in_order, 0
        self._workers: list[_Worker] = []
        self._finalizer = weakref.finalize(self, finished, functools.partial(_end, self._workers, os.getpid()))
        try:
            for number in range(count):
                self._workers.append(_Worker())
                self._workers[-1].start(context or multiprocessing.get_context(), setup, number, count, seed, init)
        except BaseException:
            self.close(0)
            raise

    def close(self, grace: float = GRACE) -> None:
        """End the processes; one that still loads a batch after some seconds is terminated."""
        if not self.closed:
            finished(functools.partial(_end, self._workers, os.getpid(), grace))  # an interrupt here leaves the rest to the finalizer
            self._finalizer.detach()

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    def start(self, indices: Iterator[Any]) -> Epoch:
        """The batches for some indices, which the workers begin to load."""
        self.epoch += 1
        return Epoch(self, indices)


class Epoch:
    """The batches of one pass through the data, in the order of the indices, or in that of their arrival if `in_order` is false."""

    def __init__(self, pool: Workers, indices: Iterator[Any]):
        self._pool, self._number, self._indices = pool, pool.epoch, indices
        self._active, self._waiting = deque(pool._workers), deque[_Worker]()  # those that have examples left; one entry for each task
        self._most = max(1, pool.prefetch) * len(self._active)
        for _ in range(self._most):
            self._submit()

    def _submit(self) -> None:
        if not self._active:
            return
        for index in islice(self._indices, 1):
            while not self._pool.in_order and self._waiting.count(self._active[0]) >= -(-self._most // len(self._active)):
                self._active.rotate(-1)
            worker = self._active[0]
            self._active.rotate(-1)
            worker.send((self._number, index))
            self._waiting.append(worker)

    def _answer(self) -> tuple[_Worker, Any]:
        """The next answer and its worker; answers of passes that were not read to their end are dropped."""
        pool = self._pool
        while True:
            if pool.epoch != self._number:
                raise RuntimeError("a newer iterator of this DataLoader uses its persistent workers; one iterator at a time can be read")
            if pool.closed:
                raise RuntimeError("the workers of this DataLoader have ended; take a new iterator")
            asked = {self._waiting[0]} if pool.in_order else set(self._waiting)
            ends: dict[Any, _Worker] = {end: worker for worker in asked for end in (worker.process.sentinel, worker.connection)}
            ready = wait(list(ends), pool.timeout or None)
            if not ready:
                raise RuntimeError(f"DataLoader timed out after {pool.timeout} seconds")
            worker = ends[ready[0]]
            try:
                epoch, answer = worker.receive()
            except BaseException:
                pool.close(0)
                raise
            if epoch == self._number:
                return worker, answer

    def next(self) -> Any:
        """The next batch; End after the last. Raises the exceptions of workers, RuntimeError for one that was killed and for a timeout."""
        while self._waiting:
            worker, answer = self._answer()
            self._waiting.remove(worker)
            if answer is End and worker in self._active:
                self._active.remove(worker)
            self._submit()
            if isinstance(answer, WorkerFailure):
                raise answer.error()
            if answer is not End:
                return answer
        return End
