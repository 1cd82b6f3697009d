"""The worker processes of a loader: tasks go out in turn, each worker loads one batch for a task and sends it back."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import queue
import random
import signal
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterator, MutableSet
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from symgrad.factories.generators import manual_seed
from symgrad.system.locks import reentrant_lock
from symgrad.system.restoring import finished

__all__ = ["End", "Fetch", "Setup", "WorkerFailure", "WorkerInfo", "Workers", "get_worker_info", "serve"]

Fetch = Callable[[Any], Any]  # from the indices of a sampler to a batch; End at the end


class End:
    """In the place of a batch: the iterable data set has no further example."""


@dataclass(frozen=True)
class WorkerInfo:
    """The number of a worker process, the number of workers, its seed, and its copy of the data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The worker that this process is; None outside workers."""
    return _info


@dataclass(frozen=True)
class Setup:
    """What a loader loads: a data set, and how its examples become batches."""

    dataset: Any
    iterable: bool
    batched: bool
    drop_last: bool
    collate: Callable[[Any], Any]

    def fetch(self) -> Fetch:
        """The function from indices to a batch, or from an index to an example; of an iterable data set the next batch of that size."""
        dataset, collate = self.dataset, self.collate
        if self.iterable:
            examples = iter(dataset)

            def following(index: Any) -> Any:
                taken = list(islice(examples, len(index) if self.batched else 1))
                if not taken or self.batched and self.drop_last and len(taken) < len(index):
                    return End
                return collate(taken if self.batched else taken[0])

            return following
        if not self.batched:
            return lambda index: collate(dataset[index])
        if get_items := getattr(dataset, "__getitems__", None):
            return lambda indices: collate(get_items(indices))
        return lambda indices: collate([dataset[i] for i in indices])


class WorkerFailure:
    """An exception of a worker, in a form that every process can read."""

    def __init__(self, worker: int, error: Exception):
        kind, text = type(error), "".join(traceback.format_exception(error))
        self.text = f"Caught {kind.__name__} in DataLoader worker process {worker}.\nOriginal {text}"
        try:
            ForkingPickler.dumps(kind)
            self.kind: type[Exception] | None = kind
        except Exception:
            self.kind = None  # a class that has no name in a module

    def error(self) -> Exception:
        """An exception of the same class with the traceback as its message, or a RuntimeError if the class does not take one message."""
        if self.kind is not None:
            try:
                return self.kind(_Message(self.text) if issubclass(self.kind, KeyError) else self.text)
            except Exception:
                pass
        return RuntimeError(self.text)


class _Message(str):
    """A message of a KeyError, which shows the `repr` of its argument."""

    def __repr__(self) -> str:
        return str(self)


def serve(connection: Connection, others: MutableSet[Connection], setup: Setup, number: int, count: int, base_seed: int,
          init: Callable[[int], Any] | None) -> None:
    """Answer tasks (epoch, indices) by (epoch, batch), until the other side closes the connection."""
    global _info
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller gets the interrupt, and ends its workers
    for other in list(others):  # inherited ends, which would keep the connections of other workers open
        other.close()
    others.clear()
    _info = WorkerInfo(number, count, base_seed + number, setup.dataset)
    random.seed(_info.seed)
    manual_seed(_info.seed)
    np.random.seed(np.random.SeedSequence((number, base_seed % 2**32, base_seed >> 32, 0)).generate_state(4))
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    closed = threading.Event()

    def receive() -> None:  # at once, so that the caller never waits for a worker that waits for the caller
        try:
            while (task := connection.recv()) is not None:
                tasks.put(task)
        except (EOFError, OSError):  # without a last message: the caller has died
            os._exit(1)
        closed.set()
        tasks.put(None)

    threading.Thread(target=receive, daemon=True).start()
    failed: WorkerFailure | None = None
    try:
        if init is not None:
            init(number)
    except Exception as error:
        failed = WorkerFailure(number, error)
    epoch, load = None, None
    while (task := tasks.get()) is not None and not closed.is_set():
        wanted, index = task
        try:
            if load is None or wanted != epoch:
                epoch, load = wanted, setup.fetch() if failed is None else None
            answer = ForkingPickler.dumps((wanted, failed if load is None else load(index)))
        except Exception as error:
            answer = ForkingPickler.dumps((wanted, WorkerFailure(number, error)))
        try:
            connection.send_bytes(answer)
        except OSError:  # the caller has closed its end
            return


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
