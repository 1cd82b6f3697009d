"""Worker threads that load batches ahead, in turn, so that the order is that of a single loader."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError
from dataclasses import dataclass
from itertools import islice
from typing import Any

__all__ = ["Fetch", "WorkerInfo", "examples_of", "fetch", "get_worker_info", "in_threads"]

END = object()
Fetch = Callable[[Any], Any]  # from the indices of a sampler to a batch; DONE at the end


@dataclass(frozen=True)
class WorkerInfo:
    """The number of a worker thread, the number of workers, its seed, and its data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_thread = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """The worker of the current thread; None outside workers."""
    return getattr(_thread, "info", None)


def fetch(dataset: Any, batched: bool, collate: Callable[[Any], Any]) -> Fetch:
    """The function from indices to a batch, or from an index to an example."""
    get_items = getattr(dataset, "__getitems__", None)

    def load(index: Any) -> Any:
        if not batched:
            return collate(dataset[index])
        return collate(get_items(index) if get_items else [dataset[i] for i in index])

    return load


def examples_of(dataset: Any, batched: bool, drop_last: bool, collate: Callable[[Any], Any]) -> Fetch:
    """The function to the next batch of an iterable data set, of as many examples as the sampler gave indices."""
    examples = iter(dataset)

    def load(index: Any) -> Any:
        taken = list(islice(examples, len(index) if batched else 1))
        if not taken or batched and drop_last and len(taken) < len(index):
            return END
        return collate(taken if batched else taken[0])

    return load


def in_threads(make: Callable[[], Fetch], indices: Iterator[Any], infos: list[WorkerInfo], queue_length: int, timeout: float,
               start: Callable[[int], Any] | None) -> Iterator[Any]:
    """Batches in order, loaded by one thread for each of `infos`, each with its own fetch function and at most `queue_length` batches in its queue.

    Exceptions of threads are raised here, with their tracebacks. Raises RuntimeError if a batch takes longer than `timeout` seconds.
    """
    def begin(info: WorkerInfo) -> Fetch:
        _thread.info = info
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

        for _ in range(queue_length * len(infos)):
            submit()
        while waiting:
            worker, future = waiting.popleft()
            try:
                batch = future.result(timeout or None)
            except TimeoutError:
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds") from None
            if batch is not END:
                yield batch
            elif worker in active:
                active.remove(worker)
            if active:
                submit()
    finally:
        for pool in pools:
            pool.shutdown(wait=True, cancel_futures=True)
