"""What a worker process of a loader does: it loads one batch for each task, in turn, and sends it back."""

from __future__ import annotations

import os
import queue
import random
import signal
import threading
import traceback
from collections.abc import Callable, MutableSet
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from symgrad.factories.generators import manual_seed

__all__ = ["End", "WorkerFailure", "Fetch", "Setup", "WorkerInfo", "get_worker_info", "serve"]

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
