"""Threads that load batches ahead, in turn, so that the order is the one of a single loader."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError
from dataclasses import dataclass
from itertools import islice
from typing import Any

__all__ = ["Fetch", "WorkerInfo", "examples_of", "fetch", "get_worker_info", "in_threads"]

DONE = object()
Fetch = Callable[[Any], Any]  # from what a sampler gave to a batch; DONE where there is no more


@dataclass(frozen=True)
class WorkerInfo:
    """Which of how many worker threads this is, the seed that is its own, and the data set it loads."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_here = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """What a data set may ask for in the thread of a worker; None anywhere else."""
    return getattr(_here, "info", None)


def fetch(dataset: Any, batched: bool, collate: Callable[[Any], Any]) -> Fetch:
    """How a batch comes of indices, or one example of an index."""
    several = getattr(dataset, "__getitems__", None)

    def load(index: Any) -> Any:
        if not batched:
            return collate(dataset[index])
        return collate(several(index) if several else [dataset[i] for i in index])

    return load


def examples_of(dataset: Any, batched: bool, drop_last: bool, collate: Callable[[Any], Any]) -> Fetch:
    """How the next batch comes of examples one after another, as many as the sampler gave indices."""
    examples = iter(dataset)

    def load(index: Any) -> Any:
        taken = list(islice(examples, len(index) if batched else 1))
        if not taken or batched and drop_last and len(taken) < len(index):
            return DONE
        return collate(taken if batched else taken[0])

    return load


def in_threads(make: Callable[[], Fetch], indices: Iterator[Any], infos: list[WorkerInfo], ahead: int, timeout: float,
               start: Callable[[int], Any] | None) -> Iterator[Any]:
    """Batches in order, loaded by one thread for each of `infos`, each with a way of fetching of its own and at most `ahead` batches waiting.

    An exception of a thread is raised here, with its traceback. Raises RuntimeError where a batch takes longer than `timeout` seconds.
    """
    def begin(info: WorkerInfo) -> Fetch:
        _here.info = info
        if start is not None:
            start(info.id)
        return make()

    pools = [ThreadPoolExecutor(1) for _ in infos]
    try:
        fetches = [pool.submit(begin, info) for pool, info in zip(pools, infos)]
        active, waiting = deque(range(len(infos))), deque[tuple[int, Future[Any]]]()

        def load(worker: int, index: Any) -> Any:
            return fetches[worker].result()(index)

        def submit() -> None:
            for index in islice(indices, 1):
                worker = active[0]
                active.rotate(-1)
                waiting.append((worker, pools[worker].submit(load, worker, index)))

        for _ in range(ahead * len(infos)):
            submit()
        while waiting:
            worker, future = waiting.popleft()
            try:
                batch = future.result(timeout or None)
            except TimeoutError:
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds") from None
            if batch is not DONE:
                yield batch
            elif worker in active:
                active.remove(worker)
            if active:
                submit()
    finally:
        for pool in pools:
            pool.shutdown(wait=True, cancel_futures=True)
